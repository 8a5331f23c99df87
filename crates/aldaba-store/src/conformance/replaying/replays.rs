//! Replays.

use crate::conformance::scene::{ask, made};
use crate::conformance::{Scene, at};
use crate::{
    Accept, Change, Changed, DeliveryState, Order, Page, Replay, ReplayEnd, ReplayFilter, ReplayKind,
    ReplayState, ReplayStep, ReplayStepped, ReplaysQuery, Seq, Store, Tenant,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, OnExhausted, Ordering, Reason, Timestamp};
use std::sync::Arc;

/// A replay of everything to the application's first endpoint.
pub(crate) fn everything(scene: &Scene, tenant: &Tenant) -> Replay {
    everything_to(scene, tenant.application.id, tenant.endpoints[0].id)
}

/// The same to any.
pub(crate) fn everything_to(scene: &Scene, app: AppId, endpoint: EndpointId) -> Replay {
    Replay {
        id: scene.id(),
        org: scene.org,
        app,
        endpoint,
        kind: ReplayKind::Bulk,
        filter: ReplayFilter {
            since: at(-10),
            until: at(10),
            event_types: Vec::new(),
            channel: None,
            tag: None,
            dead: true,
            cancelled: true,
            delivered: true,
            missing: true,
            status_class: None,
            died_since: None,
        },
        rate: 100,
        state: ReplayState::Running,
        reached: None,
        looked_at: 0,
        opened: 0,
        created_at: at(20),
        updated_at: at(20),
    }
}

pub(crate) async fn start(scene: &Scene, replay: &Replay) {
    let change = Change::StartReplay { replay: replay.clone(), idempotency: None };
    assert_eq!(scene.change(change).await, made());
}

pub(crate) fn a_step(replay: &Replay) -> ReplayStep {
    ReplayStep { id: replay.id, look: 1000, open: 1000, most: 1000, now: at(30) }
}

pub(crate) async fn step(scene: &Scene, step: ReplayStep) -> ReplayStepped {
    ask(|done| scene.store.step_replay(step, done)).await.unwrap()
}

/// Runs it to its end in one step; the messages that it has opened, in order.
pub(crate) async fn run(scene: &Scene, replay: &Replay) -> Vec<MessageId> {
    start(scene, replay).await;
    let done = step(scene, a_step(replay)).await;
    assert_eq!(done.replay.unwrap().state, ReplayState::Finished);
    done.opened.iter().map(|waiting| waiting.message).collect()
}

/// Messages for the first endpoint of a tenant: a waiting one, a delivered one, a dead one, and one that it
/// was never sent.
pub(crate) async fn one_of_each(scene: &Scene, tenant: &Tenant) -> [(Accept, Seq); 4] {
    let mut each = Vec::new();
    for _ in 0..3 {
        let accept = scene.event(tenant);
        let seq = scene.accepted(&accept).await;
        each.push((accept, seq));
    }
    let (delivered, dead) = (&each[1], &each[2]);
    scene.record(vec![scene.delivered(&delivered.0, delivered.1)]).await;
    scene.record(vec![scene.dead(&dead.0, dead.1, Reason::Exhausted)]).await;
    let missing = Accept { deliveries: Vec::new(), ..scene.event(tenant) };
    scene.accepted(&missing).await;
    each.push((missing, Seq(0)));
    each.try_into().unwrap()
}

pub async fn a_replay_opens_what_it_asks_for_and_leaves_what_waits(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    for (dead, delivered, missing) in
        [(true, false, false), (false, true, false), (false, false, true), (true, true, true)]
    {
        let tenant = scene.with_endpoints(1).await;
        let before = scene.store.waiting().await.unwrap();
        let [waiting, was_delivered, was_dead, was_missing] = one_of_each(&scene, &tenant).await;
        let mut replay = everything(&scene, &tenant);
        (replay.filter.dead, replay.filter.delivered, replay.filter.missing) = (dead, delivered, missing);
        replay.filter.cancelled = false;
        let wanted: Vec<_> = [(delivered, &was_delivered), (dead, &was_dead), (missing, &was_missing)]
            .into_iter()
            .filter_map(|(wanted, (accept, _))| wanted.then_some(accept.message.id))
            .collect();
        let counted = scene.store.count_replay(replay.clone(), None, 1000).await.unwrap();
        assert_eq!((counted.matched, counted.next), (wanted.len() as u64, None));
        assert_eq!(run(&scene, &replay).await, wanted);
        let lane: Vec<_> = scene.due(replay.endpoint).await.iter().map(|waiting| waiting.message).collect();
        let all = [&[waiting.0.message.id], &wanted[..]].concat();
        assert_eq!(lane, all, "what waited is as it was, and what was opened stands behind it");
        assert_eq!(scene.store.waiting().await.unwrap() - before, all.len() as u64);
    }
}

pub async fn what_is_to_be_delivered_later_still_is(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut accept = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
    accept.message.deliver_at = Some(at(5000));
    scene.accepted(&accept).await;
    let replay = everything(&scene, &tenant);
    run(&scene, &replay).await;
    let [waiting] = &scene.due(replay.endpoint).await[..] else { panic!("it waits") };
    assert_eq!((waiting.due_at, waiting.clock_start), (at(5000), at(5000)));
}

pub async fn what_is_to_be_delivered_later_is_opened_outside_of_the_order(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let ordering = Ordering::Fifo(OnExhausted::Skip);
    scene
        .create_endpoint(&scene.new_endpoint(tenant.application.id).with(|config| config.ordering = ordering))
        .await;
    let tenant = scene.tenant(tenant.application.id).await.unwrap();
    let mut messages = Vec::new();
    // A step is made at 30 s.
    for deliver_at in [Some(at(31)), None, Some(at(30))] {
        let mut accept = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
        accept.message.deliver_at = deliver_at;
        scene.accepted(&accept).await;
        messages.push(accept.message.id);
    }
    let replay = Replay { created_at: at(30), ..everything(&scene, &tenant) };
    assert_eq!(scene.store.count_replay(replay.clone(), None, 1000).await.unwrap().matched, 3);
    assert_eq!(run(&scene, &replay).await, messages);
    assert_eq!(scene.in_order(replay.endpoint).await.len(), 2);
    // Its moment has come.
    let Changed::Sequenced(placed) = scene.change(Change::SequenceDue { now: at(31), limit: 10 }).await
    else {
        panic!("it takes its place");
    };
    assert_eq!(placed.iter().map(|row| row.waiting.message).collect::<Vec<_>>(), messages[..1]);
    assert_eq!(scene.in_order(replay.endpoint).await.last(), Some(&placed[0].waiting.seq));
}

pub async fn a_round_without_an_attempt_has_the_last_answer_of_the_one_before(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let accept = scene.event(&tenant);
    let first = scene.accepted(&accept).await;
    let other = crate::Record {
        seq: Seq(first.0 + 1),
        endpoint: accept.deliveries[1].endpoint,
        ..scene.failed(&accept, first, at(9))
    };
    scene.record(vec![scene.delivered(&accept, first), other]).await;
    let matched = async |class| {
        let mut replay = everything(&scene, &tenant);
        replay.filter.status_class = Some(class);
        scene.store.count_replay(replay, None, 1000).await.unwrap().matched
    };
    assert_eq!((matched(200).await, matched(500).await), (1, 0));
    run(&scene, &everything(&scene, &tenant)).await;
    let [round] = &scene.due(accept.deliveries[0].endpoint).await[..] else { panic!("it waits") };
    let cancelled = scene.dead(&accept, round.seq, Reason::Cancelled);
    assert_eq!(scene.record(vec![cancelled]).await, [crate::Recorded::Applied]);
    assert_eq!((matched(200).await, matched(500).await, matched(0).await), (1, 0, 0));
}

pub async fn another_round_takes_the_place_of_the_settled_one(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let accept = scene.event(&tenant);
    let first = scene.accepted(&accept).await;
    scene.record(vec![scene.failed(&accept, first, at(1))]).await;
    let again = crate::Record { attempts_before: 1, ..scene.dead(&accept, first, Reason::StopDate) };
    scene.record(vec![again.clone()]).await;
    let replay = everything(&scene, &tenant);
    run(&scene, &replay).await;
    let rounds = scene.store.deliveries(accept.message.id).await.unwrap();
    let of_endpoint: Vec<_> = rounds.iter().filter(|row| row.endpoint == replay.endpoint).collect();
    let [round] = of_endpoint[..] else { panic!("one round: {rounds:?}") };
    assert!(round.seq > Seq(first.0 + 1), "a new number, behind all others");
    assert_eq!((round.attempts, round.clock_start), (0, at(30)));
    assert_eq!(round.state, DeliveryState::Waiting { due_at: at(30) });
    assert_eq!(rounds.len(), 2, "the other endpoint's delivery is as it was");
    // A late step with the old one changes nothing.
    assert_eq!(scene.record(vec![again]).await, [crate::Recorded::Fenced]);
}

pub async fn a_replay_goes_on_where_it_was_and_opens_nothing_twice(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut messages = Vec::new();
    for _ in 0..7 {
        let accept = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
        scene.accepted(&accept).await;
        messages.push(accept.message.id);
    }
    let replay = everything(&scene, &tenant);
    start(&scene, &replay).await;
    let mut opened = Vec::new();
    let mut now = None;
    for _ in 0..20 {
        let stepped = step(&scene, ReplayStep { look: 3, open: 2, ..a_step(&replay) }).await;
        assert!(stepped.opened.len() <= 2);
        opened.extend(stepped.opened.iter().map(|waiting| waiting.message));
        now = stepped.replay;
    }
    assert_eq!(opened, messages);
    let now = now.unwrap();
    assert_eq!((now.state, now.opened, now.looked_at), (ReplayState::Finished, 7, 7));
    assert_eq!(scene.store.replay(scene.org, replay.id).await.unwrap(), Some(now));
    assert_eq!(scene.store.running_replays().await.unwrap().iter().find(|r| r.id == replay.id), None);
}

pub async fn a_replay_ends_at_the_most_that_one_may_open(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    for _ in 0..3 {
        scene.accepted(&Accept { deliveries: Vec::new(), ..scene.event(&tenant) }).await;
    }
    let replay = everything(&scene, &tenant);
    start(&scene, &replay).await;
    let stepped = step(&scene, ReplayStep { most: 2, ..a_step(&replay) }).await;
    assert_eq!((stepped.opened.len(), stepped.replay.unwrap().state), (2, ReplayState::TooMany));
    assert!(step(&scene, a_step(&replay)).await.opened.is_empty());
}

pub async fn a_replay_ends_with_its_endpoint_and_when_it_is_cancelled(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    scene.accepted(&Accept { deliveries: Vec::new(), ..scene.event(&tenant) }).await;
    let (gone, stopped) = (everything(&scene, &tenant), everything(&scene, &tenant));
    start(&scene, &gone).await;
    start(&scene, &stopped).await;
    let cancel = |at: Timestamp| Change::CancelReplay { org: scene.org, replay: stopped.id, at };
    assert_eq!(scene.change(cancel(at(25))).await, made());
    assert_eq!(scene.change(cancel(at(26))).await, Changed::Stale);
    let of_others = Change::CancelReplay { org: scene.id(), replay: gone.id, at: at(25) };
    assert_eq!(scene.change(of_others).await, Changed::NotFound);
    let after = step(&scene, a_step(&stopped)).await;
    assert_eq!((after.opened.len(), after.replay.unwrap().state), (0, ReplayState::Cancelled));
    let endpoint = gone.endpoint;
    scene.change(Change::DeleteEndpoint { app: gone.app, endpoint, at: at(27), notices: Vec::new() }).await;
    let after = step(&scene, a_step(&gone)).await;
    assert_eq!((after.opened.len(), after.replay.unwrap().state), (0, ReplayState::EndpointGone));
    assert_eq!(step(&scene, a_step(&everything(&scene, &tenant))).await.replay, None);
}

pub async fn an_application_has_so_many_running_replays_and_no_more(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, neighbour) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let key = scene.key();
    let begin = async |replay: &Replay, idempotency| {
        scene.change(Change::StartReplay { replay: replay.clone(), idempotency }).await
    };
    let first = everything(&scene, &tenant);
    assert_eq!(begin(&first, Some(key)).await, made());
    for _ in 1..Replay::MAX_RUNNING {
        start(&scene, &everything(&scene, &tenant)).await;
    }
    let more = everything(&scene, &tenant);
    let other = scene.key();
    assert_eq!(begin(&more, Some(other)).await, Changed::TooMany);
    assert_eq!(scene.store.replay(scene.org, more.id).await.unwrap(), None);
    let repeated = Changed::Repeated { resource: *first.id.as_bytes() };
    assert_eq!(begin(&everything(&scene, &tenant), Some(key)).await, repeated, "as it was answered before");
    start(&scene, &everything(&scene, &neighbour)).await;
    // One that has ended makes room, and the key of the one that was refused is free.
    step(&scene, a_step(&first)).await;
    assert_eq!(begin(&more, Some(other)).await, made());
    assert_eq!(begin(&everything(&scene, &tenant), None).await, Changed::TooMany);
}

pub async fn replays_are_listed_both_ways_for_their_organization(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let first = everything(&scene, &tenant);
    let second = Replay { kind: ReplayKind::Recover, ..everything(&scene, &tenant) };
    start(&scene, &first).await;
    start(&scene, &second).await;
    step(&scene, a_step(&second)).await;
    let query = ReplaysQuery {
        org: scene.org,
        ended: None,
        kind: None,
        page: Page { after: None, limit: 10 },
        order: Order::Ascending,
    };
    let ids = |query: ReplaysQuery| {
        let found = scene.store.replays(query);
        async move { found.await.unwrap().iter().map(|replay| replay.id).collect::<Vec<_>>() }
    };
    assert_eq!(ids(query).await, [first.id, second.id]);
    assert_eq!(ids(ReplaysQuery { order: Order::Descending, ..query }).await, [second.id, first.id]);
    let beyond = Page { after: Some(first.id), limit: 1 };
    assert_eq!(ids(ReplaysQuery { page: beyond, ..query }).await, [second.id]);
    assert_eq!(ids(ReplaysQuery { ended: Some(ReplayEnd::NotYet), ..query }).await, [first.id]);
    assert_eq!(ids(ReplaysQuery { ended: Some(ReplayEnd::Well), ..query }).await, [second.id]);
    scene.change(Change::CancelReplay { org: scene.org, replay: first.id, at: at(31) }).await;
    assert_eq!(ids(ReplaysQuery { ended: Some(ReplayEnd::Early), ..query }).await, [first.id]);
    assert_eq!(ids(ReplaysQuery { kind: Some(ReplayKind::Recover), ..query }).await, [second.id]);
    assert!(ids(ReplaysQuery { org: scene.id(), ..query }).await.is_empty());
}
