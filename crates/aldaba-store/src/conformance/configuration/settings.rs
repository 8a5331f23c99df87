//! Small values of the installation.

use crate::conformance::Scene;
use crate::conformance::scene::ask;
use crate::{Change, Store};
use std::sync::Arc;

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

pub async fn a_setting_that_is_put_takes_the_place_of_the_one_before(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    for value in [b"first".to_vec(), b"second".to_vec()] {
        scene.change(Change::PutSetting { name: "clock", value: value.clone() }).await;
        assert_eq!(scene.store.setting("clock").await.unwrap(), Some(value));
    }
    assert_eq!(scene.store.setting("other").await.unwrap(), None);
}
