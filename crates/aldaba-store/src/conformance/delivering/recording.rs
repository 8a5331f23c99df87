//! A result is recorded.

use crate::conformance::{Scene, at};
use crate::{
    Attempt, AttemptScope, AttemptsQuery, DeliveryState, DeliveryStatus, GateRecord, NewAttempt, Order, Page,
    Record, Recorded, Seq, Store, Trigger,
};
use aldaba_delivery::{
    Ending, FailureKind, Gate, GateKey, GateScope, Health, HealthStatus, MessageId, Origin, Reason,
    Transition,
};
use std::sync::Arc;
use std::time::Duration;

async fn status(scene: &Scene, message: MessageId) -> DeliveryStatus {
    let mut deliveries = scene.store.deliveries(message).await.unwrap();
    assert_eq!(deliveries.len(), 1);
    deliveries.remove(0)
}

async fn attempts(scene: &Scene, message: MessageId) -> Vec<Attempt> {
    let page = Page { after: None, limit: 100 };
    let scope = AttemptScope::Message(message);
    scene.store.attempts(AttemptsQuery::all(scope, page, Order::Ascending)).await.unwrap().items
}

fn as_read(record: &Record) -> Attempt {
    let attempt = record.attempt.clone().expect("made with one");
    Attempt {
        id: attempt.id,
        seq: record.seq,
        message: record.message,
        endpoint: record.endpoint,
        started_at: attempt.started_at,
        duration: attempt.duration,
        status_code: attempt.status_code,
        failure: attempt.failure,
        error: attempt.error,
        response: attempt.response,
        trigger: attempt.trigger,
        success: attempt.success,
    }
}

pub async fn a_delivered_message_is_settled_with_its_attempt(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let mut record = scene.delivered(&event, seq);
    record.attempt = Some(NewAttempt { trigger: Trigger::Scheduled, ..scene.attempt() });
    assert_eq!(scene.record(vec![record.clone()]).await, [Recorded::Applied]);
    let status = status(&scene, event.message.id).await;
    assert_eq!((status.seq, status.endpoint), (seq, record.endpoint));
    assert_eq!((status.attempts, status.state), (1, DeliveryState::Delivered { at: record.at }));
    assert_eq!(attempts(&scene, event.message.id).await, [as_read(&record)]);
}

pub async fn a_retry_moves_the_delivery_and_counts_the_attempt(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let first = scene.failed(&event, seq, at(5));
    let second = Record { attempts_before: 1, ..scene.failed(&event, seq, at(30)) };
    assert_eq!(scene.record(vec![first.clone(), second.clone()]).await, [const { Recorded::Applied }; 2]);
    let status = status(&scene, event.message.id).await;
    assert_eq!((status.attempts, status.state), (2, DeliveryState::Waiting { due_at: at(30) }));
    assert_eq!(status.retries, 2, "a retry counts when it is planned");
    assert_eq!(attempts(&scene, event.message.id).await, [as_read(&first), as_read(&second)]);
}

pub async fn the_attempt_that_has_delivered_is_known_and_no_retry_is_planned_by_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let view =
        async || scene.store.delivery_views(event.app, vec![seq]).await.unwrap().pop().expect("it is there");
    // A replay's first attempt counts as any other; one by hand does not, and plans nothing.
    let mut first = scene.failed(&event, seq, at(5));
    first.attempt.as_mut().unwrap().trigger = Trigger::Replay;
    let mut by_hand = Record { attempts_before: 1, ..scene.failed(&event, seq, at(5)) };
    by_hand.attempt.as_mut().unwrap().trigger = Trigger::Manual;
    scene.record(vec![first.clone(), by_hand.clone()]).await;
    let waits = view().await;
    assert_eq!((waits.status.attempts, waits.status.retries, waits.delivered_by), (1, 1, None));
    let last = Record { attempts_before: 1, ..scene.delivered(&event, seq) };
    scene.record(vec![last.clone()]).await;
    let ended = view().await;
    assert_eq!((ended.status.attempts, ended.status.retries, ended.delivered_by), (2, 1, Some(3)));
    let read = attempts(&scene, event.message.id).await;
    assert_eq!(read, [as_read(&first), as_read(&by_hand), as_read(&last)]);
}

pub async fn an_ending_without_an_attempt_counts_none(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    scene.record(vec![scene.dead(&event, seq, Reason::Cancelled)]).await;
    let status = status(&scene, event.message.id).await;
    assert_eq!(status.attempts, 0);
    assert_eq!(status.state, DeliveryState::Dead { at: at(2), reason: Reason::Cancelled });
    assert_eq!(attempts(&scene, event.message.id).await, []);
}

pub async fn every_reason_comes_back(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    for reason in Reason::ALL {
        let event = scene.event(&tenant);
        let seq = scene.accepted(&event).await;
        scene.record(vec![scene.dead(&event, seq, reason)]).await;
        let status = status(&scene, event.message.id).await;
        assert_eq!(status.state, DeliveryState::Dead { at: at(2), reason });
    }
}

pub async fn every_kind_of_failure_comes_back(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let kinds = [
        FailureKind::Dns,
        FailureKind::Connect,
        FailureKind::ConnectTimeout,
        FailureKind::Tls,
        FailureKind::Timeout,
        FailureKind::Broken,
        FailureKind::Malformed,
        FailureKind::TooManyRedirects,
        FailureKind::TargetForbidden,
        FailureKind::Internal,
        FailureKind::Unsent,
    ];
    let record = |(attempts_before, kind)| {
        let mut record = Record { attempts_before, ..scene.failed(&event, seq, at(5)) };
        let attempt = record.attempt.as_mut().expect("made with one");
        (attempt.status_code, attempt.failure, attempt.error) = (None, Some(kind), "señal perdida".into());
        record
    };
    let records: Vec<_> = (0..).zip(kinds).map(record).collect();
    assert_eq!(scene.record(records.clone()).await, [const { Recorded::Applied }; 11]);
    let expected: Vec<_> = records.iter().map(as_read).collect();
    assert_eq!(attempts(&scene, event.message.id).await, expected);
}

pub async fn a_late_record_is_fenced(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let first = scene.failed(&event, seq, at(5));
    assert_eq!(scene.record(vec![first.clone()]).await, [Recorded::Applied]);
    let late = scene.delivered(&event, seq);
    assert_eq!(scene.record(vec![late]).await, [Recorded::Fenced]);
    let early = Record { attempts_before: 2, ..scene.delivered(&event, seq) };
    assert_eq!(scene.record(vec![early]).await, [Recorded::Fenced]);
    let status = status(&scene, event.message.id).await;
    assert_eq!((status.attempts, status.state), (1, DeliveryState::Waiting { due_at: at(5) }));
}

pub async fn a_fenced_record_writes_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let fenced = Record {
        attempts_before: 3,
        health: Some(Health { failure_count: 9, ..Health::default() }),
        gates: vec![GateRecord {
            key: GateKey {
                org: scene.org,
                origin: Origin::new("https", "example.com", 443),
                scope: GateScope::Host,
            },
            gate: Gate { failures: 9, ..Gate::default() },
            why: String::new(),
        }],
        ..scene.delivered(&event, seq)
    };
    assert_eq!(scene.record(vec![fenced.clone()]).await, [Recorded::Fenced]);
    assert_eq!(attempts(&scene, event.message.id).await, []);
    assert_eq!(scene.store.gates().await.unwrap(), []);
    let endpoints = scene.store.lane_endpoints(vec![fenced.endpoint]).await.unwrap();
    assert_eq!(endpoints[0].health, Health::default());
}

pub async fn a_settled_delivery_is_fenced(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let cancelled = scene.dead(&event, seq, Reason::Cancelled);
    assert_eq!(scene.record(vec![cancelled]).await, [Recorded::Applied]);
    // The attempt that was on its way when the delivery was cancelled.
    let answers = scene.record(vec![scene.delivered(&event, seq), scene.failed(&event, seq, at(9))]).await;
    assert_eq!(answers, [const { Recorded::Fenced }; 2]);
    let status = status(&scene, event.message.id).await;
    assert_eq!(status.state, DeliveryState::Dead { at: at(2), reason: Reason::Cancelled });
    assert_eq!(scene.due(event.deliveries[0].endpoint).await, []);
}

pub async fn one_fenced_record_never_fails_its_neighbours(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let events = [scene.event(&tenant), scene.event(&tenant), scene.event(&tenant)];
    let mut records = Vec::new();
    for event in &events {
        records.push(scene.delivered(event, scene.accepted(event).await));
    }
    records[1].attempts_before = 1;
    let answers = scene.record(records).await;
    assert_eq!(answers, [Recorded::Applied, Recorded::Fenced, Recorded::Applied]);
    for (event, settled) in events.iter().zip([true, false, true]) {
        let state = status(&scene, event.message.id).await.state;
        assert_eq!(matches!(state, DeliveryState::Delivered { .. }), settled);
        assert_eq!(attempts(&scene, event.message.id).await.len(), usize::from(settled));
    }
}

pub async fn a_delivery_that_never_was_is_fenced(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let answers = scene.record(vec![scene.delivered(&event, Seq(seq.0 + 1_000_000))]).await;
    assert_eq!(answers, [Recorded::Fenced]);
}

pub async fn health_is_kept_with_the_endpoint(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let endpoint = event.deliveries[0].endpoint;
    let health = async || scene.store.lane_endpoints(vec![endpoint]).await.unwrap().remove(0).health;
    let failed = Health {
        status: HealthStatus::Failed,
        failure_count: 7,
        failing_since: Some(at(1)),
        changed_at: Some(at(2)),
        next_probe_at: Some(at(3)),
        probe_gap: Duration::from_nanos(1_500_000_001),
        quiet_until: Some(at(4)),
        released_at: Some(at(5)),
        released_by_person: true,
        epoch: 0,
    };
    let first = Record { health: Some(failed.clone()), ..scene.failed(&event, seq, at(5)) };
    scene.record(vec![first]).await;
    assert_eq!(health().await, failed);
    // No news leave it as it is.
    scene.record(vec![Record { attempts_before: 1, ..scene.failed(&event, seq, at(6)) }]).await;
    assert_eq!(health().await, failed);
    let gone = Health { status: HealthStatus::Gone, ..Health::default() };
    let transition = Transition::Settle(Ending::Dead(Reason::EndpointGone));
    let third =
        Record { attempts_before: 2, transition, health: Some(gone.clone()), ..scene.delivered(&event, seq) };
    scene.record(vec![third]).await;
    assert_eq!(health().await, gone);
}

pub async fn gates_are_kept_until_they_are_clear(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let origin = Origin::new("https", "example.com", 443);
    let held = Gate {
        failures: 5,
        held_until: Some(at(60)),
        hold: Duration::from_nanos(2_000_000_007),
        failed_at: Some(at(58)),
        since: Some(at(30)),
        probing: true,
    };
    let gate = |scope, gate: &Gate| GateRecord {
        key: GateKey { org: scene.org, origin: origin.clone(), scope },
        gate: gate.clone(),
        why: "HTTP 503".into(),
    };
    let host = gate(GateScope::Host, &held);
    let own = gate(GateScope::Application(event.app), &Gate { failures: 1, ..Gate::default() });
    let record =
        |attempts_before, gates| Record { attempts_before, gates, ..scene.failed(&event, seq, at(5)) };

    scene.record(vec![record(0, vec![host.clone(), own.clone()])]).await;
    let kept = scene.store.gates().await.unwrap();
    assert_eq!(kept.len(), 2);
    assert!(kept.contains(&host) && kept.contains(&own));

    let longer = gate(GateScope::Host, &Gate { failures: 6, held_until: Some(at(90)), ..held });
    let clear = gate(GateScope::Application(event.app), &Gate::default());
    scene.record(vec![record(1, vec![longer.clone(), clear])]).await;
    assert_eq!(scene.store.gates().await.unwrap(), [longer]);
}

pub async fn each_organization_has_its_own_gate_of_a_host(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let event = scene.event(&scene.with_endpoints(1).await);
    let seq = scene.accepted(&event).await;
    let held = Gate { failures: 1, held_until: Some(at(60)), failed_at: Some(at(5)), ..Gate::default() };
    let gate = |org, gate: &Gate| GateRecord {
        key: GateKey { org, origin: Origin::new("https", "example.com", 443), scope: GateScope::Host },
        gate: gate.clone(),
        why: "refused".into(),
    };
    let (ours, theirs) = (gate(scene.org, &held), gate(scene.id(), &Gate { failures: 4, ..held.clone() }));
    let record =
        |attempts_before, gates| Record { attempts_before, gates, ..scene.failed(&event, seq, at(5)) };
    scene.record(vec![record(0, vec![ours.clone(), theirs.clone()])]).await;
    let mut both = [ours.clone(), theirs.clone()];
    both.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(scene.store.gates().await.unwrap(), both, "in the order of their keys");
    scene.record(vec![record(1, vec![gate(scene.org, &Gate::default())])]).await;
    assert_eq!(scene.store.gates().await.unwrap(), [theirs], "one opens, the other stays");
}
