//! Policies of an organization's own.

use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::{Change, Changed, OwnPolicy, Store};
use aldaba_delivery::policy::{Overrides, builtin};
use aldaba_delivery::{OrgId, Policy, PolicySpec};
use std::sync::Arc;

pub(crate) fn own(scene: &Scene, name: &str, attempts: u32) -> OwnPolicy {
    let quick = builtin("quick", &Overrides::default()).unwrap().unwrap();
    let mut spec = PolicySpec { name: name.into(), ..(*quick).clone() };
    spec.limit.attempts = Some(attempts);
    OwnPolicy { org: scene.org, policy: Policy::new(spec).unwrap(), created_at: at(1), updated_at: at(1) }
}

async fn of_org(scene: &Scene, org: OrgId) -> Vec<OwnPolicy> {
    let mut all = scene.store.policies().await.unwrap();
    all.retain(|own| own.org == org);
    all
}

pub async fn a_policy_comes_back_as_it_was_given(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (mine, other) = (own(&scene, "mine", 3), own(&scene, "another", 4));
    for policy in [&mine, &other] {
        assert_eq!(scene.change(Change::CreatePolicy { policy: policy.clone() }).await, made());
    }
    assert_eq!(of_org(&scene, scene.org).await, [other.clone(), mine.clone()], "in the order of their names");
    assert_eq!(
        scene.change(Change::CreatePolicy { policy: own(&scene, "mine", 9) }).await,
        Changed::UidTaken
    );
    let changed = OwnPolicy { updated_at: at(2), ..own(&scene, "mine", 5) };
    assert_eq!(scene.change(Change::ReplacePolicy { policy: changed.clone() }).await, made());
    assert_eq!(of_org(&scene, scene.org).await, [other, changed]);
    let missing = own(&scene, "missing", 5);
    assert_eq!(scene.change(Change::ReplacePolicy { policy: missing }).await, Changed::NotFound);
}

pub async fn a_policy_in_use_stays(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = scene.with_endpoints(0).await.application.id;
    let endpoint = scene.new_endpoint(app).with(|config| config.policy = "mine".into());
    assert_eq!(scene.create_endpoint(&endpoint).await, Changed::NoSuchPolicy);
    scene.change(Change::CreatePolicy { policy: own(&scene, "mine", 3) }).await;
    assert_eq!(scene.create_endpoint(&endpoint).await, made());
    let delete = Change::DeletePolicy { org: scene.org, name: "mine".into() };
    assert_eq!(scene.change(delete.clone()).await, Changed::InUse { endpoint: Some(endpoint.id) });
    scene.change(Change::DeleteEndpoint { app, endpoint: endpoint.id, at: at(3), notices: Vec::new() }).await;
    assert_eq!(scene.change(delete.clone()).await, made());
    assert_eq!(scene.change(delete).await, Changed::NotFound);
    assert_eq!(of_org(&scene, scene.org).await, []);
}

pub async fn what_a_deleted_application_has_left_names_no_policy(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    scene.change(Change::CreatePolicy { policy: own(&scene, "mine", 3) }).await;
    let mut apps = Vec::new();
    for _ in 0..3 {
        let app = scene.with_endpoints(0).await.application.id;
        for _ in 0..3 {
            let endpoint = scene.new_endpoint(app).with(|config| config.policy = "mine".into());
            assert_eq!(scene.create_endpoint(&endpoint).await, made());
        }
        apps.push(app);
    }
    let delete = Change::DeletePolicy { org: scene.org, name: "mine".into() };
    for app in apps {
        assert!(matches!(scene.change(delete.clone()).await, Changed::InUse { endpoint: Some(_) }));
        scene.change(Change::DeleteApplication { app, at: at(3) }).await;
    }
    assert_eq!(scene.change(delete).await, made());
}
