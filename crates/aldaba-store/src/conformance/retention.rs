//! What is no longer kept is found and removed; what waits or is referred to is not.

use super::scene::ask;
use super::{Scene, at};
use crate::operations::{Cutoff, ExpiredItem, Removed, RetentionWalk, Search, SettledPosition};
use crate::{
    Accept, AttemptScope, AttemptsQuery, Change, Expired, ManualRecord, NewAttempt, NewDelivery, Order, Page,
    Record, RemovedCounts, Replay, ReplayFilter, ReplayKind, ReplayState, ReplayStep, RetentionBudget,
    RetentionPolicies, RetentionRules, Seq, Store, Tenant, Trigger,
};
use aldaba_delivery::policy::{Keep, RetentionDefaults, RetentionRule};
use aldaba_delivery::{EndpointId, Gate, GateKey, GateScope, MessageId, Origin, Reason, Timestamp};
use std::sync::Arc;
use std::time::Duration;

const HOUR: i64 = 3600;
const EVENT_IDS: Duration = Duration::from_secs(24 * 3600);
const ENDLESS: Duration = Duration::from_secs(1 << 40);

/// Under these rules nothing goes but what is deleted or discarded.
fn rules(event_ids: Duration) -> RetentionRules {
    RetentionRules {
        policies: RetentionPolicies::default(),
        defaults: RetentionDefaults { delivered: None, dead: None },
        counters: ENDLESS,
        replays: ENDLESS,
        alerts: Duration::from_secs(30 * 24 * 3600),
        audit: ENDLESS,
        gates: ENDLESS,
        event_ids,
        clock_tolerance: ENDLESS,
    }
}

async fn step(
    store: &dyn Store,
    walk: RetentionWalk,
    rules: RetentionRules,
    now: Timestamp,
    most: usize,
) -> Expired {
    let budget = RetentionBudget { found: most, rows: most, slice: most };
    store.expire(walk, Arc::new(rules), now, budget).await.unwrap()
}

/// What one search finds, and how it goes on where it ended at its limit.
pub async fn find(store: &dyn Store, search: Search, limit: usize) -> (Vec<ExpiredItem>, Option<Search>) {
    let searching = RetentionWalk::searching(search);
    let walk = step(store, searching, rules(EVENT_IDS), Timestamp::MIN, limit).await.walk;
    (walk.found(), walk.next())
}

/// Removes in one slice of the writer.
pub async fn remove_slice(
    store: &dyn Store,
    items: Vec<ExpiredItem>,
    now: Timestamp,
    event_ids: Duration,
) -> Removed {
    let count = items.len();
    let expired = step(store, RetentionWalk::removing(items), rules(event_ids), now, count).await;
    let seen = count - expired.walk.found().len();
    Removed { seen, counts: expired.removed, took: expired.took.unwrap_or_default() }
}

pub(super) async fn remove(scene: &Scene, items: Vec<ExpiredItem>, now: Timestamp) -> Removed {
    remove_slice(&*scene.store, items, now, EVENT_IDS).await
}

/// The items that a search finds.
pub(super) async fn found(scene: &Scene, search: Search, limit: usize) -> Vec<ExpiredItem> {
    find(&*scene.store, search, limit).await.0
}

/// The same, slice by slice until all are dealt with.
pub(super) async fn remove_all(scene: &Scene, mut items: Vec<ExpiredItem>, now: Timestamp) -> RemovedCounts {
    let mut counts = RemovedCounts::default();
    while !items.is_empty() {
        let removed = remove(scene, items.clone(), now).await;
        items.drain(..removed.seen);
        counts += removed.counts;
    }
    counts
}

/// Accepts an event and delivers it to its first endpoint at that moment.
async fn delivered(scene: &Scene, tenant: &Tenant, moment: Timestamp) -> (Accept, SettledPosition) {
    let event = scene.event(tenant);
    let seq = scene.accepted(&event).await;
    scene.record(vec![Record { at: moment, ..scene.delivered(&event, seq) }]).await;
    (event, SettledPosition { at: moment, seq })
}

fn before(at: Timestamp) -> Option<SettledPosition> {
    Some(SettledPosition { at, seq: Seq(i64::MIN) })
}

fn keys(before: Timestamp) -> Search {
    Search::Keys { after: None, before }
}

async fn attempts(scene: &Scene, scope: AttemptScope) -> usize {
    let query = AttemptsQuery::all(scope, Page { after: None, limit: 1000 }, Order::Ascending);
    scene.store.attempts(query).await.unwrap().items.len()
}

async fn has_message(scene: &Scene, event: &Accept) -> bool {
    scene.store.message(event.app, event.message.id.to_string()).await.unwrap().is_some()
}

pub async fn endpoints_are_walked_application_by_application(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (first, second) = (scene.with_endpoints(2).await, scene.with_endpoints(1).await);
    let gone = first.endpoints[0].id;
    scene
        .change(Change::DeleteEndpoint {
            app: first.application.id,
            endpoint: gone,
            at: at(1),
            notices: Vec::new(),
        })
        .await;
    let mut walked = Vec::new();
    let mut after = None;
    loop {
        let page = scene.store.kept_endpoints(after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.app, last.id));
        walked.extend(page.into_iter().map(|endpoint| {
            assert_eq!((endpoint.org, endpoint.policy.as_str()), (scene.org, "standard"));
            (endpoint.app, endpoint.id, endpoint.deleted)
        }));
    }
    let expected = [
        (first.application.id, gone, true),
        (first.application.id, first.endpoints[1].id, false),
        (second.application.id, second.endpoints[0].id, false),
    ];
    assert_eq!(walked, expected);
}

pub async fn the_newest_delivered_are_ranked_over_endpoints(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(2).await, scene.with_endpoints(1).await);
    let to = |number: usize| Accept {
        deliveries: vec![NewDelivery {
            endpoint: tenant.endpoints[number].id,
            due_at: at(0),
            ordered: false,
            skipped: None,
        }],
        ..scene.event(&tenant)
    };
    let mut all = Vec::new();
    for (number, moment) in [(0, 5), (1, 9), (0, 7), (1, 7), (0, 1)] {
        let event = to(number);
        let seq = scene.accepted(&event).await;
        scene.record(vec![Record { at: at(moment), ..scene.delivered(&event, seq) }]).await;
        all.push((SettledPosition { at: at(moment), seq }, event));
    }
    // Neither one that waits nor a dead one is a delivered one, and another application has its own.
    let (dead, waiting) = (to(0), to(1));
    let seq = scene.accepted(&dead).await;
    scene.record(vec![Record { at: at(99), ..scene.dead(&dead, seq, Reason::Exhausted) }]).await;
    scene.accepted(&waiting).await;
    let neighbour = delivered(&scene, &other, at(0)).await.0;
    all.sort_by_key(|(position, _)| std::cmp::Reverse(*position));
    for newest in [5, 3, 1] {
        let rule =
            RetentionRule { newest: Some(newest), delivered: Keep::UntilRemoved, dead: Keep::UntilRemoved };
        let policies = RetentionPolicies { default: rule, ..RetentionPolicies::default() };
        let (mut walk, mut counts) = (RetentionWalk::default(), RemovedCounts::default());
        while !walk.is_over() {
            let rules = RetentionRules { policies: policies.clone(), ..rules(EVENT_IDS) };
            let expired = step(&*scene.store, walk, rules, at(HOUR), 10).await;
            counts += expired.removed;
            walk = expired.walk;
        }
        assert_eq!(counts.deliveries, if newest == 5 { 0 } else { 2 });
        for (number, (_, event)) in all.iter().enumerate() {
            assert_eq!(has_message(&scene, event).await, number < newest as usize, "{number} of {newest}");
        }
    }
    for kept in [&dead, &waiting, &neighbour] {
        assert!(has_message(&scene, kept).await);
    }
}

pub async fn what_is_cut_off_is_found_oldest_first(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let mut settled = Vec::new();
    for moment in [1, 2, 3, 3] {
        settled.push(delivered(&scene, &tenant, at(moment)).await.1);
    }
    let event = scene.event(&tenant);
    let dead = SettledPosition { at: at(2), seq: scene.accepted(&event).await };
    scene.record(vec![scene.dead(&event, dead.seq, Reason::Exhausted)]).await;
    scene.accepted(&scene.event(&tenant)).await;
    let cut = async |delivered, dead, limit| {
        let cuts = vec![Cutoff { endpoint, delivered, dead, discarded: None }];
        let stale = found(&scene, Search::Deliveries(cuts), limit).await;
        let place = |stale: &ExpiredItem| match stale {
            ExpiredItem::Delivery(settled) => *settled,
            other => panic!("{other:?} is no delivery"),
        };
        stale.iter().map(place).collect::<Vec<_>>()
    };
    assert_eq!(cut(before(at(3)), None, 10).await, settled[..2]);
    assert_eq!(cut(Some(settled[3]), None, 10).await, settled[..3]);
    assert_eq!(cut(before(at(99)), before(at(99)), 10).await.len(), 5);
    assert_eq!(cut(before(at(99)), None, 2).await, settled[..2]);
    assert_eq!(cut(None, before(at(2)), 10).await, []);
    assert_eq!(cut(None, before(at(3)), 10).await, [dead]);
    assert_eq!(cut(None, None, 10).await, []);
}

pub async fn what_is_discarded_is_cut_off_by_itself_and_takes_its_message_along(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (app, endpoint) = (tenant.application.id, tenant.endpoints[0].id);
    let mut dead = Vec::new();
    for moment in [1, 2, 3] {
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        scene.record(vec![scene.failed(&event, seq, at(9))]).await;
        let ended = scene.dead(&event, seq, Reason::Exhausted);
        scene.record(vec![Record { attempts_before: 1, at: at(moment), ..ended }]).await;
        dead.push((event.message.id, SettledPosition { at: at(moment), seq }));
    }
    let cut_off = async |dead, discarded| {
        let cuts = vec![Cutoff { endpoint, delivered: None, dead, discarded }];
        found(&scene, Search::Deliveries(cuts), 10).await
    };
    let discard = async |place: SettledPosition| {
        ask(|done| scene.store.discard(app, vec![place.seq], None, done)).await.unwrap()
    };
    assert_eq!(cut_off(None, before(at(99))).await, []);
    assert_eq!(discard(dead[1].1).await, 1);
    assert_eq!(cut_off(None, before(at(2))).await, [], "it has not ended before");
    assert_eq!(cut_off(None, None).await, []);
    let stale = cut_off(None, before(at(3))).await;
    assert_eq!(stale, [ExpiredItem::Delivery(dead[1].1)]);
    assert_eq!(cut_off(before(at(99)), before(at(99))).await.len(), 3, "each once");
    let counts = remove_all(&scene, stale, at(5)).await;
    assert_eq!((counts.deliveries, counts.attempts, counts.messages), (1, 1, 1));
    assert_eq!(cut_off(None, before(at(99))).await, []);
    // Also where its endpoint is gone.
    scene.change(Change::DeleteEndpoint { app, endpoint, at: at(6), notices: Vec::new() }).await;
    assert_eq!(discard(dead[0].1).await, 1);
    assert_eq!(cut_off(None, before(at(99))).await, [ExpiredItem::Delivery(dead[0].1)]);
    assert!(scene.store.message(app, dead[2].0.to_string()).await.unwrap().is_some());
}

pub async fn a_discarded_one_that_is_delivered_by_hand_stays(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (app, endpoint) = (tenant.application.id, tenant.endpoints[0].id);
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    scene.record(vec![scene.dead(&event, seq, Reason::Exhausted)]).await;
    ask(|done| scene.store.discard(app, vec![seq], None, done)).await.unwrap();
    let attempt = NewAttempt { trigger: Trigger::Manual, ..scene.attempt() };
    let message = event.message.id;
    let resent = ManualRecord {
        org: scene.org,
        endpoint,
        message,
        attempt,
        at: at(5),
        audit: None,
        idempotency: None,
    };
    ask(|done| scene.store.record_manual(resent, done)).await.unwrap();
    let cut = Cutoff { endpoint, delivered: None, dead: None, discarded: before(at(99)) };
    assert_eq!(found(&scene, Search::Deliveries(vec![cut]), 10).await, []);
}

pub async fn a_removed_delivery_takes_its_attempts_and_the_last_one_the_message(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let event = scene.event(&tenant);
    let first = scene.accepted(&event).await;
    let kept = delivered(&scene, &tenant, at(2)).await.0;
    scene.record(vec![scene.failed(&event, first, at(1))]).await;
    scene.record(vec![Record { attempts_before: 1, ..scene.delivered(&event, first) }]).await;
    let second = Record {
        seq: Seq(first.0 + 1),
        endpoint: event.deliveries[1].endpoint,
        at: at(3),
        ..scene.delivered(&event, first)
    };
    scene.record(vec![second]).await;

    let item = |seq: i64, moment| ExpiredItem::Delivery(SettledPosition { at: at(moment), seq: Seq(seq) });
    let removed = remove(&scene, vec![item(first.0, 2)], at(99)).await;
    assert_eq!(removed.seen, 1);
    assert_eq!(removed.counts, RemovedCounts { deliveries: 1, attempts: 2, ..Default::default() });
    assert_eq!(attempts(&scene, AttemptScope::Message(event.message.id)).await, 1);
    assert_eq!(attempts(&scene, AttemptScope::Endpoint(event.deliveries[0].endpoint)).await, 1);
    let left = scene.store.deliveries(event.message.id).await.unwrap();
    assert_eq!(left.iter().map(|delivery| delivery.seq).collect::<Vec<_>>(), [Seq(first.0 + 1)]);
    assert!(has_message(&scene, &event).await);

    let removed = remove(&scene, vec![item(first.0 + 1, 3)], at(99)).await;
    let counts = RemovedCounts { deliveries: 1, attempts: 1, messages: 1, ..Default::default() };
    assert_eq!(removed.counts, counts);
    assert!(!has_message(&scene, &event).await);
    assert_eq!(scene.store.contents(vec![(event.app, event.message.id)]).await.unwrap(), [None]);
    assert_eq!(attempts(&scene, AttemptScope::Message(event.message.id)).await, 0);
    // A neighbour has lost nothing.
    assert!(has_message(&scene, &kept).await);
    assert_eq!(attempts(&scene, AttemptScope::Message(kept.message.id)).await, 1);
    assert_eq!(scene.store.waiting().await.unwrap(), 1);
}

pub async fn attempts_by_hand_go_with_the_last_delivery_of_the_message(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let mut event = scene.event(&tenant);
    event.deliveries.truncate(2);
    let first = scene.accepted(&event).await;
    scene.record(vec![scene.delivered(&event, first)]).await;
    let second = Seq(first.0 + 1);
    let endpoint = event.deliveries[1].endpoint;
    scene.record(vec![Record { seq: second, endpoint, ..scene.delivered(&event, first) }]).await;
    // To an endpoint that the message never went to.
    let stranger = tenant.endpoints[2].id;
    let resend = async |success| {
        let attempt = NewAttempt { success, trigger: Trigger::Manual, ..scene.attempt() };
        let resent = ManualRecord {
            org: scene.org,
            endpoint: stranger,
            message: event.message.id,
            attempt,
            at: at(2),
            audit: None,
            idempotency: None,
        };
        ask(|done| scene.store.record_manual(resent, done)).await.unwrap();
    };
    resend(false).await;
    let item = |seq| vec![ExpiredItem::Delivery(SettledPosition { at: at(2), seq })];
    assert_eq!(remove(&scene, item(second), at(99)).await.counts.attempts, 1);
    assert_eq!(attempts(&scene, AttemptScope::Endpoint(stranger)).await, 1);
    let counts = RemovedCounts { deliveries: 1, attempts: 2, messages: 1, ..Default::default() };
    assert_eq!(remove(&scene, item(first), at(99)).await.counts, counts);
    assert_eq!(attempts(&scene, AttemptScope::Endpoint(stranger)).await, 0);
    // One that was under way meanwhile would stay for ever.
    for success in [false, true] {
        resend(success).await;
        assert_eq!(attempts(&scene, AttemptScope::Endpoint(stranger)).await, 0);
        assert_eq!(scene.store.deliveries(event.message.id).await.unwrap(), []);
    }
}

pub async fn what_waits_is_never_removed(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let event = scene.event(&tenant);
    let first = scene.accepted(&event).await;
    scene.record(vec![scene.delivered(&event, first)]).await;
    let items = vec![
        // Of a message whose other delivery waits.
        ExpiredItem::Delivery(SettledPosition { at: at(2), seq: first }),
        // Waits, whatever is said of it.
        ExpiredItem::Delivery(SettledPosition { at: at(2), seq: Seq(first.0 + 1) }),
        ExpiredItem::Delivery(SettledPosition { at: at(0), seq: Seq(first.0 + 1) }),
        ExpiredItem::Message(event.app, event.message.id),
        ExpiredItem::Endpoint(event.deliveries[1].endpoint),
        ExpiredItem::Application(event.app),
    ];
    let removed = remove(&scene, items, at(10_000 * HOUR)).await;
    assert_eq!(removed.counts, RemovedCounts { deliveries: 1, attempts: 1, ..Default::default() });
    assert_eq!(removed.seen, 6);
    assert!(has_message(&scene, &event).await);
    assert_eq!(scene.due(event.deliveries[1].endpoint).await.len(), 1);
}

pub async fn a_delivery_that_ended_at_another_time_stays(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (event, settled) = delivered(&scene, &tenant, at(5)).await;
    let other = SettledPosition { at: at(4), ..settled };
    assert_eq!(
        remove(&scene, vec![ExpiredItem::Delivery(other)], at(99)).await.counts,
        RemovedCounts::default()
    );
    assert_eq!(scene.store.deliveries(event.message.id).await.unwrap().len(), 1);
}

pub async fn an_event_id_outlives_its_message_for_its_time(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut event = scene.event(&tenant);
    Arc::make_mut(&mut event.message.content).event_id = Some("order-7".into());
    let seq = scene.accepted(&event).await;
    scene.record(vec![scene.delivered(&event, seq)]).await;
    remove(&scene, vec![ExpiredItem::Delivery(SettledPosition { at: at(2), seq })], at(HOUR)).await;
    let again = |moment| {
        let mut again = scene.event(&tenant);
        Arc::make_mut(&mut again.message.content).event_id = Some("order-7".into());
        again.message.created_at = moment;
        again
    };
    let taken = crate::Accepted::EventIdTaken { message: event.message.id };
    assert_eq!(scene.accept(vec![again(at(24 * HOUR - 1))]).await, std::slice::from_ref(&taken));
    assert_eq!(scene.store.message(event.app, "order-7".into()).await.unwrap(), None);
    let stale = found(&scene, keys(at(24 * HOUR)), 10).await;
    assert_eq!(stale.len(), 1);
    // It counts until its row is removed, whatever the clock says.
    assert_eq!(scene.accept(vec![again(at(24 * HOUR))]).await, [taken]);
    assert_eq!(remove(&scene, stale, at(24 * HOUR)).await.counts.keys, 1);
    scene.accepted(&again(at(24 * HOUR))).await;
    // It belongs to the new message now, and counts as long as that one is kept.
    let found = scene.store.message(event.app, "order-7".into()).await.unwrap();
    assert!(found.is_some_and(|message| message.id != event.message.id));
}

pub async fn an_event_id_goes_with_a_message_that_is_older(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut event = scene.event(&tenant);
    Arc::make_mut(&mut event.message.content).event_id = Some("order-7".into());
    let seq = scene.accepted(&event).await;
    scene.record(vec![scene.delivered(&event, seq)]).await;
    let stale = vec![ExpiredItem::Delivery(SettledPosition { at: at(2), seq })];
    assert_eq!(remove(&scene, stale, at(25 * HOUR)).await.counts.keys, 1);
    // Not even one row is there to be looked at.
    assert_eq!(find(&*scene.store, keys(Timestamp::MAX), 1).await, (vec![], None));
}

pub async fn an_event_id_is_remembered_as_long_as_was_asked_for(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut event = scene.event(&tenant);
    Arc::make_mut(&mut event.message.content).event_id = Some("order-7".into());
    event.message.event_id_until = Some(at(30 * 24 * HOUR));
    let seq = scene.accepted(&event).await;
    scene.record(vec![scene.delivered(&event, seq)]).await;
    let stale = vec![ExpiredItem::Delivery(SettledPosition { at: at(2), seq })];
    assert_eq!(remove(&scene, stale, at(48 * HOUR)).await.counts.keys, 0, "it is older than ids are kept");
    let mut again = scene.event(&tenant);
    Arc::make_mut(&mut again.message.content).event_id = Some("order-7".into());
    again.message.created_at = at(30 * 24 * HOUR - 1);
    let taken = crate::Accepted::EventIdTaken { message: event.message.id };
    assert_eq!(scene.accept(vec![again.clone()]).await, [taken]);
    let stale = found(&scene, keys(at(30 * 24 * HOUR)), 10).await;
    assert_eq!(remove(&scene, stale, at(30 * 24 * HOUR)).await.counts.keys, 1);
    scene.accepted(&again).await;
}

pub async fn expired_keys_are_found_in_steps_and_living_ones_stay(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(0).await, scene.with_endpoints(0).await);
    for (tenant, hours) in [(&tenant, 1), (&tenant, 3), (&other, 1), (&other, 3), (&other, 1)] {
        let mut event = scene.event(tenant);
        let key = scene.key();
        event.idempotency = Some(crate::IdempotencyKey { expires_at: at(hours * HOUR), ..key });
        scene.accepted(&event).await;
    }
    let mut named = scene.event(&other);
    Arc::make_mut(&mut named.message.content).event_id = Some("for as long as it is kept".into());
    scene.accepted(&named).await;
    let (mut stale, mut next, mut steps) = (Vec::new(), Some(keys(at(2 * HOUR))), 0);
    while let Some(search) = next.take() {
        let (expired, more) = find(&*scene.store, search, 2).await;
        stale.extend(expired);
        next = more;
        steps += 1;
    }
    assert_eq!((stale.len(), steps), (3, 4), "the last step finds that there is nothing more");
    assert_eq!(remove(&scene, stale.clone(), at(HOUR - 1)).await.counts.keys, 0, "not yet expired");
    assert_eq!(remove(&scene, stale, at(2 * HOUR)).await.counts.keys, 3);
    assert_eq!(found(&scene, keys(at(2 * HOUR)), 10).await, []);
    assert_eq!(found(&scene, keys(at(3 * HOUR)), 10).await.len(), 2);
}

pub async fn old_messages_that_went_to_nobody_are_found_and_removed(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (nobody, somebody) = (scene.with_endpoints(0).await, scene.with_endpoints(1).await);
    let mut events = Vec::new();
    for (tenant, moment) in [(&nobody, 0), (&somebody, 1), (&nobody, 2), (&nobody, 3), (&nobody, 3)] {
        let mut event = scene.event(tenant);
        event.message.created_at = at(moment);
        event.message.id = MessageId::new(at(moment), [events.len() as u8 + 1; 15]);
        scene.accepted(&event).await;
        events.push(event);
    }
    let lonely = |since| Search::Messages { after: None, created: (since, at(3)) };
    let (mut all, mut next, mut steps) = (Vec::new(), Some(lonely(at(0))), 0);
    while let Some(search) = next.take() {
        let (expired, more) = find(&*scene.store, search, 2).await;
        all.extend(expired);
        next = more;
        steps += 1;
        assert!(steps < 10, "the walk comes to an end");
    }
    let item = |event: &Accept| ExpiredItem::Message(event.app, event.message.id);
    all.sort();
    let mut expected = vec![item(&events[0]), item(&events[2])];
    expected.sort();
    assert_eq!(all, expected);
    assert!(steps > 1, "a step looks at two messages");
    let since = found(&scene, lonely(at(1)), 9).await;
    assert_eq!(since, [item(&events[2])], "those from before were looked at");
    assert_eq!(remove(&scene, all, at(HOUR)).await.counts.messages, 2);
    for (number, event) in events.iter().enumerate() {
        assert_eq!(has_message(&scene, event).await, ![0, 2].contains(&number), "{number}");
    }
}

pub async fn payloads_are_found_by_their_time_and_stay_while_something_waits(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut events = Vec::new();
    for until in [Some(at(60)), None, Some(at(50)), Some(at(50)), Some(at(61))] {
        let mut event = scene.event(&tenant);
        event.message.payload_until = until;
        let seq = scene.accepted(&event).await;
        events.push((event, seq));
    }
    // The first waits on; the others have ended.
    for (event, seq) in &events[1..] {
        scene.record(vec![scene.delivered(event, *seq)]).await;
    }
    let payload = |number: usize| {
        let event: &Accept = &events[number].0;
        ExpiredItem::Payload(event.app, event.message.id)
    };
    let by = |now| Search::Payloads { after: None, now };
    let walk = async |search: Option<Search>| find(&*scene.store, search.expect("more"), 1).await;
    assert_eq!(walk(Some(by(at(49)))).await, (vec![], None));
    let (first, next) = walk(Some(by(at(60)))).await;
    assert_eq!(first, [payload(2)]);
    let (second, next) = walk(next).await;
    assert_eq!(second, [payload(3)]);
    let (third, next) = walk(next).await;
    assert_eq!(third, [], "something waits for it");
    assert_eq!(walk(next).await, (vec![], None), "but it was looked at");

    // What is asked for too early, or something waits for, stays.
    let items = vec![payload(0), payload(2), payload(3), payload(4), payload(1)];
    assert_eq!(remove_all(&scene, items, at(60)).await, RemovedCounts { payloads: 2, ..Default::default() });
    for (number, is_gone) in [(0, false), (1, false), (2, true), (3, true), (4, false)] {
        let event = &events[number].0;
        let message = scene.store.message(event.app, event.message.id.to_string()).await.unwrap();
        let message = message.expect("the message stays");
        assert_eq!((message.expunged, message.content.payload.is_empty()), (is_gone, is_gone), "{number}");
        let content = scene.store.contents(vec![(event.app, event.message.id)]).await.unwrap();
        assert_eq!(content[0].is_none(), is_gone, "{number}");
    }
    let (first, next) = walk(Some(by(at(60)))).await;
    assert_eq!((first, walk(next).await), (vec![], (vec![], None)), "what is gone is not found again");
    let (event, seq) = &events[0];
    scene.record(vec![scene.delivered(event, *seq)]).await;
    assert_eq!(found(&scene, by(at(60)), 10).await, [payload(0)]);
    assert_eq!(remove_all(&scene, vec![payload(0)], at(60)).await.payloads, 1);
}

pub async fn a_deleted_endpoint_goes_when_nothing_refers_to_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (app, endpoint) = (tenant.application.id, tenant.endpoints[0].id);
    let (_, settled) = delivered(&scene, &tenant, at(2)).await;
    let unused = async || found(&scene, Search::Endpoints(vec![endpoint]), 10).await;
    assert_eq!(unused().await, []);
    scene.change(Change::DeleteApplication { app, at: at(3) }).await;
    assert_eq!(unused().await, [], "its history is kept");
    let applications = async || find(&*scene.store, Search::Applications { after: None }, 1).await;
    assert_eq!(applications().await.0, []);
    remove(&scene, vec![ExpiredItem::Delivery(settled)], at(99)).await;
    let counters = counters(&scene, endpoint).await;
    remove(&scene, counters, at(99)).await;
    assert_eq!(unused().await, [ExpiredItem::Endpoint(endpoint)]);
    assert_eq!(remove(&scene, unused().await, at(99)).await.counts.endpoints, 1);
    assert_eq!(scene.store.lane_endpoints(vec![endpoint]).await.unwrap(), []);
    let next = Search::Applications { after: Some(app) };
    assert_eq!(applications().await, (vec![ExpiredItem::Application(app)], Some(next)));
    assert_eq!(remove(&scene, applications().await.0, at(99)).await.counts.applications, 1);
    assert_eq!(applications().await, (vec![], None));
}

/// A store that keeps no counters has none that are old.
async fn counters(scene: &Scene, endpoint: EndpointId) -> Vec<ExpiredItem> {
    found(scene, Search::Counters(vec![endpoint], Timestamp::MAX), 100).await
}

pub async fn counters_of_a_minute_that_is_not_over_stay(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    delivered(&scene, &tenant, at(120)).await;
    let old = async |before| {
        let endpoints = vec![tenant.endpoints[0].id];
        found(&scene, Search::Counters(endpoints, before), 100).await
    };
    assert_eq!(old(at(120)).await, []);
    let stale = old(at(180)).await;
    let count = stale.len() as u64;
    assert_eq!(remove(&scene, stale, at(180)).await.counts.counters, count);
    assert_eq!(old(Timestamp::MAX).await, []);
}

pub async fn a_replay_goes_when_it_has_ended_long_ago(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut replays = Vec::new();
    for _ in 0..3 {
        let replay = Replay {
            id: scene.id(),
            org: scene.org,
            app: tenant.application.id,
            endpoint: tenant.endpoints[0].id,
            kind: ReplayKind::Recover,
            filter: ReplayFilter::nothing(at(0)),
            rate: 1,
            state: ReplayState::Running,
            reached: None,
            looked_at: 0,
            opened: 0,
            created_at: at(0),
            updated_at: at(0),
        };
        scene.change(Change::StartReplay { replay: replay.clone(), idempotency: None }).await;
        replays.push(replay.id);
    }
    let [cancelled, finished, running] = replays[..] else { panic!("three") };
    scene.change(Change::CancelReplay { org: scene.org, replay: cancelled, at: at(20) }).await;
    let step = ReplayStep { id: finished, look: 10, open: 10, most: 10, now: at(10) };
    ask(|done| scene.store.step_replay(step, done)).await.unwrap();

    let ended = async |before, limit| found(&scene, Search::Replays(before), limit).await;
    assert_eq!(ended(at(10), 10).await, []);
    assert_eq!(ended(at(20), 10).await, [ExpiredItem::Replay(finished, at(20))]);
    assert_eq!(ended(at(99), 1).await, [ExpiredItem::Replay(finished, at(99))], "the oldest first");
    assert_eq!(ended(at(99), 10).await.len(), 2);
    let items = [(running, 99), (cancelled, 20), (finished, 20)];
    let items = items.map(|(id, before)| ExpiredItem::Replay(id, at(before))).to_vec();
    assert_eq!(
        remove(&scene, items, at(99)).await.counts,
        RemovedCounts { replays: 1, ..Default::default() }
    );
    for (id, is_there) in [(running, true), (cancelled, true), (finished, false)] {
        assert_eq!(scene.store.replay(scene.org, id).await.unwrap().is_some(), is_there);
    }
}

pub async fn a_gate_that_has_held_nobody_for_long_goes(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let gate = |host: &str, until: i64| crate::GateRecord {
        why: String::new(),
        key: GateKey { org: scene.org, origin: Origin::new("https", host, 443), scope: GateScope::Host },
        gate: Gate {
            failures: 5,
            held_until: Some(at(until)),
            hold: Duration::from_secs(1),
            ..Gate::default()
        },
    };
    let (old, young) = (gate("old.example", 10), gate("young.example", 20));
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    let gates = vec![old.clone(), young.clone()];
    scene.record(vec![Record { gates, ..scene.failed(&event, seq, at(30)) }]).await;
    let stale = found(&scene, Search::Gates(at(20)), 10).await;
    assert_eq!(stale, [ExpiredItem::Gate(old.key.clone(), at(20))]);
    // It has been held again in the meantime.
    let again = gate("old.example", 50);
    let record = Record { attempts_before: 1, gates: vec![again], ..scene.failed(&event, seq, at(60)) };
    scene.record(vec![record]).await;
    assert_eq!(remove(&scene, stale, at(60)).await.counts.gates, 0);
    let stale = found(&scene, Search::Gates(at(60)), 10).await;
    assert_eq!(remove(&scene, stale, at(60)).await.counts.gates, 2);
    assert_eq!(scene.store.gates().await.unwrap(), []);
}
