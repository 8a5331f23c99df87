//! What happens in an organization is counted as it is committed.

use crate::conformance::scene::{ask, made};
use crate::conformance::{Scene, at};
use crate::{
    CertificateDate, Change, CountKind, CountedSpans, DeadLetterCounts, Endpoint, ExpiringCertificate,
    FailedEndpoints, Fence, ManualRecord, NewAttempt, OrganizationCounts, OrganizationCountsQuery, Record,
    Store, Trigger, WaitingLanes,
};
use aldaba_delivery::{Ending, EndpointId, Health, HealthStatus, OrgId, Reason, Timestamp, Transition};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// By the counts in memory.
fn counted(scene: &Scene, kind: CountKind) -> u64 {
    scene.store.live_counts().window(Some(scene.org), at(60), HOUR).get(kind)
}

pub async fn each_attempt_and_each_end_is_counted_once_for_its_organization(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (good, bad) = (scene.event(&tenant), scene.event(&tenant));
    let (first, second) = (scene.accepted(&good).await, scene.accepted(&bad).await);
    let took = |record: Record, millis: u64| {
        let attempt = record.attempt.clone().expect("one was made");
        Record { attempt: Some(NewAttempt { duration: Duration::from_millis(millis), ..attempt }), ..record }
    };
    // Delivered at the second attempt, 7 s after its event.
    let late = Record { attempts_before: 1, at: at(7), ..scene.delivered(&good, first) };
    scene.record(vec![took(scene.failed(&good, first, at(5)), 40)]).await;
    scene.record(vec![took(late, 700)]).await;
    // Dead at once, then a fenced result.
    let transition = Transition::Settle(Ending::Dead(Reason::Rejected));
    let dead = took(Record { transition, ..scene.failed(&bad, second, at(5)) }, 3);
    scene.record(vec![dead.clone(), dead]).await;

    for (kind, expected) in [
        (CountKind::Accepted, 2),
        (CountKind::Deliveries, 2),
        (CountKind::Success, 1),
        (CountKind::Retry, 1),
        (CountKind::Failed, 1),
        (CountKind::Retries, 1),
        (CountKind::Delivered, 1),
        (CountKind::SettledAfterRetry, 1),
        (CountKind::SettledRetries, 1),
        (CountKind::AttemptMillis, 743),
        (CountKind::LatencyMillis, 7000),
        (CountKind::InboundReceived, 0),
    ] {
        assert_eq!(counted(&scene, kind), expected, "{kind:?}");
    }
    let counts = scene.store.live_counts().window(None, at(60), HOUR);
    assert_eq!((counts.dead(Reason::Rejected), counts.all_dead(), counts.attempts()), (1, 1, 3));
    assert_eq!(counts.latencies().quantile(1.0), Some(Duration::from_secs(10)), "within 5 to 10 s");
    assert_eq!(
        scene.store.live_counts().window(Some(scene.id()), at(60), HOUR),
        OrganizationCounts::default()
    );
}

pub async fn manual_attempts_and_duplicates_of_sources_are_counted(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut event = scene.event(&tenant);
    event.message.event_id_until = Some(at(1000));
    let seq = scene.accepted(&event).await;
    scene.record(vec![scene.delivered(&event, seq)]).await;
    let failed = scene.failed(&event, seq, at(5)).attempt.expect("one was made");
    let resent = ManualRecord {
        org: scene.org,
        endpoint: tenant.endpoints[0].id,
        message: event.message.id,
        attempt: NewAttempt { trigger: Trigger::Manual, id: scene.id(), ..failed },
        at: at(3),
        audit: None,
        idempotency: None,
    };
    ask(|done| scene.store.record_manual(resent, done)).await.unwrap();
    ask(|done| scene.store.count_duplicate(scene.org, at(4), done)).await.unwrap();
    assert_eq!((counted(&scene, CountKind::Success), counted(&scene, CountKind::Failed)), (1, 1));
    assert_eq!(
        (counted(&scene, CountKind::InboundReceived), counted(&scene, CountKind::InboundDuplicates)),
        (1, 1)
    );
}

pub async fn what_waits_is_counted_for_each_organization(store: Arc<dyn Store>) {
    let mut scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let event = scene.event(&tenant);
    let first = scene.accepted(&event).await;
    let one = scene.org;
    scene.org = scene.id();
    let other_tenant = scene.with_endpoints(1).await;
    let other = scene.event(&other_tenant);
    let seq = scene.accepted(&other).await;
    let live = scene.store.live_counts();
    let waiting = |org: OrgId| live.waiting(Some(org));
    assert_eq!((waiting(one), waiting(scene.org), live.waiting(None)), (2, 1, 3));
    assert_eq!(scene.store.waiting().await, Ok(3));
    // The organization of a record that names none is that of its endpoint.
    scene.record(vec![Record { org: None, ..scene.dead(&event, first, Reason::Cancelled) }]).await;
    scene.record(vec![scene.failed(&other, seq, at(9))]).await;
    assert_eq!((waiting(one), waiting(scene.org), live.waiting(None)), (1, 1, 2));
    let mut active = live.organizations();
    active.sort_unstable();
    assert_eq!(active, [one, scene.org]);
}

pub async fn endpoints_that_are_given_up_are_counted_by_organization(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    assert_eq!(scene.store.failed_endpoints().await.unwrap(), []);
    for (number, status) in [(0, HealthStatus::Failed), (1, HealthStatus::Gone), (2, HealthStatus::Blocked)] {
        let mut event = scene.event(&tenant);
        event.deliveries = vec![event.deliveries[number]];
        let seq = scene.accepted(&event).await;
        let health = Some(Health { status, ..Health::default() });
        scene.record(vec![Record { health, ..scene.failed(&event, seq, at(5)) }]).await;
    }
    let found = scene.store.failed_endpoints().await.unwrap();
    assert_eq!(found, [FailedEndpoints { org: scene.org, endpoints: 2 }]);
}

pub async fn endpoints_of_a_deleted_application_have_not_failed_and_show_no_certificate(
    store: Arc<dyn Store>,
) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (app, endpoint) = (tenant.application.id, tenant.endpoints[0].id);
    show_certificate(&scene, endpoint, Some(at(50))).await;
    let event = scene.event(&scene.tenant(app).await.unwrap());
    let seq = scene.accepted(&event).await;
    let health = Some(Health { status: HealthStatus::Gone, ..Health::default() });
    scene.record(vec![Record { health, ..scene.failed(&event, seq, at(5)) }]).await;
    assert_eq!(scene.store.failed_endpoints().await.unwrap().len(), 1);
    assert_eq!(scene.store.expiring_certificates().await.unwrap().len(), 1);
    assert_eq!(scene.change(Change::DeleteApplication { app, at: at(9) }).await, made());
    assert_eq!(scene.store.failed_endpoints().await.unwrap(), []);
    assert_eq!(scene.store.expiring_certificates().await.unwrap(), []);
}

pub async fn the_first_client_certificate_of_each_organization_is_found(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let app = tenant.application.id;
    let [first, second, third] = [0, 1, 2].map(|number| tenant.endpoints[number].id);
    let found = async || scene.store.expiring_certificates().await.unwrap();
    assert_eq!(found().await, []);
    for (endpoint, end) in [(first, 70), (second, 50), (third, 90)] {
        show_certificate(&scene, endpoint, Some(at(end))).await;
    }
    let expires = |second| [ExpiringCertificate { org: scene.org, at: at(second) }];
    assert_eq!(found().await, expires(50));
    // A change of other secrets has the expiry of the certificate with it.
    show_certificate(&scene, second, Some(at(60))).await;
    assert_eq!(found().await, expires(60));
    show_certificate(&scene, second, None).await;
    assert_eq!(found().await, expires(70));
    // One that is off shows nothing.
    let before = scene.endpoint(first).await;
    let mut endpoint = before.clone();
    endpoint.config.disabled = true;
    endpoint.updated_at = at(9);
    let off =
        Change::UpdateEndpoint { endpoint, was: Fence::from(&before), resume: false, notices: Vec::new() };
    assert!(scene.change(off).await.is_change());
    assert_eq!(found().await, expires(90));
    let gone = Change::DeleteEndpoint { app, endpoint: third, at: at(9), notices: Vec::new() };
    assert!(scene.change(gone).await.is_change());
    assert_eq!(found().await, []);
}

pub async fn a_certificate_is_dated_while_its_secrets_are_still_those(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let mut secrets = scene.store.sealed_secrets(None, 2).await.unwrap();
    let last = secrets.last().map(|last| last.endpoint);
    secrets.extend(scene.store.sealed_secrets(last, 2).await.unwrap());
    let found: Vec<_> = secrets.iter().map(|secrets| (secrets.app, secrets.endpoint)).collect();
    let mut all: Vec<_> =
        tenant.endpoints.iter().map(|endpoint| (tenant.application.id, endpoint.id)).collect();
    all.sort_unstable();
    assert_eq!(found, all);
    let date = |number: usize, second| CertificateDate {
        endpoint: secrets[number].endpoint,
        of: secrets[number].sealed.clone(),
        expires_at: at(second),
    };
    // Somebody gives the first one another certificate meanwhile.
    show_certificate(&scene, secrets[0].endpoint, Some(at(80))).await;
    let dates = vec![date(0, 20), date(1, 90)];
    assert_eq!(scene.change(Change::DateCertificates { dates }).await, made());
    let first = |second| [ExpiringCertificate { org: scene.org, at: at(second) }];
    assert_eq!(scene.store.expiring_certificates().await.unwrap(), first(80));
    show_certificate(&scene, secrets[0].endpoint, None).await;
    assert_eq!(scene.store.expiring_certificates().await.unwrap(), first(90));
}

/// Gives an endpoint another client certificate, or takes it away.
async fn show_certificate(scene: &Scene, endpoint: EndpointId, expires_at: Option<Timestamp>) {
    let Endpoint { app, sealed: was, .. } = scene.endpoint(endpoint).await;
    let sealed = format!("{expires_at:?}").into_bytes();
    let change = Change::ReplaceSecrets {
        app,
        endpoint,
        was,
        sealed,
        certificate_expires_at: expires_at,
        at: at(7),
        idempotency: None,
        notices: Vec::new(),
    };
    assert_eq!(scene.change(change).await, made());
}

pub async fn what_a_person_ends_has_not_failed(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    for reason in [Reason::Cancelled, Reason::PayloadDeleted, Reason::Exhausted] {
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        for attempts_before in 0..2 {
            scene.record(vec![Record { attempts_before, ..scene.failed(&event, seq, at(1)) }]).await;
        }
        scene.record(vec![Record { attempts_before: 2, ..scene.dead(&event, seq, reason) }]).await;
    }
    let counts = scene.store.live_counts().window(Some(scene.org), at(60), HOUR);
    assert_eq!((counts.all_dead(), counts.failed()), (3, 1));
    assert_eq!(counts.get(CountKind::SettledAfterRetry), 1);
}

async fn waiting(scene: &Scene, now: i64) -> (Option<Timestamp>, u64) {
    let WaitingLanes { oldest, deferred, next } = scene.store.waiting_lanes(None, at(now)).await.unwrap();
    assert_eq!(next, None);
    (oldest.get(&scene.org).copied(), deferred.get(&scene.org).copied().unwrap_or(0))
}

pub async fn the_oldest_waiting_delivery_is_found_tried_or_not(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    assert_eq!(waiting(&scene, 60).await, (None, 0));
    let late = scene.event_due(&tenant, at(50));
    scene.accepted(&late).await;
    assert_eq!(waiting(&scene, 60).await, (Some(at(50)), 0));
    let tried = scene.event_due(&tenant, at(20));
    let seq = scene.accepted(&tried).await;
    scene.record(vec![scene.failed(&tried, seq, at(90))]).await;
    assert_eq!(
        waiting(&scene, 60).await,
        (Some(at(20)), 0),
        "a retry is no other time that somebody has named"
    );
}

pub async fn what_is_scheduled_or_held_is_counted_apart_from_what_could_be_sent(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let only = |number: usize, due_at: i64| {
        let mut event = scene.event_due(&tenant, at(due_at));
        event.deliveries = vec![event.deliveries[number]];
        event
    };
    let failing = only(0, 10);
    let seq = scene.accepted(&failing).await;
    for event in [only(0, 20), only(1, 30), only(1, 500)] {
        scene.accepted(&event).await;
    }
    assert_eq!(waiting(&scene, 60).await, (Some(at(10)), 1), "one is for later");
    let health = Some(Health { status: HealthStatus::Failed, ..Health::default() });
    scene.record(vec![Record { health, ..scene.failed(&failing, seq, at(90)) }]).await;
    assert_eq!(waiting(&scene, 60).await, (Some(at(30)), 3), "two are held");
    assert_eq!(waiting(&scene, 600).await, (Some(at(30)), 2), "it is later");
}

pub async fn the_dead_letter_is_counted_by_reason(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    for reason in [Reason::Exhausted, Reason::StopDate, Reason::Exhausted] {
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        scene.record(vec![scene.dead(&event, seq, reason)]).await;
    }
    let DeadLetterCounts { counts, next } = scene.store.dead_letter_reasons(None).await.unwrap();
    let found: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!((found, next), (vec![(Reason::Exhausted, 2), (Reason::StopDate, 1)], None));
}

pub async fn rows_of_organizations_are_read_by_minute_and_hour(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let spans = [CountedSpans::Minutes(0..=i64::MAX), CountedSpans::Hours(0..=i64::MAX)];
    for spans in spans {
        let query = OrganizationCountsQuery { org: scene.org, spans };
        assert_eq!(scene.store.organization_counts(query).await.unwrap(), []);
    }
}
