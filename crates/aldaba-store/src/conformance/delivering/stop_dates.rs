//! What waits past its stop date is found, in the lane's index or among what was tried.

use crate::conformance::replays::{everything, run};
use crate::conformance::{Scene, at};
use crate::{NewDelivery, Record, Seq, StartedPage, StartedQuery, Store, Tenant};
use aldaba_delivery::{EndpointId, Reason, Timestamp};
use std::sync::Arc;

/// One event for an endpoint, due at a moment: its clock starts then.
async fn one(
    scene: &Scene,
    tenant: &Tenant,
    endpoint: EndpointId,
    due_at: Timestamp,
) -> (crate::Accept, Seq) {
    let mut event = scene.event(tenant);
    event.deliveries = vec![NewDelivery { endpoint, due_at, ordered: false, skipped: None }];
    let seq = scene.accepted(&event).await;
    (event, seq)
}

/// Everything that is found, page by page, and when the clock of the oldest other one has started.
async fn found(
    scene: &Scene,
    endpoint: EndpointId,
    before: Timestamp,
    limit: usize,
) -> (Vec<Seq>, Option<Timestamp>) {
    let (mut after, mut seqs, mut rest) = (None, Vec::new(), None);
    for _ in 0..100 {
        let query = StartedQuery { endpoint, before, after, limit };
        let StartedPage { waiting, next, rest_since } = scene.store.started_before(query).await.unwrap();
        assert!(waiting.len() <= limit, "a page of {limit} has {}", waiting.len());
        seqs.extend(waiting.iter().map(|waiting| waiting.seq));
        rest = [rest, rest_since].into_iter().flatten().min();
        after = next;
        if after.is_none() {
            seqs.sort();
            return (seqs, rest);
        }
    }
    panic!("the walk does not come to its end");
}

pub async fn what_has_started_before_is_found_tried_or_not(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let (mine, other) = (tenant.endpoints[0].id, tenant.endpoints[1].id);
    let mut seqs = Vec::new();
    for second in [10, 10, 20, 30, 40] {
        let (event, seq) = one(&scene, &tenant, mine, at(second)).await;
        // Some have been tried, and are due long after the others.
        if seqs.len() % 2 == 1 {
            scene.record(vec![scene.failed(&event, seq, at(1000 - second))]).await;
        }
        seqs.push(seq);
    }
    one(&scene, &tenant, other, at(1)).await;
    let (event, settled) = one(&scene, &tenant, mine, at(5)).await;
    scene.record(vec![scene.dead(&event, settled, Reason::Cancelled)]).await;
    for limit in [1, 2, 3, 100] {
        assert_eq!(found(&scene, mine, at(10), limit).await, (vec![], Some(at(10))), "pages of {limit}");
        assert_eq!(found(&scene, mine, at(11), limit).await, (seqs[..2].to_vec(), Some(at(20))));
        assert_eq!(found(&scene, mine, at(40), limit).await, (seqs[..4].to_vec(), Some(at(40))));
        assert_eq!(found(&scene, mine, at(41), limit).await.0, seqs);
    }
    let query = StartedQuery { endpoint: mine, before: at(11), after: None, limit: 100 };
    let page = scene.store.started_before(query).await.unwrap();
    let shown: Vec<_> = page.waiting.iter().map(|w| (w.seq, w.attempts, w.due_at, w.clock_start)).collect();
    assert_eq!(shown, [(seqs[0], 0, at(10), at(10)), (seqs[1], 1, at(990), at(10))]);
    // Ended ones are found no more.
    scene.record(vec![Record { seq: seqs[0], ..scene.dead(&event, seqs[0], Reason::StopDate) }]).await;
    assert_eq!(found(&scene, mine, at(11), 100).await.0, [seqs[1]]);
}

pub async fn endpoints_are_named_for_which_something_has_started_before(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let [untried, tried, none] = [0, 1, 2].map(|number| tenant.endpoints[number].id);
    one(&scene, &tenant, untried, at(10)).await;
    let (event, seq) = one(&scene, &tenant, tried, at(10)).await;
    scene.record(vec![scene.failed(&event, seq, at(500))]).await;
    let named = async |before| {
        let asked = [none, tried, untried].map(|endpoint| (endpoint, before)).to_vec();
        scene.store.have_started_before(asked).await.unwrap()
    };
    assert_eq!(named(at(10)).await, []);
    assert_eq!(named(at(11)).await, [tried, untried]);
}

pub async fn a_replay_marks_what_it_opens(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let endpoint = tenant.endpoints[0].id;
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    assert!(!scene.due(endpoint).await[0].replayed);
    scene.record(vec![scene.dead(&event, seq, Reason::StopDate)]).await;
    assert_eq!(run(&scene, &everything(&scene, &tenant)).await, [event.message.id]);
    let again = scene.due(endpoint).await;
    assert!(again[0].replayed && again[0].seq > seq);
    let status = scene.store.deliveries(event.message.id).await.unwrap();
    assert_eq!(status[0].waiting(), Some(again[0]));
}
