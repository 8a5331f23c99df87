//! What somebody wants to be forgotten.

use super::scene::{ask, made};
use super::{Scene, at};
use crate::{
    Attempt, AttemptScope, AttemptsQuery, Change, Changed, MessagesQuery, Order, Page, Replay, ReplayFilter,
    ReplayKind, ReplayState, ReplayStep, Store,
};
use aldaba_delivery::Reason;
use std::sync::Arc;

pub async fn an_expunged_payload_is_gone_and_its_message_stays(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let (event, neighbour) = (scene.event(&tenant), scene.event(&tenant));
    let seq = scene.accepted(&event).await;
    scene.accepted(&neighbour).await;
    let (app, message) = (event.app, event.message.id);
    let wrong = Change::ExpungeMessage { app: other.application.id, message };
    assert_eq!(scene.change(wrong).await, Changed::NotFound);
    assert!(!scene.store.message(app, message.to_string()).await.unwrap().expect("it is there").expunged);
    // Twice is as good as once.
    for changed in [made(), Changed::Unchanged] {
        assert_eq!(scene.change(Change::ExpungeMessage { app, message }).await, changed);
    }
    let read = scene.store.message(app, message.to_string()).await.unwrap().expect("it is there");
    assert!(read.expunged && read.content.payload.is_empty());
    assert_eq!(&*read.content.event_type, "invoice.paid");
    let contents = scene.store.contents(vec![(app, message), (app, neighbour.message.id)]).await.unwrap();
    assert_eq!(contents, [None, Some((*neighbour.message.content).clone())]);
    let page = Page { after: None, limit: 10 };
    let list = scene.store.messages(MessagesQuery::all(app, page, Order::Ascending)).await.unwrap();
    assert_eq!(list.items.iter().map(|message| message.expunged).collect::<Vec<_>>(), [true, false]);
    // What waits of it can be ended as ever.
    assert_eq!(scene.due(tenant.endpoints[0].id).await.len(), 2);
    scene.record(vec![scene.dead(&event, seq, Reason::PayloadDeleted)]).await;
    assert_eq!(scene.due(tenant.endpoints[0].id).await.len(), 1);
}

pub async fn an_expunged_response_is_gone_and_its_attempt_stays(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let record = scene.failed(&event, seq, at(5));
    let attempt = record.attempt.as_ref().expect("made with one").id;
    scene.record(vec![record]).await;
    let (app, message) = (event.app, event.message.id);
    for (message, attempt) in [(scene.id(), attempt), (message, scene.id())] {
        assert_eq!(scene.change(Change::ExpungeAttempt { app, message, attempt }).await, Changed::NotFound);
    }
    for changed in [made(), Changed::Unchanged] {
        assert_eq!(scene.change(Change::ExpungeAttempt { app, message, attempt }).await, changed);
    }
    let read = scene.store.attempt(message, attempt).await.unwrap().expect("it is there");
    assert_eq!((&read.response[..], read.status_code), (Attempt::EXPUNGED, Some(503)));
    let query = AttemptsQuery::all(
        AttemptScope::Endpoint(tenant.endpoints[0].id),
        Page { after: None, limit: 10 },
        Order::Descending,
    );
    assert_eq!(scene.store.attempts(query).await.unwrap().items, [read]);
}

pub async fn a_replay_passes_over_what_has_no_payload(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut events = Vec::new();
    for _ in 0..2 {
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        scene.record(vec![scene.dead(&event, seq, Reason::Exhausted)]).await;
        events.push(event);
    }
    let (app, gone) = (tenant.application.id, events[0].message.id);
    scene.change(Change::ExpungeMessage { app, message: gone }).await;
    let replay = Replay {
        id: scene.id(),
        org: scene.org,
        app,
        endpoint: tenant.endpoints[0].id,
        kind: ReplayKind::Recover,
        filter: ReplayFilter { since: at(-10), dead: true, ..ReplayFilter::nothing(at(10)) },
        rate: 1,
        state: ReplayState::Running,
        reached: None,
        looked_at: 0,
        opened: 0,
        created_at: at(10),
        updated_at: at(10),
    };
    scene.change(Change::StartReplay { replay: replay.clone(), idempotency: None }).await;
    let step = ReplayStep { id: replay.id, look: 10, open: 10, most: 10, now: at(11) };
    let stepped = ask(|done| scene.store.step_replay(step, done)).await.unwrap();
    let opened: Vec<_> = stepped.opened.iter().map(|waiting| waiting.message).collect();
    assert_eq!(opened, [events[1].message.id]);
}
