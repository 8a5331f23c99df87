//! The health of endpoints, what is skipped while they are off, and gates that are opened by hand.

use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::{
    Accept, Change, Changed, DeliveryState, Endpoint, Fence, GateRecord, HEALTH_CHANGES_KEPT, HealthChange,
    HealthChangeNumber, LastError, NewAttempt, Order, Page, Record, Recorded, Seq, Store,
};
use aldaba_delivery::{
    AppId, Condition, ConditionCause, EndpointId, Gate, GateKey, GateScope, Health, HealthStatus, Origin,
    SkipReason,
};
use std::sync::Arc;
use std::time::Duration;

/// An endpoint with one delivery, for attempts to be recorded.
struct Patient {
    scene: Scene,
    event: Accept,
    seq: Seq,
    app: AppId,
    endpoint: EndpointId,
}

impl Patient {
    async fn new(store: Arc<dyn Store>) -> Self {
        let scene = Scene::new(store);
        let event = scene.event(&scene.with_endpoints(1).await);
        let seq = scene.accepted(&event).await;
        let (app, endpoint) = (event.app, event.deliveries[0].endpoint);
        Self { scene, event, seq, app, endpoint }
    }

    /// The attempts of the delivery failed, and made this of the endpoint's health, one after another.
    async fn becomes(&self, health: impl IntoIterator<Item = Health>) {
        let before = self.scene.due(self.endpoint).await[0].attempts;
        for (attempts_before, health) in (before..).zip(health) {
            let failed = self.scene.failed(&self.event, self.seq, at(5));
            let record = Record { attempts_before, health: Some(health), ..failed };
            assert_eq!(self.scene.record(vec![record]).await, [Recorded::Applied]);
        }
    }

    async fn endpoint(&self) -> Endpoint {
        self.scene.endpoint(self.endpoint).await
    }

    async fn changes(&self) -> Vec<HealthChange> {
        let page = Page { after: None, limit: 1000 };
        self.scene.store.health_changes(self.endpoint, page, Order::Ascending).await.unwrap()
    }

    async fn resume(&self, seconds: i64) -> Changed {
        let (app, endpoint) = (self.app, self.endpoint);
        let change =
            Change::ResumeEndpoint { app, endpoint, at: at(seconds), recovery: None, notices: Vec::new() };
        self.scene.change(change).await
    }

    async fn set_disabled(&self, disabled: bool, seconds: i64, resume: bool) {
        let current = self.endpoint().await;
        let endpoint =
            Endpoint { updated_at: at(seconds), ..current.clone() }.with(|config| config.disabled = disabled);
        let change =
            Change::UpdateEndpoint { endpoint, was: Fence::from(&current), resume, notices: Vec::new() };
        assert_eq!(self.scene.change(change).await, made());
    }
}

fn active() -> Health {
    Health::default()
}

fn failed() -> Health {
    Health {
        status: HealthStatus::Failed,
        failure_count: 3,
        failing_since: Some(at(1)),
        changed_at: Some(at(2)),
        ..active()
    }
}

fn gone() -> Health {
    Health { status: HealthStatus::Gone, ..failed() }
}

fn resumed_since(seconds: i64) -> Changed {
    Changed::Resumed { failing_since: Some(at(seconds)), recovery: None }
}

fn steps(changes: &[HealthChange]) -> Vec<(Condition, Condition, ConditionCause)> {
    changes.iter().map(|change| (change.was, change.became, change.cause)).collect()
}

pub async fn a_change_of_condition_is_noted_once_with_its_cause(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    let degraded = Health { failure_count: 1, ..active() };
    patient.becomes([degraded, failed(), failed(), active(), gone()]).await;
    let changes = patient.changes().await;
    assert_eq!(
        steps(&changes),
        [
            (Condition::Active, Condition::Failed, ConditionCause::Failures),
            (Condition::Failed, Condition::Active, ConditionCause::Recovered),
            (Condition::Active, Condition::Disabled, ConditionCause::Gone),
        ]
    );
    assert_eq!(changes[0].number, HealthChangeNumber(1));
    assert_eq!((changes[0].at, changes[0].detail.as_str()), (at(2), "HTTP 503"));
}

pub async fn only_the_newest_changes_are_kept(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    let many = HEALTH_CHANGES_KEPT + 5;
    patient.becomes([failed(), active()].into_iter().cycle().take(many)).await;
    let changes = patient.changes().await;
    assert_eq!(changes.len(), HEALTH_CHANGES_KEPT);
    assert_eq!(changes[0].number, HealthChangeNumber(6));
}

pub async fn changes_are_listed_both_ways_page_by_page(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    patient.becomes([failed(), active(), failed(), active()]).await;
    let page = async |after, limit, order| {
        let page = Page { after, limit };
        let found = patient.scene.store.health_changes(patient.endpoint, page, order).await.unwrap();
        found.iter().map(|change| change.number.0).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 3, Order::Descending).await, [4, 3, 2]);
    assert_eq!(page(Some(HealthChangeNumber(2)), 3, Order::Descending).await, [1]);
    assert_eq!(page(Some(HealthChangeNumber(2)), 3, Order::Ascending).await, [3, 4]);
}

pub async fn the_newest_error_is_kept_with_the_endpoint(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    assert_eq!(patient.endpoint().await.last_error, None);
    let record = |attempts_before, started_at, error: &str| {
        let attempt = NewAttempt {
            started_at,
            duration: Duration::from_secs(1),
            status_code: Some(500),
            error: error.into(),
            success: false,
            ..patient.scene.attempt()
        };
        let failed = patient.scene.failed(&patient.event, patient.seq, at(5));
        Record { attempts_before, attempt: Some(attempt), ..failed }
    };
    // No change of the health comes with these: it is kept all the same, and an older one comes too late.
    patient.scene.record(vec![record(0, at(10), "newer"), record(1, at(7), "older")]).await;
    let expected = LastError { at: at(11), status_code: Some(500), text: "newer".into() };
    assert_eq!(patient.endpoint().await.last_error, Some(expected));
}

pub async fn a_resume_makes_active_and_says_since_when_it_had_failed(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    patient.becomes([failed()]).await;
    assert_eq!(patient.resume(60).await, resumed_since(1));
    assert_eq!(patient.endpoint().await.health, failed().resumed(at(60)));
    let last = patient.changes().await.pop().unwrap();
    assert_eq!((last.at, last.cause), (at(60), ConditionCause::Resumed));
    patient.becomes([Health { epoch: 1, ..gone() }]).await;
    assert!(matches!(patient.resume(90).await, Changed::Resumed { .. }), "410 is taken back by a hand too");
}

pub async fn a_resume_says_when_the_outage_began_whatever_came_late(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    let late = Health { failing_since: Some(at(3)), ..gone() };
    patient.becomes([gone(), late]).await;
    assert_eq!(patient.resume(60).await, resumed_since(2));
}

pub async fn a_resume_of_a_healthy_endpoint_changes_nothing(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    patient.becomes([Health { failure_count: 2, ..active() }]).await;
    let before = patient.endpoint().await;
    assert_eq!(patient.resume(60).await, Changed::Unchanged);
    assert_eq!(patient.endpoint().await, before);
    let (app, endpoint) = (patient.scene.id(), patient.endpoint);
    let elsewhere = Change::ResumeEndpoint { app, endpoint, at: at(60), recovery: None, notices: Vec::new() };
    assert_eq!(patient.scene.change(elsewhere).await, Changed::NotFound);
}

pub async fn an_endpoint_that_is_turned_off_is_not_resumed(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    patient.becomes([failed()]).await;
    patient.set_disabled(true, 60, false).await;
    let before = patient.endpoint().await;
    assert_eq!(patient.resume(61).await, Changed::TurnedOff);
    assert_eq!(patient.endpoint().await, before);
    patient.set_disabled(false, 62, false).await;
    assert_eq!(patient.endpoint().await.health.status, HealthStatus::Active, "turning it on resumes it");
}

pub async fn an_attempt_from_before_a_resume_leaves_the_health_alone(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    patient.becomes([failed()]).await;
    patient.resume(60).await;
    let resumed = patient.endpoint().await.health;
    // It was judged before its lane had heard of the resume.
    patient.becomes([Health { failure_count: 4, quiet_until: Some(at(99)), ..failed() }]).await;
    let asked = Health { quiet_until: Some(at(99)), ..resumed.clone() };
    assert_eq!(patient.endpoint().await.health, asked, "but for what the receiver asked for");
    assert_eq!(patient.scene.due(patient.endpoint).await[0].attempts, 2, "the rest of it counts");
    let failed_anew = Health { epoch: resumed.epoch, ..failed() };
    patient.becomes([failed_anew.clone()]).await;
    assert_eq!(patient.endpoint().await.health, failed_anew);
}

pub async fn turning_off_and_on_is_a_change_by_hand(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    patient.becomes([failed()]).await;
    patient.set_disabled(true, 60, false).await;
    assert_eq!(patient.endpoint().await.health, failed().turned_off(at(60)));
    patient.set_disabled(true, 61, false).await;
    patient.set_disabled(false, 62, false).await;
    assert_eq!(patient.endpoint().await.health, failed().turned_off(at(60)).resumed(at(62)));
    let epoch = patient.endpoint().await.health.epoch;
    patient.becomes([Health { epoch, ..failed() }]).await;
    patient.set_disabled(false, 63, false).await;
    assert_eq!(patient.endpoint().await.health.status, HealthStatus::Failed, "nobody asked for it");
    patient.set_disabled(false, 64, true).await;
    assert_eq!(patient.endpoint().await.health.status, HealthStatus::Active);
    let causes: Vec<_> = patient.changes().await.iter().map(|change| change.cause).collect();
    assert_eq!(
        causes,
        [
            ConditionCause::Failures,
            ConditionCause::TurnedOff,
            ConditionCause::TurnedOn,
            ConditionCause::Failures,
            ConditionCause::Resumed,
        ]
    );
}

pub async fn a_skipped_delivery_is_settled_from_the_beginning(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let mut event = scene.event(&scene.with_endpoints(3).await);
    event.deliveries[1].skipped = Some(SkipReason::EndpointDisabled);
    let first = scene.accepted(&event).await;
    let deliveries = scene.store.deliveries(event.message.id).await.unwrap();
    let seqs: Vec<_> = deliveries.iter().map(|delivery| delivery.seq.0 - first.0).collect();
    assert_eq!(seqs, [0, 1, 2], "it has a number like the others");
    let skipped = DeliveryState::Skipped { at: at(0), reason: SkipReason::EndpointDisabled };
    assert_eq!((deliveries[1].attempts, deliveries[1].state), (0, skipped));
    assert_eq!(scene.due(event.deliveries[1].endpoint).await, []);
    assert_eq!(scene.due(event.deliveries[2].endpoint).await.len(), 1);
    assert_eq!(scene.store.waiting().await.unwrap(), 2);
}

pub async fn released_gates_are_gone(store: Arc<dyn Store>) {
    let patient = Patient::new(store).await;
    let held = Gate { failures: 2, held_until: Some(at(60)), since: Some(at(9)), ..Gate::default() };
    let org = patient.scene.org;
    let gate = |org, host: &str, scope| GateRecord {
        key: GateKey { org, origin: Origin::new("https", host, 443), scope },
        gate: held.clone(),
        why: "HTTP 503".into(),
    };
    let own = GateScope::Application(patient.app);
    let [a, b, c] = [gate(org, "a", GateScope::Host), gate(org, "a", own), gate(org, "b", own)];
    let theirs = gate(patient.scene.id(), "a", GateScope::Host);
    let failed = patient.scene.failed(&patient.event, patient.seq, at(5));
    let gates = vec![a.clone(), b.clone(), c.clone(), theirs.clone()];
    patient.scene.record(vec![Record { gates, ..failed }]).await;
    let gates = vec![a.key, c.key];
    assert_eq!(patient.scene.change(Change::ReleaseGates { gates }).await, made());
    let mut kept = [b, theirs];
    kept.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(patient.scene.store.gates().await.unwrap(), kept, "another organization's gate stays");
}

pub async fn endpoints_are_found_by_where_their_urls_begin(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (first, second) = (scene.with_endpoints(1).await, scene.with_endpoints(0).await);
    let starts = || vec!["https://example.com/".to_owned(), "https://example.org/".to_owned()];
    let found = async |org, app| scene.store.has_endpoints_at(org, app, starts()).await.unwrap();
    assert_eq!(found(scene.org, None).await, [true, false]);
    assert_eq!(found(scene.org, Some(first.application.id)).await, [true, false]);
    assert_eq!(found(scene.org, Some(second.application.id)).await, [false, false]);
    assert_eq!(found(scene.id(), None).await, [false, false]);
    let apps = || vec![first.application.id, scene.id()];
    assert_eq!(scene.store.are_of(scene.org, apps()).await.unwrap(), [true, false]);
    assert_eq!(scene.store.are_of(scene.id(), apps()).await.unwrap(), [false, false]);
    let (app, endpoint) = (first.application.id, first.endpoints[0].id);
    scene.change(Change::DeleteEndpoint { app, endpoint, at: at(1), notices: Vec::new() }).await;
    assert_eq!(found(scene.org, None).await, [false, false]);
}
