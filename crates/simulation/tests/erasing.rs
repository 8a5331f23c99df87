//! An erasure that a crash interrupts at any of its commits is finished by the next life, and removes everything of its
//! application and nothing of another: the real engine on a simulated clock, with the store's real rows.

use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{ErasureId, OrgId, Outcome, ResponseHead, Timestamp};
use aldaba_engine::{
    Directory, Engine, NewApplication, NewEvent, Options, Parts, Policies, SendReceipt, Sending, Transport,
    Vault, WireRequest, WireResponse,
};
use aldaba_store::{Actor, ApplicationRef, EndpointConfig, ErasureState};
use bytes::Bytes;
use parking_lot::Mutex;
use simulation::checks::Violation;
use simulation::checks::erasing::{Known, all_is_there, nothing_is_left};
use simulation::entropy::{Dice, SeededEntropy};
use simulation::process::Process;
use simulation::sabotage::Sabotage;
use simulation::store::{CrashPoint, Disk, Faults, SimStore, Stage};
use std::sync::Arc;
use std::time::Duration;

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const ORG: OrgId = OrgId::from_bytes([3; 20]);
const ERASED: &str = "canary-of-the-erased";
const OTHER: &str = "canary-of-the-other";
const MESSAGES: usize = 12;

/// Takes what is for one path, and nothing else.
struct Receivers;

impl Transport for Receivers {
    fn send(&self, request: WireRequest) -> Sending {
        let status = if request.url.path().contains("fails") { 503 } else { 200 };
        let outcome = Outcome::Response(ResponseHead { status, phrase: "".into(), retry_after: None });
        Box::pin(async move { WireResponse { outcome, body: Bytes::from_static(b"an answer") } })
    }
}

fn directory(engine: &Engine) -> Directory {
    engine.directory().by(&Arc::new(Actor::command_line(ORG)))
}

/// An application with an endpoint that takes everything and one that fails, and messages to both.
async fn application(engine: &Engine, canary: &'static str) -> Known {
    let new = NewApplication {
        org: ORG,
        uid: Some(canary.into()),
        name: canary.into(),
        throttle_rate: None,
        metadata: format!(r#"{{"is":"{canary}"}}"#),
    };
    directory(engine).create_application(new, None).await.expect("an application");
    let which = ApplicationRef { org: ORG, key: canary.into() };
    let app = engine.store().application(which.clone()).await.expect("a read").expect("just made").id;
    for path in ["takes", "fails"] {
        let endpoint = EndpointConfig::new(format!("https://{canary}.example/{path}"), "standard");
        directory(engine).create_endpoint(which.clone(), endpoint.into(), None).await.expect("an endpoint");
    }
    let page = aldaba_store::Page { after: None, limit: 10 };
    let endpoints =
        engine.store().endpoints(app, page, aldaba_store::Order::Ascending).await.expect("a read");
    let mut messages = Vec::new();
    for number in 0..MESSAGES {
        let payload = Bytes::from(format!(r#"{{"{canary}":{number}}}"#));
        let event_id = Some(format!("{canary}-{number}").into());
        let sent = engine.send(&which, NewEvent { event_id, ..NewEvent::new("a", payload) }).await;
        let (SendReceipt::New { message, .. } | SendReceipt::Repeated { message }) =
            sent.expect("it is accepted");
        messages.push(message);
    }
    Known { app, endpoints: endpoints.iter().map(|endpoint| endpoint.id).collect(), messages, canary }
}

async fn start(disk: &Arc<Mutex<Disk>>, process: &Arc<Process>, faults: Faults) -> Engine {
    let store = SimStore::start(disk.clone(), Arc::default(), process.clone(), faults, Dice::new(7));
    let parts = Parts {
        store: Arc::new(store),
        transport: Arc::new(Receivers),
        clock: process.clock.clone(),
        entropy: Arc::new(SeededEntropy::new(Dice::new(8 + process.number as u64))),
        vault: Vault::new([9; 32]),
        policies: Policies::new(&Overrides::default()).expect("the built-in policies are valid"),
    };
    Engine::start(parts, Options::default()).await.expect("it starts")
}

/// One life, until the erasure is over or the process has died.
fn live<T>(number: usize, run: impl AsyncFnOnce(Arc<Process>) -> Option<T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without IO").block_on(async {
        let process = Process::new(number, START + Duration::from_secs(3600) * number as u32);
        let end = tokio::select! {
            biased;
            () = process.death() => None,
            end = run(process.clone()) => end,
        };
        process.die();
        end
    })
}

async fn until_over(engine: &Engine, id: ErasureId) {
    loop {
        let erasure = engine.store().erasure(ORG, id).await.expect("a read").expect("it was started");
        if erasure.state == ErasureState::Finished {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Erases one of two applications; the process dies at a commit after the start of the erasure. Returns what is wrong then.
fn erase(crash: Option<CrashPoint>, sabotage: Option<Sabotage>) -> (Vec<Violation>, bool) {
    let disk: Arc<Mutex<Disk>> = Arc::default();
    let known = live(0, async |process| {
        let engine = start(&disk, &process, Faults::none()).await;
        let known = (application(&engine, ERASED).await, application(&engine, OTHER).await);
        tokio::time::sleep(Duration::from_secs(600)).await;
        engine.shutdown(Duration::from_secs(10)).await;
        Some(known)
    });
    let (erased, other) = known.expect("nothing goes wrong yet");
    let faults = Faults { crash, sabotage, ..Faults::none() };
    let ended = live(1, async |process| {
        let engine = start(&disk, &process, faults).await;
        let found = engine.store().erasable(ORG, erased.app).await.expect("a read").expect("it is there");
        let started = directory(&engine).erase_application(ORG, &found, None).await.expect("it is started");
        until_over(&engine, started.id).await;
        Some(())
    });
    let died = ended.is_none();
    if died {
        live(2, async |process| {
            let engine = start(&disk, &process, Faults { sabotage, ..Faults::none() }).await;
            let running = engine.store().running_erasures().await.expect("a read");
            match running.first() {
                Some(erasure) => until_over(&engine, erasure.id).await,
                // It had not been started yet, or was over.
                None => {
                    if let Some(found) = engine.store().erasable(ORG, erased.app).await.expect("a read") {
                        let started =
                            directory(&engine).erase_application(ORG, &found, None).await.expect("started");
                        until_over(&engine, started.id).await;
                    }
                }
            }
            Some(())
        });
    }
    let disk = disk.lock();
    ([nothing_is_left(&disk, &erased), all_is_there(&disk, &other)].concat(), died)
}

#[test]
fn an_erasure_removes_everything_of_its_application_and_nothing_of_another_whenever_a_crash_comes() {
    let (violations, died) = erase(None, None);
    assert!(violations.is_empty() && !died, "{violations:?}");
    let mut crashes = 0;
    for commit in 0..40 {
        for stage in [Stage::BeforeCommit, Stage::BeforeDone] {
            let (violations, died) = erase(Some(CrashPoint { commit, stage }), None);
            assert!(violations.is_empty(), "a crash {stage:?} {commit}: {violations:?}");
            crashes += usize::from(died);
        }
    }
    assert!(crashes > 5, "{crashes} crashes fell into the erasure");
}

#[test]
fn an_erasure_that_leaves_event_ids_behind_is_caught() {
    let (violations, _) = erase(None, Some(Sabotage::KeepEventIds));
    assert!(violations.iter().any(|found| found.text.contains("unique_key")), "{violations:?}");
}

#[test]
fn an_erasure_that_removes_the_deliveries_of_others_is_caught() {
    let (violations, _) = erase(None, Some(Sabotage::EraseOthers));
    assert!(violations.iter().any(|found| found.text.contains("deliveries")), "{violations:?}");
}
