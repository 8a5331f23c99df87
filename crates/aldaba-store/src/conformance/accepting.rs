//! An event comes in.

use super::retention::{found, remove_slice};
use super::scene::made;
use super::{Scene, at};
use crate::operations::Search;
use crate::{
    Accept, Accepted, Change, Content, Done, IdempotencyKey, Message, NewDelivery, RequestDigest, Seq, Store,
};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

async fn stored(scene: &Scene, accept: &Accept) -> Option<Message> {
    scene.store.message(accept.app, accept.message.id.to_string()).await.unwrap()
}

pub async fn an_event_is_stored_as_it_was_given(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut event = scene.event(&tenant);
    event.message.channels = vec!["a".into(), "ñ,3:b".into()];
    event.message.tags = vec!["x,y".into()];
    event.message.created_at = at(7);
    event.message.deliver_at = Some(at(70));
    event.message.payload_until = Some(at(7000));
    event.message.headers = vec![("x-empty".into(), String::new()), ("x-region".into(), "ñ, 3:x,".into())];
    event.message.only_for = Some(scene.id());
    event.message.job = Some("job-1".into());
    event.message.content = Arc::new(Content {
        event_type: "order.new".into(),
        event_id: Some("order-1".into()),
        payload: Bytes::from_static(b"\x00\xff{}"),
        version: Some("2".into()),
        sealed_headers: Some(Bytes::from_static(b"\x01\x00sealed")),
    });
    scene.accepted(&event).await;
    let message = event.message.clone();
    let expected = Message {
        id: message.id,
        app: event.app,
        expunged: false,
        content: Content::clone(&message.content),
        channels: message.channels,
        tags: message.tags,
        headers: message.headers,
        created_at: message.created_at,
        deliver_at: message.deliver_at,
        payload_until: message.payload_until,
        only_for: message.only_for,
        job: message.job,
    };
    assert_eq!(stored(&scene, &event).await, Some(expected));
}

pub async fn deliveries_get_numbers_without_a_gap_in_their_order(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let events = [scene.event(&tenant), scene.event(&tenant)];
    let accepted = scene.accept(events.to_vec()).await;
    let mut last = Seq(i64::MIN);
    for (event, accepted) in events.iter().zip(accepted) {
        let Accepted::New { first } = accepted else { panic!("{accepted:?}") };
        assert!(first > last);
        for (number, delivery) in (first.0..).zip(&event.deliveries) {
            last = Seq(number);
            assert!(scene.due(delivery.endpoint).await.iter().any(|waiting| {
                waiting.seq == last && waiting.message == event.message.id && waiting.attempts == 0
            }));
        }
    }
}

pub async fn the_clock_of_a_delivery_starts_when_it_may_first_go_out(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut late = scene.event_due(&tenant, at(60));
    late.message.created_at = at(10);
    let mut early = scene.event_due(&tenant, at(5));
    early.message.created_at = at(10);
    scene.accept(vec![late, early]).await;
    let clocks: Vec<_> =
        scene.due(tenant.endpoints[0].id).await.iter().map(|w| (w.due_at, w.clock_start)).collect();
    assert_eq!(clocks, [(at(5), at(10)), (at(60), at(60))]);
}

pub async fn an_event_without_endpoints_is_stored(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let event = scene.event(&tenant);
    scene.accepted(&event).await;
    assert!(stored(&scene, &event).await.is_some());
    assert_eq!(scene.store.deliveries(event.message.id).await.unwrap(), []);
}

pub async fn a_repeated_idempotency_key_stores_nothing_and_names_the_first_message(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let first = Accept { idempotency: Some(scene.key()), ..scene.event(&tenant) };
    let second = Accept { idempotency: first.idempotency, ..scene.event(&tenant) };
    scene.accepted(&first).await;
    let answer = scene.accept(vec![second.clone()]).await;
    assert_eq!(answer, [Accepted::Repeated { message: first.message.id }]);
    assert_eq!(stored(&scene, &second).await, None);
    assert_eq!(scene.store.waiting().await.unwrap(), 1);
}

pub async fn a_key_used_twice_in_one_batch_counts_once(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let first = Accept { idempotency: Some(scene.key()), ..scene.event(&tenant) };
    let second = Accept { idempotency: first.idempotency, ..scene.event(&tenant) };
    let answers = scene.accept(vec![first.clone(), second.clone()]).await;
    assert!(matches!(answers[0], Accepted::New { .. }));
    assert_eq!(answers[1], Accepted::Repeated { message: first.message.id });
    assert_eq!(stored(&scene, &second).await, None);
}

pub async fn an_idempotency_key_counts_even_when_the_version_is_stale(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let first = Accept { idempotency: Some(scene.key()), ..scene.event(&tenant) };
    scene.accepted(&first).await;
    let repeated = Accept { idempotency: first.idempotency, version: 0, ..scene.event(&tenant) };
    assert_eq!(scene.accept(vec![repeated]).await, [Accepted::Repeated { message: first.message.id }]);
}

pub async fn an_accepted_key_is_found_in_the_order_of_the_writes(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let first = Accept { idempotency: Some(scene.key()), ..scene.event(&tenant) };
    let key = first.idempotency.unwrap();
    let find = |app, key: IdempotencyKey| {
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |found| drop(answer.send(found)));
        scene.store.find_accepted(app, key.digest, done);
        async move { answered.await.unwrap().unwrap() }
    };
    assert_eq!(find(first.app, key).await, None);
    // The accept is submitted, and not awaited: the look-up comes after it all the same.
    scene.store.accept(vec![first.clone()], Done::new(drop));
    assert_eq!(find(first.app, key).await, Some(first.message.id));
    assert_eq!(find(first.app, scene.key()).await, None, "another key");
    let other = scene.with_endpoints(0).await;
    assert_eq!(find(other.application.id, key).await, None, "another application");
}

pub async fn a_key_that_was_kept_under_its_former_digest_is_honoured(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (before, after) = (scene.key(), scene.key());
    let former = Some(before.digest.current);
    let upgraded = IdempotencyKey { digest: RequestDigest { former, ..after.digest }, ..after };
    let send = |key| Accept { idempotency: Some(key), ..scene.event(&tenant) };
    let first = send(before);
    scene.accepted(&first).await;
    assert_eq!(scene.accept(vec![send(upgraded)]).await, [Accepted::Repeated { message: first.message.id }]);
    // What is kept from now on is kept under the current digest alone.
    let (one, other) = (scene.key(), scene.key());
    let former = Some(other.digest.current);
    let second = send(IdempotencyKey { digest: RequestDigest { former, ..one.digest }, ..one });
    scene.accepted(&second).await;
    assert_eq!(scene.accept(vec![send(one)]).await, [Accepted::Repeated { message: second.message.id }]);
    scene.accepted(&send(other)).await;
}

pub async fn an_idempotency_key_counts_until_its_row_is_removed(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let key = IdempotencyKey { expires_at: at(100), ..scene.key() };
    let first = Accept { idempotency: Some(key), ..scene.event(&tenant) };
    scene.accepted(&first).await;
    // Whatever the clock says: it may be wrong.
    for moment in [at(-100), at(99), at(100), at(20 * 365 * 24 * 3600)] {
        let mut again = Accept { idempotency: Some(key), ..scene.event(&tenant) };
        again.message.created_at = moment;
        assert_eq!(scene.accept(vec![again]).await, [Accepted::Repeated { message: first.message.id }]);
    }
    let stale = found(&scene, Search::Keys { after: None, before: at(100) }, 10).await;
    let removed = remove_slice(&*scene.store, stale, at(100), Duration::ZERO).await;
    assert_eq!(removed.counts.keys, 1);
    let mut next = Accept { idempotency: Some(key), ..scene.event(&tenant) };
    next.message.created_at = at(100);
    scene.accepted(&next).await;
}

pub async fn idempotency_keys_of_two_applications_do_not_meet(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (one, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let first = Accept { idempotency: Some(scene.key()), ..scene.event(&one) };
    scene.accepted(&first).await;
    scene.accepted(&Accept { idempotency: first.idempotency, ..scene.event(&other) }).await;
}

pub async fn a_taken_event_id_stores_nothing_and_names_its_message(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (one, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let named = |tenant, name: &str| {
        let mut event = scene.event(tenant);
        Arc::make_mut(&mut event.message.content).event_id = Some(name.into());
        event
    };
    let first = named(&one, "e1");
    scene.accepted(&first).await;
    // Long after any idempotency key has expired.
    let mut second = named(&one, "e1");
    second.message.created_at = at(365 * 24 * 3600);
    let answer = scene.accept(vec![second.clone()]).await;
    assert_eq!(answer, [Accepted::EventIdTaken { message: first.message.id }]);
    assert_eq!(stored(&scene, &second).await, None);
    scene.accepted(&named(&one, "e2")).await;
    scene.accepted(&named(&other, "e1")).await;
}

pub async fn a_refused_event_leaves_its_idempotency_key_free(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let event = Accept { idempotency: Some(scene.key()), ..scene.event(&tenant) };
    let stale = Accept { version: tenant.version + 1, ..event.clone() };
    assert_eq!(scene.accept(vec![stale]).await, [Accepted::Stale]);
    scene.accepted(&event).await;
}

pub async fn a_stale_version_stores_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let before = scene.with_endpoints(1).await;
    let app = before.application.id;
    assert_eq!(scene.create_endpoint(&scene.new_endpoint(app)).await, made());
    let event = scene.event(&before);
    assert_eq!(scene.accept(vec![event.clone()]).await, [Accepted::Stale]);
    assert_eq!(stored(&scene, &event).await, None);
    let after = scene.tenant(app).await.unwrap();
    scene.accepted(&Accept { version: after.version, ..event }).await;
}

pub async fn an_unknown_or_deleted_application_is_stale(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let unknown = Accept { app: scene.id(), ..scene.event(&tenant) };
    assert_eq!(scene.accept(vec![unknown]).await, [Accepted::Stale]);
    scene.change(Change::DeleteApplication { app: tenant.application.id, at: at(1) }).await;
    for version in 0..=tenant.version + 2 {
        let event = Accept { version, ..scene.event(&tenant) };
        assert_eq!(scene.accept(vec![event]).await, [Accepted::Stale]);
    }
}

pub async fn one_conflict_never_fails_its_neighbours(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut first = Accept { idempotency: Some(scene.key()), ..scene.event(&tenant) };
    Arc::make_mut(&mut first.message.content).event_id = Some("e".into());
    let repeated = Accept { idempotency: first.idempotency, ..scene.event(&tenant) };
    let stale = Accept { version: 0, ..scene.event(&tenant) };
    let mut taken = scene.event(&tenant);
    Arc::make_mut(&mut taken.message.content).event_id = Some("e".into());
    let last = scene.event(&tenant);
    let answers =
        scene.accept(vec![first.clone(), repeated.clone(), stale.clone(), taken.clone(), last.clone()]).await;
    assert!(matches!(answers[0], Accepted::New { .. }));
    assert_eq!(answers[1], Accepted::Repeated { message: first.message.id });
    assert_eq!(answers[2], Accepted::Stale);
    assert_eq!(answers[3], Accepted::EventIdTaken { message: first.message.id });
    assert!(matches!(answers[4], Accepted::New { .. }));
    for (event, kept) in [(first, true), (repeated, false), (stale, false), (taken, false), (last, true)] {
        assert_eq!(stored(&scene, &event).await.is_some(), kept);
        assert_eq!(scene.store.deliveries(event.message.id).await.unwrap().len(), usize::from(kept));
    }
}

pub async fn the_same_message_twice_is_stored_once(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let event = scene.event(&tenant);
    scene.accepted(&event).await;
    let again = scene.accept(vec![event.clone()]).await;
    assert_eq!(again, [Accepted::Repeated { message: event.message.id }]);
    assert_eq!(scene.store.waiting().await.unwrap(), 1);
}

pub async fn a_large_payload_comes_back_whole(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let mut event = scene.event(&tenant);
    let payload: Vec<u8> = (0..1 << 20).map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    event.message.content = Arc::new(Content::new("big", payload));
    let (endpoint, due_at) = (tenant.endpoints[0].id, at(9));
    event.deliveries.push(NewDelivery { endpoint, due_at, ordered: false, skipped: None });
    scene.accepted(&event).await;
    let contents = scene.store.contents(vec![(event.app, event.message.id)]).await.unwrap();
    assert_eq!(contents, [Some(Content::clone(&event.message.content))]);
}
