//! What has died in an outage is replayed by the resume that ends it.

use crate::conformance::replays::{a_step, everything, run, start, step};
use crate::conformance::scene::ask;
use crate::conformance::{Scene, at};
use crate::{Change, Changed, Record, Recovery, Replay, ReplayFilter, ReplayKind, Store, Tenant};
use aldaba_delivery::{Health, HealthStatus, MessageId, Reason, Timestamp};
use std::sync::Arc;

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
    for _ in 0..Replay::MAX_RUNNING {
        start(&scene, &everything(&scene, &tenant)).await;
    }
    let planned = recovery(&scene, &tenant);
    assert_eq!(resume(&scene, &planned).await, Changed::TooMany);
    assert_eq!(scene.endpoint(planned.replay.endpoint).await.health.status, HealthStatus::Failed);
    assert_eq!(scene.store.running_replays().await.unwrap().len(), Replay::MAX_RUNNING);
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
