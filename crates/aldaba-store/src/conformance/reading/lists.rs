//! Lists of messages and attempts, filtered and walked.

use crate::conformance::{Scene, at};
use crate::{
    Accept, AttemptFilter, AttemptScope, AttemptsQuery, BoundedCount, Content, EndpointMessagesQuery,
    ListRange, MessageFilter, MessageProgress, MessagesQuery, NewAttempt, Order, Page, Payloads, Record, Seq,
    Store, Tenant, TimeRange,
};
use aldaba_delivery::{AttemptId, EndpointId, FailureKind, MessageId, Reason, Timestamp};
use bytes::Bytes;
use std::sync::Arc;

/// An event of a moment, with a type, a channel and a tag.
fn event_at(scene: &Scene, tenant: &Tenant, moment: Timestamp, kind: [&str; 3]) -> Accept {
    let mut event = scene.event(tenant);
    let [event_type, channel, tag] = kind;
    event.message.id = scene.id_at(moment);
    event.message.created_at = moment;
    event.message.channels = vec!["all".into(), channel.into()];
    event.message.tags = vec![tag.into()];
    let payload = Bytes::from_static(b"{\"n\": 1}");
    event.message.content = Arc::new(Content::new(event_type, payload));
    event
}

fn part<Id>(page: Page<Id>, order: Order) -> ListRange<Id> {
    ListRange { walk: 1000, ..ListRange::page(page, order) }
}

/// Nine messages, a second apart, of three types, channels and tags by turns.
async fn nine(scene: &Scene, tenant: &Tenant) -> Vec<(Accept, Seq)> {
    let mut events = Vec::new();
    for (number, moment) in (0..9).zip(10..) {
        let kind = ["a", "b", "c"][number % 3];
        let event = event_at(scene, tenant, at(moment), [kind, &format!("in-{kind}"), &format!("on-{kind}")]);
        let seq = scene.accepted(&event).await;
        events.push((event, seq));
    }
    events
}

fn ids(events: &[(Accept, Seq)], which: &[usize]) -> Vec<MessageId> {
    which.iter().map(|number| events[*number].0.message.id).collect()
}

pub async fn messages_are_filtered_by_type_channel_and_tag(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let events = nine(&scene, &tenant).await;
    nine(&scene, &other).await;
    let list = async |filter: MessageFilter| {
        let part = part(Page { after: None, limit: 100 }, Order::Descending);
        let query = MessagesQuery { app: tenant.application.id, filter, part, payloads: Payloads::Without };
        let found = scene.store.messages(query).await.unwrap();
        assert_eq!(found.stopped, None);
        found.items.iter().map(|message| message.id).collect::<Vec<_>>()
    };
    let types = |types: &[&str]| MessageFilter {
        event_types: types.iter().map(|name| (*name).to_owned()).collect(),
        ..Default::default()
    };
    let channel = |name: &str| MessageFilter { channel: Some(name.into()), ..Default::default() };
    let tag = |name: &str| MessageFilter { tag: Some(name.into()), ..Default::default() };
    assert_eq!(list(types(&["b"])).await, ids(&events, &[7, 4, 1]));
    assert_eq!(list(types(&["c", "a"])).await, ids(&events, &[8, 6, 5, 3, 2, 0]));
    assert_eq!(list(types(&["A"])).await, []);
    assert_eq!(list(channel("in-c")).await, ids(&events, &[8, 5, 2]));
    assert_eq!(list(channel("all")).await.len(), 9);
    assert_eq!(list(channel("on-c")).await, [], "a tag is no channel");
    assert_eq!(list(tag("on-a")).await, ids(&events, &[6, 3, 0]));
    assert_eq!(list(tag("all")).await, []);
    let both = MessageFilter { tag: Some("on-a".into()), ..channel("in-b") };
    assert_eq!(list(both).await, []);
}

pub async fn messages_are_listed_between_two_moments(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut events = nine(&scene, &tenant).await;
    // As close to a bound as two moments can be: in the same step of ids.
    for millis in [1, 2] {
        let moment = Timestamp::from_millis(at(30).millis() + millis);
        let event = event_at(&scene, &tenant, moment, ["a", "x", "y"]);
        let seq = scene.accepted(&event).await;
        events.push((event, seq));
    }
    let list = async |after, before, beside, order| {
        let part = ListRange {
            within: TimeRange { after, before },
            page: Page { after: beside, limit: 3 },
            order,
            walk: 1000,
        };
        let (app, filter) = (tenant.application.id, MessageFilter::default());
        let query = MessagesQuery { app, filter, part, payloads: Payloads::Without };
        let found = scene.store.messages(query).await.unwrap();
        found.items.iter().map(|message| message.id).collect::<Vec<_>>()
    };
    let (up, down) = (Order::Ascending, Order::Descending);
    assert_eq!(
        list(None, Some(at(15)), None, down).await,
        ids(&events, &[4, 3, 2]),
        "before is not included"
    );
    assert_eq!(list(Some(at(13)), None, None, up).await, ids(&events, &[4, 5, 6]), "nor is after");
    assert_eq!(list(Some(at(12)), Some(at(15)), None, down).await, ids(&events, &[4, 3]));
    let fourth = Some(events[4].0.message.id);
    assert_eq!(list(Some(at(11)), Some(at(99)), fourth, down).await, ids(&events, &[3, 2]));
    assert_eq!(list(Some(at(11)), Some(at(17)), fourth, up).await, ids(&events, &[5, 6]));
    assert_eq!(list(Some(at(15)), Some(at(12)), None, down).await, []);
    let close = Timestamp::from_millis(at(30).millis() + 2);
    assert_eq!(list(Some(at(30)), Some(close), None, down).await, ids(&events, &[9]));
    assert_eq!(
        list(Some(Timestamp::from_millis(close.millis() - 1)), None, None, up).await,
        ids(&events, &[10])
    );
}

pub async fn a_walk_over_messages_is_given_up_and_can_go_on(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let events = nine(&scene, &tenant).await;
    for (order, wanted) in [(Order::Descending, [7, 4, 1]), (Order::Ascending, [1, 4, 7])] {
        let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let part = ListRange { walk: 2, ..ListRange::page(Page { after, limit: 2 }, order) };
            let filter = MessageFilter { event_types: vec!["b".into()], ..Default::default() };
            let query =
                MessagesQuery { app: tenant.application.id, filter, part, payloads: Payloads::UpTo(1000) };
            let page = scene.store.messages(query).await.unwrap();
            pages += 1;
            found.extend(page.items.iter().map(|message| message.id));
            let Some(stopped) = page.stopped else { break };
            after = Some(stopped);
        }
        assert_eq!(found, ids(&events, &wanted));
        assert!(pages >= 4, "{pages}");
    }
}

pub async fn a_page_of_messages_ends_with_its_bytes_and_comes_without_payloads_if_wanted(
    store: Arc<dyn Store>,
) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let events = nine(&scene, &tenant).await;
    let list = async |payloads, limit| {
        let part = part(Page { after: None, limit }, Order::Descending);
        let (app, filter) = (tenant.application.id, MessageFilter::default());
        scene.store.messages(MessagesQuery { app, filter, part, payloads }).await.unwrap()
    };
    let bytes = events[0].0.message.content.payload.len();
    let page = list(Payloads::UpTo(2 * bytes), 9).await;
    assert_eq!((page.items.len(), page.stopped), (3, Some(events[6].0.message.id)));
    assert_eq!(page.items[0].content.payload, events[8].0.message.content.payload);
    // A page that is full says nothing of where it was given up.
    assert_eq!(list(Payloads::UpTo(2 * bytes), 3).await.stopped, None);
    let bare = list(Payloads::Without, 100).await;
    assert_eq!((bare.items.len(), bare.stopped), (9, None));
    assert!(bare.items.iter().all(|message| message.content.payload.is_empty() && !message.expunged));
    assert_eq!(bare.items[0].tags, ["on-c"]);
    let (some, other) = (vec![bare.items[4].id, scene.id(), bare.items[2].id], scene.new_application());
    let found = scene.store.bare_messages(tenant.application.id, some.clone()).await.unwrap();
    assert_eq!(found, [bare.items[4].clone(), bare.items[2].clone()]);
    assert_eq!(scene.store.bare_messages(other.id, some).await.unwrap(), []);
}

/// Attempts of an endpoint, one of each message, a second apart: successes, and failures of every third.
async fn attempted(scene: &Scene, events: &[(Accept, Seq)]) -> Vec<AttemptId> {
    let mut made = Vec::new();
    for (number, (event, seq)) in events.iter().enumerate() {
        let moment = at(100 + number as i64);
        let attempt = NewAttempt { id: scene.id_at(moment), started_at: moment, ..scene.attempt() };
        let failed = |status_code, failure| NewAttempt {
            status_code,
            failure,
            error: "failed".into(),
            success: false,
            ..attempt.clone()
        };
        let attempt = match number {
            3 => failed(Some(503), None),
            6 => failed(None, Some(FailureKind::Connect)),
            // A success under its policy.
            7 => NewAttempt { status_code: Some(302), ..attempt.clone() },
            _ => attempt.clone(),
        };
        made.push(attempt.id);
        let record = match attempt.success {
            true => scene.delivered(event, *seq),
            false => scene.failed(event, *seq, at(500)),
        };
        scene.record(vec![Record { attempt: Some(attempt), ..record }]).await;
    }
    made
}

pub async fn attempts_are_filtered_by_result_status_message_and_time(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let events = nine(&scene, &tenant).await;
    let made = attempted(&scene, &events).await;
    let endpoint = tenant.endpoints[0].id;
    let query = |filter: AttemptFilter, within: TimeRange| {
        let part = ListRange { within, ..part(Page { after: None, limit: 100 }, Order::Descending) };
        AttemptsQuery { scope: AttemptScope::Endpoint(endpoint), filter, part, responses: true }
    };
    let list = async |filter: AttemptFilter, within: TimeRange, numbers: &[usize]| {
        let wanted: Vec<_> = numbers.iter().map(|number| made[*number]).collect();
        let found = scene.store.attempts(query(filter.clone(), within)).await.unwrap();
        assert_eq!(found.items.iter().map(|attempt| attempt.id).collect::<Vec<_>>(), wanted, "{filter:?}");
        assert_eq!(found.stopped, None);
        let count = scene.store.count_attempts(query(filter, within)).await.unwrap();
        assert_eq!(count, BoundedCount { counted: numbers.len() as u64, more: false });
    };
    let all = TimeRange::default();
    let success = |success| AttemptFilter { success: Some(success), ..Default::default() };
    let class = |class| AttemptFilter { status_class: Some(class), ..Default::default() };
    list(AttemptFilter::default(), all, &[8, 7, 6, 5, 4, 3, 2, 1, 0]).await;
    list(success(true), all, &[8, 7, 5, 4, 2, 1, 0]).await;
    list(success(false), all, &[6, 3]).await;
    list(class(0), all, &[6]).await;
    list(class(100), all, &[]).await;
    list(class(200), all, &[8, 5, 4, 2, 1, 0]).await;
    list(class(300), all, &[7]).await;
    list(class(500), all, &[3]).await;
    list(AttemptFilter { status_class: Some(500), ..success(true) }, all, &[]).await;
    let app = tenant.application.id;
    let message = |filter| AttemptFilter { message: Some((app, filter)), ..Default::default() };
    let types = |name: &str| MessageFilter { event_types: vec![name.into()], ..Default::default() };
    list(message(types("b")), all, &[7, 4, 1]).await;
    list(message(MessageFilter { channel: Some("in-c".into()), ..Default::default() }), all, &[8, 5, 2])
        .await;
    list(message(MessageFilter { tag: Some("on-a".into()), ..Default::default() }), all, &[6, 3, 0]).await;
    list(AttemptFilter { success: Some(false), ..message(types("a")) }, all, &[6, 3]).await;
    list(AttemptFilter { success: Some(false), ..message(types("b")) }, all, &[]).await;
    let within = TimeRange { after: Some(at(101)), before: Some(at(104)) };
    list(AttemptFilter::default(), within, &[3, 2]).await;
    list(success(false), within, &[3]).await;
    let just = |millis: i64| Some(Timestamp::from_millis(at(104).millis() + millis));
    list(AttemptFilter::default(), TimeRange { after: just(-1), before: just(1) }, &[4]).await;
    list(AttemptFilter::default(), TimeRange { after: just(0), before: just(3) }, &[]).await;
    list(AttemptFilter { endpoint: Some(endpoint), ..Default::default() }, all, &[8, 7, 6, 5, 4, 3, 2, 1, 0])
        .await;
    list(AttemptFilter { endpoint: Some(scene.id()), ..Default::default() }, all, &[]).await;
}

pub async fn a_walk_over_attempts_is_given_up_and_can_go_on(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let events = nine(&scene, &tenant).await;
    let made = attempted(&scene, &events).await;
    let scope = AttemptScope::Endpoint(tenant.endpoints[0].id);
    let filter = AttemptFilter { status_class: Some(200), ..Default::default() };
    for (order, wanted) in [(Order::Descending, [8, 5, 4, 2, 1, 0]), (Order::Ascending, [0, 1, 2, 4, 5, 8])] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let part = ListRange { walk: 2, ..ListRange::page(Page { after, limit: 5 }, order) };
            let query = AttemptsQuery { scope, filter: filter.clone(), part, responses: false };
            let page = scene.store.attempts(query.clone()).await.unwrap();
            assert!(page.items.iter().all(|attempt| attempt.response.is_empty()));
            let count = scene.store.count_attempts(query).await.unwrap();
            assert_eq!(
                count,
                BoundedCount { counted: page.items.len() as u64, more: page.stopped.is_some() }
            );
            found.extend(page.items.iter().map(|attempt| attempt.id));
            let Some(stopped) = page.stopped else { break };
            after = Some(stopped);
        }
        assert_eq!(found, wanted.map(|number| made[number]));
    }
    let part = ListRange::page(Page { after: None, limit: 4 }, Order::Descending);
    let query = AttemptsQuery { scope, filter: AttemptFilter::default(), part, responses: false };
    assert_eq!(scene.store.count_attempts(query).await.unwrap(), BoundedCount { counted: 4, more: true });
}

pub async fn one_attempt_is_found_with_its_message_only(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let events = nine(&scene, &tenant).await;
    let made = attempted(&scene, &events).await;
    let message = |number: usize| events[number].0.message.id;
    let found = scene.store.attempt(message(3), made[3]).await.unwrap().expect("it is there");
    assert_eq!((found.id, found.message, found.status_code), (made[3], message(3), Some(503)));
    assert_eq!(&found.response[..], b"ok");
    assert_eq!(scene.store.attempt(message(4), made[3]).await.unwrap(), None);
    assert_eq!(scene.store.attempt(message(3), scene.id()).await.unwrap(), None);
}

pub async fn attempts_of_a_message_are_filtered_by_endpoint(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let event = scene.event(&tenant);
    let first = scene.accepted(&event).await;
    let mut made = Vec::new();
    for number in 0..3 {
        let record = Record {
            seq: Seq(first.0 + number),
            endpoint: event.deliveries[number as usize].endpoint,
            ..scene.failed(&event, first, at(5))
        };
        made.push(record.attempt.as_ref().expect("made with one").id);
        scene.record(vec![record]).await;
    }
    let list = async |endpoint: EndpointId| {
        let part = part(Page { after: None, limit: 100 }, Order::Descending);
        let filter = AttemptFilter { endpoint: Some(endpoint), ..Default::default() };
        let scope = AttemptScope::Message(event.message.id);
        let found =
            scene.store.attempts(AttemptsQuery { scope, filter, part, responses: true }).await.unwrap();
        found.items.iter().map(|attempt| attempt.id).collect::<Vec<_>>()
    };
    for (endpoint, attempt) in tenant.endpoints.iter().zip(made) {
        assert_eq!(list(endpoint.id).await, [attempt]);
    }
    assert_eq!(list(scene.id()).await, []);
}

pub async fn messages_of_an_endpoint_come_once_with_how_far_they_have_come(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let mut events = nine(&scene, &tenant).await;
    // One that does not go to the first endpoint, and one that was never to be sent there.
    for skipped in [None, Some(aldaba_delivery::SkipReason::EndpointDisabled)] {
        let mut event = event_at(&scene, &tenant, at(50), ["a", "x", "y"]);
        match skipped {
            None => drop(event.deliveries.remove(0)),
            skipped => event.deliveries[0].skipped = skipped,
        }
        let seq = scene.accepted(&event).await;
        events.push((event, seq));
    }
    let of = |number: usize| (&events[number].0, events[number].1);
    let (delivered, retried, dead, cancelled) = (of(0), of(1), of(2), of(3));
    scene
        .record(vec![
            scene.delivered(delivered.0, delivered.1),
            scene.failed(retried.0, retried.1, at(500)),
            scene.dead(dead.0, dead.1, Reason::Exhausted),
            scene.dead(cancelled.0, cancelled.1, Reason::Cancelled),
        ])
        .await;
    let list = async |progress: &[MessageProgress], filter: MessageFilter, walk, after| {
        let query = EndpointMessagesQuery {
            app: tenant.application.id,
            endpoint: tenant.endpoints[0].id,
            progress: progress.to_vec(),
            filter,
            part: ListRange { walk, ..ListRange::page(Page { after, limit: 100 }, Order::Descending) },
            payloads: Payloads::UpTo(1 << 20),
        };
        let found = scene.store.endpoint_messages(query).await.unwrap();
        for item in &found.items {
            assert_eq!(item.delivery.endpoint, tenant.endpoints[0].id);
            assert_eq!(item.delivery.message, item.message.id);
            assert!(!item.message.content.payload.is_empty());
        }
        (found.items.iter().map(|item| item.message.id).collect::<Vec<_>>(), found.stopped)
    };
    let all = MessageFilter::default;
    let whole = |which: &[usize]| (ids(&events, which), None);
    assert_eq!(list(&[], all(), 1000, None).await, whole(&[8, 7, 6, 5, 4, 3, 2, 1, 0]));
    assert_eq!(list(&[MessageProgress::Delivered], all(), 1000, None).await, whole(&[0]));
    assert_eq!(list(&[MessageProgress::Retrying], all(), 1000, None).await, whole(&[1]));
    assert_eq!(list(&[MessageProgress::Failed], all(), 1000, None).await, whole(&[2]));
    assert_eq!(
        list(&[MessageProgress::Failed, MessageProgress::Cancelled], all(), 1000, None).await,
        whole(&[3, 2])
    );
    assert_eq!(list(&[MessageProgress::Pending], all(), 1000, None).await, whole(&[8, 7, 6, 5, 4]));
    let typed = MessageFilter { event_types: vec!["b".into()], ..all() };
    assert_eq!(list(&[], typed, 1000, None).await, whole(&[7, 4, 1]));
    // However little a walk looks at, it comes forward, and goes on from there.
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (some, stopped) = list(&[], all(), 2, after).await;
        assert!(some.len() <= 2, "{some:?}");
        found.extend(some);
        assert!(stopped.is_none() || stopped != after);
        let Some(stopped) = stopped else { break };
        after = Some(stopped);
    }
    assert_eq!(found, ids(&events, &[8, 7, 6, 5, 4, 3, 2, 1, 0]));
}
