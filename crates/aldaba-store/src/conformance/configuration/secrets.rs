//! Secrets of an endpoint, replaced.

use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::{Change, Changed, Store};
use aldaba_delivery::{AppId, EndpointId};
use std::sync::Arc;

fn replace(app: AppId, endpoint: EndpointId, was: &[u8], sealed: &[u8]) -> Change {
    Change::ReplaceSecrets {
        app,
        endpoint,
        was: was.to_vec(),
        sealed: sealed.to_vec(),
        certificate_expires_at: None,
        at: at(7),
        idempotency: None,
        notices: Vec::new(),
    }
}

pub async fn secrets_are_replaced_only_by_who_has_read_them(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let app = tenant.application.id;
    let before = scene.endpoint(tenant.endpoints[0].id).await;
    let change = replace(app, before.id, &before.sealed, b"new");
    assert_eq!(scene.change(change.clone()).await, made());
    let after = scene.store.endpoint(app, before.id.to_string()).await.unwrap().unwrap();
    let expected = crate::Endpoint { sealed: b"new".to_vec(), updated_at: at(7), ..before.clone() };
    assert_eq!(after, expected);
    assert_eq!(scene.store.lane_endpoints(vec![before.id]).await.unwrap(), [expected]);
    let raised = scene.tenant(app).await.unwrap();
    assert!(raised.version > tenant.version);

    // A caller that read the former value is too late.
    assert_eq!(scene.change(change).await, Changed::Stale);
    let unchanged = scene.tenant(app).await.unwrap();
    assert_eq!(unchanged.version, raised.version);
    assert_eq!(scene.endpoint(before.id).await.sealed, b"new");
    let other = scene.endpoint(tenant.endpoints[1].id).await;
    assert_eq!((other.sealed, other.updated_at), (before.sealed, before.updated_at));
}

pub async fn a_repeated_replacement_of_secrets_changes_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let (app, endpoint) = (tenant.application.id, scene.endpoint(tenant.endpoints[0].id).await);
    let key = Some(scene.key());
    let change = |was: &[u8], sealed: &[u8]| Change::ReplaceSecrets {
        app,
        endpoint: endpoint.id,
        was: was.to_vec(),
        sealed: sealed.to_vec(),
        certificate_expires_at: None,
        at: at(7),
        idempotency: key,
        notices: Vec::new(),
    };
    assert_eq!(scene.change(change(b"another", b"new")).await, Changed::Stale, "and the key stays free");
    assert_eq!(scene.change(change(&endpoint.sealed, b"new")).await, made());
    let repeated = Changed::Repeated { resource: *endpoint.id.as_bytes() };
    assert_eq!(scene.change(change(b"new", b"newer")).await, repeated);
    assert_eq!(scene.endpoint(endpoint.id).await.sealed, b"new");
}

pub async fn secrets_of_what_is_not_there_are_not_replaced(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let other = scene.with_endpoints(0).await.application.id;
    let (app, endpoint) = (tenant.application.id, scene.endpoint(tenant.endpoints[0].id).await);
    for (app, id) in [(other, endpoint.id), (app, scene.id())] {
        assert_eq!(scene.change(replace(app, id, &endpoint.sealed, b"new")).await, Changed::NotFound);
    }
    scene.change(Change::DeleteEndpoint { app, endpoint: endpoint.id, at: at(1), notices: Vec::new() }).await;
    let change = replace(app, endpoint.id, &endpoint.sealed, b"new");
    assert_eq!(scene.change(change).await, Changed::NotFound);
    assert_eq!(scene.endpoint(endpoint.id).await.sealed, endpoint.sealed);
}
