//! Endpoints.

use crate::conformance::scene::{filter, made};
use crate::conformance::{Scene, at};
use crate::{Change, Changed, Endpoint, Fence, LaneTarget, Store, Subscription};
use aldaba_delivery::{Health, HealthStatus, OnExhausted, Ordering, WhenDisabled};
use std::sync::Arc;
use std::time::Duration;

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
    // A caller that read the former value is too late.
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
