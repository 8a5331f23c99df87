//! Ordered endpoints.

use super::scene::made;
use super::{Scene, at};
use crate::{
    Accept, Change, Changed, DueQuery, Endpoint, Fence, NewDelivery, Obstacle, Record, Seq, Store, Tenant,
    Turn,
};
use aldaba_delivery::{AppId, EndpointId, Health, OnExhausted, Ordering, Timestamp};
use std::sync::Arc;

const SKIPS: Ordering = Ordering::Fifo(OnExhausted::Skip);
const BLOCKS: Ordering = Ordering::Fifo(OnExhausted::Block);

/// An application with one endpoint.
async fn one(scene: &Scene, ordering: Ordering) -> (AppId, EndpointId) {
    let application = scene.new_application();
    scene.create_application(&application).await;
    let endpoint = scene.new_endpoint(application.id).with(|config| config.ordering = ordering);
    scene.create_endpoint(&endpoint).await;
    (application.id, endpoint.id)
}

async fn tenant(scene: &Scene, app: AppId) -> Tenant {
    scene.tenant(app).await.expect("the application")
}

/// An event for the endpoint, due at a moment of its own.
async fn send(scene: &Scene, app: AppId, due_at: Timestamp) -> (Accept, Seq) {
    let event = scene.event_due(&tenant(scene, app).await, due_at);
    let seq = scene.accepted(&event).await;
    (event, seq)
}

/// Gives the endpoint another ordering, at a moment.
async fn change(scene: &Scene, id: EndpointId, ordering: Ordering, seconds: i64) -> Changed {
    let before = scene.endpoint(id).await;
    let endpoint =
        Endpoint { updated_at: at(seconds), ..before.clone() }.with(|config| config.ordering = ordering);
    scene
        .change(Change::UpdateEndpoint {
            endpoint,
            was: Fence::from(&before),
            resume: false,
            notices: Vec::new(),
        })
        .await
}

pub async fn an_ordered_read_goes_by_number_and_starts_after_one(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint) = one(&scene, SKIPS).await;
    let (first, a) = send(&scene, app, at(0)).await;
    let (_, b) = send(&scene, app, at(-5)).await;
    let (third, c) = send(&scene, app, at(0)).await;
    // The retry of the head takes no place but its own.
    scene.record(vec![scene.failed(&first, a, at(900))]).await;
    assert_eq!(scene.in_order(endpoint).await, [a, b, c]);
    let after = async |seq, limit| {
        let after = Some(Turn { due_at: Timestamp::MAX, seq });
        let rows = scene.store.due(DueQuery { endpoint, ordered: true, after, limit }).await.unwrap();
        rows.iter().map(|row| row.seq).collect::<Vec<_>>()
    };
    assert_eq!(after(a, 10).await, [b, c]);
    assert_eq!(after(Seq(a.0 - 1), 2).await, [a, b]);
    assert_eq!(after(c, 10).await, []);
    scene.record(vec![scene.delivered(&third, c)]).await;
    assert_eq!(scene.in_order(endpoint).await, [a, b]);
}

pub async fn what_waits_is_put_in_order_when_the_endpoint_becomes_ordered(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint) = one(&scene, Ordering::None).await;
    let (first, a) = send(&scene, app, at(0)).await;
    let (_, b) = send(&scene, app, at(0)).await;
    scene.record(vec![scene.failed(&first, a, at(900))]).await;
    assert_eq!(change(&scene, endpoint, SKIPS, 5).await, made());
    let (_, c) = send(&scene, app, at(5)).await;
    assert_eq!(scene.in_order(endpoint).await, [a, b, c]);
    // What comes while it is not ordered is no exception.
    assert_eq!(change(&scene, endpoint, Ordering::None, 6).await, made());
    let (_, d) = send(&scene, app, at(6)).await;
    assert_eq!(scene.due(endpoint).await.len(), 4);
    assert_eq!(change(&scene, endpoint, BLOCKS, 7).await, made());
    assert_eq!(scene.in_order(endpoint).await, [a, b, c, d]);
    let settled = Record { attempts_before: 1, ..scene.delivered(&first, a) };
    scene.record(vec![settled]).await;
    assert_eq!(scene.in_order(endpoint).await, [b, c, d]);
}

pub async fn an_endpoint_for_which_a_delayed_delivery_waits_cannot_become_ordered(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint) = one(&scene, Ordering::None).await;
    send(&scene, app, at(60)).await;
    let before = scene.endpoint(endpoint).await;
    let refused = Changed::NotOrderable(Obstacle::OneIsDelayed);
    assert_eq!(change(&scene, endpoint, SKIPS, 59).await, refused);
    assert_eq!(scene.endpoint(endpoint).await, before);
    assert_eq!(change(&scene, endpoint, SKIPS, 60).await, made(), "by now it is due");
}

pub async fn an_endpoint_for_which_too_many_wait_cannot_become_ordered(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint) = one(&scene, Ordering::None).await;
    let mut event = scene.event(&tenant(&scene, app).await);
    let delivery = NewDelivery { endpoint, due_at: at(0), ordered: false, skipped: None };
    event.deliveries = vec![delivery; Obstacle::MOST_WAITING];
    scene.accepted(&event).await;
    let (_, last) = send(&scene, app, at(0)).await;
    let refused = Changed::NotOrderable(Obstacle::TooManyWait);
    assert_eq!(change(&scene, endpoint, SKIPS, 5).await, refused);
    scene.record(vec![scene.delivered(&event, last)]).await;
    assert_eq!(change(&scene, endpoint, SKIPS, 6).await, made());
}

pub async fn a_block_ends_with_the_ordering_that_asked_for_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    // A count of 0: a success has followed the failures.
    for failure_count in [3, 0] {
        let (app, endpoint) = one(&scene, BLOCKS).await;
        let (event, seq) = send(&scene, app, at(0)).await;
        let failing = Health { failure_count, failing_since: Some(at(1)), ..Health::default() };
        let blocked = failing.blocked(at(2));
        let record = scene.failed(&event, seq, at(9));
        scene.record(vec![Record { health: Some(blocked.clone()), ..record }]).await;
        assert!(scene.endpoint(endpoint).await.is_blocked());
        assert_eq!(change(&scene, endpoint, BLOCKS, 3).await, made());
        assert!(scene.endpoint(endpoint).await.is_blocked(), "another change leaves it alone");
        assert_eq!(change(&scene, endpoint, SKIPS, 4).await, made());
        assert_eq!(scene.endpoint(endpoint).await.health, blocked.unblocked(at(4)));
    }
}
