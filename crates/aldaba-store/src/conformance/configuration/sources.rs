//! Inbound doors, and how far what came in through them has come.

use crate::conformance::replays::{everything_to, run};
use crate::conformance::scene::{ask, made};
use crate::conformance::{Scene, at};
use crate::{
    Accept, Application, Change, Changed, Content, DeliveryState, EventState, ListPage, ListRange,
    NewDelivery, Order, Page, PendingDelivery, Record, ReopenEvent, Seq, Source, SourceConfig, SourceEvent,
    SourceEventsQuery, SourceToken, Store, Tenant, TimeRange,
};
use aldaba_delivery::{EndpointId, MessageId, Reason, SkipReason, Timestamp};
use bytes::Bytes;
use std::sync::Arc;

fn token(number: u8) -> SourceToken {
    SourceToken { digest: [number; 32], expires_at: None }
}

fn new(scene: &Scene, number: u8) -> (Source, Application) {
    let application = scene.new_application();
    let source = Source {
        id: scene.id(),
        org: scene.org,
        app: application.id,
        config: SourceConfig {
            uid: None,
            name: "La puerta ñ".into(),
            metadata: r#"{"team":"cobros"}"#.into(),
            kind: "github".into(),
            settings: r#"{"filterTypes":["push"]}"#.into(),
        },
        sealed: vec![0, 1, 255],
        tokens: vec![token(number)],
        created_at: at(1),
        updated_at: at(2),
    };
    (source, application)
}

async fn create(scene: &Scene, source: &Source, application: &Application) -> Changed {
    let (source, application) = (source.clone(), application.clone());
    scene.change(Change::CreateSource { source, application, idempotency: None }).await
}

async fn one(scene: &Scene, number: u8) -> Source {
    let (source, application) = new(scene, number);
    assert_eq!(create(scene, &source, &application).await, made());
    source
}

async fn read(scene: &Scene, key: &str) -> Option<Source> {
    scene.store.source(scene.org, key.to_owned()).await.unwrap()
}

pub async fn a_source_comes_back_as_it_was_given_with_its_application(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (mut source, application) = new(&scene, 1);
    source.config.uid = Some("door".into());
    source.tokens.push(SourceToken { digest: [2; 32], expires_at: Some(at(9)) });
    assert_eq!(create(&scene, &source, &application).await, made());
    assert_eq!(read(&scene, &source.id.to_string()).await.as_ref(), Some(&source));
    assert_eq!(read(&scene, "door").await.as_ref(), Some(&source));
    let tenant = scene.tenant(source.app).await.unwrap();
    assert_eq!((tenant.application, tenant.source), (application, Some(source.id)));
    assert_eq!(scene.store.source_of_application(source.app).await.unwrap(), Some(source.id));
    for nobodys in [source.id.to_string(), "door".to_owned()] {
        assert_eq!(scene.store.source(scene.id(), nobodys).await.unwrap(), None);
    }
    let other = scene.with_endpoints(0).await.application.id;
    assert_eq!(scene.store.source_of_application(other).await.unwrap(), None);
    assert_eq!(scene.tenant(other).await.unwrap().source, None);
}

pub async fn a_taken_uid_makes_neither_source_nor_application(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (mut first, its_application) = new(&scene, 1);
    first.config.uid = Some("door".into());
    assert_eq!(create(&scene, &first, &its_application).await, made());
    let (mut second, application) = new(&scene, 2);
    second.config.uid = Some("door".into());
    assert_eq!(create(&scene, &second, &application).await, Changed::UidTaken);
    assert!(scene.tenant(application.id).await.is_none());
    assert_eq!(scene.store.source_of_token([2; 32]).await.unwrap(), None);
    let third = one(&scene, 3).await;
    let named = Source { config: second.config.clone(), updated_at: at(3), ..third.clone() };
    let update = Change::UpdateSource { source: named, was: third.updated_at };
    assert_eq!(scene.change(update).await, Changed::UidTaken);
    let of_others = Source { org: scene.id(), ..second };
    assert_eq!(
        create(&scene, &of_others, &scene.new_application()).await,
        made(),
        "names are each one's own"
    );
}

pub async fn an_organization_has_so_many_sources_and_no_more(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let mut last = None;
    for number in 0..Source::MAX_PER_ORGANIZATION {
        let (mut source, application) = new(&scene, 0);
        source.tokens[0].digest[..8].copy_from_slice(&(number as u64).to_be_bytes());
        assert_eq!(create(&scene, &source, &application).await, made());
        last = Some(source);
    }
    let (one_more, application) = new(&scene, 9);
    assert_eq!(create(&scene, &one_more, &application).await, Changed::TooMany);
    assert!(scene.tenant(application.id).await.is_none());
    let Source { id: source, app, .. } = last.expect("there are many");
    scene.change(Change::DeleteSource { source, app, at: at(5) }).await;
    assert_eq!(create(&scene, &one_more, &application).await, made());
}

pub async fn a_source_is_replaced_only_by_who_has_read_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let first = one(&scene, 1).await;
    let config = SourceConfig { name: "otra".into(), kind: "stripe".into(), ..first.config.clone() };
    let second = Source { config, sealed: vec![7], updated_at: at(3), ..first.clone() };
    let replace = |source: &Source, was: Timestamp| Change::UpdateSource { source: source.clone(), was };
    assert_eq!(scene.change(replace(&second, at(1))).await, Changed::Stale);
    assert_eq!(read(&scene, &first.id.to_string()).await.as_ref(), Some(&first));
    assert_eq!(scene.change(replace(&second, first.updated_at)).await, made());
    assert_eq!(read(&scene, &first.id.to_string()).await.as_ref(), Some(&second));
    let of_others = Source { org: scene.id(), ..second.clone() };
    assert_eq!(scene.change(replace(&of_others, second.updated_at)).await, Changed::NotFound);
    let nobodys = Source { id: scene.id(), ..second };
    assert_eq!(scene.change(replace(&nobodys, nobodys.updated_at)).await, Changed::NotFound);
}

pub async fn a_source_is_found_by_each_of_its_tokens(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let first = one(&scene, 1).await;
    let other = one(&scene, 9).await;
    let tokens = vec![token(2), SourceToken { expires_at: Some(at(50)), ..token(1) }];
    let rotated = Source { tokens, updated_at: at(3), ..first.clone() };
    let (source, was) = (rotated.clone(), first.updated_at);
    assert_eq!(scene.change(Change::RotateSourceToken { source, was, idempotency: None }).await, made());
    for digest in [[1; 32], [2; 32]] {
        let found = scene.store.source_of_token(digest).await.unwrap();
        assert_eq!(found.as_ref(), Some(&rotated), "with all tokens, the newest first");
    }
    assert_eq!(scene.store.source_of_token([9; 32]).await.unwrap().map(|found| found.id), Some(other.id));
    assert_eq!(scene.store.source_of_token([3; 32]).await.unwrap(), None);
    let (source, app) = (first.id, first.app);
    scene.change(Change::DeleteSource { source, app, at: at(5) }).await;
    assert_eq!(scene.store.source_of_token([2; 32]).await.unwrap(), None);
}

pub async fn the_application_of_a_source_goes_with_it_and_not_without_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let source = one(&scene, 1).await;
    let endpoint = scene.new_endpoint(source.app);
    scene.create_endpoint(&endpoint).await;
    let alone = Change::DeleteApplication { app: source.app, at: at(5) };
    assert_eq!(scene.change(alone).await, Changed::InUse { endpoint: None });
    assert!(scene.tenant(source.app).await.is_some());
    let delete = |app| Change::DeleteSource { source: source.id, app, at: at(6) };
    assert_eq!(scene.change(delete(scene.id())).await, Changed::NotFound);
    assert_eq!(scene.change(delete(source.app)).await, made());
    assert!(scene.endpoint(endpoint.id).await.deleted, "its lanes can end");
    assert!(scene.tenant(source.app).await.is_none());
    assert_eq!(read(&scene, &source.id.to_string()).await, None);
    assert_eq!(scene.change(delete(source.app)).await, Changed::NotFound);
}

pub async fn sources_are_listed_both_ways_for_their_organization(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let all = [one(&scene, 1).await, one(&scene, 2).await, one(&scene, 3).await];
    let (foreign, application) = new(&scene, 4);
    create(&scene, &Source { org: scene.id(), ..foreign }, &application).await;
    let page = |after: Option<usize>, limit| Page { after: after.map(|place: usize| all[place].id), limit };
    let list = |page, order| scene.store.sources(scene.org, page, order);
    assert_eq!(list(page(None, 9), Order::Ascending).await.unwrap(), all);
    assert_eq!(list(page(Some(0), 1), Order::Ascending).await.unwrap(), all[1..2]);
    assert_eq!(list(page(Some(2), 9), Order::Descending).await.unwrap(), [all[1].clone(), all[0].clone()]);
}

pub async fn a_repeated_request_makes_and_rotates_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (first, application) = new(&scene, 1);
    let idempotency = Some(scene.key());
    let (source, repeated) = (first.clone(), Changed::Repeated { resource: *first.id.as_bytes() });
    scene.change(Change::CreateSource { source, application, idempotency }).await;
    let (second, application) = new(&scene, 2);
    let again = Change::CreateSource { source: second, application: application.clone(), idempotency };
    assert_eq!(scene.change(again).await, repeated);
    assert!(scene.tenant(application.id).await.is_none());
    let key = Some(scene.key());
    let rotated = Source { tokens: vec![token(5)], updated_at: at(3), ..first.clone() };
    let rotate = |source: Source, was| Change::RotateSourceToken { source, was, idempotency: key };
    assert_eq!(scene.change(rotate(rotated.clone(), first.updated_at)).await, made());
    let third = Source { tokens: vec![token(6)], updated_at: at(4), ..first.clone() };
    assert_eq!(scene.change(rotate(third, rotated.updated_at)).await, repeated);
    assert_eq!(read(&scene, &first.id.to_string()).await, Some(rotated));
}

/// An event of an application, with a type that says which it is.
async fn accepted(scene: &Scene, tenant: &Tenant) -> (Accept, Seq) {
    let mut event = scene.event(tenant);
    Arc::make_mut(&mut event.message.content).event_id = Some(format!("evt:{}", event.message.id).into());
    let seq = scene.accepted(&event).await;
    (event, seq)
}

/// The second delivery of an event, as its first is.
fn second(event: &Accept, record: Record) -> Record {
    Record { seq: Seq(record.seq.0 + 1), endpoint: event.deliveries[1].endpoint, ..record }
}

async fn event(scene: &Scene, event: &Accept) -> SourceEvent {
    let key = event.message.content.event_id.clone().expect("it has one");
    let by_event_id = scene.store.source_event(event.app, key.to_string()).await.unwrap();
    let by_id = scene.store.source_event(event.app, event.message.id.to_string()).await.unwrap();
    assert_eq!(by_event_id, by_id);
    by_id.expect("it was accepted")
}

pub async fn a_payload_is_compared_as_long_as_it_is_kept(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let (accept, _) = accepted(&scene, &tenant).await;
    let (app, message, payload) = (accept.app, accept.message.id, accept.message.content.payload.clone());
    let same = async |app, message, payload: &[u8]| {
        scene.store.has_payload(app, message, Bytes::copy_from_slice(payload)).await.unwrap()
    };
    assert_eq!(same(app, message, &payload).await, Some(true));
    let mut other = payload.to_vec();
    other[0] ^= 1;
    for other in [&other[..], &payload[1..], &[&payload[..], &b" "[..]].concat(), b""] {
        assert_eq!(same(app, message, other).await, Some(false), "{other:?}");
    }
    assert_eq!(same(app, scene.id(), &payload).await, None, "there is no such message");
    assert_eq!(same(scene.id(), message, &payload).await, None, "it is another application's");
    let empty = Content { payload: Bytes::new(), event_id: None, ..(*accept.message.content).clone() };
    let mut without = scene.event(&tenant);
    without.message.content = Arc::new(empty);
    scene.accepted(&without).await;
    assert_eq!(same(app, without.message.id, b"").await, Some(true));
    assert_eq!(same(app, without.message.id, b"x").await, Some(false));
    for id in [message, without.message.id] {
        scene.change(Change::ExpungeMessage { app, message: id }).await;
        assert_eq!(same(app, id, &payload).await, None, "it is not kept any more");
        assert_eq!(same(app, id, b"").await, None, "what is left of it is not what it was");
    }
}

pub async fn an_event_is_processed_when_every_endpoint_has_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let (accept, seq) = accepted(&scene, &tenant).await;
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.deliveries.len()), (EventState::Processing, 2));
    assert!(found.message.content.payload.is_empty(), "nobody asked for it");
    scene.record(vec![scene.delivered(&accept, seq)]).await;
    assert_eq!(event(&scene, &accept).await.state(), EventState::Processing);
    scene.record(vec![second(&accept, Record { at: at(70), ..scene.delivered(&accept, seq) })]).await;
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.processed_at()), (EventState::Processed, at(70)));
    assert_eq!(found.failure(), None);
    assert_eq!(scene.store.source_event(accept.app, "evt:other".into()).await.unwrap(), None);
    assert_eq!(scene.store.source_event(scene.id(), accept.message.id.to_string()).await.unwrap(), None);
}

pub async fn an_event_has_failed_when_one_is_dead_and_none_waits(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let (accept, seq) = accepted(&scene, &tenant).await;
    scene.record(vec![scene.failed(&accept, seq, at(9))]).await;
    let dead = Record { at: at(20), attempts_before: 1, ..scene.dead(&accept, seq, Reason::Exhausted) };
    scene.record(vec![dead]).await;
    assert_eq!(event(&scene, &accept).await.state(), EventState::Processing, "the other one waits");
    scene.record(vec![second(&accept, scene.delivered(&accept, seq))]).await;
    let found = event(&scene, &accept).await;
    assert_eq!(found.state(), EventState::Failed);
    let (delivery, when) = found.failure().expect("one is dead");
    assert_eq!((delivery.status.seq, when), (seq, at(20)));
    assert_eq!(delivery.last.as_ref().map(|last| last.error.as_str()), Some("HTTP 503"));
}

pub async fn an_event_that_is_replayed_is_processed_in_the_end(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (accept, seq) = accepted(&scene, &tenant).await;
    scene.record(vec![scene.dead(&accept, seq, Reason::Rejected)]).await;
    assert_eq!(event(&scene, &accept).await.state(), EventState::Failed);
    run(&scene, &everything_to(&scene, accept.app, tenant.endpoints[0].id)).await;
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.deliveries.len()), (EventState::Processing, 1));
    let open = found.deliveries[0].status.clone();
    assert!(matches!(open.state, DeliveryState::Waiting { .. }));
    scene.record(vec![Record { at: at(40), ..scene.delivered(&accept, open.seq) }]).await;
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.processed_at()), (EventState::Processed, at(40)));
}

async fn reopen(
    scene: &Scene,
    accept: &Accept,
    wanting: &[EndpointId],
) -> Vec<(EndpointId, PendingDelivery)> {
    let (app, message, wanting) = (accept.app, accept.message.id, wanting.to_vec());
    let reopen = ReopenEvent { org: scene.org, app, message, wanting, now: at(50) };
    ask(|done| scene.store.reopen_event(reopen, done)).await.unwrap()
}

pub async fn a_repeat_opens_what_has_failed_of_an_event_and_nothing_else(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let (accept, seq) = accepted(&scene, &tenant).await;
    let [first, other] = [accept.deliveries[0].endpoint, accept.deliveries[1].endpoint];
    let late = scene.new_endpoint(accept.app);
    scene.create_endpoint(&late).await;
    let all = [first, other, late.id];
    assert_eq!(reopen(&scene, &accept, &all).await, [], "it is on its way");
    scene.record(vec![scene.dead(&accept, seq, Reason::Exhausted)]).await;
    assert_eq!(reopen(&scene, &accept, &all).await, [], "one of two is on its way");
    scene.record(vec![second(&accept, scene.delivered(&accept, seq))]).await;
    assert_eq!(event(&scene, &accept).await.state(), EventState::Failed);
    let opened = reopen(&scene, &accept, &all).await;
    let [(endpoint, waiting)] = opened[..] else { panic!("{opened:?}") };
    assert_eq!((endpoint, waiting.message, waiting.due_at), (first, accept.message.id, at(50)));
    assert_eq!((waiting.attempts, waiting.replayed), (0, true));
    assert!(waiting.seq.0 > seq.0 + 1, "another round, behind what waits");
    assert_eq!(scene.due(first).await, [waiting]);
    assert_eq!(scene.store.waiting().await.unwrap(), 1);
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.failure()), (EventState::Processing, None));
    assert_eq!(reopen(&scene, &accept, &all).await, [], "it is open");
    scene.record(vec![Record { at: at(60), ..scene.delivered(&accept, waiting.seq) }]).await;
    assert_eq!(event(&scene, &accept).await.state(), EventState::Processed);
    assert_eq!(reopen(&scene, &accept, &all).await, [], "it is done");
}

pub async fn what_somebody_has_ended_is_not_opened_by_a_repeat(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let (cancelled, seq) = accepted(&scene, &tenant).await;
    scene.record(vec![scene.dead(&cancelled, seq, Reason::Cancelled)]).await;
    assert_eq!(reopen(&scene, &cancelled, &[endpoint]).await, [], "it was cancelled");
    let (discarded, seq) = accepted(&scene, &tenant).await;
    scene.record(vec![scene.dead(&discarded, seq, Reason::Exhausted)]).await;
    let gone = ask(|done| scene.store.discard(discarded.app, vec![seq], None, done)).await.unwrap();
    assert_eq!((gone, reopen(&scene, &discarded, &[endpoint]).await), (1, vec![]), "it was discarded");
    let (expunged, seq) = accepted(&scene, &tenant).await;
    scene.record(vec![scene.dead(&expunged, seq, Reason::Exhausted)]).await;
    let message = expunged.message.id;
    scene.change(Change::ExpungeMessage { app: expunged.app, message }).await;
    assert_eq!(reopen(&scene, &expunged, &[endpoint]).await, [], "its payload was deleted");
    let others = Accept { app: scene.id(), ..expunged };
    assert_eq!(reopen(&scene, &others, &[endpoint]).await, [], "it is nobody's");
    assert_eq!(scene.store.waiting().await.unwrap(), 0);
}

pub async fn an_event_whose_endpoints_are_deleted_goes_to_those_that_want_it_now(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (accept, seq) = accepted(&scene, &tenant).await;
    let (app, endpoint) = (accept.app, tenant.endpoints[0].id);
    scene.record(vec![scene.dead(&accept, seq, Reason::Exhausted)]).await;
    assert_eq!(event(&scene, &accept).await.deleted, []);
    scene.change(Change::DeleteEndpoint { app, endpoint, at: at(3), notices: Vec::new() }).await;
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), &found.deleted[..]), (EventState::Failed, &[endpoint][..]));
    assert_eq!(reopen(&scene, &accept, &[endpoint]).await, [], "there is nobody to send it to");
    let new = scene.new_endpoint(app);
    scene.create_endpoint(&new).await;
    let opened = reopen(&scene, &accept, &[endpoint, new.id]).await;
    let [(to, waiting)] = opened[..] else { panic!("{opened:?}") };
    assert_eq!(to, new.id);
    // From now on the one that is gone does not count: another gets it.
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.deliveries.len()), (EventState::Processing, 1));
    let other = Accept {
        deliveries: vec![NewDelivery { endpoint: new.id, ..accept.deliveries[0] }],
        ..accept.clone()
    };
    scene.record(vec![Record { at: at(70), ..scene.delivered(&other, waiting.seq) }]).await;
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.processed_at()), (EventState::Processed, at(70)));
    let part = ListRange::page(Page { after: None, limit: 9 }, Order::Descending);
    let failed = SourceEventsQuery { app, state: Some(EventState::Failed), part };
    assert!(scene.store.source_events(failed).await.unwrap().items.is_empty(), "lists say the same");
}

pub async fn an_event_without_endpoints_or_with_those_that_are_off_is_processed(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let nobody = scene.with_endpoints(0).await;
    let (accept, _) = accepted(&scene, &nobody).await;
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.processed_at()), (EventState::Processed, accept.message.created_at));
    let off = scene.with_endpoints(1).await;
    let mut accept = scene.event(&off);
    Arc::make_mut(&mut accept.message.content).event_id = Some("off".into());
    let skipped = Some(SkipReason::EndpointDisabled);
    accept.deliveries[0] = NewDelivery { skipped, ..accept.deliveries[0] };
    scene.accepted(&accept).await;
    let found = event(&scene, &accept).await;
    assert_eq!((found.state(), found.deliveries.len()), (EventState::Processed, 0));
}

pub async fn events_are_found_by_their_states_page_by_page(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut all = Vec::new();
    for _ in 0..6 {
        all.push(accepted(&scene, &tenant).await);
    }
    for (accept, seq) in &all[..2] {
        scene.record(vec![scene.delivered(accept, *seq)]).await;
    }
    for (accept, seq) in &all[2..4] {
        scene.record(vec![scene.dead(accept, *seq, Reason::Rejected)]).await;
    }
    let others = scene.with_endpoints(1).await;
    accepted(&scene, &others).await;
    let list = |state, after: Option<MessageId>, limit, walk| {
        let (page, order) = (Page { after, limit }, Order::Descending);
        let part = ListRange { within: TimeRange::default(), page, order, walk };
        let query = SourceEventsQuery { app: tenant.application.id, state, part };
        let read = scene.store.source_events(query);
        async { read.await.unwrap() }
    };
    let ids = |found: &ListPage<SourceEvent, MessageId>| {
        found.items.iter().map(|item| item.message.id).collect::<Vec<_>>()
    };
    let of = |places: &[usize]| places.iter().map(|place| all[*place].0.message.id).collect::<Vec<_>>();
    assert_eq!(ids(&list(None, None, 9, usize::MAX).await), of(&[5, 4, 3, 2, 1, 0]));
    assert_eq!(ids(&list(Some(EventState::Processing), None, 9, usize::MAX).await), of(&[5, 4]));
    assert_eq!(ids(&list(Some(EventState::Failed), None, 1, usize::MAX).await), of(&[3]));
    let beside = Some(all[3].0.message.id);
    assert_eq!(ids(&list(Some(EventState::Failed), beside, 9, usize::MAX).await), of(&[2]));
    assert_eq!(ids(&list(Some(EventState::Processed), None, 9, usize::MAX).await), of(&[1, 0]));
    let given_up = list(Some(EventState::Processed), None, 9, 2).await;
    assert!(given_up.items.is_empty() && given_up.stopped.is_some(), "{given_up:?}");
}
