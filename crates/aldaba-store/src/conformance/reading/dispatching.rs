//! What is sent to an address, and to no endpoint that somebody has made.

use crate::conformance::replays::everything_to;
use crate::conformance::retention::{found as found_expired, remove_all};
use crate::conformance::scene::{ask, made};
use crate::conformance::{Scene, at};
use crate::operations::{Cutoff, ExpiredItem, Search, SettledPosition};
use crate::{
    Accept, Accepted, Change, Changed, Content, DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryState,
    Dispatch, DispatchKind, DispatchState, DispatchesQuery, Endpoint, ListRange, ManualRecord, NewAttempt,
    NewDelivery, Order, Page, Phase, ReplayStep, Seq, Store, Tenant, TimeRange, Trigger,
};
use aldaba_delivery::{AppId, MessageId, Reason};
use bytes::Bytes;
use std::sync::Arc;

fn an_address(scene: &Scene, app: AppId) -> Endpoint {
    Endpoint { direct: true, ..scene.new_endpoint(app) }.with(|config| {
        config.url = "https://example.com/jobs".into();
        config.policy = "job-status".into();
    })
}

/// Something for that address alone.
fn dispatch_to(scene: &Scene, tenant: &Tenant, address: &Endpoint) -> Accept {
    let delivery = NewDelivery { endpoint: address.id, due_at: at(0), ordered: false, skipped: None };
    let mut accept =
        Accept { deliveries: vec![delivery], direct: Some(Box::new(address.clone())), ..scene.event(tenant) };
    accept.message.only_for = Some(address.id);
    accept
}

fn as_job(mut accept: Accept, job: &str) -> Accept {
    accept.message.job = Some(job.into());
    accept
}

fn query(app: AppId, how: DispatchKind, order: Order) -> DispatchesQuery {
    let part = ListRange::page(Page { after: None, limit: 100 }, order);
    DispatchesQuery { app, how, job: None, state: None, part, bytes: usize::MAX }
}

async fn found(scene: &Scene, query: DispatchesQuery) -> Vec<Dispatch> {
    scene.store.dispatches(query).await.unwrap().items
}

fn ids(found: &[Dispatch]) -> Vec<MessageId> {
    found.iter().map(|dispatch| dispatch.message.id).collect()
}

fn sorted(accepts: &[&Accept], order: Order) -> Vec<MessageId> {
    let mut ids: Vec<_> = accepts.iter().map(|accept| accept.message.id).collect();
    ids.sort_unstable();
    if order == Order::Descending {
        ids.reverse();
    }
    ids
}

pub async fn an_address_is_made_once_and_is_on_no_list(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let address = an_address(&scene, app);
    scene.accepted(&dispatch_to(&scene, &tenant, &address)).await;
    let again = Endpoint { sealed: vec![9], created_at: at(9), ..address.clone() };
    scene.accepted(&dispatch_to(&scene, &tenant, &again)).await;
    assert_eq!(scene.endpoint(address.id).await, address, "the first one stays as it is");
    assert_eq!(scene.due(address.id).await.len(), 2);
    let listed = scene.store.endpoints(app, Page { after: None, limit: 10 }, Order::Ascending).await.unwrap();
    assert_eq!(listed.iter().map(|endpoint| endpoint.id).collect::<Vec<_>>(), [tenant.endpoints[0].id]);
    let now = scene.tenant(app).await.expect("it is there");
    assert_eq!((now.version, now.endpoints.len()), (tenant.version, 1), "nothing has to be matched anew");
    let by_id = scene.store.endpoint(app, address.id.to_string()).await.unwrap();
    assert_eq!(by_id, Some(address.clone()), "who knows its id finds it");
    // What a stale application refuses makes no address either.
    let other = an_address(&scene, app);
    let stale = Accept { version: tenant.version + 7, ..dispatch_to(&scene, &tenant, &other) };
    scene.accept(vec![stale]).await;
    assert!(scene.store.lane_endpoints(vec![other.id]).await.unwrap().is_empty());
    // It goes with its application.
    assert_eq!(scene.change(Change::DeleteApplication { app, at: at(20) }).await, made());
    assert!(scene.endpoint(address.id).await.deleted);
    assert_eq!(scene.store.endpoint(app, address.id.to_string()).await.unwrap(), None);
}

pub async fn an_address_names_a_policy_and_a_profile_that_are_there(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let app = tenant.application.id;
    let by_policy = an_address(&scene, app).with(|config| config.policy = "mine".into());
    let by_profile = an_address(&scene, app).with(|config| config.profile = Some("ours".into()));
    let [policy, profile] = [&by_policy, &by_profile].map(|address| dispatch_to(&scene, &tenant, address));
    assert_eq!(scene.accept(vec![policy.clone()]).await, [Accepted::NoSuchPolicy]);
    assert_eq!(scene.accept(vec![profile.clone()]).await, [Accepted::NoSuchProfile]);
    for address in [by_policy.id, by_profile.id] {
        assert!(scene.store.lane_endpoints(vec![address]).await.unwrap().is_empty());
    }
    assert_eq!(scene.store.message(app, policy.message.id.to_string()).await.unwrap(), None);
    let own = crate::conformance::policies::own(&scene, "mine", 3);
    assert_eq!(scene.change(Change::CreatePolicy { policy: own }).await, made());
    let own = crate::conformance::profiles::own(&scene, "ours", "{}");
    assert_eq!(scene.change(Change::CreateProfile { profile: own }).await, made());
    scene.accepted(&policy).await;
    scene.accepted(&profile).await;
    // From now on they are in use.
    let delete = Change::DeletePolicy { org: scene.org, name: "mine".into() };
    assert!(matches!(scene.change(delete).await, Changed::InUse { endpoint: Some(_) }));
    let delete = Change::DeleteProfile { org: scene.org, name: "ours".into() };
    assert!(matches!(scene.change(delete).await, Changed::InUse { endpoint: Some(_) }));
}

pub async fn what_was_dispatched_is_found_by_its_state(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let app = tenant.application.id;
    let address = an_address(&scene, app);
    let [pending, delivered, dead] = [(); 3].map(|()| dispatch_to(&scene, &tenant, &address));
    let mut seqs = Vec::new();
    for accept in [&pending, &delivered, &dead] {
        seqs.push(scene.accepted(accept).await);
    }
    // Neither an event, nor a job, nor another application's is one of them.
    scene.accepted(&scene.event(&tenant)).await;
    scene.accepted(&as_job(dispatch_to(&scene, &tenant, &address), "j")).await;
    scene.accepted(&dispatch_to(&scene, &other, &an_address(&scene, other.application.id))).await;
    scene.record(vec![scene.delivered(&delivered, seqs[1])]).await;
    scene.record(vec![scene.failed(&dead, seqs[2], at(4))]).await;
    let last = crate::Record { attempts_before: 1, ..scene.dead(&dead, seqs[2], Reason::Exhausted) };
    scene.record(vec![last]).await;
    for order in [Order::Ascending, Order::Descending] {
        let all = query(app, DispatchKind::ByAddress, order);
        let everything = found(&scene, all.clone()).await;
        assert_eq!(ids(&everything), sorted(&[&pending, &delivered, &dead], order));
        for (state, accept) in [
            (DispatchState::Pending, &pending),
            (DispatchState::Delivered, &delivered),
            (DispatchState::Failed, &dead),
        ] {
            let of_state = DispatchesQuery { state: Some(state), ..all.clone() };
            assert_eq!(ids(&found(&scene, of_state).await), [accept.message.id], "{state:?}");
        }
        // Page by page.
        let mut paged = Vec::new();
        let mut after = None;
        loop {
            let part = ListRange::page(Page { after, limit: 2 }, order);
            let page = found(&scene, DispatchesQuery { part, ..all.clone() }).await;
            let Some(last) = page.last() else { break };
            after = Some(last.message.id);
            paged.extend(page);
        }
        assert_eq!(paged, everything);
        // A page of few bytes ends early and says where.
        let few = scene.store.dispatches(DispatchesQuery { bytes: 1, ..all }).await.unwrap();
        assert_eq!((few.items.len(), few.stopped), (1, Some(everything[0].message.id)));
    }
    let one = scene.store.dispatch(app, dead.message.id).await.unwrap().expect("it is there");
    assert_eq!((one.url.as_str(), one.policy.as_str()), ("https://example.com/jobs", "job-status"));
    assert_eq!(one.message.content, *dead.message.content);
    assert_eq!(one.delivery.last.expect("it was tried").status_code, Some(503));
    let event = scene.event(&tenant);
    scene.accepted(&event).await;
    assert_eq!(scene.store.dispatch(app, event.message.id).await.unwrap(), None, "an event is no dispatch");
    assert_eq!(scene.store.dispatch(other.application.id, dead.message.id).await.unwrap(), None);
}

pub async fn a_job_is_found_by_its_id_with_the_newest_first(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other) = (scene.with_endpoints(0).await, scene.with_endpoints(0).await);
    let app = tenant.application.id;
    let address = an_address(&scene, app);
    let job = |name: &str| as_job(dispatch_to(&scene, &tenant, &address), name);
    let (first, second, neighbour) = (job("job 1"), job("job 1"), job("job 10"));
    let mut seqs = Vec::new();
    for accept in [&first, &second, &neighbour] {
        seqs.push(scene.accepted(accept).await);
    }
    let stranger = an_address(&scene, other.application.id);
    scene.accepted(&as_job(dispatch_to(&scene, &other, &stranger), "job 1")).await;
    scene.record(vec![scene.delivered(&first, seqs[0])]).await;
    let all = query(app, DispatchKind::AsJob, Order::Descending);
    let of = |name: &str| DispatchesQuery { job: Some(name.into()), ..all.clone() };
    assert_eq!(ids(&found(&scene, of("job 1")).await), sorted(&[&first, &second], Order::Descending));
    let delivered = DispatchesQuery { state: Some(DispatchState::Delivered), ..of("job 1") };
    assert_eq!(ids(&found(&scene, delivered).await), [first.message.id]);
    assert_eq!(found(&scene, of("job")).await, []);
    let everything = sorted(&[&first, &second, &neighbour], Order::Descending);
    assert_eq!(ids(&found(&scene, all.clone()).await), everything);
    assert_eq!(found(&scene, query(app, DispatchKind::ByAddress, Order::Descending)).await, []);
}

pub async fn what_is_dispatched_again_stays_a_dispatch(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let address = an_address(&scene, app);
    let plain = dispatch_to(&scene, &tenant, &address);
    let job = as_job(dispatch_to(&scene, &tenant, &address), "j");
    for accept in [&plain, &job] {
        let seq = scene.accepted(accept).await;
        scene.record(vec![scene.dead(accept, seq, Reason::Exhausted)]).await;
    }
    // It is of no concern to the address, whatever it has missed.
    scene.accepted(&scene.event(&tenant)).await;
    let replay = everything_to(&scene, app, address.id);
    let change = Change::StartReplay { replay: replay.clone(), idempotency: None };
    assert_eq!(scene.change(change).await, made());
    let step = ReplayStep { id: replay.id, look: 1000, open: 1000, most: 1000, now: at(30) };
    let opened = ask(|done| scene.store.step_replay(step, done)).await.unwrap().opened;
    assert_eq!(
        opened.iter().map(|waiting| waiting.message).collect::<Vec<_>>(),
        sorted(&[&plain, &job], Order::Ascending)
    );
    for (how, accept) in [(DispatchKind::ByAddress, &plain), (DispatchKind::AsJob, &job)] {
        let pending =
            DispatchesQuery { state: Some(DispatchState::Pending), ..query(app, how, Order::Ascending) };
        assert_eq!(ids(&found(&scene, pending).await), [accept.message.id]);
    }
}

pub async fn what_is_sent_elsewhere_by_hand_changes_no_record(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let (address, other) = (an_address(&scene, app), an_address(&scene, app));
    let failed = dispatch_to(&scene, &tenant, &address);
    let seq = scene.accepted(&failed).await;
    scene.record(vec![scene.dead(&failed, seq, Reason::Exhausted)]).await;
    let own = dispatch_to(&scene, &tenant, &other);
    let seq = scene.accepted(&own).await;
    scene.record(vec![scene.delivered(&own, seq)]).await;
    let event = scene.event(&tenant);
    let seq = scene.accepted(&event).await;
    scene.record(vec![scene.delivered(&event, seq)]).await;
    // Somebody sends all of it to the other address, and the dispatches to the endpoint; then all of it once more.
    let by_hand = async |message: MessageId, endpoint| {
        let (attempt, audit) = (NewAttempt { trigger: Trigger::Manual, ..scene.attempt() }, None);
        let resent =
            ManualRecord { org: scene.org, endpoint, message, attempt, at: at(10), audit, idempotency: None };
        ask(|done| scene.store.record_manual(resent, done)).await.unwrap();
    };
    let endpoint = tenant.endpoints[0].id;
    for (message, to) in [
        (failed.message.id, other.id),
        (event.message.id, other.id),
        (failed.message.id, endpoint),
        (own.message.id, endpoint),
    ] {
        by_hand(message, to).await;
    }
    let records = async || {
        let all = found(&scene, query(app, DispatchKind::ByAddress, Order::Ascending)).await;
        let told = |found: &Dispatch| {
            (found.message.id, found.delivery.status.endpoint, found.delivery.status.state)
        };
        all.iter().map(told).collect::<Vec<_>>()
    };
    let before = records().await;
    let whose: Vec<_> = before.iter().map(|(message, address, _)| (*message, *address)).collect();
    assert_eq!(whose, [(failed.message.id, address.id), (own.message.id, other.id)]);
    let mut opened = Vec::new();
    for to in [other.id, endpoint] {
        let replay = everything_to(&scene, app, to);
        scene.change(Change::StartReplay { replay: replay.clone(), idempotency: None }).await;
        let step = ReplayStep { id: replay.id, look: 1000, open: 1000, most: 1000, now: at(30) };
        let stepped = ask(|done| scene.store.step_replay(step, done)).await.unwrap();
        opened.push(stepped.opened.iter().map(|waiting| waiting.message).collect::<Vec<_>>());
    }
    assert_eq!(opened[0], [own.message.id], "an address gets again what was dispatched to it");
    assert_eq!(opened[1].len(), 3, "an endpoint gets again what it once got");
    let after = records().await;
    assert_eq!(after[0], before[0], "the record of what failed is as it was");
    assert_eq!(after.iter().map(|(message, address, _)| (*message, *address)).collect::<Vec<_>>(), whose);
    assert!(matches!(after[1].2, DeliveryState::Waiting { .. }));
    let one = scene.store.dispatch(app, failed.message.id).await.unwrap().expect("it is there");
    assert_eq!(one.delivery.status.endpoint, address.id);
    assert_eq!(scene.store.dispatch(app, event.message.id).await.unwrap(), None, "an event is no dispatch");
}

pub async fn a_list_says_that_it_goes_on_where_it_had_to_pass_over_many(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let app = tenant.application.id;
    let address = an_address(&scene, app);
    let mut wanted = Vec::new();
    for number in 0..150 {
        let mut accept = dispatch_to(&scene, &tenant, &address);
        // Their ids say nothing of when they were made, but for roughly.
        accept.message.created_at = if number % 75 == 74 { at(0) } else { at(100) };
        if number % 75 == 74 {
            wanted.push(accept.message.id);
        }
        scene.accepted(&accept).await;
    }
    for order in [Order::Ascending, Order::Descending] {
        let (mut all, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let within = TimeRange { before: Some(at(50)), ..TimeRange::default() };
            let part = ListRange { within, walk: 1000, ..ListRange::page(Page { after, limit: 1 }, order) };
            let query = DispatchesQuery { part, ..query(app, DispatchKind::ByAddress, order) };
            let page = scene.store.dispatches(query).await.unwrap();
            all.extend(ids(&page.items));
            pages += 1;
            after = page.stopped.or(page.items.last().map(|last| last.message.id));
            if after.is_none() || pages > 300 {
                break;
            }
        }
        let mut expected = wanted.clone();
        if order == Order::Descending {
            expected.reverse();
        }
        assert_eq!(all, expected);
    }
}

pub async fn what_waits_of_it_is_among_what_waits(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let mut dispatched = Vec::new();
    for _ in 0..3 {
        let accept = dispatch_to(&scene, &tenant, &an_address(&scene, app));
        dispatched.push(scene.accepted(&accept).await);
    }
    let event = scene.accepted(&scene.event(&tenant)).await;
    for (order, expected) in [
        (Order::Ascending, [dispatched[0], dispatched[1], dispatched[2], event]),
        (Order::Descending, [event, dispatched[2], dispatched[1], dispatched[0]]),
    ] {
        let query = DeliveriesQuery {
            list: DeliveryList::Of(app, Phase::Pending),
            filter: DeliveryFilter::default(),
            from: None,
            order,
            limit: 10,
            walk: 100,
        };
        let page = scene.store.delivery_list(query).await.unwrap();
        let seqs: Vec<Seq> = page.found.iter().map(|(_, view)| view.status.seq).collect();
        assert_eq!(seqs, expected);
    }
}

pub async fn an_address_goes_when_nothing_refers_to_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let address = an_address(&scene, app);
    let job = as_job(dispatch_to(&scene, &tenant, &address), "j");
    let seq = scene.accepted(&job).await;
    let kept = scene.store.kept_endpoints(None, 10).await.unwrap();
    let directs: Vec<_> = kept.iter().filter(|kept| kept.direct).map(|kept| kept.id).collect();
    assert_eq!((kept.len(), directs), (2, vec![address.id]));
    let asked = vec![address.id, tenant.endpoints[0].id];
    let unused = async || found_expired(&scene, Search::Endpoints(asked.clone()), 10).await;
    assert_eq!(unused().await, [], "something waits for it");
    // Handed in all the same: it is looked at again.
    remove_all(&scene, vec![ExpiredItem::Endpoint(address.id)], at(3)).await;
    scene.record(vec![scene.dead(&job, seq, Reason::Exhausted)]).await;
    assert_eq!(unused().await, [], "it has a history");
    let dead = Some(SettledPosition { at: at(50), seq: Seq(0) });
    let cut = Cutoff { endpoint: address.id, delivered: None, dead, discarded: None };
    let stale = found_expired(&scene, Search::Deliveries(vec![cut]), 10).await;
    remove_all(&scene, stale, at(60)).await;
    let counters = found_expired(&scene, Search::Counters(vec![address.id], at(7200)), 10).await;
    remove_all(&scene, counters, at(60)).await;
    assert_eq!(unused().await, [ExpiredItem::Endpoint(address.id)]);
    remove_all(&scene, unused().await, at(60)).await;
    assert!(scene.store.lane_endpoints(vec![address.id]).await.unwrap().is_empty());
    let of_job =
        DispatchesQuery { job: Some("j".into()), ..query(app, DispatchKind::AsJob, Order::Ascending) };
    assert_eq!(found(&scene, of_job).await, []);
    // It is made again for the next one.
    scene.accepted(&dispatch_to(&scene, &tenant, &address)).await;
    assert_eq!(scene.endpoint(address.id).await, address);
}

pub async fn expunging_takes_the_headers_too(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let app = tenant.application.id;
    let mut accept = dispatch_to(&scene, &tenant, &an_address(&scene, app));
    let sealed_headers = Some(Bytes::from_static(b"sealed"));
    accept.message.content = Arc::new(Content { sealed_headers, ..Content::clone(&accept.message.content) });
    scene.accepted(&accept).await;
    let message = accept.message.id;
    let read = async || scene.store.message(app, message.to_string()).await.unwrap().expect("it is there");
    assert_eq!(read().await.content, *accept.message.content);
    // They count for the bytes of a page.
    scene.accepted(&dispatch_to(&scene, &tenant, &an_address(&scene, app))).await;
    let all = query(app, DispatchKind::ByAddress, Order::Ascending);
    let bytes = accept.message.content.payload.len();
    let few = scene.store.dispatches(DispatchesQuery { bytes, ..all.clone() }).await.unwrap();
    assert_eq!((ids(&few.items), few.stopped), (vec![message], Some(message)));
    let enough = scene.store.dispatches(DispatchesQuery { bytes: 2 * bytes + 6, ..all }).await.unwrap();
    assert_eq!((enough.items.len(), enough.stopped), (2, None));
    assert_eq!(scene.change(Change::ExpungeMessage { app, message }).await, made());
    assert_eq!(read().await.content.sealed_headers, None);
}
