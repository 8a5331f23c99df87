//! A deleted source, through the whole engine: what waits for its endpoints ends, and nothing is left of its lanes.

use crate::delivering::{Sending, Transport, WireRequest, WireResponse};
use crate::inbound::ForwardedHeaders;
use crate::inbound::{InboundEvent, NewSource, SourceSettings};
use crate::scheduling::SchedulingQuestion;
use crate::{
    CreateOutcome, Engine, EventTrace, NewApplication, NewEvent, Options, Parts, Policies, Reception,
    SystemClock, SystemEntropy, Vault,
};
use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{AttemptFailure, FailureKind, MessageId, OrgId, Outcome, Reason};
use aldaba_store::{
    Actor, ApplicationRef, DeliveryState, EndpointConfig, ListRange, Order, Page, Source, SourceEvent,
    SourceEventsQuery, Store, StoreOptions,
};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

const ORG: OrgId = OrgId::from_bytes([1; 20]);

/// Nobody is there.
struct Nobody;

impl Transport for Nobody {
    fn send(&self, _: WireRequest) -> Sending {
        let failure = AttemptFailure { kind: FailureKind::Timeout, detail: "nobody is there".into() };
        Box::pin(async { WireResponse { outcome: Outcome::Failed(failure), body: Bytes::new() } })
    }
}

async fn start(store: Arc<dyn Store>) -> Engine {
    let parts = Parts {
        store,
        transport: Arc::new(Nobody),
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SystemEntropy::new()),
        vault: Vault::new([9; 32]),
        policies: Policies::new(&Overrides::default()).expect("the built-in policies are valid"),
    };
    let short = Duration::from_millis(20);
    let options = Options { sweep_interval: short, lane_idle: short, max_sleep: short, ..Options::default() };
    Engine::start(parts, options).await.expect("it starts")
}

/// A source with so many endpoints, and so many events to each that wait for another try.
async fn source(engine: &Engine, endpoints: usize, events: usize) -> Source {
    let directory = engine.directory().by(&Arc::new(Actor::program(ORG)));
    let new = NewSource {
        org: ORG,
        uid: None,
        name: "a".into(),
        metadata: "{}".into(),
        kind: "generic-webhook".into(),
        settings: SourceSettings::default(),
        secrets: Default::default(),
    };
    let (CreateOutcome::Created(source) | CreateOutcome::Existing(source)) =
        directory.create_source(new, None).await.unwrap();
    for number in 0..endpoints {
        let which = ApplicationRef { org: ORG, key: source.app.to_string() };
        let config = EndpointConfig::new(format!("https://{number}.example/"), "standard");
        directory.create_endpoint(which, config.into(), None).await.unwrap();
    }
    let token = engine.directory().source_token(&source).unwrap();
    let loaded = engine.source_cache().find(&token).await.unwrap().expect("it is there");
    for number in 0..events {
        let event = InboundEvent {
            id: Some(number.to_string()),
            event_type: "a".into(),
            headers: ForwardedHeaders::default(),
            trace: EventTrace::default(),
        };
        let received = engine.receive(&loaded, event, Bytes::from_static(b"{}"), ()).await.unwrap();
        assert!(matches!(received, Reception::New(_)));
    }
    until(async || {
        let tried = |event: &SourceEvent| {
            event.deliveries.len() == endpoints && event.deliveries.iter().all(|one| one.status.attempts > 0)
        };
        events_of(engine, &source).await.iter().all(tried)
    })
    .await;
    source
}

async fn events_of(engine: &Engine, source: &Source) -> Vec<SourceEvent> {
    let page: Page<MessageId> = Page { after: None, limit: 1000 };
    let part = ListRange::page(page, Order::Ascending);
    let query = SourceEventsQuery { app: source.app, state: None, part };
    engine.store().source_events(query).await.unwrap().items
}

fn states(events: &[SourceEvent]) -> impl Iterator<Item = DeliveryState> {
    events.iter().flat_map(|event| event.deliveries.iter().map(|delivery| delivery.status.state))
}

fn is_cancelled(state: DeliveryState) -> bool {
    matches!(state, DeliveryState::Dead { reason: Reason::Cancelled, .. })
}

fn waits(state: DeliveryState) -> bool {
    matches!(state, DeliveryState::Waiting { .. })
}

async fn lanes(engine: &Engine) -> (usize, usize) {
    engine.inbox().ask(SchedulingQuestion::Lanes).await.unwrap()
}

async fn until(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to that");
}

#[tokio::test]
async fn what_waits_for_a_deleted_source_ends_and_its_lanes_are_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = aldaba_store::open(&StoreOptions::new(folder.path())).unwrap();
    let engine = start(store).await;
    let (gone, other) = (source(&engine, 5, 40).await, source(&engine, 1, 3).await);
    assert_eq!(states(&events_of(&engine, &gone).await).filter(|state| waits(*state)).count(), 200);
    engine.directory().by(&Arc::new(Actor::program(ORG))).delete_source(&gone).await.unwrap();
    until(async || states(&events_of(&engine, &gone).await).all(is_cancelled)).await;
    let ended = events_of(&engine, &gone).await;
    assert_eq!(states(&ended).count(), 200, "each has its end, and its history");
    until(async || lanes(&engine).await == (1, 0)).await;
    assert!(states(&events_of(&engine, &other).await).all(waits), "another's are as they were");
    engine.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_source_that_was_deleted_when_the_engine_stopped_is_ended_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let open = || aldaba_store::open(&StoreOptions::new(folder.path())).unwrap();
    let engine = start(open()).await;
    let gone = source(&engine, 2, 20).await;
    // Nobody walks any more: what is deleted now is left as it is.
    engine.drain(Duration::from_secs(5)).await;
    engine.directory().by(&Arc::new(Actor::program(ORG))).delete_source(&gone).await.unwrap();
    assert!(states(&events_of(&engine, &gone).await).all(waits));
    engine.close().await;
    let engine = start(open()).await;
    until(async || states(&events_of(&engine, &gone).await).all(is_cancelled)).await;
    until(async || lanes(&engine).await == (0, 0)).await;
    engine.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn nothing_in_memory_remembers_applications_that_were_made_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = aldaba_store::open(&StoreOptions::new(folder.path())).unwrap();
    let engine = start(store).await;
    let directory = engine.directory().by(&Arc::new(Actor::program(ORG)));
    for round in 0..3 {
        let mut applications = Vec::new();
        for number in 0..100 {
            let uid = format!("{round}-{number}");
            let new = NewApplication {
                org: ORG,
                uid: Some(uid.clone()),
                name: "a".into(),
                throttle_rate: Some(100),
                metadata: "{}".into(),
            };
            let (CreateOutcome::Created(made) | CreateOutcome::Existing(made)) =
                directory.create_application(new, None).await.unwrap();
            // By both of its names, and with a lane.
            for key in [made.id.to_string(), uid] {
                let which = ApplicationRef { org: ORG, key };
                let config = EndpointConfig::new("https://a.example/", "standard");
                directory.create_endpoint(which.clone(), config.into(), None).await.unwrap();
                let event = NewEvent::new("a", Bytes::from_static(b"{}"));
                engine.send(&which, event).await.unwrap();
            }
            assert!(engine.has_application(ORG, made.id).await.unwrap());
            applications.push(made.id);
        }
        assert_eq!(engine.directory().tenants.size().0, 100);
        assert_eq!(engine.credentials().applications.len(), 100);
        for app in applications {
            let which = ApplicationRef { org: ORG, key: app.to_string() };
            directory.delete_application(which).await.unwrap();
        }
        assert_eq!(engine.directory().tenants.size(), (0, 0, 0));
        assert_eq!(engine.credentials().applications.len(), 0);
        until(async || lanes(&engine).await == (0, 0)).await;
    }
    engine.shutdown(Duration::from_secs(5)).await;
}
