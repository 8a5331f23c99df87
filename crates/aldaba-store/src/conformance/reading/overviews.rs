//! Numbers for pages.

use crate::conformance::{Scene, at};
use crate::{DeadLetterGroup, DeadLetterOf, Hour, NewAttempt, Record, Store};
use aldaba_delivery::{Health, HealthStatus, Reason};
use std::sync::Arc;
use std::time::Duration;

pub async fn hours_of_an_endpoint_have_their_answers_and_times(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let failed = scene.failed(&event, seq, at(90));
    let attempt = NewAttempt { status_code: Some(503), duration: Duration::from_secs(2), ..scene.attempt() };
    let attempt = NewAttempt { success: false, ..attempt };
    let record = Record { attempt: Some(attempt), ..failed };
    let (endpoint, hour) = (record.endpoint, Hour::of(record.at));
    scene.record(vec![record]).await;
    let found = scene.store.endpoint_hours(endpoint, Hour(hour.0 - 3), hour).await.unwrap();
    let [(counted, counts)] = found[..] else { panic!("{found:?}") };
    assert_eq!((counted, counts.attempts, counts.successes), (hour, 1, 0));
    assert_eq!(counts.by_answer, [0, 0, 0, 0, 0, 1]);
    assert_eq!(counts.quantile(0.5), Some(Duration::from_millis(2500)));
    assert!(scene.store.endpoint_hours(endpoint, hour.next(), hour.next()).await.unwrap().is_empty());
}

pub async fn what_has_died_is_grouped_by_endpoint_and_reason_up_to_a_limit(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    for (of, reason) in [
        (&tenant, Reason::Exhausted),
        (&tenant, Reason::Exhausted),
        (&tenant, Reason::Rejected),
        (&other, Reason::Exhausted),
    ] {
        let event = scene.event(of);
        let seq = scene.accepted(&event).await;
        scene.record(vec![scene.dead(&event, seq, reason)]).await;
    }
    let (app, second) = (tenant.application.id, other.application.id);
    let group =
        |reason, deliveries| DeadLetterGroup { app, endpoint: tenant.endpoints[0].id, reason, deliveries };
    let of = |of, most| scene.store.dead_letter_groups(of, most);
    let mut groups = of(DeadLetterOf::Application(app), 10).await.unwrap();
    groups.groups.sort_by_key(|group| group.deliveries);
    assert_eq!(groups.groups, [group(Reason::Rejected, 1), group(Reason::Exhausted, 2)]);
    assert!(!groups.more);
    let all = of(DeadLetterOf::Organization(scene.org), 10).await.unwrap();
    assert_eq!(all.groups.iter().map(|group| group.deliveries).sum::<u64>(), 4);
    assert!(of(DeadLetterOf::Organization(scene.org), 3).await.unwrap().more);
    assert_eq!(scene.store.dead_counts(vec![app, second], 2).await.unwrap(), [2, 1]);
}

pub async fn what_waits_for_endpoints_and_which_are_given_up_is_counted_up_to_a_limit(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let endpoints: Vec<_> = tenant.endpoints.iter().map(|endpoint| endpoint.id).collect();
    let mut last = None;
    for _ in 0..3 {
        let mut event = scene.event(&tenant);
        event.deliveries.truncate(1);
        last = Some((scene.accepted(&event).await, event));
    }
    let waiting = scene.store.waiting_counts(endpoints.clone(), 2).await.unwrap();
    assert_eq!(waiting, [2, 0]);
    assert!(scene.store.given_up_endpoints(scene.org, 10).await.unwrap().is_empty());
    let (seq, event) = last.unwrap();
    let health = Some(Health { status: HealthStatus::Gone, ..Health::default() });
    scene.record(vec![Record { health, ..scene.failed(&event, seq, at(90)) }]).await;
    let given_up = scene.store.given_up_endpoints(scene.org, 10).await.unwrap();
    assert_eq!(given_up, [(tenant.application.id, endpoints[0])]);
}
