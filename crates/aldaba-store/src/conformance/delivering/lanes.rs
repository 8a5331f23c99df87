//! What the lanes read.

use crate::conformance::{Scene, at};
use crate::{
    Content, DueQuery, LanePosition, LanesCursor, LanesQuery, NewDelivery, Record, Seq, Store, Tenant,
};
use aldaba_delivery::{EndpointId, Reason, Timestamp};
use bytes::Bytes;
use std::sync::Arc;

/// A page of lanes, all of which belong to one application.
#[derive(Debug, Default, PartialEq, Eq)]
struct Walked {
    lanes: Vec<(EndpointId, Timestamp)>,
    next: Option<LanesCursor>,
}

async fn walk(scene: &Scene, after: Option<LanesCursor>, until: Timestamp, limit: usize) -> Walked {
    let page = scene.store.lanes(LanesQuery { after, until, limit }).await.unwrap();
    for lane in &page.lanes {
        assert_eq!(lane.app, scene.endpoint(lane.endpoint).await.app);
    }
    let lanes = page.lanes.iter().map(|lane| (lane.endpoint, lane.due_at)).collect();
    Walked { lanes, next: page.next }
}

/// One event for one endpoint of the application.
async fn one(scene: &Scene, tenant: &Tenant, endpoint: EndpointId, due_at: Timestamp) -> Seq {
    let mut event = scene.event(tenant);
    event.deliveries = vec![NewDelivery { endpoint, due_at, ordered: false, skipped: None }];
    scene.accepted(&event).await
}

pub async fn due_is_ordered_by_turn_and_starts_after_the_cursor(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let mut turns = Vec::new();
    for seconds in [30, -10, 20, 20, 10] {
        let due_at = at(seconds);
        turns.push(LanePosition { due_at, seq: one(&scene, &tenant, endpoint, due_at).await });
    }
    turns.sort();
    let due = async |after, limit| {
        let waiting = scene.store.due(DueQuery { endpoint, ordered: false, after, limit }).await.unwrap();
        waiting.iter().map(|waiting| waiting.position()).collect::<Vec<_>>()
    };
    assert_eq!(due(None, 10).await, turns);
    assert_eq!(due(None, 2).await, turns[..2]);
    for (place, turn) in turns.iter().enumerate() {
        assert_eq!(due(Some(*turn), 10).await, turns[place + 1..]);
    }
    assert_eq!(due(Some(LanePosition { due_at: at(15), seq: Seq(0) }), 1).await, turns[2..3]);
    assert_eq!(due(Some(LanePosition { due_at: at(20), seq: Seq(i64::MAX) }), 10).await, turns[4..]);
}

pub async fn due_names_only_its_own_endpoint(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let (mine, other) = (tenant.endpoints[0].id, tenant.endpoints[1].id);
    let seq = one(&scene, &tenant, mine, at(5)).await;
    one(&scene, &tenant, other, at(1)).await;
    let due = scene.due(mine).await;
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].seq, seq);
    assert_eq!(scene.due(scene.id()).await, []);
}

pub async fn a_retry_changes_the_turn(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let (first, second) = (scene.event(&tenant), scene.event_due(&tenant, at(10)));
    let (first_seq, second_seq) = (scene.accepted(&first).await, scene.accepted(&second).await);
    scene.record(vec![scene.failed(&first, first_seq, at(20))]).await;
    let turns: Vec<_> = scene.due(endpoint).await.iter().map(|w| (w.seq, w.due_at, w.attempts)).collect();
    assert_eq!(turns, [(second_seq, at(10), 0), (first_seq, at(20), 1)]);
    assert_eq!(walk(&scene, None, at(9), 10).await.lanes, []);
    assert_eq!(walk(&scene, None, at(20), 10).await.lanes, [(endpoint, at(10))]);
}

pub async fn settled_deliveries_leave_due_and_lanes(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let events = [scene.event(&tenant), scene.event(&tenant), scene.event(&tenant)];
    let mut numbers = Vec::new();
    for event in &events {
        numbers.push(scene.accepted(event).await);
    }
    scene
        .record(vec![
            scene.delivered(&events[0], numbers[0]),
            scene.dead(&events[1], numbers[1], Reason::StopDate),
        ])
        .await;
    let endpoint = tenant.endpoints[0].id;
    let due: Vec<_> = scene.due(endpoint).await.iter().map(|waiting| waiting.seq).collect();
    assert_eq!(due, [numbers[2]]);
    assert_eq!(walk(&scene, None, at(100), 10).await.lanes, [(endpoint, at(0))]);
    scene.record(vec![scene.delivered(&events[2], numbers[2])]).await;
    assert_eq!(scene.due(endpoint).await, []);
    assert_eq!(walk(&scene, None, at(100), 10).await, Walked::default());
}

pub async fn lanes_names_each_endpoint_once_a_page_and_resumes(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let [a, b, c] = [0, 1, 2].map(|n| tenant.endpoints[n].id);
    for (endpoint, seconds) in [(a, 1), (a, 2), (b, 3), (b, 4), (a, 5), (c, 6), (c, 7)] {
        one(&scene, &tenant, endpoint, at(seconds)).await;
    }
    let all = walk(&scene, None, at(100), 100).await;
    assert_eq!(all, Walked { lanes: vec![(a, at(1)), (b, at(3)), (c, at(6))], next: None });

    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = walk(&scene, after, at(100), 3).await;
        pages.push(page.lanes);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected = [vec![(a, at(1)), (b, at(3))], vec![(b, at(4)), (a, at(5)), (c, at(6))], vec![(c, at(7))]];
    assert_eq!(pages, expected);
}

pub async fn lanes_stops_at_its_horizon(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let [a, b] = [0, 1].map(|n| tenant.endpoints[n].id);
    one(&scene, &tenant, a, at(10)).await;
    one(&scene, &tenant, b, at(11)).await;
    assert_eq!(walk(&scene, None, at(9), 10).await, Walked::default());
    assert_eq!(walk(&scene, None, at(10), 10).await.lanes, [(a, at(10))]);
    assert_eq!(walk(&scene, None, Timestamp::MAX, 10).await.lanes, [(a, at(10)), (b, at(11))]);
}

pub async fn equal_due_times_are_walked_by_number(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let [a, b] = [0, 1].map(|n| tenant.endpoints[n].id);
    for endpoint in [b, a, b, a] {
        one(&scene, &tenant, endpoint, at(1)).await;
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = walk(&scene, after, at(1), 1).await;
        seen.extend(page.lanes.into_iter().map(|(endpoint, _)| endpoint));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [b, a, b, a]);
}

pub async fn contents_come_in_the_order_asked_for(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let mut events = [scene.event(&tenant), scene.event(&tenant)];
    for (event, payload) in events.iter_mut().zip(["first", "second"]) {
        event.message.content = Arc::new(Content {
            event_type: payload.into(),
            event_id: (payload == "first").then(|| payload.into()),
            payload: Bytes::from_static(payload.as_bytes()),
            version: Some(payload.into()),
            sealed_headers: None,
        });
        scene.accepted(event).await;
    }
    let [first, second] = &events;
    let asked = vec![
        (second.app, second.message.id),
        (first.app, scene.id()),
        (first.app, first.message.id),
        // A message of another application is not there.
        (other.application.id, first.message.id),
        (second.app, second.message.id),
    ];
    let content = |event: &crate::Accept| Some(Content::clone(&event.message.content));
    let expected = [content(second), None, content(first), None, content(second)];
    assert_eq!(scene.store.contents(asked).await.unwrap(), expected);
}

pub async fn waiting_counts_what_is_not_settled(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    assert_eq!(scene.store.waiting().await.unwrap(), 0);
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    scene.accepted(&scene.event(&tenant)).await;
    assert_eq!(scene.store.waiting().await.unwrap(), 6);
    let retried = Record { seq: Seq(seq.0 + 1), ..scene.failed(&event, seq, at(5)) };
    scene.record(vec![scene.delivered(&event, seq), retried]).await;
    assert_eq!(scene.store.waiting().await.unwrap(), 5);
}
