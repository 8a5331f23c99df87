//! Wire profiles of an organization's own.

use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::{Change, Changed, Endpoint, Fence, OwnProfile, Store};
use std::sync::Arc;

pub(crate) fn own(scene: &Scene, name: &str, body: &str) -> OwnProfile {
    OwnProfile { org: scene.org, name: name.into(), body: body.into(), created_at: at(1), updated_at: at(1) }
}

async fn all(scene: &Scene) -> Vec<OwnProfile> {
    let mut all = scene.store.profiles().await.unwrap();
    all.retain(|own| own.org == scene.org);
    all
}

pub async fn a_profile_comes_back_as_it_was_given(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (mine, other) = (own(&scene, "mine", "{\"a\": \"ñ\"}"), own(&scene, "another", "{}"));
    for profile in [&mine, &other] {
        assert_eq!(scene.change(Change::CreateProfile { profile: profile.clone() }).await, made());
    }
    assert_eq!(all(&scene).await, [other.clone(), mine.clone()], "in the order of their names");
    let again = Change::CreateProfile { profile: own(&scene, "mine", "again") };
    assert_eq!(scene.change(again).await, Changed::UidTaken);
    let changed = OwnProfile { updated_at: at(2), ..own(&scene, "mine", "changed") };
    assert_eq!(scene.change(Change::ReplaceProfile { profile: changed.clone() }).await, made());
    assert_eq!(all(&scene).await, [other, changed]);
    let missing = own(&scene, "missing", "");
    assert_eq!(scene.change(Change::ReplaceProfile { profile: missing }).await, Changed::NotFound);
}

pub async fn a_profile_in_use_stays(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = scene.with_endpoints(0).await.application.id;
    let endpoint = scene.new_endpoint(app).with(|config| config.profile = Some("mine".into()));
    assert_eq!(scene.create_endpoint(&endpoint).await, Changed::NoSuchProfile);
    scene.change(Change::CreateProfile { profile: own(&scene, "mine", "") }).await;
    assert_eq!(scene.create_endpoint(&endpoint).await, made());
    let delete = Change::DeleteProfile { org: scene.org, name: "mine".into() };
    assert_eq!(scene.change(delete.clone()).await, Changed::InUse { endpoint: Some(endpoint.id) });

    let update = |profile: &str, updated_at, was: &Endpoint| Change::UpdateEndpoint {
        resume: false,
        notices: Vec::new(),
        endpoint: Endpoint { updated_at, ..endpoint.clone() }
            .with(|config| config.profile = Some(profile.into())),
        was: Fence::from(was),
    };
    assert_eq!(scene.change(update("other", at(5), &endpoint)).await, Changed::NoSuchProfile);
    assert_eq!(scene.change(update("branded", at(5), &endpoint)).await, made());
    assert_eq!(scene.change(delete.clone()).await, made());
    assert_eq!(scene.change(delete).await, Changed::NotFound);
    assert_eq!(all(&scene).await, []);
}
