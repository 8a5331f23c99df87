//! What is read about the past.

use crate::conformance::{Scene, at};
use crate::{AttemptScope, AttemptsQuery, DeliveryState, MessagesQuery, Order, Page, Record, Seq, Store};
use aldaba_delivery::Reason;
use std::sync::Arc;

pub async fn a_message_is_found_by_id_and_by_event_id(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let mut event = scene.event(&tenant);
    Arc::make_mut(&mut event.message.content).event_id = Some("order-7".into());
    scene.accepted(&event).await;
    for key in [event.message.id.to_string(), "order-7".into()] {
        let found = scene.store.message(event.app, key.clone()).await.unwrap();
        assert_eq!(found.map(|message| message.id), Some(event.message.id));
        assert_eq!(scene.store.message(other.application.id, key).await.unwrap(), None);
    }
    assert_eq!(scene.store.message(event.app, "order-8".into()).await.unwrap(), None);
}

pub async fn messages_are_listed_both_ways_page_by_page(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let mut ids = Vec::new();
    for _ in 0..5 {
        let event = scene.event(&tenant);
        scene.accepted(&event).await;
        scene.accepted(&scene.event(&other)).await;
        ids.push(event.message.id);
    }
    let list = async |after, order| {
        let page = Page { after, limit: 2 };
        let query = MessagesQuery::all(tenant.application.id, page, order);
        let messages = scene.store.messages(query).await.unwrap();
        messages.items.iter().map(|message| message.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, Order::Ascending).await, ids[..2]);
    assert_eq!(list(Some(ids[1]), Order::Ascending).await, ids[2..4]);
    assert_eq!(list(Some(ids[3]), Order::Ascending).await, ids[4..]);
    assert_eq!(list(None, Order::Descending).await, [ids[4], ids[3]]);
    assert_eq!(list(Some(ids[1]), Order::Descending).await, [ids[0]]);
    assert_eq!(list(Some(ids[4]), Order::Ascending).await, []);
}

pub async fn attempts_are_listed_both_ways_page_by_page(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let event = scene.event(&tenant);
    let first = scene.accepted(&event).await;
    let mut made = Vec::new();
    for attempts_before in 0..2 {
        for number in 0..2 {
            let record = Record {
                seq: Seq(first.0 + number),
                endpoint: event.deliveries[number as usize].endpoint,
                attempts_before,
                ..scene.failed(&event, first, at(5))
            };
            made.push((record.endpoint, record.attempt.as_ref().expect("made with one").id));
            scene.record(vec![record]).await;
        }
    }
    let list = async |scope, after, order| {
        let page = Page { after, limit: 3 };
        let attempts = scene.store.attempts(AttemptsQuery::all(scope, page, order)).await.unwrap();
        attempts.items.iter().map(|attempt| (attempt.endpoint, attempt.id)).collect::<Vec<_>>()
    };
    let message = AttemptScope::Message(event.message.id);
    assert_eq!(list(message, None, Order::Ascending).await, made[..3]);
    assert_eq!(list(message, Some(made[2].1), Order::Ascending).await, made[3..]);
    assert_eq!(list(message, None, Order::Descending).await, [made[3], made[2], made[1]]);
    assert_eq!(list(message, Some(made[1].1), Order::Descending).await, made[..1]);
    let endpoint = AttemptScope::Endpoint(tenant.endpoints[1].id);
    assert_eq!(list(endpoint, None, Order::Ascending).await, [made[1], made[3]]);
    assert_eq!(list(endpoint, Some(made[1].1), Order::Ascending).await, [made[3]]);
    assert_eq!(list(endpoint, None, Order::Descending).await, [made[3], made[1]]);
    assert_eq!(list(endpoint, Some(made[1].1), Order::Descending).await, []);
}

pub async fn deliveries_of_a_message_come_in_order_with_their_states(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(4).await;
    let event = scene.event(&tenant);
    let first = scene.accepted(&event).await;
    scene.accepted(&scene.event(&tenant)).await;
    let delivery = |number: i64, record: Record| Record {
        seq: Seq(first.0 + number),
        endpoint: event.deliveries[number as usize].endpoint,
        ..record
    };
    scene
        .record(vec![
            delivery(1, scene.delivered(&event, first)),
            delivery(2, scene.dead(&event, first, Reason::Expired)),
            delivery(3, scene.failed(&event, first, at(50))),
        ])
        .await;
    let deliveries = scene.store.deliveries(event.message.id).await.unwrap();
    let states: Vec<_> = deliveries.iter().map(|delivery| (delivery.attempts, delivery.state)).collect();
    let expected = [
        (0, DeliveryState::Waiting { due_at: at(0) }),
        (1, DeliveryState::Delivered { at: at(2) }),
        (0, DeliveryState::Dead { at: at(2), reason: Reason::Expired }),
        (1, DeliveryState::Waiting { due_at: at(50) }),
    ];
    assert_eq!(states, expected);
    for ((number, delivery), planned) in (first.0..).zip(&deliveries).zip(&event.deliveries) {
        assert_eq!((delivery.seq, delivery.message), (Seq(number), event.message.id));
        assert_eq!((delivery.endpoint, delivery.clock_start), (planned.endpoint, at(0)));
    }
}
