//! Background tasks that panic: the real engine on a simulated clock, with a store whose reads and writes panic.

use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{OrgId, Outcome, Reason, ResponseHead, Timestamp};
use aldaba_engine::{
    Directory, Engine, NewApplication, NewEvent, NewKey, Options, Parts, Policies, SendReceipt, Sending,
    Transport, Vault, WireRequest, WireResponse, make_key,
};
use aldaba_store::{Actor, ApplicationRef, DeliveryState, EndpointConfig, KeyScope};
use bytes::Bytes;
use simulation::entropy::{Dice, SeededEntropy};
use simulation::process::Process;
use simulation::store::{Faults, SimStore, Span};
use std::sync::Arc;
use std::time::Duration;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const MINUTE: Duration = Duration::from_secs(60);
const ORG: OrgId = OrgId::from_bytes([3; 20]);

/// Takes everything.
struct Receivers;

impl Transport for Receivers {
    fn send(&self, _: WireRequest) -> Sending {
        let outcome = Outcome::Response(ResponseHead { status: 200, phrase: "".into(), retry_after: None });
        Box::pin(async move { WireResponse { outcome, body: Bytes::new() } })
    }
}

fn which(app: &str) -> ApplicationRef {
    ApplicationRef { org: ORG, key: app.into() }
}

fn directory(engine: &Engine) -> Directory {
    engine.directory().by(&Arc::new(Actor::command_line(ORG)))
}

async fn state(engine: &Engine, sent: &SendReceipt) -> DeliveryState {
    let (SendReceipt::New { message, .. } | SendReceipt::Repeated { message }) = sent;
    engine.store().deliveries(*message).await.expect("a read")[0].state
}

/// An application with an endpoint, and a message to it.
async fn message(engine: &Engine, host: &str, deliver_at: Option<Timestamp>) -> SendReceipt {
    let application = NewApplication {
        org: ORG,
        uid: Some(host.into()),
        name: host.into(),
        throttle_rate: None,
        metadata: "{}".into(),
    };
    directory(engine).create_application(application, None).await.expect("an application");
    let endpoint = EndpointConfig::new(format!("https://{host}.example/"), "standard");
    directory(engine).create_endpoint(which(host), endpoint.into(), None).await.expect("an endpoint");
    let event = NewEvent { deliver_at, ..NewEvent::new("a", Bytes::from_static(b"{}")) };
    engine.send(&which(host), event).await.expect("it is accepted")
}

#[tokio::test(start_paused = true)]
async fn a_background_task_that_panics_is_restarted_and_seen_until_it_has_run_well() {
    let process = Process::new(0, START);
    let active = Span { from: START, to: START + 20 * MINUTE };
    let faults = Faults { active, panicking_reads: 100, panicking_writes: 100, ..Faults::none() };
    let (disk, log) = (Arc::default(), Arc::default());
    let store = SimStore::start(disk, log, process.clone(), faults, Dice::new(7));
    let parts = Parts {
        store: Arc::new(store),
        transport: Arc::new(Receivers),
        clock: process.clock.clone(),
        entropy: Arc::new(SeededEntropy::new(Dice::new(8))),
        vault: Vault::new([9; 32]),
        policies: Policies::new(&Overrides::default()).expect("the built-in policies are valid"),
    };
    let engine = Engine::start(parts, Options::default()).await.expect("it starts");
    let new = NewKey { org: ORG, app: None, name: "a key".into(), scope: KeyScope::Send, expires_at: None };
    let (key, _) = make_key(new, START, &SeededEntropy::new(Dice::new(9)));
    let (keys, digest) = (&engine.credentials().keys, key.digest);
    keys.put(key);
    keys.find(&digest).expect("the key").used(process.now());
    let taken = message(&engine, "up", None).await;
    let left = message(&engine, "later", Some(START + 600 * MINUTE)).await;
    process.sleep_until(START + 2 * MINUTE).await;
    let restarted = engine.restarted_tasks();
    let names: Vec<_> = restarted.iter().map(|task| task.name).collect();
    let expected =
        ["alerts", "clock-watch", "due-times", "erasures", "operational-webhooks", "orphans", "places"];
    assert_eq!(names, [&expected[..], &["retention", "stop-dates", "store-watch", "sweep"]].concat());
    assert!(
        matches!(state(&engine, &taken).await, DeliveryState::Delivered { .. }),
        "lanes need none of them"
    );
    assert!(matches!(state(&engine, &left).await, DeliveryState::Waiting { .. }));
    directory(&engine).delete_application(which("later")).await.expect("it is deleted");

    process.sleep_until(START + 20 * MINUTE).await;
    for task in engine.restarted_tasks() {
        // Pauses of 1, 2, 4, 8, 16, 32 and then 60 s, a minute between two rounds of retention, and five between two looks
        // at the uses of keys.
        let expected = match task.name {
            "retention" => 8..=16,
            "key-uses" => 3..=3,
            _ => 20..=30,
        };
        assert!(expected.contains(&task.restarts), "{task:?}");
    }
    assert!(matches!(state(&engine, &left).await, DeliveryState::Waiting { .. }), "nobody could end it");

    process.sleep_until(START + 22 * MINUTE).await;
    let ended = state(&engine, &left).await;
    assert!(matches!(ended, DeliveryState::Dead { reason: Reason::Cancelled, .. }), "{ended:?}");
    assert!(engine.restarted_tasks().iter().any(|task| task.name == "key-uses"));
    assert_eq!(engine.restarted_tasks().len(), 12, "they have not run well for long enough");

    process.sleep_until(START + 33 * MINUTE).await;
    assert_eq!(engine.restarted_tasks(), []);
    engine.shutdown(MINUTE).await;
}
