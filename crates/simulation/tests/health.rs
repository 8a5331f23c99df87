//! Endpoints and hosts that fail, are held and let go: the real engine on a simulated clock, over days.

use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{
    AppId, EndpointId, HealthStatus, MessageId, OrgId, Outcome, Reason, ResponseHead, Timestamp,
};
use aldaba_delivery::{GateScope, WhenDisabled};
use aldaba_engine::{
    ChangeError, Clock, CreateOutcome, Directory, Engine, GateBacklog, NewApplication, NewEndpoint, NewEvent,
    Options, Parts, Policies, SendReceipt, Sending, Transport, Vault, WireRequest, WireResponse,
};
use aldaba_store::{Actor, ApplicationRef, DeliveryState, Endpoint, EndpointConfig, Error, Store};
use bytes::Bytes;
use parking_lot::Mutex;
use simulation::entropy::{Dice, SeededEntropy};
use simulation::process::Process;
use simulation::store::{Faults, SimStore, Span};
use std::sync::Arc;
use std::time::Duration;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const QUICKLY: Duration = Duration::from_millis(5);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Answers after a while: 503 where a URL begins with one of `down`, else 200. Notes every request.
struct Receivers {
    clock: Arc<dyn Clock>,
    takes: Mutex<Duration>,
    down: Mutex<Vec<&'static str>>,
    log: Mutex<Vec<(Timestamp, String)>>,
}

impl Transport for Receivers {
    fn send(&self, request: WireRequest) -> Sending {
        let url = request.url.to_string();
        let down = self.down.lock().iter().any(|start| url.starts_with(start));
        self.log.lock().push((self.clock.now(), url));
        let status = if down { 503 } else { 200 };
        let outcome = Outcome::Response(ResponseHead { status, phrase: "".into(), retry_after: None });
        let takes = *self.takes.lock();
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            WireResponse { outcome, body: Bytes::new() }
        })
    }
}

struct World {
    engine: Engine,
    store: Arc<dyn Store>,
    receivers: Arc<Receivers>,
    process: Arc<Process>,
}

impl World {
    async fn new() -> Self {
        Self::with(Faults::none()).await
    }

    async fn with(faults: Faults) -> Self {
        let options = Options { max_sleep: HOUR * 10_000, ..Options::default() };
        Self::on(faults, options, &Overrides::default()).await
    }

    async fn on(faults: Faults, options: Options, overrides: &Overrides) -> Self {
        let process = Process::new(0, START);
        let (disk, log) = (Arc::default(), Arc::default());
        let store: Arc<dyn Store> =
            Arc::new(SimStore::start(disk, log, process.clone(), faults, Dice::new(7)));
        let (down, log, takes) = (Mutex::default(), Mutex::default(), Mutex::new(QUICKLY));
        let receivers = Arc::new(Receivers { clock: process.clock.clone(), takes, down, log });
        let parts = Parts {
            store: store.clone(),
            transport: receivers.clone(),
            clock: process.machine.clone(),
            entropy: Arc::new(SeededEntropy::new(Dice::new(8))),
            vault: Vault::new([9; 32]),
            policies: Policies::new(overrides).expect("the built-in policies are valid"),
        };
        let engine = Engine::start(parts, options).await.expect("it starts");
        Self { engine, store, receivers, process }
    }

    fn directory(&self) -> Directory {
        self.engine.directory().by(&Arc::new(Actor::command_line(org())))
    }

    async fn application(&self, uid: &str) {
        let application = NewApplication {
            org: org(),
            uid: Some(uid.into()),
            name: uid.into(),
            throttle_rate: None,
            metadata: "{}".into(),
        };
        self.directory().create_application(application, None).await.expect("an application");
    }

    async fn endpoint(&self, app: &str, url: &str, policy: &str) -> (AppId, EndpointId) {
        let made = self.directory().create_endpoint(which(app), new(url, policy, false), None).await;
        let Ok(CreateOutcome::Created(Endpoint { app, id, .. })) = made else { panic!("not made: {made:?}") };
        (app, id)
    }

    async fn send(&self, app: &str) -> MessageId {
        self.send_for(app, None).await
    }

    async fn send_for(&self, app: &str, deliver_at: Option<Timestamp>) -> MessageId {
        let event = NewEvent { deliver_at, ..NewEvent::new("a", Bytes::from_static(b"{}")) };
        match self.engine.send(&which(app), event).await {
            Ok(SendReceipt::New { message, .. }) => message,
            other => panic!("not sent: {other:?}"),
        }
    }

    fn now(&self) -> Timestamp {
        self.process.now()
    }

    fn set_down(&self, starts: &[&'static str]) {
        *self.receivers.down.lock() = starts.to_vec();
    }

    /// When requests came to URLs that begin so, after a moment.
    fn requests(&self, start: &str, after: Timestamp) -> Vec<Timestamp> {
        let log = self.receivers.log.lock();
        log.iter().filter(|(at, url)| *at >= after && url.starts_with(start)).map(|(at, _)| *at).collect()
    }

    async fn state(&self, message: MessageId) -> (u32, DeliveryState) {
        let delivery = self.store.deliveries(message).await.expect("a read").remove(0);
        (delivery.attempts, delivery.state)
    }

    async fn set_disabled(&self, (app, id): (AppId, EndpointId), disabled: bool) {
        let current = self.store.endpoint(app, id.to_string()).await.expect("a read").expect("it is there");
        let changed = new(&current.config.url, &current.config.policy, disabled);
        self.directory().update_endpoint(&current, changed, None, false).await.expect("a change");
    }
}

fn org() -> OrgId {
    OrgId::from_bytes([1; 20])
}

fn which(app: &str) -> ApplicationRef {
    ApplicationRef { org: org(), key: app.into() }
}

fn new(url: &str, policy: &str, disabled: bool) -> NewEndpoint {
    let config =
        EndpointConfig { disabled, when_disabled: WhenDisabled::Hold, ..EndpointConfig::new(url, policy) };
    config.into()
}

fn simulated(run: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without IO").block_on(run);
}

/// No more than one at once, eight in the first second, and twice as many in every further one.
fn assert_on_a_ramp(from: Timestamp, times: &[Timestamp]) {
    for (count, at) in (1..).zip(times) {
        let second = at.since(from).as_secs().min(20);
        let most = 1 + 8 * ((1_u64 << (second + 1)) - 1);
        assert!(count <= most, "{count} requests within {second} s, and {most} are on the ramp");
    }
    let together = times.iter().filter(|at| at.since(times[0]) < Duration::from_millis(100)).count();
    assert!(together <= 2, "{together} requests left together");
}

#[test]
fn b2_a_host_with_50_endpoints_gets_only_probes_while_it_is_away_and_a_ramp_when_it_is_back() {
    simulated(async {
        let world = World::new().await;
        for app in ["ours", "theirs"] {
            world.application(app).await;
        }
        for number in 0..50 {
            world.endpoint("ours", &format!("https://shared.example/ours/{number}"), "persistent").await;
        }
        world.endpoint("ours", "https://elsewhere.example/ours", "persistent").await;
        world.endpoint("theirs", "https://shared.example/theirs", "persistent").await;
        world.set_down(&["https://shared.example/ours"]);
        let start = world.now();
        let mut ours = Vec::new();
        for _ in 0..24 {
            ours.push(world.send("ours").await);
            let sent = world.now();
            world.send("theirs").await;
            tokio::time::sleep(Duration::from_secs(300)).await;
            // The receiver notices nothing.
            for url in ["https://shared.example/theirs", "https://elsewhere.example/ours"] {
                let arrived = world.requests(url, sent);
                assert_eq!(arrived.len(), 1, "{url}");
                assert!(arrived[0].since(sent) < Duration::from_millis(100), "{url}");
            }
        }
        // The first deliveries have used up the delays up to 16 s; from there on the host is held.
        let probes = world.requests("https://shared.example/ours", start + Duration::from_secs(64));
        assert!(probes.len() >= 5, "{probes:?}");
        for pair in probes.windows(2) {
            assert!(pair[1].since(pair[0]) >= Duration::from_secs(32), "beside a probe: {pair:?}");
        }
        let held = world.engine.held_hosts(org(), None);
        assert_eq!((held.len(), held[0].why.as_str()), (1, "HTTP 503"));
        assert!(matches!(held[0].key.scope, GateScope::Application(_)));
        assert_eq!(held[0].backlog, GateBacklog { lanes: 50, deliveries: 50 * 24 });

        world.set_down(&[]);
        let back = world.now();
        tokio::time::sleep(HOUR * 3).await;
        let arrived = world.requests("https://shared.example/ours", back);
        assert_eq!(arrived.len(), 50 * 24, "everything that was held arrives, once");
        assert!(arrived[0].since(back) <= Duration::from_secs(4096));
        assert_on_a_ramp(arrived[0], &arrived);
        for message in ours {
            for delivery in world.store.deliveries(message).await.expect("a read") {
                assert!(matches!(delivery.state, DeliveryState::Delivered { .. }), "{delivery:?}");
            }
        }
        assert!(world.engine.held_hosts(org(), None).is_empty());
    });
}

#[test]
fn a_manually_opened_gate_releases_deliveries_on_a_ramp() {
    simulated(async {
        let world = World::new().await;
        world.application("ours").await;
        for number in 0..20 {
            world.endpoint("ours", &format!("https://shared.example/{number}"), "persistent").await;
        }
        world.set_down(&["https://shared.example/"]);
        world.send("ours").await;
        tokio::time::sleep(HOUR).await;
        let held = world.engine.held_hosts(org(), None);
        let until = held[0].gate.held_until.expect("held");
        world.set_down(&[]);
        world.send("ours").await;
        let before = world.now();
        tokio::time::sleep(SECOND).await;
        assert_eq!(world.requests("https://shared.example/", before).len(), 0);
        let gates = held.into_iter().map(|host| host.key).collect();
        world.directory().release_gates(gates).await.expect("a release");
        assert!(world.store.gates().await.expect("a read").is_empty(), "on disk before the answer");
        let released = world.now();
        tokio::time::sleep(SECOND * 30).await;
        assert!(world.now() < until);
        let arrived = world.requests("https://shared.example/", released);
        assert!(arrived.len() >= 20, "{}", arrived.len());
        assert_on_a_ramp(released, &arrived);
    });
}

#[test]
fn d5_what_is_held_for_an_endpoint_goes_out_on_a_ramp_with_its_count_of_retries() {
    simulated(async {
        let world = World::new().await;
        world.application("ours").await;
        let (app, id) = world.endpoint("ours", "https://down.example/", "public-api").await;
        world.set_down(&["https://down.example/"]);
        let exhausted = world.send("ours").await;
        tokio::time::sleep(HOUR).await;
        // Two of its five retries are used up when the endpoint fails.
        let begun = world.send("ours").await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let endpoint = world.store.endpoint(app, id.to_string()).await.expect("a read").expect("it is there");
        assert_eq!(endpoint.health.status, HealthStatus::Failed);
        let (made, _) = world.state(begun).await;
        assert!((1..6).contains(&made), "{made}");
        for _ in 0..500 {
            world.send("ours").await;
        }
        let failed = world.now();
        tokio::time::sleep(DAY).await;
        assert_eq!(world.requests("https://down.example/", failed).len(), 0);

        world.set_down(&[]);
        let outage = world.directory().resume_endpoint(&endpoint).await.expect("a resume");
        let outage = outage.expect("it had failed");
        assert_eq!(outage.failing_since, endpoint.health.failing_since);
        tokio::time::sleep(HOUR * 2).await;
        let arrived = world.requests("https://down.example/", failed);
        assert_eq!(arrived.len(), 501);
        assert_on_a_ramp(outage.resumed_at, &arrived);
        let (attempts, state) = world.state(begun).await;
        assert!(matches!(state, DeliveryState::Delivered { .. }));
        assert_eq!(attempts, made + 1);
        let (attempts, state) = world.state(exhausted).await;
        assert!(matches!(state, DeliveryState::Dead { reason: Reason::Exhausted, .. }), "it stays dead");
        assert_eq!(attempts, 6);
        assert_eq!(world.directory().resume_endpoint(&endpoint).await, Ok(None));
    });
}

#[test]
fn a_refused_recovery_can_be_repeated_with_the_same_period() {
    // The store is busy for an hour, when the endpoint has failed.
    let active = Span { from: START + DAY * 101, to: START + DAY * 101 + HOUR };
    simulated(async move {
        let world = World::with(Faults { active, busy: 100, ..Faults::none() }).await;
        world.application("ours").await;
        let (app, id) = world.endpoint("ours", "https://down.example/", "public-api").await;
        world.set_down(&["https://down.example/"]);
        let old = world.send_for("ours", Some(START + DAY * 100)).await;
        tokio::time::sleep(DAY * 101 + SECOND).await;
        let endpoint = async || {
            let found = world.store.endpoint(app, id.to_string()).await.expect("a read");
            found.expect("it is there")
        };
        let failed = endpoint().await;
        assert_eq!(failed.health.status, HealthStatus::Failed);
        assert!(matches!(world.state(old).await.1, DeliveryState::Dead { .. }));

        world.set_down(&[]);
        let directory = world.directory();
        let refused = directory.resume_and_recover(&failed, 500, None).await;
        assert_eq!(refused, Err(ChangeError::Store(Error::Busy)));
        assert_eq!(endpoint().await.health, failed.health, "neither is it resumed");
        tokio::time::sleep(HOUR).await;
        let outage = directory.resume_and_recover(&failed, 500, None).await.expect("a resume");
        let outage = outage.expect("it had failed");
        assert_eq!(outage.failing_since, failed.health.failing_since);
        assert!(outage.recovery.is_some());
        tokio::time::sleep(SECOND * 5).await;
        assert!(matches!(world.state(old).await.1, DeliveryState::Delivered { .. }));
    });
}

#[test]
fn a_late_success_does_not_change_what_a_resume_recovers() {
    simulated(async {
        let world = World::new().await;
        world.application("ours").await;
        let (app, id) = world.endpoint("ours", "https://down.example/", "public-api").await;
        world.set_down(&["https://down.example/"]);
        let exhausted = world.send("ours").await;
        let first_failure = world.now();
        while world.state(exhausted).await.0 < 5 {
            tokio::time::sleep(SECOND).await;
        }
        // One is on its way while the endpoint fails, and is answered well two hours later.
        world.set_down(&[]);
        *world.receivers.takes.lock() = HOUR * 2;
        let late = world.send("ours").await;
        tokio::time::sleep(SECOND).await;
        world.set_down(&["https://down.example/"]);
        *world.receivers.takes.lock() = QUICKLY;
        tokio::time::sleep(HOUR * 3).await;
        assert!(matches!(world.state(late).await.1, DeliveryState::Delivered { .. }));
        let DeliveryState::Dead { at: died_at, .. } = world.state(exhausted).await.1 else { panic!("alive") };
        let failed = world.store.endpoint(app, id.to_string()).await.expect("a read").expect("it is there");
        assert_eq!(failed.health.status, HealthStatus::Failed);
        assert!(failed.health.failing_since.expect("it fails").since(first_failure) < SECOND);

        world.set_down(&[]);
        let outage = world.directory().resume_and_recover(&failed, 500, None).await;
        let outage = outage.expect("a resume").expect("it had failed");
        assert!(outage.failing_since.expect("known") < died_at);
        tokio::time::sleep(SECOND * 5).await;
        assert!(matches!(world.state(exhausted).await.1, DeliveryState::Delivered { .. }));
    });
}

#[test]
fn held_deliveries_expire_after_30_days() {
    simulated(async {
        let world = World::new().await;
        world.application("ours").await;
        let endpoint = world.endpoint("ours", "https://off.example/", "quick").await;
        world.set_disabled(endpoint, true).await;
        let first = world.send("ours").await;
        tokio::time::sleep(DAY * 20).await;
        let second = world.send("ours").await;
        tokio::time::sleep(DAY * 9).await;
        assert!(matches!(world.state(first).await.1, DeliveryState::Waiting { .. }));
        tokio::time::sleep(DAY + HOUR).await;
        let (attempts, state) = world.state(first).await;
        assert!(matches!(state, DeliveryState::Dead { reason: Reason::Expired, .. }), "{state:?}");
        assert_eq!(attempts, 0);
        assert!(matches!(world.state(second).await.1, DeliveryState::Waiting { .. }));
        world.set_disabled(endpoint, false).await;
        tokio::time::sleep(SECOND).await;
        assert!(matches!(world.state(second).await.1, DeliveryState::Delivered { .. }));
        assert_eq!(world.receivers.log.lock().len(), 1);
    });
}

#[test]
fn held_deliveries_do_not_expire_by_a_clock_that_is_not_trusted() {
    simulated(async {
        let options = Options { max_sleep: MINUTE, ..Options::default() };
        let world = World::on(Faults::none(), options, &Overrides::default()).await;
        world.application("ours").await;
        let endpoint = world.endpoint("ours", "https://off.example/", "quick").await;
        world.set_disabled(endpoint, true).await;
        let message = world.send("ours").await;
        tokio::time::sleep(MINUTE).await;
        world.process.machine.set_offset(400 * 24 * 3_600_000);
        tokio::time::sleep(HOUR * 20).await;
        let (_, state) = world.state(message).await;
        assert!(matches!(state, DeliveryState::Waiting { .. }), "{state:?}");
        world.engine.trust_clock().await.expect("it is noted");
        tokio::time::sleep(HOUR).await;
        let (attempts, state) = world.state(message).await;
        assert!(matches!(state, DeliveryState::Dead { reason: Reason::Expired, .. }), "{state:?}");
        assert_eq!(attempts, 0);
    });
}

#[test]
fn b4_a_delivery_ends_by_its_stop_date_though_a_slow_receiver_uses_up_a_cap() {
    let overall = Options { in_flight: 1, ..Options::default() };
    let of_origin = Options { requests_per_origin: 1, ..Options::default() };
    for options in [overall, of_origin] {
        simulated(async {
            let overrides = Overrides { stop_after: MINUTE * 2, ..Overrides::default() };
            let world = World::on(Faults::none(), options, &overrides).await;
            *world.receivers.takes.lock() = HOUR;
            for app in ["first", "second"] {
                world.application(app).await;
                world.endpoint(app, &format!("https://shared.example/{app}"), "persistent").await;
            }
            world.send("first").await;
            tokio::time::sleep(SECOND).await;
            let begun = world.now();
            let waits = world.send("second").await;
            tokio::time::sleep(MINUTE).await;
            let (_, state) = world.state(waits).await;
            assert!(matches!(state, DeliveryState::Waiting { .. }), "{state:?}");
            tokio::time::sleep(MINUTE * 2).await;
            assert_eq!(world.requests("https://", START).len(), 1, "the cap is one request");
            let (attempts, state) = world.state(waits).await;
            let DeliveryState::Dead { at, reason: Reason::StopDate } = state else { panic!("{state:?}") };
            assert!(attempts == 0 && at.since(begun) >= MINUTE * 2, "{attempts} {:?}", at.since(begun));
        });
    }
}

#[test]
fn b3_the_stop_date_counts_from_when_a_delivery_was_let_go() {
    simulated(async {
        let world = World::new().await;
        world.application("ours").await;
        let endpoint = world.endpoint("ours", "https://off.example/", "persistent").await;
        world.set_down(&["https://off.example/"]);
        let message = world.send("ours").await;
        tokio::time::sleep(Duration::from_secs(7)).await;
        world.set_disabled(endpoint, true).await;
        tokio::time::sleep(DAY * 8).await;
        assert_eq!(world.state(message).await.0, 3, "at 0, 2 and 6 s");
        let on = world.now();
        world.set_disabled(endpoint, false).await;
        tokio::time::sleep(DAY * 6).await;
        let (attempts, state) = world.state(message).await;
        assert!(attempts > 100, "{attempts}");
        assert!(matches!(state, DeliveryState::Waiting { .. }), "{state:?}");
        tokio::time::sleep(DAY * 2).await;
        let (_, state) = world.state(message).await;
        let DeliveryState::Dead { at, reason: Reason::StopDate } = state else { panic!("{state:?}") };
        assert!(at.since(on) <= DAY * 7 && at.since(on) > DAY * 6);
    });
}

#[test]
fn d8_standard_probes_with_growing_gaps_and_lets_go_on_a_ramp_when_one_succeeds() {
    simulated(async {
        let world = World::new().await;
        world.application("ours").await;
        let (app, id) = world.endpoint("ours", "https://down.example/", "standard").await;
        let health = async || {
            let found = world.store.endpoint(app, id.to_string()).await.expect("a read");
            found.expect("it is there").health
        };
        world.set_down(&["https://down.example/"]);
        while health().await.status == HealthStatus::Active {
            world.send("ours").await;
            tokio::time::sleep(HOUR).await;
        }
        let failed = health().await;
        let failed_at = failed.changed_at.expect("it has changed");
        assert!(failed_at.since(failed.failing_since.expect("it fails")) >= DAY * 5);
        for _ in 0..300 {
            world.send("ours").await;
        }
        tokio::time::sleep(DAY).await;
        let probes = world.requests("https://down.example/", failed_at + SECOND);
        let minutes: Vec<_> = std::iter::once(&failed_at)
            .chain(&probes)
            .zip(&probes)
            .map(|(before, probe)| (probe.since(*before).as_secs_f64() / 60.0).round() as u64)
            .collect();
        assert_eq!(minutes, [15, 30, 60, 120, 240, 480]);

        world.set_down(&[]);
        let back = world.now();
        tokio::time::sleep(DAY * 3).await;
        let recovered = health().await;
        assert_eq!((recovered.status, recovered.failure_count), (HealthStatus::Active, 0));
        let arrived = world.requests("https://down.example/", back);
        let released_at = recovered.released_at.expect("something was let go");
        let soon: Vec<_> = arrived.iter().copied().filter(|at| at.since(released_at) < HOUR).collect();
        assert!(soon.len() >= 301, "{}", soon.len());
        assert_on_a_ramp(released_at, &soon[1..]);
        assert_eq!(world.store.waiting().await, Ok(0), "all that was held has arrived");
        let page = aldaba_store::Page { after: None, limit: 10 };
        let changes =
            world.store.health_changes(id, page, aldaba_store::Order::Ascending).await.expect("a read");
        let causes: Vec<_> = changes.iter().map(|change| change.cause.name()).collect();
        assert_eq!(causes, ["failures", "recovered"]);
    });
}

#[test]
fn after_turning_off_no_request_is_sent_and_all_arrive_after_turning_on() {
    simulated(async {
        let world = World::new().await;
        world.application("ours").await;
        let endpoint = world.endpoint("ours", "https://busy.example/", "quick").await;
        world.set_disabled(endpoint, true).await;
        for _ in 0..200 {
            world.send("ours").await;
        }
        world.set_disabled(endpoint, false).await;
        tokio::time::sleep(Duration::from_millis(2500)).await;
        world.set_disabled(endpoint, true).await;
        let off = world.now();
        tokio::time::sleep(HOUR).await;
        let all = world.receivers.log.lock().len();
        assert!((1..200).contains(&all), "it was turned off in the middle: {all}");
        let late = world.requests("https://busy.example/", off + Duration::from_millis(1));
        assert_eq!(late, [], "after {off:?}");
        assert_eq!(world.store.waiting().await, Ok(200 - all as u64), "what was on the wire has ended");
        world.set_disabled(endpoint, false).await;
        tokio::time::sleep(HOUR).await;
        assert_eq!(world.receivers.log.lock().len(), 200, "each arrives once");
    });
}
