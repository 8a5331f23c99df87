//! Ordered endpoints.

use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::{
    Accept, Change, Changed, DueQuery, Endpoint, Fence, LanePosition, NewDelivery, OrderingObstacle, Record,
    Seq, Store, Tenant,
};
use aldaba_delivery::{AppId, EndpointId, Health, OnExhausted, Ordering, Reason, Timestamp};
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
        let after = Some(LanePosition { due_at: Timestamp::MAX, seq });
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

/// A message for later, for the endpoint.
async fn send_later(scene: &Scene, app: AppId, deliver_at: Timestamp) -> (Accept, Seq) {
    let mut event = scene.event_due(&tenant(scene, app).await, deliver_at);
    event.message.deliver_at = Some(deliver_at);
    let seq = scene.accepted(&event).await;
    (event, seq)
}

/// What is due at a moment takes its place: the numbers of those deliveries, and their places.
async fn sequence_due(scene: &Scene, seconds: i64, limit: usize) -> Vec<(Seq, Seq)> {
    match scene.change(Change::SequenceDue { now: at(seconds), limit }).await {
        Changed::Sequenced(placed) => {
            placed.iter().map(|row| (row.waiting.seq, row.waiting.sequence.expect("it has one"))).collect()
        }
        Changed::Unchanged => Vec::new(),
        other => panic!("{other:?}"),
    }
}

pub async fn a_message_for_later_takes_its_place_behind_all_others_when_it_is_due(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint) = one(&scene, SKIPS).await;
    let (_, late) = send_later(&scene, app, at(60)).await;
    let (first, a) = send(&scene, app, at(0)).await;
    let (_, early) = send_later(&scene, app, at(50)).await;
    let (cancelled, never) = send_later(&scene, app, at(55)).await;
    assert_eq!(scene.in_order(endpoint).await, [a], "the others are outside of the order");
    let waiting = scene.due(endpoint).await;
    assert_eq!(waiting.len(), 4, "but they wait");
    let places: Vec<_> = waiting.iter().map(|row| (row.seq, row.sequence)).collect();
    assert_eq!(places, [(a, Some(a)), (early, None), (never, None), (late, None)]);
    assert_eq!(scene.store.next_sequencing_at().await.unwrap(), Some(at(50)));
    assert_eq!(sequence_due(&scene, 49, 10).await, []);

    scene.record(vec![scene.dead(&cancelled, never, Reason::Cancelled)]).await;
    scene.record(vec![scene.failed(&first, a, at(900))]).await;
    let (_, b) = send(&scene, app, at(1)).await;
    // One at a time, then with the one that is due next.
    let [(first_placed, its_place)] = sequence_due(&scene, 60, 1).await[..] else {
        panic!("one takes its place")
    };
    assert_eq!(first_placed, early, "what is due first comes first");
    assert!(its_place > b);
    let (_, c) = send(&scene, app, at(1)).await;
    assert!(c > its_place, "a place is never given to a delivery as its number");
    let [(second_placed, last_place)] = sequence_due(&scene, 60, 10).await[..] else { panic!("one is left") };
    assert_eq!((second_placed, last_place > c), (late, true));
    assert_eq!(scene.in_order(endpoint).await, [a, b, early, c, late]);
    assert_eq!(scene.store.next_sequencing_at().await.unwrap(), None);
    assert_eq!(sequence_due(&scene, 100, 10).await, [], "a place is taken once");

    let after = Some(LanePosition { due_at: Timestamp::MAX, seq: its_place });
    let rest = scene.store.due(DueQuery { endpoint, ordered: true, after, limit: 10 }).await.unwrap();
    assert_eq!(rest.iter().map(|row| row.seq).collect::<Vec<_>>(), [c, late], "a read starts after a place");
    let status = scene.store.deliveries(rest[1].message).await.unwrap().pop().expect("its delivery");
    assert_eq!(status.waiting(), Some(rest[1]));
}

pub async fn what_is_for_later_is_left_outside_when_the_endpoint_becomes_ordered(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint) = one(&scene, Ordering::None).await;
    let (_, later) = send_later(&scene, app, at(60)).await;
    let (_, due) = send_later(&scene, app, at(5)).await;
    let (tried, retried) = send(&scene, app, at(0)).await;
    scene.record(vec![scene.failed(&tried, retried, at(900))]).await;
    assert_eq!(scene.store.next_sequencing_at().await.unwrap(), None, "there is no order");
    assert_eq!(change(&scene, endpoint, SKIPS, 5).await, made());
    assert_eq!(scene.in_order(endpoint).await, [due, retried]);
    let [(placed, place)] = sequence_due(&scene, 60, 10).await[..] else { panic!("one takes its place") };
    assert_eq!((placed, place > retried), (later, true));
    // It keeps its place when the order is given up for a while.
    assert_eq!(change(&scene, endpoint, Ordering::None, 61).await, made());
    let (_, last) = send(&scene, app, at(61)).await;
    assert_eq!(scene.due(endpoint).await.len(), 4);
    assert_eq!(change(&scene, endpoint, BLOCKS, 62).await, made());
    assert_eq!(scene.in_order(endpoint).await, [due, retried, later, last]);
}

pub async fn an_endpoint_for_which_too_many_wait_cannot_become_ordered(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, endpoint) = one(&scene, Ordering::None).await;
    let mut event = scene.event(&tenant(&scene, app).await);
    let delivery = NewDelivery { endpoint, due_at: at(0), ordered: false, skipped: None };
    event.deliveries = vec![delivery; OrderingObstacle::MAX_PENDING];
    scene.accepted(&event).await;
    let (_, last) = send(&scene, app, at(0)).await;
    let refused = Changed::NotOrderable(OrderingObstacle::TooManyPending);
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
        let free = Health { epoch: blocked.epoch + 1, ..blocked.unblocked(at(4)) };
        assert_eq!(scene.endpoint(endpoint).await.health, free);
    }
}
