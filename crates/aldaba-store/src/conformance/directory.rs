//! Applications, endpoints and settings.

use super::scene::{ask, filter, made};
use super::{Scene, at};
use crate::{
    Accept, Application, Change, Changed, DeliveriesQuery, DeliveryFilter, DeliveryList, Endpoint, Fence,
    IdempotencyKey, LaneTarget, Order, OrphansQuery, Page, Phase, Store, Subscription, WhichApplication,
};
use aldaba_delivery::{AppId, Health, HealthStatus, OnExhausted, Ordering, Reason, WhenDisabled};
use std::sync::Arc;
use std::time::Duration;

pub async fn an_application_is_found_by_id_and_by_uid(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let application = Application { uid: Some("sol".into()), ..scene.new_application() };
    assert_eq!(scene.create_application(&application).await, made());
    for key in [application.id.to_string(), "sol".into()] {
        let found = scene.store.application(scene.which(&key)).await.unwrap();
        assert_eq!(found.as_ref(), Some(&application));
        let tenant = scene.store.tenant(scene.which(&key)).await.unwrap().unwrap();
        assert_eq!(tenant.application, application);
    }
    assert_eq!(scene.store.application(scene.which("luna")).await.unwrap(), None);
}

pub async fn another_organization_finds_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let application = Application { uid: Some("sol".into()), ..scene.new_application() };
    scene.create_application(&application).await;
    let other = scene.id();
    for key in [application.id.to_string(), "sol".into()] {
        let which = WhichApplication { org: other, key };
        assert_eq!(scene.store.application(which.clone()).await.unwrap(), None);
        assert!(scene.store.tenant(which).await.unwrap().is_none());
    }
    // Its uid is free there.
    let theirs = Application { org: other, uid: Some("sol".into()), ..scene.new_application() };
    assert_eq!(scene.create_application(&theirs).await, made());
}

pub async fn an_application_is_replaced_only_by_who_has_read_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let first = Application { uid: Some("sol".into()), ..scene.new_application() };
    let second = Application { uid: Some("luna".into()), ..scene.new_application() };
    scene.create_application(&first).await;
    scene.create_application(&second).await;
    let version = scene.tenant(first.id).await.unwrap().version;
    let after = Application {
        uid: Some("mar".into()),
        name: "Otro".into(),
        throttle_rate: None,
        alert_email: None,
        metadata: "{}".into(),
        updated_at: at(9),
        ..first.clone()
    };
    let update =
        |application: &Application, was| Change::UpdateApplication { application: application.clone(), was };
    assert_eq!(scene.change(update(&after, first.updated_at)).await, made());
    assert_eq!(scene.store.application(scene.which("mar")).await.unwrap(), Some(after.clone()));
    assert_eq!(scene.store.application(scene.which("sol")).await.unwrap(), None);
    assert!(scene.tenant(first.id).await.unwrap().version > version);

    assert_eq!(scene.change(update(&first, first.updated_at)).await, Changed::Stale);
    let taken = Application { uid: Some("luna".into()), ..after.clone() };
    assert_eq!(scene.change(update(&taken, after.updated_at)).await, Changed::UidTaken);
    let theirs = Application { org: scene.id(), ..after.clone() };
    assert_eq!(scene.change(update(&theirs, after.updated_at)).await, Changed::NotFound);
    assert_eq!(scene.store.application(scene.which("mar")).await.unwrap(), Some(after.clone()));
    scene.change(Change::DeleteApplication { app: first.id, at: at(10) }).await;
    assert_eq!(scene.change(update(&after, at(10))).await, Changed::NotFound);
}

pub async fn a_taken_uid_changes_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let first = Application { uid: Some("sol".into()), ..scene.new_application() };
    scene.create_application(&first).await;
    let second = Application { uid: Some("sol".into()), ..scene.new_application() };
    assert_eq!(scene.create_application(&second).await, Changed::UidTaken);
    assert_eq!(scene.store.application(scene.which(&second.id.to_string())).await.unwrap(), None);

    let endpoint = scene.new_endpoint(first.id).with(|config| config.uid = Some("door".into()));
    assert_eq!(scene.create_endpoint(&endpoint).await, made());
    let version = scene.tenant(first.id).await.unwrap().version;
    let same = scene.new_endpoint(first.id).with(|config| config.uid = Some("door".into()));
    assert_eq!(scene.create_endpoint(&same).await, Changed::UidTaken);
    let tenant = scene.tenant(first.id).await.unwrap();
    assert_eq!((tenant.version, tenant.endpoints.len()), (version, 1));
    // Another application may use the same name for an endpoint of its own.
    let other = scene.new_application();
    scene.create_application(&other).await;
    let theirs = scene.new_endpoint(other.id).with(|config| config.uid = Some("door".into()));
    assert_eq!(scene.create_endpoint(&theirs).await, made());
}

pub async fn a_uid_can_be_used_again_after_a_delete(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let first = Application { uid: Some("sol".into()), ..scene.new_application() };
    scene.create_application(&first).await;
    let door = scene.new_endpoint(first.id).with(|config| config.uid = Some("door".into()));
    scene.create_endpoint(&door).await;
    scene
        .change(Change::DeleteEndpoint { app: first.id, endpoint: door.id, at: at(1), notices: Vec::new() })
        .await;
    let again = scene.new_endpoint(first.id).with(|config| config.uid = Some("door".into()));
    assert_eq!(scene.create_endpoint(&again).await, made());
    let found = scene.store.endpoint(first.id, "door".into()).await.unwrap();
    assert_eq!(found.map(|endpoint| endpoint.id), Some(again.id));

    scene.change(Change::DeleteApplication { app: first.id, at: at(1) }).await;
    let second = Application { uid: Some("sol".into()), ..scene.new_application() };
    assert_eq!(scene.create_application(&second).await, made());
    assert_eq!(scene.store.application(scene.which("sol")).await.unwrap(), Some(second));
}

pub async fn a_repeated_creation_changes_nothing_and_names_the_first(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let key = IdempotencyKey { expires_at: at(100), ..scene.key() };
    let first = scene.new_application();
    let create = |application: &Application| {
        scene.change(Change::CreateApplication { application: application.clone(), idempotency: Some(key) })
    };
    assert_eq!(create(&first).await, made());
    let second = Application { created_at: at(99), ..scene.new_application() };
    assert_eq!(create(&second).await, Changed::Repeated { resource: *first.id.as_bytes() });
    assert_eq!(scene.store.application(scene.which(&second.id.to_string())).await.unwrap(), None);
    let later = Application { created_at: at(100), ..scene.new_application() };
    assert_eq!(create(&later).await, made());

    let key = scene.key();
    let create = |endpoint: &Endpoint| {
        scene.change(Change::CreateEndpoint {
            endpoint: endpoint.clone(),
            idempotency: Some(key),
            notices: Vec::new(),
        })
    };
    let door = scene.new_endpoint(first.id);
    assert_eq!(create(&door).await, made());
    let version = scene.tenant(first.id).await.unwrap().version;
    let repeated = create(&scene.new_endpoint(first.id)).await;
    assert_eq!(repeated, Changed::Repeated { resource: *door.id.as_bytes() });
    assert_eq!(scene.tenant(first.id).await.unwrap().version, version);
}

pub async fn an_endpoint_comes_back_as_it_was_given(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let application = scene.new_application();
    scene.create_application(&application).await;
    let endpoint = Endpoint {
        created_at: at(3),
        updated_at: at(4),
        health: Health {
            status: HealthStatus::Active,
            failure_count: 2,
            failing_since: Some(at(1)),
            probe_gap: Duration::from_millis(1),
            released_at: Some(at(2)),
            epoch: 3,
            ..Health::default()
        },
        ..scene.new_endpoint(application.id)
    }
    .with(|config| {
        config.uid = Some("door".into());
        config.description = "la puerta".into();
        config.version = 3;
        config.disabled = true;
        config.when_disabled = WhenDisabled::Hold;
        config.event_types = vec!["a.b".into(), "c\n,d".into()];
        config.channels = vec!["x".into()];
        config.filter = Some(filter(r#"{"payload": "$.año", "gte": 1.50}"#));
        config.throttle_rate = Some(9);
        config.policy = "persistent".into();
        config.profile = Some("svix".into());
        config.http2 = true;
        config.ordering = Ordering::Fifo(OnExhausted::Block);
        config.metadata = r#"{"k":"v"}"#.into();
    });
    assert_eq!(scene.create_endpoint(&endpoint).await, made());
    for key in [endpoint.id.to_string(), "door".into()] {
        let found = scene.store.endpoint(application.id, key).await.unwrap();
        assert_eq!(found.as_ref(), Some(&endpoint));
    }
    let in_lanes = scene.store.lane_endpoints(vec![endpoint.id]).await.unwrap();
    assert_eq!(in_lanes, std::slice::from_ref(&endpoint));
    let targets = scene.store.lane_targets(vec![endpoint.id, scene.id()]).await.unwrap();
    let with_rate = LaneTarget { endpoint: endpoint.clone(), app_rate: application.throttle_rate };
    assert!(with_rate.app_rate.is_some());
    assert_eq!(targets, [with_rate]);
    assert_eq!(scene.store.endpoint(scene.id(), endpoint.id.to_string()).await.unwrap(), None);
    assert_eq!(scene.tenant(application.id).await.unwrap().endpoints, [Subscription::from(&endpoint)]);
}

pub async fn an_endpoint_needs_its_application(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    assert_eq!(scene.create_endpoint(&scene.new_endpoint(scene.id())).await, Changed::NotFound);
    let application = scene.new_application();
    scene.create_application(&application).await;
    scene.change(Change::DeleteApplication { app: application.id, at: at(1) }).await;
    assert_eq!(scene.create_endpoint(&scene.new_endpoint(application.id)).await, Changed::NotFound);
}

pub async fn every_change_raises_the_version(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let application = scene.new_application();
    scene.create_application(&application).await;
    let version = async || {
        let version = scene.tenant(application.id).await.unwrap().version;
        assert_eq!(scene.store.application_version(application.id).await.unwrap(), Some(version));
        version
    };
    let created = version().await;
    let endpoint = scene.new_endpoint(application.id);
    scene.create_endpoint(&endpoint).await;
    let with_endpoint = version().await;
    assert!(with_endpoint > created);
    scene
        .change(Change::DeleteEndpoint {
            app: application.id,
            endpoint: endpoint.id,
            at: at(1),
            notices: Vec::new(),
        })
        .await;
    let without = version().await;
    assert!(without > with_endpoint);
    // Another application's change is none of this one.
    scene.with_endpoints(1).await;
    assert_eq!(version().await, without);
    scene.change(Change::DeleteApplication { app: application.id, at: at(2) }).await;
    assert_eq!(scene.store.application_version(application.id).await.unwrap(), None);
    assert_eq!(scene.store.application_version(scene.id()).await.unwrap(), None);
}

pub async fn an_update_changes_the_configuration_and_nothing_else(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let application = scene.new_application();
    scene.create_application(&application).await;
    let health = Health { failure_count: 2, failing_since: Some(at(1)), ..Health::default() };
    let before = Endpoint { health, ..scene.new_endpoint(application.id) };
    scene.create_endpoint(&before).await;
    let version = scene.tenant(application.id).await.unwrap().version;
    let after = Endpoint { sealed: b"other".to_vec(), updated_at: at(9), ..before.clone() }.with(|config| {
        config.uid = Some("door".into());
        config.url = "https://example.com/other".into();
        config.description = "other".into();
        config.version = 2;
        config.when_disabled = WhenDisabled::Hold;
        config.event_types = vec!["a".into()];
        config.channels = vec!["b".into()];
        config.filter = Some(filter(r#"{"tag": "a"}"#));
        config.throttle_rate = Some(7);
        config.policy = "quick".into();
        config.profile = Some("svix".into());
        config.http2 = true;
        config.ordering = Ordering::Fifo(OnExhausted::Skip);
        config.metadata = r#"{"a":"b"}"#.into();
    });
    let wish = Endpoint { health: Health::default(), ..after.clone() };
    let change = Change::UpdateEndpoint {
        endpoint: wish,
        was: Fence::from(&before),
        resume: false,
        notices: Vec::new(),
    };
    assert_eq!(scene.change(change.clone()).await, made());
    assert_eq!(scene.endpoint(before.id).await, after, "its health is what it was");
    let tenant = scene.tenant(application.id).await.unwrap();
    assert_eq!(tenant.endpoints, [Subscription::from(&after)]);
    assert!(tenant.version > version);
    // Whoever has read what was there before comes too late.
    assert_eq!(scene.change(change).await, Changed::Stale);
    let cleared = Endpoint { updated_at: at(10), ..after.clone() }.with(|config| config.filter = None);
    let change = Change::UpdateEndpoint {
        endpoint: cleared,
        was: Fence::from(&after),
        resume: false,
        notices: Vec::new(),
    };
    assert_eq!(scene.change(change).await, made());
    assert_eq!(scene.endpoint(before.id).await.config.filter, None);
}

pub async fn an_update_of_something_else_changes_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let app = tenant.application.id;
    let [first, second] =
        [scene.endpoint(tenant.endpoints[0].id).await, scene.endpoint(tenant.endpoints[1].id).await];
    let update = |endpoint: &Endpoint| {
        let endpoint = Endpoint { updated_at: at(9), ..endpoint.clone() };
        Change::UpdateEndpoint { was: Fence::from(&first), endpoint, resume: false, notices: Vec::new() }
    };
    let named = first.clone().with(|config| config.uid = Some("door".into()));
    assert_eq!(scene.change(update(&named)).await, made());
    let was = Fence::from(&second);
    let also = second.clone().with(|config| config.uid = Some("door".into()));
    assert_eq!(
        scene
            .change(Change::UpdateEndpoint {
                endpoint: also,
                was: was.clone(),
                resume: false,
                notices: Vec::new()
            })
            .await,
        Changed::UidTaken
    );
    let without = second.clone().with(|config| config.policy = "missing".into());
    assert_eq!(
        scene
            .change(Change::UpdateEndpoint {
                endpoint: without,
                was: was.clone(),
                resume: false,
                notices: Vec::new()
            })
            .await,
        Changed::NoSuchPolicy
    );
    scene.change(Change::DeleteEndpoint { app, endpoint: second.id, at: at(3), notices: Vec::new() }).await;
    let gone = Change::UpdateEndpoint { endpoint: second.clone(), was, resume: false, notices: Vec::new() };
    assert_eq!(scene.change(gone).await, Changed::NotFound);
}

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
    // Whoever has read one of them before comes too late.
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
    let theirs = async || scene.store.others_have_endpoints_at(scene.id(), start.clone()).await.unwrap();
    assert_eq!((ours(None).await, ours(Some(app)).await, theirs().await), (vec![true], vec![false], true));
    scene.change(Change::DeleteApplication { app: other.application.id, at: at(4) }).await;
    assert_eq!((ours(None).await, theirs().await), (vec![false], false));
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

pub async fn lists_run_both_ways_page_by_page(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let mut applications = Vec::new();
    for _ in 0..3 {
        applications.push(scene.with_endpoints(2).await.application);
    }
    let list = async |after, order| {
        let page = Page { after, limit: 2 };
        let applications = scene.store.applications(scene.org, page, order).await.unwrap();
        applications.iter().map(|application| application.id).collect::<Vec<_>>()
    };
    let [a, b, c] = [0, 1, 2].map(|n: usize| applications[n].id);
    assert_eq!(list(None, Order::Ascending).await, [a, b]);
    assert_eq!(list(Some(b), Order::Ascending).await, [c]);
    assert_eq!(list(None, Order::Descending).await, [c, b]);
    assert_eq!(list(Some(b), Order::Descending).await, [a]);
    assert_eq!(list(Some(a), Order::Descending).await, []);

    let tenant = scene.tenant(a).await.unwrap();
    let [first, second] = [0, 1].map(|n| tenant.endpoints[n].id);
    let list = async |after, order| {
        let page = Page { after, limit: 1 };
        let endpoints = scene.store.endpoints(a, page, order).await.unwrap();
        endpoints.iter().map(|endpoint| endpoint.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None, Order::Ascending).await, [first]);
    assert_eq!(list(Some(first), Order::Ascending).await, [second]);
    assert_eq!(list(None, Order::Descending).await, [second]);
    assert_eq!(list(Some(second), Order::Descending).await, [first]);
    assert_eq!(list(Some(first), Order::Descending).await, []);
}

pub async fn the_first_setting_stays(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let settle = |value: &[u8]| {
        let value = value.to_vec();
        ask(|done| scene.store.settle_setting("check", value, done))
    };
    assert_eq!(scene.store.setting("check").await.unwrap(), None);
    assert_eq!(settle(b"first").await.unwrap(), b"first");
    assert_eq!(settle(b"second").await.unwrap(), b"first");
    assert_eq!(scene.store.setting("check").await.unwrap().unwrap(), b"first");
    assert_eq!(scene.store.setting("other").await.unwrap(), None);
}
