//! Deliveries as their owners see them.

use crate::conformance::scene::ask;
use crate::conformance::{Scene, at};
use crate::{
    Accept, AttemptScope, AttemptsQuery, Change, DeliveriesQuery, DeliveryFilter, DeliveryList,
    DeliveryPosition, DeliveryState, DeliveryView, NewAttempt, Order, Page, Phase, Record, Seq, Store,
    Tenant,
};
use aldaba_delivery::{AppId, Ending, Reason, Timestamp, Transition};
use std::sync::Arc;

/// All pages of a list, each of two.
async fn walk(scene: &Scene, list: DeliveryList, filter: DeliveryFilter, order: Order) -> Vec<Seq> {
    let (mut from, mut seen) = (None::<DeliveryPosition>, Vec::new());
    loop {
        let filter = filter.clone();
        let query = DeliveriesQuery { list, filter, from, order, limit: 2, walk: 1000 };
        let page = scene.store.delivery_list(query).await.unwrap();
        assert!(page.found.len() <= 2 && page.stopped.is_none());
        let Some((last, _)) = page.found.last() else { return seen };
        from = Some(*last);
        seen.extend(page.found.iter().map(|(_, view)| view.status.seq));
    }
}

async fn both_ways(scene: &Scene, list: DeliveryList, filter: DeliveryFilter, mut expected: Vec<Seq>) {
    assert_eq!(walk(scene, list, filter.clone(), Order::Ascending).await, expected);
    expected.reverse();
    assert_eq!(walk(scene, list, filter, Order::Descending).await, expected);
}

/// An event of this type for the one endpoint, accepted at that second.
async fn send(scene: &Scene, tenant: &Tenant, event_type: &str, second: i64) -> (Accept, Seq) {
    let mut event = scene.event_due(tenant, at(second));
    let content = crate::Content { event_type: event_type.into(), ..(*event.message.content).clone() };
    event.message.content = Arc::new(content);
    event.message.created_at = at(second);
    event.message.id = scene.id_at(at(second));
    let seq = scene.accepted(&event).await;
    (event, seq)
}

async fn view(scene: &Scene, app: AppId, seq: Seq) -> Option<DeliveryView> {
    scene.store.delivery_views(app, vec![seq]).await.unwrap().pop()
}

fn dead_at(record: Record, at: Timestamp) -> Record {
    Record { at, ..record }
}

pub async fn pending_history_and_dead_letter_are_lists_of_their_own(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let app = tenant.application.id;
    let mut sent = Vec::new();
    for second in 0..8 {
        sent.push(send(&scene, &tenant, "a", second).await);
        send(&scene, &other, "a", second).await;
    }
    let seq = |number: usize| sent[number].1;
    scene
        .record(vec![
            scene.delivered(&sent[0].0, seq(0)),
            dead_at(scene.dead(&sent[1].0, seq(1), Reason::Exhausted), at(60)),
            scene.delivered(&sent[2].0, seq(2)),
            dead_at(scene.dead(&sent[3].0, seq(3), Reason::Rejected), at(50)),
            scene.failed(&sent[4].0, seq(4), at(100)),
        ])
        .await;
    let of = |phase| DeliveryList::Of(app, phase);
    let all = (0..8).map(seq).collect();
    both_ways(&scene, of(Phase::Any), DeliveryFilter::default(), all).await;
    let settled = (0..4).map(seq).collect();
    both_ways(&scene, of(Phase::Settled), DeliveryFilter::default(), settled).await;
    both_ways(&scene, of(Phase::Delivered), DeliveryFilter::default(), vec![seq(0), seq(2)]).await;
    // In the order of the endings, and of the next attempts.
    both_ways(&scene, of(Phase::Dead), DeliveryFilter::default(), vec![seq(3), seq(1)]).await;
    let waiting = vec![seq(5), seq(6), seq(7), seq(4)];
    both_ways(&scene, of(Phase::Pending), DeliveryFilter::default(), waiting).await;
}

pub async fn pending_deliveries_of_all_lanes_come_in_one_order(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let mut expected = Vec::new();
    for second in [3, 1, 2] {
        let Seq(first) = send(&scene, &tenant, "a", second).await.1;
        expected.extend((first..first + 3).map(|seq| (second, Seq(seq))));
    }
    expected.sort_unstable();
    let list = DeliveryList::Of(tenant.application.id, Phase::Pending);
    let expected: Vec<_> = expected.into_iter().map(|(_, seq)| seq).collect();
    both_ways(&scene, list, DeliveryFilter::default(), expected.clone()).await;
    let endpoint = Some(tenant.endpoints[1].id);
    let of_one = expected.iter().copied().skip(1).step_by(3).collect();
    both_ways(&scene, list, DeliveryFilter { endpoint, ..DeliveryFilter::default() }, of_one).await;
}

pub async fn lists_are_filtered(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let other = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let mut seqs = Vec::new();
    for (second, event_type, reason) in
        [(10, "a", Reason::Exhausted), (20, "b", Reason::Rejected), (30, "a", Reason::Rejected)]
    {
        let (event, seq) = send(&scene, &tenant, event_type, second).await;
        scene.record(vec![dead_at(scene.dead(&event, seq, reason), at(second + 5))]).await;
        seqs.push(seq);
    }
    for second in [10, 20, 30] {
        seqs.push(send(&scene, &tenant, if second == 20 { "b" } else { "a" }, second).await.1);
    }
    let none = DeliveryFilter::default();
    let endpoint = Some(tenant.endpoints[0].id);
    let a = Some("a".to_owned());
    for (phase, filter, expected) in [
        (Phase::Dead, DeliveryFilter { event_type: a.clone(), ..none.clone() }, &[0, 2][..]),
        (Phase::Dead, DeliveryFilter { reason: Some(Reason::Rejected), ..none.clone() }, &[1, 2]),
        (Phase::Dead, DeliveryFilter { after: Some(at(15)), ..none.clone() }, &[1, 2]),
        (Phase::Dead, DeliveryFilter { before: Some(at(35)), ..none.clone() }, &[0, 1]),
        (Phase::Dead, DeliveryFilter { endpoint, event_type: a.clone(), ..none.clone() }, &[0, 2]),
        (Phase::Pending, DeliveryFilter { event_type: a.clone(), ..none.clone() }, &[3, 5]),
        (Phase::Pending, DeliveryFilter { after: Some(at(10)), before: Some(at(30)), ..none.clone() }, &[4]),
        (Phase::Pending, DeliveryFilter { reason: Some(Reason::Rejected), ..none.clone() }, &[]),
        (Phase::Settled, DeliveryFilter { event_type: a.clone(), endpoint, ..none.clone() }, &[0, 2]),
        (Phase::Settled, DeliveryFilter { reason: Some(Reason::Exhausted), ..none.clone() }, &[0]),
        (Phase::Settled, DeliveryFilter { after: Some(at(10)), ..none.clone() }, &[1, 2]),
        (Phase::Settled, DeliveryFilter { before: Some(at(30)), ..none.clone() }, &[0, 1]),
    ] {
        let expected = expected.iter().map(|number| seqs[*number]).collect();
        both_ways(&scene, DeliveryList::Of(app, phase), filter, expected).await;
    }
    // An endpoint of another application is not on the lists of this one.
    let foreign = DeliveryFilter { endpoint: Some(other.endpoints[0].id), ..none };
    let (event, seq) = send(&scene, &other, "a", 40).await;
    send(&scene, &other, "a", 41).await;
    scene.record(vec![scene.dead(&event, seq, Reason::Rejected)]).await;
    for phase in [Phase::Any, Phase::Pending, Phase::Settled, Phase::Dead] {
        both_ways(&scene, DeliveryList::Of(app, phase), foreign.clone(), Vec::new()).await;
    }
}

pub async fn a_filter_that_finds_little_gives_up_and_can_go_on(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let mut rare = Vec::new();
    for second in 0..40 {
        let event_type = if second % 20 == 7 { "rare" } else { "common" };
        let (event, seq) = send(&scene, &tenant, event_type, second).await;
        let (waits, waiting) = send(&scene, &tenant, event_type, 100 + second).await;
        scene.record(vec![dead_at(scene.dead(&event, seq, Reason::Exhausted), at(second))]).await;
        if event_type == "rare" {
            rare.push((seq, waiting, waits.message.id));
        }
    }
    for (phase, expected) in [
        (Phase::Dead, rare.iter().map(|rare| rare.0).collect::<Vec<_>>()),
        (Phase::Settled, rare.iter().map(|rare| rare.0).collect()),
        (Phase::Pending, rare.iter().map(|rare| rare.1).collect()),
    ] {
        let (mut from, mut found, mut pages) = (None, Vec::new(), 0);
        loop {
            let query = DeliveriesQuery {
                list: DeliveryList::Of(tenant.application.id, phase),
                filter: DeliveryFilter { event_type: Some("rare".into()), ..DeliveryFilter::default() },
                from,
                order: Order::Ascending,
                limit: 10,
                walk: 9,
            };
            let page = scene.store.delivery_list(query).await.unwrap();
            found.extend(page.found.iter().map(|(_, view)| view.status.seq));
            pages += 1;
            assert!(pages < 40, "the walk goes forward");
            if page.stopped.is_none() {
                break;
            }
            from = page.stopped;
        }
        assert_eq!(found, expected, "{phase:?}");
        assert!(pages > 3, "{phase:?}");
    }
}

pub async fn the_dead_letter_of_an_organization_has_all_its_applications(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let mut expected = Vec::new();
    for second in 0..3 {
        let tenant = scene.with_endpoints(1).await;
        let (event, seq) = send(&scene, &tenant, "a", second).await;
        scene.record(vec![dead_at(scene.dead(&event, seq, Reason::Expired), at(second))]).await;
        expected.push(seq);
    }
    both_ways(&scene, DeliveryList::DeadLetter(scene.org), DeliveryFilter::default(), expected).await;
    let stranger = DeliveryList::DeadLetter(scene.id());
    both_ways(&scene, stranger, DeliveryFilter::default(), Vec::new()).await;
}

pub async fn a_delivery_is_shown_with_its_last_attempt(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(2).await, scene.with_endpoints(1).await);
    let app = tenant.application.id;
    let (event, seq) = send(&scene, &tenant, "a", 0).await;
    let fresh = view(&scene, app, seq).await.expect("just accepted");
    assert_eq!(fresh.created_at, at(0));
    assert_eq!((fresh.last, fresh.in_dead_letter), (None, false));
    let mut ids = Vec::new();
    for attempts_before in 0..3 {
        let attempt = NewAttempt {
            status_code: Some(500 + attempts_before as u16),
            error: format!("HTTP {}", 500 + attempts_before),
            success: false,
            ..scene.attempt()
        };
        ids.push(attempt.id);
        let transition = if attempts_before == 2 {
            Transition::Settle(Ending::Dead(Reason::Exhausted))
        } else {
            Transition::Retry { due_at: at(50) }
        };
        let record = Record {
            attempt: Some(attempt),
            transition,
            attempts_before,
            ..scene.failed(&event, seq, at(50))
        };
        scene.record(vec![record]).await;
        // Another delivery of the same message has attempts of its own.
        let sibling = Record {
            seq: Seq(seq.0 + 1),
            endpoint: event.deliveries[1].endpoint,
            attempts_before,
            ..scene.failed(&event, seq, at(50))
        };
        scene.record(vec![sibling]).await;
    }
    let shown = view(&scene, app, seq).await.expect("one of the application's");
    assert_eq!((shown.app, shown.event_type.as_deref()), (app, Some("a")));
    assert_eq!((shown.status.seq, shown.status.attempts), (seq, 3));
    assert_eq!(shown.status.state, DeliveryState::Dead { at: at(2), reason: Reason::Exhausted });
    assert!(shown.in_dead_letter);
    let last = shown.last.expect("the newest attempt");
    assert_eq!((last.id, last.status_code, &*last.error), (ids[2], Some(502), "HTTP 502"));
    assert_eq!((last.started_at, last.duration), (at(1), scene.attempt().duration));
    let attempts = async |after, order| {
        let scope = AttemptScope::Delivery(event.message.id, seq);
        let query = AttemptsQuery::all(scope, Page { after, limit: 2 }, order);
        let attempts = scene.store.attempts(query).await.unwrap().items;
        attempts.iter().map(|attempt| attempt.id).collect::<Vec<_>>()
    };
    assert_eq!(attempts(None, Order::Ascending).await, ids[..2]);
    assert_eq!(attempts(Some(ids[1]), Order::Ascending).await, ids[2..]);
    assert_eq!(attempts(None, Order::Descending).await, [ids[2], ids[1]]);
    assert_eq!(attempts(Some(ids[1]), Order::Descending).await, [ids[0]]);
    // It belongs to one application.
    assert_eq!(view(&scene, other.application.id, seq).await, None);
    assert_eq!(view(&scene, app, Seq(i64::MAX)).await, None);
    let both = vec![Seq(seq.0 + 1), Seq(i64::MAX), seq];
    let views = scene.store.delivery_views(app, both).await.unwrap();
    let seqs: Vec<_> = views.iter().map(|view| view.status.seq).collect();
    assert_eq!(seqs, [Seq(seq.0 + 1), seq]);
}

pub async fn a_discarded_delivery_leaves_the_dead_letter_and_keeps_its_history(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let app = tenant.application.id;
    let mut seqs = Vec::new();
    for second in 0..3 {
        let (event, seq) = send(&scene, &tenant, "a", second).await;
        scene.record(vec![dead_at(scene.dead(&event, seq, Reason::Rejected), at(second))]).await;
        seqs.push(seq);
    }
    let waiting = send(&scene, &tenant, "a", 3).await.1;
    let discard = async |app, seqs: &[Seq]| {
        ask(|done| scene.store.discard(app, seqs.to_vec(), None, done)).await.unwrap()
    };
    assert_eq!(discard(other.application.id, &seqs).await, 0);
    assert_eq!(discard(app, &[seqs[0], seqs[2], waiting]).await, 2);
    assert_eq!(discard(app, &[seqs[0]]).await, 0);
    let of = |phase| DeliveryList::Of(app, phase);
    both_ways(&scene, of(Phase::Dead), DeliveryFilter::default(), vec![seqs[1]]).await;
    both_ways(&scene, of(Phase::Settled), DeliveryFilter::default(), seqs.clone()).await;
    both_ways(&scene, of(Phase::Pending), DeliveryFilter::default(), vec![waiting]).await;
    let shown = view(&scene, app, seqs[0]).await.expect("its history is kept");
    assert_eq!(shown.status.state, DeliveryState::Dead { at: at(0), reason: Reason::Rejected });
    assert!(!shown.in_dead_letter);
}

pub async fn what_ends_with_its_endpoint_is_not_in_the_dead_letter(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (app, endpoint) = (tenant.application.id, tenant.endpoints[0].id);
    let (event, before) = send(&scene, &tenant, "a", 0).await;
    let (other, after) = send(&scene, &tenant, "a", 1).await;
    scene.record(vec![scene.dead(&event, before, Reason::Rejected)]).await;
    scene.change(Change::DeleteEndpoint { app, endpoint, at: at(3), notices: Vec::new() }).await;
    scene.record(vec![scene.dead(&other, after, Reason::Cancelled)]).await;
    let of = |phase| DeliveryList::Of(app, phase);
    both_ways(&scene, of(Phase::Dead), DeliveryFilter::default(), vec![before]).await;
    both_ways(&scene, of(Phase::Settled), DeliveryFilter::default(), vec![before, after]).await;
    let all = DeliveryList::DeadLetter(scene.org);
    both_ways(&scene, all, DeliveryFilter::default(), vec![before]).await;
    scene.change(Change::DeleteApplication { app, at: at(4) }).await;
    both_ways(&scene, all, DeliveryFilter::default(), Vec::new()).await;
}
