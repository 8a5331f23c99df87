//! Endpoints and applications that are deleted, and what still waits for them.

use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::{
    Accept, Change, Changed, DeliveriesQuery, DeliveryFilter, DeliveryList, Fence, Order, OrphansQuery, Page,
    Phase, Store,
};
use aldaba_delivery::{AppId, Reason};
use std::sync::Arc;

pub async fn a_deleted_endpoint_is_found_by_lanes_only(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let app = tenant.application.id;
    let (gone, left) = (tenant.endpoints[0].id, tenant.endpoints[1].id);
    scene.accepted(&scene.event(&tenant)).await;
    let change = Change::DeleteEndpoint { app, endpoint: gone, at: at(1), notices: Vec::new() };
    assert_eq!(scene.change(change).await, Changed::Done { removed: vec![gone] });
    assert_eq!(scene.store.endpoint(app, gone.to_string()).await.unwrap(), None);
    let page = Page { after: None, limit: 10 };
    let listed = scene.store.endpoints(app, page, Order::Ascending).await.unwrap();
    assert_eq!(listed.iter().map(|endpoint| endpoint.id).collect::<Vec<_>>(), [left]);
    assert_eq!(scene.tenant(app).await.unwrap().endpoints.len(), 1);
    // Its waiting delivery still has to end.
    assert_eq!(scene.due(gone).await.len(), 1);
    let mut found = scene.store.lane_endpoints(vec![gone, left, scene.id()]).await.unwrap();
    found.sort_by_key(|endpoint| endpoint.id);
    let found: Vec<_> = found.iter().map(|endpoint| (endpoint.id, endpoint.deleted)).collect();
    assert_eq!(found, [(gone, true), (left, false)]);
}

pub async fn a_deleted_application_takes_its_endpoints_along(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(3).await;
    let other = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let [a, b, c] = [0, 1, 2].map(|n| tenant.endpoints[n].id);
    scene.change(Change::DeleteEndpoint { app, endpoint: b, at: at(1), notices: Vec::new() }).await;
    let (before, version) = (scene.endpoint(a).await, tenant.version);
    scene.accepted(&Accept { version: version + 1, ..scene.event(&tenant) }).await;
    assert_eq!(scene.change(Change::DeleteApplication { app, at: at(2) }).await, made());
    assert!(scene.tenant(app).await.is_none());
    assert_eq!(scene.store.application(scene.which(&app.to_string())).await.unwrap(), None);
    let page = Page { after: None, limit: 10 };
    let listed = scene.store.applications(scene.org, page, Order::Ascending).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&other.application));
    for endpoint in [a, b, c] {
        assert_eq!(scene.store.endpoint(app, endpoint.to_string()).await.unwrap(), None);
    }
    let found = scene.store.lane_endpoints(vec![a, b, c]).await.unwrap();
    assert!(found.len() == 3 && found.iter().all(|endpoint| endpoint.deleted));
    let targets = scene.store.lane_targets(vec![a, b, c]).await.unwrap();
    assert!(targets.len() == 3 && targets.iter().all(|target| target.endpoint.deleted));
    let kept = scene.store.kept_endpoints(None, 10).await.unwrap();
    let deleted = kept.iter().filter(|kept| kept.deleted).count();
    assert_eq!((kept.len(), deleted), (4, 3), "those of the other application are not");
    let page = Page { after: None, limit: 10 };
    assert_eq!(scene.store.endpoints(app, page, Order::Ascending).await.unwrap(), []);
    // A caller that read one of them before is too late.
    let update = Change::UpdateEndpoint {
        endpoint: before.clone(),
        was: Fence::from(&before),
        resume: true,
        notices: Vec::new(),
    };
    let delete = Change::DeleteEndpoint { app, endpoint: a, at: at(3), notices: Vec::new() };
    let secrets = Change::ReplaceSecrets {
        app,
        endpoint: a,
        was: before.sealed.clone(),
        sealed: vec![7],
        certificate_expires_at: None,
        at: at(3),
        idempotency: None,
        notices: Vec::new(),
    };
    let resume = Change::ResumeEndpoint { app, endpoint: a, at: at(3), recovery: None, notices: Vec::new() };
    for change in [update, delete, secrets, resume] {
        assert_eq!(scene.change(change).await, Changed::NotFound);
    }
    // What still waits has to end, and is nobody's business then.
    let [waiting] = scene.due(a).await[..] else { panic!("it waits") };
    let event = scene.event(&tenant);
    let record =
        crate::Record { message: waiting.message, ..scene.dead(&event, waiting.seq, Reason::Exhausted) };
    assert_eq!(scene.record(vec![record]).await, [crate::Recorded::Applied]);
    let letter = DeliveriesQuery {
        list: DeliveryList::Of(app, Phase::Dead),
        filter: DeliveryFilter::default(),
        from: None,
        order: Order::Ascending,
        limit: 10,
        walk: 100,
    };
    assert!(scene.store.delivery_list(letter).await.unwrap().found.is_empty());
    // Where it had endpoints, nobody has when the other one is gone too.
    let start = "https://example.com/".to_owned();
    let ours = async |app| scene.store.has_endpoints_at(scene.org, app, vec![start.clone()]).await.unwrap();
    assert_eq!((ours(None).await, ours(Some(app)).await), (vec![true], vec![false]));
    scene.change(Change::DeleteApplication { app: other.application.id, at: at(4) }).await;
    assert_eq!(ours(None).await, [false]);
}

pub async fn what_waits_of_a_deleted_application_is_found_endpoint_by_endpoint(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (tenant, other, third) =
        (scene.with_endpoints(3).await, scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let app = tenant.application.id;
    for _ in 0..4 {
        scene.accepted(&scene.event_due(&tenant, at(1_000_000))).await;
        scene.accepted(&scene.event(&other)).await;
        scene.accepted(&scene.event(&third)).await;
    }
    let orphans = async |app: AppId, limit: usize| {
        let (mut found, mut after) = (Vec::new(), None);
        for _ in 0..100 {
            let page = scene.store.orphans(OrphansQuery { app, after, limit }).await.unwrap();
            assert!(page.waiting.len() <= limit);
            found.extend(page.waiting);
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
        panic!("it does not end");
    };
    assert_eq!(orphans(app, 10).await, [], "it is not deleted");
    for app in [app, third.application.id] {
        assert_eq!(scene.change(Change::DeleteApplication { app, at: at(2) }).await, made());
    }
    let mut expected = Vec::new();
    for endpoint in &tenant.endpoints {
        expected.extend(scene.due(endpoint.id).await.into_iter().map(|waiting| (endpoint.id, waiting)));
    }
    assert_eq!(expected.len(), 12);
    for limit in [1, 2, 3, 5, 100] {
        assert_eq!(orphans(app, limit).await, expected, "{limit} at a time");
    }
    assert_eq!(orphans(other.application.id, 10).await, []);
    assert_eq!(orphans(scene.id(), 10).await, []);
    let deleted = async |after, limit| scene.store.deleted_applications(after, limit).await.unwrap();
    assert_eq!(deleted(None, 10).await, [app, third.application.id]);
    assert_eq!(deleted(None, 1).await, [app]);
    assert_eq!(deleted(Some(app), 10).await, [third.application.id]);
}

pub async fn deleting_twice_finds_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let other = scene.with_endpoints(0).await;
    let (app, endpoint) = (tenant.application.id, tenant.endpoints[0].id);
    // An endpoint belongs to one application only.
    let elsewhere =
        Change::DeleteEndpoint { app: other.application.id, endpoint, at: at(1), notices: Vec::new() };
    assert_eq!(scene.change(elsewhere).await, Changed::NotFound);
    scene.change(Change::DeleteEndpoint { app, endpoint, at: at(1), notices: Vec::new() }).await;
    let again = Change::DeleteEndpoint { app, endpoint, at: at(2), notices: Vec::new() };
    assert_eq!(scene.change(again).await, Changed::NotFound);
    scene.change(Change::DeleteApplication { app, at: at(3) }).await;
    assert_eq!(scene.change(Change::DeleteApplication { app, at: at(4) }).await, Changed::NotFound);
    assert_eq!(
        scene.change(Change::DeleteApplication { app: scene.id(), at: at(4) }).await,
        Changed::NotFound
    );
}
