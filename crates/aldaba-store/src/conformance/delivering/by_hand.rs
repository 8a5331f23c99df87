//! Attempts by hand.

use crate::conformance::replays::one_of_each;
use crate::conformance::scene::ask;
use crate::conformance::{Scene, at};
use crate::{
    Accept, AttemptScope, AttemptsQuery, DeliveryState, IdempotencyKey, ManualRecord, NewAttempt, Order,
    Page, Record, Store, Trigger,
};
use aldaba_delivery::Reason;
use std::sync::Arc;

pub async fn an_attempt_by_hand_settles_with_success_and_else_changes_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let [_, delivered, dead, missing] = one_of_each(&scene, &tenant).await;
    for success in [false, true] {
        for (accept, _) in [&delivered, &dead, &missing] {
            let attempt = NewAttempt { trigger: Trigger::Manual, success, ..scene.attempt() };
            let resent = ManualRecord {
                org: scene.org,
                endpoint,
                message: accept.message.id,
                attempt: attempt.clone(),
                at: at(40),
                audit: None,
                idempotency: None,
            };
            ask(|done| scene.store.record_manual(resent, done)).await.unwrap();
            let scope = AttemptScope::Message(accept.message.id);
            let page = Page { after: None, limit: 1 };
            let query = AttemptsQuery::all(scope, page, Order::Descending);
            let [newest] = &scene.store.attempts(query).await.unwrap().items[..] else {
                panic!("an attempt")
            };
            assert_eq!((newest.id, newest.trigger, newest.endpoint), (attempt.id, Trigger::Manual, endpoint));
        }
        let state = |accept: &Accept| {
            let read = scene.store.deliveries(accept.message.id);
            async move { read.await.unwrap().first().map(|row| (row.state, row.attempts)) }
        };
        let settled = |at| DeliveryState::Delivered { at };
        assert_eq!(state(&delivered.0).await, Some((settled(at(2)), 1)), "as it was");
        let (of_dead, of_missing) = (state(&dead.0).await, state(&missing.0).await);
        if success {
            assert_eq!((of_dead, of_missing), (Some((settled(at(40)), 0)), Some((settled(at(40)), 0))));
        } else {
            let still = DeliveryState::Dead { at: at(2), reason: Reason::Exhausted };
            assert_eq!((of_dead, of_missing), (Some((still, 0)), None));
        }
    }
    let [view] = &scene.store.delivery_views(tenant.application.id, vec![dead.1]).await.unwrap()[..] else {
        panic!("it is there")
    };
    assert!(!view.in_dead_letter);
}

pub async fn an_attempt_by_hand_uses_up_none_of_those_of_the_policy(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let accept = scene.event(&tenant);
    let seq = scene.accepted(&accept).await;
    let mut record = scene.failed(&accept, seq, at(0));
    record.attempt.as_mut().unwrap().trigger = Trigger::Manual;
    assert_eq!(scene.record(vec![record]).await, [crate::Recorded::Applied]);
    let [waiting] = &scene.due(accept.deliveries[0].endpoint).await[..] else { panic!("it waits") };
    assert_eq!((waiting.attempts, waiting.due_at), (0, at(0)));
}

pub async fn the_key_of_an_attempt_by_hand_is_kept_with_it_or_not_at_all(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (app, endpoint) = (tenant.application.id, tenant.endpoints[0].id);
    let used = |digest: u8| Some(IdempotencyKey { digest: [digest; 16].into(), expires_at: at(100) });
    let attempt_of = |app, digest: u8| scene.store.attempt_of_key(app, [digest; 16].into());
    let by_hand = || NewAttempt { trigger: Trigger::Manual, ..scene.attempt() };

    // Of one that waits; a record that is fenced keeps nothing.
    let accept = scene.event(&tenant);
    let seq = scene.accepted(&accept).await;
    let (first, message) = (by_hand(), accept.message.id);
    let record =
        Record { attempt: Some(first.clone()), idempotency: used(1), ..scene.delivered(&accept, seq) };
    let late = Record { attempt: Some(by_hand()), idempotency: used(2), ..record.clone() };
    scene.record(vec![record, late]).await;
    assert_eq!(attempt_of(app, 1).await.unwrap(), Some(first.id));
    assert_eq!(attempt_of(app, 2).await.unwrap(), None);
    assert_eq!(attempt_of(scene.id(), 1).await.unwrap(), None, "it is the application's");

    // Of one that does not wait; nothing is kept for an endpoint that is not there.
    for (endpoint, digest, kept) in [(endpoint, 3, true), (scene.id(), 4, false)] {
        let (attempt, idempotency) = (by_hand(), used(digest));
        let id = attempt.id;
        let resent =
            ManualRecord { org: scene.org, endpoint, message, attempt, at: at(9), audit: None, idempotency };
        ask(|done| scene.store.record_manual(resent, done)).await.unwrap();
        assert_eq!(attempt_of(app, digest).await.unwrap(), kept.then_some(id));
    }
}
