//! The whole schedule of every built-in policy on the wire of a receiver that always fails: the
//! real engine, on a simulated clock, over days.

use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{FailureKind, OrgId, Outcome, ResponseHead, Timestamp};
use aldaba_engine::{
    Clock, CreateOutcome, Engine, NewApplication, NewEndpoint, NewEvent, Options, Parts, Policies,
    SendReceipt, Sending, Transport, Vault, WireRequest, WireResponse,
};
use aldaba_store::{Actor, ApplicationRef, DeliveryState, EndpointConfig, Store};
use bytes::Bytes;
use parking_lot::Mutex;
use simulation::entropy::{Dice, SeededEntropy};
use simulation::process::Process;
use simulation::store::{Faults, SimStore};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Answers at once, always the same, and notes when each request came.
struct Failing {
    clock: Arc<dyn Clock>,
    outcome: Outcome,
    log: Mutex<Vec<Timestamp>>,
}

impl Transport for Failing {
    fn send(&self, _request: WireRequest) -> Sending {
        self.log.lock().push(self.clock.now());
        let response = WireResponse { outcome: self.outcome.clone(), body: Bytes::new() };
        Box::pin(async move { response })
    }
}

fn status(status: u16) -> Outcome {
    Outcome::Response(ResponseHead { status, phrase: "".into(), retry_after: None })
}

/// What one delivery comes to under a policy: the seconds of its requests, and its end.
fn wire_log(policy: &str, outcome: Outcome, hours: u32) -> (Vec<f64>, DeliveryState) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without IO").block_on(async {
        let process = Process::new(0, Timestamp::from_millis(1_700_000_000_000));
        let store: Arc<dyn Store> = Arc::new(SimStore::start(
            Arc::default(),
            Arc::default(),
            process.clone(),
            Faults::none(),
            Dice::new(7),
        ));
        let receiver = Arc::new(Failing { clock: process.clock.clone(), outcome, log: Mutex::default() });
        let parts = Parts {
            store: store.clone(),
            transport: receiver.clone(),
            clock: process.clock.clone(),
            entropy: Arc::new(SeededEntropy::new(Dice::new(8))),
            vault: Vault::new([9; 32]),
            policies: Policies::new(&Overrides::default()).expect("the built-in policies are valid"),
        };
        let options = Options { max_sleep: HOUR * 10_000, ..Options::default() };
        let engine = Engine::start(parts, options).await.expect("it starts");
        let message = send_one(&engine, policy).await;
        tokio::time::sleep(HOUR * hours).await;

        let log = receiver.log.lock().clone();
        let seconds = log.iter().map(|at| at.since(log[0]).as_secs_f64()).collect();
        let deliveries = store.deliveries(message).await.expect("a read");
        assert_eq!(deliveries[0].attempts as usize, log.len(), "one request for each recorded attempt");
        (seconds, deliveries[0].state)
    })
}

async fn send_one(engine: &Engine, policy: &str) -> aldaba_delivery::MessageId {
    let org = OrgId::from_bytes([1; 20]);
    let application = NewApplication {
        org,
        uid: Some("customer".into()),
        name: "Customer".into(),
        throttle_rate: None,
        metadata: "{}".into(),
    };
    let directory = engine.directory().by(&Arc::new(Actor::command_line(org)));
    let made = directory.create_application(application, None).await;
    assert!(matches!(made, Ok(CreateOutcome::Created(_))));
    let which = ApplicationRef { org, key: "customer".into() };
    let endpoint = NewEndpoint::from(EndpointConfig::new("https://receiver.example/hook", policy));
    let made = directory.create_endpoint(which.clone(), endpoint, None).await;
    assert!(matches!(made, Ok(CreateOutcome::Created(_))));
    let event = NewEvent::new("schedule.test", Bytes::from_static(b"{}"));
    match engine.send(&which, event).await {
        Ok(SendReceipt::New { message, .. }) => message,
        other => panic!("not accepted: {other:?}"),
    }
}

fn gaps(times: &[f64]) -> Vec<f64> {
    // To the millisecond, which is what the clock counts in.
    times.windows(2).map(|pair| ((pair[1] - pair[0]) * 1000.0).round() / 1000.0).collect()
}

fn reason(state: DeliveryState) -> &'static str {
    match state {
        DeliveryState::Dead { reason, .. } => reason.name(),
        DeliveryState::Waiting { .. } | DeliveryState::Skipped { .. } => "waiting",
        DeliveryState::Delivered { .. } => "delivered",
    }
}

/// Each gap within its bounds, to the few milliseconds that commits take.
fn assert_gaps(times: &[f64], bounds: &[(f64, f64)]) {
    let gaps = gaps(times);
    assert_eq!(gaps.len(), bounds.len(), "{gaps:?}");
    for (gap, (earliest, latest)) in gaps.iter().zip(bounds) {
        assert!(*gap >= *earliest && *gap <= latest + 0.1, "{gap} is not within {earliest} and {latest}");
    }
}

#[test]
fn a1_quick_comes_after_1_2_4_8_16_s_and_up_to_a_second() {
    let (times, end) = wire_log("quick", status(500), 1);
    assert_gaps(&times, &[(1.0, 2.0), (2.0, 3.0), (4.0, 5.0), (8.0, 9.0), (16.0, 17.0)]);
    assert_eq!(reason(end), "exhausted");
}

#[test]
fn a3_quick_ends_at_once_on_404() {
    let (times, end) = wire_log("quick", status(404), 1);
    assert_eq!((times.len(), reason(end)), (1, "rejected"));
}

#[test]
fn b4_persistent_makes_158_attempts_and_the_last_at_602_110_s() {
    let (times, end) = wire_log("persistent", status(500), 8 * 24);
    assert_eq!((times.len(), reason(end)), (158, "stop_date"));
    let late = times[157] - 602_110.0;
    assert!((0.0..=1.0).contains(&late), "commits may add milliseconds, not {late} s");
    let doubling = (1..=12).map(|n| f64::from(1 << n)).map(|s| (s, s));
    let bounds: Vec<_> = doubling.chain(std::iter::repeat_n((4096.0, 4096.0), 145)).collect();
    assert_gaps(&times, &bounds);
}

#[test]
fn b7_persistent_retries_410_201_and_a_refused_connection_alike() {
    let refused = Outcome::failed(FailureKind::Connect, "connection refused");
    for outcome in [status(410), status(201), refused] {
        let (times, end) = wire_log("persistent", outcome, 8 * 24);
        assert_eq!((times.len(), reason(end)), (158, "stop_date"));
    }
}

#[test]
fn c6_job_status_comes_after_1_and_2_s() {
    let (times, end) = wire_log("job-status", status(404), 1);
    assert_gaps(&times, &[(1.0, 1.0), (2.0, 2.0)]);
    assert_eq!(reason(end), "exhausted");
}

#[test]
fn d1_public_api_comes_after_5_25_125_625_3125_s_and_up_to_a_tenth() {
    let (times, end) = wire_log("public-api", status(503), 3);
    assert_gaps(&times, &[5.0, 25.0, 125.0, 625.0, 3125.0].map(|s| (s, s * 1.1)));
    assert_eq!(reason(end), "exhausted");
}

#[test]
fn standard_comes_after_its_list_give_or_take_a_fifth() {
    let (times, end) = wire_log("standard", status(500), 48);
    let list = [5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0];
    assert_gaps(&times, &list.map(|s| (s * 0.8, s * 1.2)));
    assert_eq!(reason(end), "exhausted");
}

#[test]
fn standard_ends_at_once_on_410() {
    let (times, end) = wire_log("standard", status(410), 48);
    assert_eq!((times.len(), reason(end)), (1, "endpoint_gone"));
}
