//! Applications.

use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::{
    Application, ApplicationRef, Change, Changed, Endpoint, IdempotencyKey, Order, Page, RequestDigest, Store,
};
use std::sync::Arc;

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
        let which = ApplicationRef { org: other, key };
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
    assert_eq!(
        create(&later).await,
        Changed::Repeated { resource: *first.id.as_bytes() },
        "until it is removed"
    );

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

pub async fn a_creation_that_was_kept_under_its_former_digest_is_honoured(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (before, after) = (scene.key(), scene.key());
    let create = |application: &Application, key| {
        scene.change(Change::CreateApplication { application: application.clone(), idempotency: Some(key) })
    };
    let first = scene.new_application();
    assert_eq!(create(&first, before).await, made());
    let former = Some(before.digest.current);
    let upgraded = IdempotencyKey { digest: RequestDigest { former, ..after.digest }, ..after };
    let repeated = create(&scene.new_application(), upgraded).await;
    assert_eq!(repeated, Changed::Repeated { resource: *first.id.as_bytes() });
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
