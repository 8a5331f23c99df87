//! Replays.

use super::scene::{ask, filter, made};
use super::{Scene, at};
use crate::{
    Accept, AttemptScope, AttemptsQuery, Change, Changed, Content, DeliveryState, IdempotencyKey, NewAttempt,
    Order, Page, Record, Recovery, Replay, ReplayEnd, ReplayFilter, ReplayKind, ReplayState, ReplayStep,
    ReplayStepped, ReplaysQuery, Resent, Seq, Store, Tenant, Trigger,
};
use aldaba_delivery::{
    AppId, EndpointId, Health, HealthStatus, MessageId, OnExhausted, Ordering, Reason, Timestamp,
};
use std::sync::Arc;

/// A replay of everything to the application's first endpoint.
fn everything(scene: &Scene, tenant: &Tenant) -> Replay {
    everything_to(scene, tenant.application.id, tenant.endpoints[0].id)
}

/// The same to any.
pub(super) fn everything_to(scene: &Scene, app: AppId, endpoint: EndpointId) -> Replay {
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

async fn start(scene: &Scene, replay: &Replay) {
    let change = Change::StartReplay { replay: replay.clone(), idempotency: None };
    assert_eq!(scene.change(change).await, made());
}

fn a_step(replay: &Replay) -> ReplayStep {
    ReplayStep { id: replay.id, look: 1000, open: 1000, most: 1000, now: at(30) }
}

async fn step(scene: &Scene, step: ReplayStep) -> ReplayStepped {
    ask(|done| scene.store.step_replay(step, done)).await.unwrap()
}

/// Runs it to its end in one step; the messages that it has opened, in order.
pub(super) async fn run(scene: &Scene, replay: &Replay) -> Vec<MessageId> {
    start(scene, replay).await;
    let done = step(scene, a_step(replay)).await;
    assert_eq!(done.replay.unwrap().state, ReplayState::Finished);
    done.opened.iter().map(|waiting| waiting.message).collect()
}

/// Messages for the first endpoint of a tenant: a waiting one, a delivered one, a dead one, and one that it
/// was never sent.
async fn one_of_each(scene: &Scene, tenant: &Tenant) -> [(Accept, Seq); 4] {
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

pub async fn what_was_cancelled_or_discarded_is_not_recovered(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut messages = Vec::new();
    for reason in [Reason::Exhausted, Reason::Cancelled, Reason::Exhausted] {
        let accept = scene.event(&tenant);
        let seq = scene.accepted(&accept).await;
        scene.record(vec![scene.dead(&accept, seq, reason)]).await;
        messages.push((accept.message.id, seq));
    }
    let discarded =
        ask(|done| scene.store.discard(tenant.application.id, vec![messages[2].1], None, done)).await;
    assert_eq!(discarded, Ok(1));
    let mut recover = everything(&scene, &tenant);
    (recover.filter.delivered, recover.filter.missing, recover.filter.cancelled) = (false, false, false);
    // They have died at 2 s.
    let mut later = Replay { id: scene.id(), ..recover.clone() };
    later.filter.died_since = Some(at(3));
    assert!(run(&scene, &later).await.is_empty());
    recover.filter.died_since = Some(at(2));
    let mut cancelled = Replay { id: scene.id(), ..recover.clone() };
    (cancelled.filter.dead, cancelled.filter.cancelled) = (false, true);
    assert_eq!(run(&scene, &recover).await, [messages[0].0]);
    assert_eq!(run(&scene, &cancelled).await, [messages[1].0]);
    // What waits again lies in the dead letter no longer.
    let [view] = &scene.store.delivery_views(tenant.application.id, vec![messages[0].1]).await.unwrap()[..]
    else {
        return;
    };
    panic!("the old round is gone: {view:?}");
}

/// What a resume of an application's first endpoint starts besides: a replay of what has died.
fn recovery(scene: &Scene, tenant: &Tenant) -> Recovery {
    let replay = Replay {
        kind: ReplayKind::Recover,
        filter: ReplayFilter { dead: true, ..ReplayFilter::nothing(at(20)) },
        ..everything(scene, tenant)
    };
    Recovery { replay, idempotency: None }
}

async fn resume(scene: &Scene, recovery: &Recovery) -> Changed {
    let (app, endpoint) = (recovery.replay.app, recovery.replay.endpoint);
    scene
        .change(Change::ResumeEndpoint {
            app,
            endpoint,
            at: at(20),
            recovery: Some(recovery.clone()),
            notices: Vec::new(),
        })
        .await
}

/// A message that was accepted then, for the first endpoint of a tenant, and died at a moment. That made this
/// of the endpoint's health.
async fn died(
    scene: &Scene,
    tenant: &Tenant,
    accepted: Timestamp,
    at: Timestamp,
    health: Option<Health>,
) -> MessageId {
    let mut accept = scene.event(tenant);
    (accept.message.id, accept.message.created_at) = (scene.id_at(accepted), accepted);
    let seq = scene.accepted(&accept).await;
    scene.record(vec![Record { at, health, ..scene.dead(&accept, seq, Reason::Exhausted) }]).await;
    accept.message.id
}

fn failed_since(seconds: i64) -> Option<Health> {
    let (status, failing_since) = (HealthStatus::Failed, Some(at(seconds)));
    Some(Health { status, failing_since, changed_at: Some(at(15)), ..Health::default() })
}

pub async fn a_resume_recovers_what_has_died_since_the_outage_began(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, elsewhere) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let year = 365 * 24 * 3600;
    died(&scene, &elsewhere, at(-2 * year), at(12), None).await;
    let old = died(&scene, &tenant, at(-year), at(12), None).await;
    died(&scene, &tenant, at(0), at(9), None).await;
    let last = died(&scene, &tenant, at(1), at(15), failed_since(10)).await;
    let planned = recovery(&scene, &tenant);
    let Changed::Resumed { failing_since, recovery: Some(replay) } = resume(&scene, &planned).await else {
        panic!("it had failed, and something has died")
    };
    assert_eq!((failing_since, replay.filter.died_since), (Some(at(10)), Some(at(10))));
    assert_eq!(replay.filter.since, at(-year), "as far back as anything of the application is kept");
    assert_eq!(*replay, planned.replay.of_outage(at(10), at(-year)));
    assert_eq!(scene.endpoint(replay.endpoint).await.health.status, HealthStatus::Active);
    assert_eq!(scene.store.running_replays().await.unwrap(), [*replay.clone()], "in the same commit");
    let stepped = step(&scene, a_step(&replay)).await;
    let opened: Vec<_> = stepped.opened.iter().map(|waiting| waiting.message).collect();
    assert_eq!(opened, [old, last]);
    assert_eq!(resume(&scene, &recovery(&scene, &tenant)).await, Changed::Unchanged);
    assert_eq!(scene.store.running_replays().await.unwrap(), [], "nor is anything recovered twice");
}

pub async fn a_resume_whose_recovery_cannot_be_started_changes_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    died(&scene, &tenant, at(1), at(15), failed_since(10)).await;
    for _ in 0..Replay::MOST_RUNNING {
        start(&scene, &everything(&scene, &tenant)).await;
    }
    let planned = recovery(&scene, &tenant);
    assert_eq!(resume(&scene, &planned).await, Changed::TooMany);
    assert_eq!(scene.endpoint(planned.replay.endpoint).await.health.status, HealthStatus::Failed);
    assert_eq!(scene.store.running_replays().await.unwrap().len(), Replay::MOST_RUNNING);
}

pub async fn a_resume_recovers_nothing_where_nothing_has_died(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    died(&scene, &tenant, at(0), at(9), failed_since(10)).await;
    let resumed = Changed::Resumed { failing_since: Some(at(10)), recovery: None };
    assert_eq!(resume(&scene, &recovery(&scene, &tenant)).await, resumed);
    assert_eq!(scene.store.running_replays().await.unwrap(), []);
}

pub async fn a_repeated_resume_names_the_recovery_of_the_first(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let with_key = |idempotency| Recovery { idempotency, ..recovery(&scene, &tenant) };
    let (key, unused) = (Some(scene.key()), Some(scene.key()));
    assert_eq!(resume(&scene, &with_key(key)).await, Changed::Unchanged, "which leaves the key free");
    died(&scene, &tenant, at(0), at(12), failed_since(10)).await;
    let first = with_key(key);
    assert!(matches!(resume(&scene, &first).await, Changed::Resumed { recovery: Some(_), .. }));
    let resource = *first.replay.id.as_bytes();
    assert_eq!(resume(&scene, &with_key(key)).await, Changed::Repeated { resource });
    assert_eq!(resume(&scene, &with_key(unused)).await, Changed::Unchanged);
    assert_eq!(scene.store.running_replays().await.unwrap().len(), 1);
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

pub async fn what_is_to_be_delivered_later_is_not_opened_for_an_ordered_endpoint(store: Arc<dyn Store>) {
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
    assert_eq!(scene.store.count_replay(replay.clone(), None, 1000).await.unwrap().matched, 2);
    assert_eq!(run(&scene, &replay).await, messages[1..]);
    assert_eq!(scene.in_order(replay.endpoint).await.len(), 2);
    // Its moment has come.
    let again = Replay { id: scene.id(), ..replay };
    start(&scene, &again).await;
    let stepped = step(&scene, ReplayStep { now: at(31), ..a_step(&again) }).await;
    assert_eq!(stepped.opened.iter().map(|waiting| waiting.message).collect::<Vec<_>>(), messages[..1]);
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
    // Whoever is late with the old one changes nothing.
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

pub async fn a_filter_looks_at_time_type_channel_tag_and_status(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let with = |change: fn(&mut Accept)| {
        let mut accept = scene.event(&tenant);
        change(&mut accept);
        accept
    };
    let plain = with(|_| {});
    let early = with(|accept| {
        (accept.message.id, accept.message.created_at) = (MessageId::new(at(-5), [1; 15]), at(-5));
    });
    let channel = with(|accept| accept.message.channels = vec!["c".into()]);
    let tag = with(|accept| accept.message.tags = vec!["other".into(), "t".into()]);
    for accept in [&plain, &early, &channel, &tag] {
        let seq = scene.accepted(accept).await;
        let mut record = scene.delivered(accept, seq);
        if accept.message.id == plain.message.id {
            record.attempt.as_mut().unwrap().status_code = Some(418);
        }
        scene.record(vec![record]).await;
    }
    let ids = |accepts: &[&Accept]| accepts.iter().map(|accept| accept.message.id).collect::<Vec<_>>();
    let count = |change: fn(&mut ReplayFilter)| {
        let mut replay = everything(&scene, &tenant);
        change(&mut replay.filter);
        let counted = scene.store.count_replay(replay, None, 1000);
        async move { counted.await.unwrap().matched }
    };
    assert_eq!(count(|_| {}).await, 4);
    assert_eq!(count(|filter| filter.since = at(0)).await, 3);
    assert_eq!(count(|filter| filter.until = at(-1)).await, 1);
    assert_eq!(count(|filter| filter.event_types = vec!["invoice.paid".into(), "x".into()]).await, 4);
    assert_eq!(count(|filter| filter.event_types = vec!["x".into()]).await, 0);
    assert_eq!(count(|filter| filter.status_class = Some(400)).await, 1);
    assert_eq!(count(|filter| filter.status_class = Some(0)).await, 0);
    assert_eq!(count(|filter| filter.died_since = Some(at(1000))).await, 4, "none of them has died");
    assert_eq!(count(|filter| filter.channel = Some("c".into())).await, 1);
    let mut tagged = everything(&scene, &tenant);
    tagged.filter.tag = Some("t".into());
    assert_eq!(run(&scene, &tagged).await, ids(&[&tag]));
    let message = scene.store.message(tenant.application.id, tag.message.id.to_string()).await.unwrap();
    assert_eq!(message.unwrap().tags, ["other", "t"]);
}

pub async fn what_an_endpoint_does_not_want_is_not_missing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let mut endpoint = scene.new_endpoint(tenant.application.id);
    endpoint.config.event_types = vec!["other".into()];
    scene.create_endpoint(&endpoint).await;
    let tenant = scene.tenant(tenant.application.id).await.unwrap();
    scene.accepted(&Accept { deliveries: Vec::new(), ..scene.event(&tenant) }).await;
    assert!(run(&scene, &everything(&scene, &tenant)).await.is_empty());
}

pub async fn what_the_filter_of_an_endpoint_keeps_back_is_not_missing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let mut endpoint = scene.new_endpoint(tenant.application.id);
    let wanted =
        r#"{"all": [{"payload": "$.n", "gt": 1}, {"tag": "eu"}, {"header": "x-region", "eq": "south"}]}"#;
    endpoint.config.filter = Some(filter(wanted));
    scene.create_endpoint(&endpoint).await;
    let tenant = scene.tenant(tenant.application.id).await.unwrap();
    let mut good = None;
    for (payload, tag, region) in [
        (r#"{"n": 2}"#, "eu", "south"),
        (r#"{"n": 1}"#, "eu", "south"),
        (r#"{"n": 2}"#, "us", "south"),
        (r#"{"n": 2}"#, "eu", "north"),
    ] {
        let mut event = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
        let content = Content { payload: payload.into(), ..Content::clone(&event.message.content) };
        event.message.content = Arc::new(content);
        event.message.tags = vec![tag.into()];
        event.message.headers = vec![("x-region".into(), region.into())];
        scene.accepted(&event).await;
        good.get_or_insert(event.message.id);
    }
    let replay = everything(&scene, &tenant);
    let counted = scene.store.count_replay(replay.clone(), None, 1000).await.unwrap();
    assert_eq!(counted.matched, 1);
    assert_eq!(run(&scene, &replay).await, [good.unwrap()]);
}

pub async fn what_was_for_another_endpoint_is_not_missing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let replay = everything(&scene, &tenant);
    let (other, own) = (scene.id(), replay.endpoint);
    for only_for in [Some(other), Some(own), None] {
        let mut event = Accept { deliveries: Vec::new(), ..scene.event(&tenant) };
        event.message.only_for = only_for;
        scene.accepted(&event).await;
    }
    assert_eq!(run(&scene, &replay).await.len(), 2);
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
    for _ in 1..Replay::MOST_RUNNING {
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

pub async fn an_attempt_by_hand_settles_with_success_and_else_changes_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let [_, delivered, dead, missing] = one_of_each(&scene, &tenant).await;
    for success in [false, true] {
        for (accept, _) in [&delivered, &dead, &missing] {
            let attempt = NewAttempt { trigger: Trigger::Manual, success, ..scene.attempt() };
            let resent = Resent {
                endpoint,
                message: accept.message.id,
                attempt: attempt.clone(),
                at: at(40),
                audit: None,
                idempotency: None,
            };
            ask(|done| scene.store.resent(resent, done)).await.unwrap();
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
    let used = |digest: u8| Some(IdempotencyKey { digest: [digest; 16], expires_at: at(100) });
    let attempt_of = |app, digest: u8, now| scene.store.attempt_of_key(app, [digest; 16], now);
    let by_hand = || NewAttempt { trigger: Trigger::Manual, ..scene.attempt() };

    // Of one that waits; a record that is fenced keeps nothing.
    let accept = scene.event(&tenant);
    let seq = scene.accepted(&accept).await;
    let (first, message) = (by_hand(), accept.message.id);
    let record =
        Record { attempt: Some(first.clone()), idempotency: used(1), ..scene.delivered(&accept, seq) };
    let late = Record { attempt: Some(by_hand()), idempotency: used(2), ..record.clone() };
    scene.record(vec![record, late]).await;
    assert_eq!(attempt_of(app, 1, at(99)).await.unwrap(), Some(first.id));
    assert_eq!(attempt_of(app, 1, at(100)).await.unwrap(), None, "its time is over");
    assert_eq!(attempt_of(app, 2, at(9)).await.unwrap(), None);
    assert_eq!(attempt_of(scene.id(), 1, at(9)).await.unwrap(), None, "it is the application's");

    // Of one that does not wait; nothing is kept for an endpoint that is not there.
    for (endpoint, digest, kept) in [(endpoint, 3, true), (scene.id(), 4, false)] {
        let (attempt, idempotency) = (by_hand(), used(digest));
        let id = attempt.id;
        let resent = Resent { endpoint, message, attempt, at: at(9), audit: None, idempotency };
        ask(|done| scene.store.resent(resent, done)).await.unwrap();
        assert_eq!(attempt_of(app, digest, at(10)).await.unwrap(), kept.then_some(id));
    }
}
