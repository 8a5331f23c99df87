//! Attempts are counted as they are recorded.

use crate::conformance::retention::{found as found_expired, remove_slice};
use crate::conformance::scene::ask;
use crate::conformance::{Scene, at};
use crate::operations::Search;
use crate::{
    ApplicationAttemptsQuery, AttemptCounts, Hour, ManualRecord, NewAttempt, Record, Store, SumUp, Tenant,
    Trigger,
};
use aldaba_delivery::{Reason, Timestamp};
use std::sync::Arc;
use std::time::Duration;

const HOUR: i64 = 3600;

/// The beginning of an hour.
fn hour(hours: i64) -> Timestamp {
    Timestamp::from_millis(Hour::of(at(0)).start().millis() + hours * HOUR * 1000)
}

fn minute(hours: i64, minutes: i64) -> Timestamp {
    Timestamp::from_millis(hour(hours).millis() + minutes * 60_000)
}

fn counts(successes: u64, failures: u64) -> AttemptCounts {
    AttemptCounts { successes, failures }
}

/// One attempt of a new message, recorded at a moment.
async fn attempt(scene: &Scene, tenant: &Tenant, moment: Timestamp, success: bool, event_type: &str) {
    let event = scene.event(tenant);
    let seq = scene.accepted(&event).await;
    let record = match success {
        true => scene.delivered(&event, seq),
        false => scene.failed(&event, seq, moment),
    };
    let attempt = record.attempt.clone().map(|made| NewAttempt { event_type: event_type.into(), ..made });
    scene.record(vec![Record { at: moment, attempt, ..record }]).await;
}

async fn of_endpoint(scene: &Scene, tenant: &Tenant, since: Timestamp, until: Timestamp) -> AttemptCounts {
    scene.store.endpoint_attempts(tenant.endpoints[0].id, since, until).await.unwrap()
}

/// Sums up what is to be summed up, as the engine does.
async fn sum_up(scene: &Scene, tenants: &[&Tenant], through: Hour) {
    let all = tenants.iter().flat_map(|tenant| &tenant.endpoints).map(|endpoint| endpoint.id).collect();
    let mut endpoints = scene.store.unsummed(all, through).await.unwrap();
    loop {
        let step = SumUp { through, endpoints: endpoints.clone(), last: false };
        let done = ask(|done| scene.store.sum_up(step, done)).await.unwrap();
        endpoints.drain(..done);
        if endpoints.is_empty() {
            break;
        }
    }
    ask(|done| scene.store.sum_up(SumUp { through, endpoints, last: true }, done)).await.unwrap();
    assert_eq!(scene.store.summed_through().await.unwrap(), through);
}

pub async fn attempts_of_an_endpoint_are_counted_by_result_and_minute(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    attempt(&scene, &tenant, minute(0, 5), true, "a").await;
    attempt(&scene, &tenant, minute(0, 6), false, "a").await;
    attempt(&scene, &tenant, minute(0, 6), true, "a").await;
    attempt(&scene, &other, minute(0, 6), true, "a").await;
    // Neither an end without an attempt nor one that is fenced is an attempt.
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let dead = Record { at: minute(0, 6), ..scene.dead(&event, seq, Reason::Expired) };
    scene.record(vec![dead, Record { at: minute(0, 6), ..scene.delivered(&event, seq) }]).await;
    assert_eq!(of_endpoint(&scene, &tenant, hour(0), hour(1)).await, counts(2, 1));
    assert_eq!(of_endpoint(&scene, &tenant, minute(0, 5), minute(0, 6)).await, counts(1, 0));
    assert_eq!(of_endpoint(&scene, &tenant, minute(0, 6), minute(0, 7)).await, counts(1, 1));
    assert_eq!(of_endpoint(&scene, &tenant, minute(0, 7), hour(9)).await, counts(0, 0));
    assert_eq!(of_endpoint(&scene, &tenant, hour(1), hour(0)).await, counts(0, 0));
}

pub async fn attempts_by_hand_are_counted_too(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let event = scene.event(&tenant);
    scene.accepted(&event).await;
    let attempt = NewAttempt { trigger: Trigger::Manual, event_type: "b".into(), ..scene.attempt() };
    let resent = ManualRecord {
        org: scene.org,
        endpoint: tenant.endpoints[0].id,
        message: event.message.id,
        attempt,
        at: minute(0, 3),
        audit: None,
        idempotency: None,
    };
    ask(|done| scene.store.record_manual(resent, done)).await.unwrap();
    assert_eq!(of_endpoint(&scene, &tenant, hour(0), hour(1)).await, counts(1, 0));
    let types = of_application(&scene, &tenant, 0, 0, &[], 10).await.expect("few");
    assert_eq!(types, [("b".to_owned(), counts(1, 0))]);
}

pub async fn hours_that_are_summed_up_count_the_same(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    for (hours, minutes, success) in
        [(0, 0, true), (0, 59, false), (1, 0, true), (1, 30, true), (2, 0, false), (2, 1, true), (3, 3, true)]
    {
        attempt(&scene, &tenant, minute(hours, minutes), success, "a").await;
        attempt(&scene, &other, minute(hours, minutes), !success, "a").await;
    }
    let ranges = [
        (hour(0), hour(4)),
        (hour(0), hour(2)),
        (minute(0, 1), minute(2, 1)),
        (minute(0, 59), minute(1, 30)),
        (minute(1, 1), minute(1, 59)),
        (minute(1, 30), minute(3, 4)),
        (hour(-5), hour(9)),
    ];
    let mut before = Vec::new();
    for (since, until) in ranges {
        before.push(of_endpoint(&scene, &tenant, since, until).await);
    }
    assert_eq!(before[0], counts(5, 2));
    let first = Hour::of(hour(0));
    for through in [first.next(), first.next(), first.next().next()] {
        sum_up(&scene, &[&tenant, &other], through).await;
        for ((since, until), counted) in ranges.into_iter().zip(&before) {
            assert_eq!(of_endpoint(&scene, &tenant, since, until).await, *counted, "{since:?} {until:?}");
        }
    }
    let left = scene.store.unsummed(vec![tenant.endpoints[0].id], first.next()).await.unwrap();
    assert_eq!(left, [], "they are summed up");
}

pub async fn what_is_counted_late_is_in_the_sum_too(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    attempt(&scene, &tenant, minute(0, 10), true, "a").await;
    let through = Hour::of(hour(0)).next();
    // The sum of the endpoint is made, and the others are still to come.
    let step = SumUp { through, endpoints: vec![tenant.endpoints[0].id], last: false };
    assert_eq!(ask(|done| scene.store.sum_up(step, done)).await, Ok(1));
    attempt(&scene, &tenant, minute(0, 11), false, "a").await;
    attempt(&scene, &other, minute(0, 11), false, "a").await;
    let end = SumUp { through, endpoints: Vec::new(), last: true };
    ask(|done| scene.store.sum_up(end, done)).await.unwrap();
    attempt(&scene, &tenant, minute(0, 10), true, "a").await;
    attempt(&scene, &tenant, minute(1, 10), true, "a").await;
    for (since, until) in [(hour(0), hour(2)), (minute(0, 1), minute(1, 59))] {
        assert_eq!(of_endpoint(&scene, &tenant, since, until).await, counts(3, 1));
        assert_eq!(of_endpoint(&scene, &other, since, until).await, counts(0, 1));
    }
}

async fn of_application(
    scene: &Scene,
    tenant: &Tenant,
    first: i64,
    last: i64,
    types: &[&str],
    most: usize,
) -> Option<Vec<(String, AttemptCounts)>> {
    let query = ApplicationAttemptsQuery {
        app: tenant.application.id,
        first: Hour::of(hour(first)),
        last: Hour::of(hour(last)),
        event_types: types.iter().map(|name| (*name).to_owned()).collect(),
        most,
    };
    let types = scene.store.application_attempts(query).await.unwrap();
    types.map(|types| types.into_iter().collect())
}

pub async fn attempts_of_an_application_are_counted_by_event_type_and_hour(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    for (moment, success, event_type) in [
        (minute(0, 1), true, "a"),
        (minute(0, 2), false, "b"),
        (minute(1, 0), true, "a"),
        (minute(1, 59), false, "a"),
        (minute(2, 0), true, "c"),
    ] {
        attempt(&scene, &tenant, moment, success, event_type).await;
    }
    attempt(&scene, &other, minute(0, 1), true, "z").await;
    let found = |types: &[(&str, u64, u64)]| {
        let named = |(name, successes, failures): &(&str, u64, u64)| {
            ((*name).to_owned(), counts(*successes, *failures))
        };
        Some(types.iter().map(named).collect::<Vec<_>>())
    };
    let all = found(&[("a", 2, 1), ("b", 0, 1), ("c", 1, 0)]);
    assert_eq!(of_application(&scene, &tenant, 0, 2, &[], 10).await, all);
    assert_eq!(of_application(&scene, &tenant, 1, 1, &[], 10).await, found(&[("a", 1, 1)]));
    assert_eq!(
        of_application(&scene, &tenant, 0, 2, &["c", "b", "x"], 10).await,
        found(&[("b", 0, 1), ("c", 1, 0)])
    );
    assert_eq!(of_application(&scene, &tenant, 3, 9, &[], 10).await, found(&[]));
    assert_eq!(of_application(&scene, &tenant, 0, 2, &[], 4).await, all);
    assert_eq!(of_application(&scene, &tenant, 0, 2, &[], 3).await, None);
}

pub async fn hours_that_are_summed_up_go_with_or_before_their_minutes(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    for hours in 0..3 {
        attempt(&scene, &tenant, minute(hours, 1), true, "a").await;
    }
    sum_up(&scene, &[&tenant], Hour::of(hour(1))).await;
    let old = async |before| {
        found_expired(&scene, Search::Counters(vec![tenant.endpoints[0].id], before), 100).await
    };
    assert_eq!(old(hour(0)).await, []);
    let stale = old(minute(1, 2)).await;
    remove_slice(&*scene.store, stale, hour(9), Duration::ZERO).await;
    assert_eq!(old(minute(1, 2)).await, []);
    let left = of_endpoint(&scene, &tenant, hour(2), hour(9)).await;
    assert_eq!(left, counts(1, 0));
    assert!(
        matches!(of_endpoint(&scene, &tenant, hour(0), hour(9)).await.successes, 1..=3),
        "or none are kept"
    );
}
