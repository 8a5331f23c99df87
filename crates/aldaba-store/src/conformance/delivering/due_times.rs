//! Due times that are found and corrected.

use crate::conformance::{Scene, at};
use crate::{
    Accept, Change, FutureDelivery, LanePosition, NewDelivery, Recorded, Rescheduled, Seq, Store, Tenant,
    Trigger,
};
use aldaba_delivery::Timestamp;
use std::sync::Arc;

async fn event(scene: &Scene, tenant: &Tenant, due: i64, deliver_at: Option<i64>) -> (Accept, Seq) {
    let endpoint = tenant.endpoints[0].id;
    let mut event = scene.event(tenant);
    event.deliveries = vec![NewDelivery { endpoint, due_at: at(due), ordered: false, skipped: None }];
    event.message.deliver_at = deliver_at.map(at);
    let seq = scene.accepted(&event).await;
    (event, seq)
}

fn after(seconds: i64) -> LanePosition {
    LanePosition { due_at: at(seconds), seq: Seq(i64::MAX) }
}

async fn not_due(scene: &Scene, seconds: i64, limit: usize) -> Vec<FutureDelivery> {
    scene.store.future_deliveries(after(seconds), limit).await.unwrap()
}

pub async fn what_is_not_due_is_walked_by_turn_with_what_bounds_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (_, later) = event(&scene, &tenant, 300, Some(300)).await;
    let (_, at_once) = event(&scene, &tenant, 200, None).await;
    let (_, due) = event(&scene, &tenant, 100, None).await;
    let found = not_due(&scene, 100, 10).await;
    let seqs: Vec<_> = found.iter().map(|row| (row.waiting.seq, row.deliver_at)).collect();
    assert_eq!(seqs, [(at_once, None), (later, Some(at(300)))], "{due:?} is due");
    let endpoint = scene.endpoint(tenant.endpoints[0].id).await;
    let of_endpoint = (endpoint.id, endpoint.app, endpoint.org, endpoint.config.policy);
    let FutureDelivery { endpoint, app, org, policy, .. } = found[0].clone();
    assert_eq!((endpoint, app, org, policy), of_endpoint);
    assert_eq!(not_due(&scene, 100, 1).await, found[..1]);
    let next = scene.store.future_deliveries(found[0].waiting.position(), 10).await.unwrap();
    assert_eq!(next, found[1..]);
    assert_eq!(not_due(&scene, 300, 10).await, []);
}

pub async fn a_corrected_due_time_moves_the_turn_unless_the_delivery_has_changed(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let (_, moved) = event(&scene, &tenant, 500, None).await;
    let (tried, changed) = event(&scene, &tenant, 600, None).await;
    let read: Vec<_> = not_due(&scene, 0, 10).await.into_iter().map(|row| row.waiting).collect();
    assert_eq!(scene.record(vec![scene.failed(&tried, changed, at(700))]).await, [Recorded::Applied]);
    let correct =
        |was: crate::PendingDelivery| Rescheduled { endpoint, was, due_at: at(5), clock_start: at(4) };
    let deliveries = read.into_iter().map(correct).collect();
    scene.change(Change::Reschedule { deliveries }).await;
    let due = scene.due(endpoint).await;
    let turns: Vec<_> = due.iter().map(|row| (row.seq, row.due_at, row.attempts)).collect();
    assert_eq!(turns, [(moved, at(5), 0), (changed, at(700), 1)]);
    assert_eq!(due[0].clock_start, at(4));
    assert_eq!(not_due(&scene, 5, 10).await.len(), 1);
}

pub async fn a_retry_is_read_with_when_it_was_last_tried(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (tried, seq) = event(&scene, &tenant, 600, Some(600)).await;
    let read = async || not_due(&scene, 0, 10).await.pop().unwrap();
    assert_eq!((read().await.deliver_at, read().await.tried_at), (Some(at(600)), None));
    let mut record = scene.failed(&tried, seq, at(700));
    let started_at = record.attempt.as_ref().unwrap().started_at;
    assert_eq!(scene.record(vec![record.clone()]).await, [Recorded::Applied]);
    assert_eq!((read().await.deliver_at, read().await.tried_at), (None, Some(started_at)), "it has begun");
    // The last one that was written counts, on whatever clock; not one by hand.
    for (attempts_before, trigger, moment, expected) in [
        (1, Trigger::Scheduled, at(400 * 24 * 3600), at(400 * 24 * 3600)),
        (2, Trigger::Scheduled, at(20), at(20)),
        (3, Trigger::Manual, at(30), at(20)),
    ] {
        record.attempts_before = attempts_before;
        let attempt = record.attempt.as_mut().unwrap();
        attempt.id = scene.attempt().id;
        (attempt.trigger, attempt.started_at) = (trigger, moment);
        assert_eq!(scene.record(vec![record.clone()]).await, [Recorded::Applied]);
        assert_eq!(read().await.tried_at, Some(expected), "{trigger:?}");
    }
}

pub async fn a_failed_attempt_by_hand_leaves_a_due_time_that_was_corrected_meanwhile(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let (sent, seq) = event(&scene, &tenant, 400 * 24 * 3600, None).await;
    let was = not_due(&scene, 0, 1).await[0].waiting;
    // It was read for the attempt before.
    let mut record = scene.failed(&sent, seq, was.due_at);
    record.attempt.as_mut().unwrap().trigger = Trigger::Manual;
    let deliveries = vec![Rescheduled { endpoint, was, due_at: at(5), clock_start: at(4) }];
    scene.change(Change::Reschedule { deliveries }).await;
    assert_eq!(scene.record(vec![record.clone()]).await, [Recorded::Applied]);
    let due = scene.due(endpoint).await;
    assert_eq!((due[0].due_at, due[0].attempts), (at(5), 0));
    // The fence holds for it as for others.
    let applied = scene.record(vec![scene.failed(&sent, seq, at(9))]).await;
    assert_eq!(applied, [Recorded::Applied]);
    record.attempt.as_mut().unwrap().id = scene.attempt().id;
    assert_eq!(scene.record(vec![record]).await, [Recorded::Fenced]);
}

pub async fn the_newest_moment_is_that_of_the_last_row(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    assert_eq!(scene.store.newest_moment().await.unwrap(), None);
    let tenant = scene.with_endpoints(1).await;
    let accepted = async |moment: Timestamp| {
        let mut event = scene.event(&tenant);
        event.message.created_at = moment;
        scene.accepted(&event).await;
    };
    accepted(at(400 * 24 * 3600)).await;
    accepted(at(10)).await;
    assert_eq!(scene.store.newest_moment().await.unwrap(), Some(at(10)), "not the one furthest ahead");
}
