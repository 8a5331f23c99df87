//! Event types of an organization.

use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::{Change, Changed, EventType, EventTypeChange, EventTypeWrite, IdempotencyKey, Store};
use aldaba_delivery::Timestamp;
use std::sync::Arc;

fn event_type(scene: &Scene, name: &str) -> EventType {
    EventType {
        id: scene.id(),
        org: scene.org,
        name: name.into(),
        description: "Se pagó una factura".into(),
        archived: false,
        deprecated: true,
        validate: true,
        schemas: Some(r#"{"1": {"type": "object", "title": "ñ"}}"#.into()),
        feature_flags: vec!["beta".into(), "gold".into()],
        group_name: Some("invoice".into()),
        created_at: at(1),
        updated_at: at(1),
    }
}

/// A write of one, in the place of what was there since `was`.
fn write(was: Option<Timestamp>, now: &EventType) -> EventTypeWrite {
    EventTypeWrite { name: now.name.clone(), was, now: Some(now.clone()) }
}

fn change(scene: &Scene, writes: Vec<EventTypeWrite>, idempotency: Option<IdempotencyKey>) -> Change {
    let resource = scene.id();
    Change::WriteEventTypes(EventTypeChange { org: scene.org, writes, resource, idempotency, at: at(1) })
}

async fn wrote(scene: &Scene, writes: Vec<EventTypeWrite>) -> Changed {
    scene.change(change(scene, writes, None)).await
}

async fn all(scene: &Scene) -> Vec<EventType> {
    let mut all = scene.store.event_types().await.unwrap();
    all.retain(|row| row.org == scene.org);
    all
}

pub async fn an_event_type_comes_back_as_it_was_given(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let full = event_type(&scene, "invoice.paid");
    let bare = EventType {
        description: String::new(),
        archived: true,
        deprecated: false,
        validate: false,
        schemas: None,
        feature_flags: Vec::new(),
        group_name: None,
        ..event_type(&scene, "a")
    };
    assert_eq!(wrote(&scene, vec![write(None, &full), write(None, &bare)]).await, made());
    assert_eq!(all(&scene).await, [bare.clone(), full.clone()], "in the order of their names");
    let changed = EventType { schemas: None, updated_at: at(2), ..full };
    assert_eq!(wrote(&scene, vec![write(Some(at(1)), &changed)]).await, made());
    assert_eq!(all(&scene).await, [bare.clone(), changed.clone()]);
    let removed = EventTypeWrite { name: "a".into(), was: Some(at(1)), now: None };
    assert_eq!(wrote(&scene, vec![removed]).await, made());
    assert_eq!(all(&scene).await, [changed]);
}

pub async fn only_who_has_read_it_changes_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let first = event_type(&scene, "paid");
    let second = EventType { description: String::new(), updated_at: at(2), ..first.clone() };
    assert_eq!(wrote(&scene, vec![write(Some(at(1)), &first)]).await, Changed::Stale, "there is none");
    assert_eq!(wrote(&scene, vec![write(None, &first)]).await, made());
    assert_eq!(wrote(&scene, vec![write(None, &second)]).await, Changed::Stale, "there is one");
    assert_eq!(wrote(&scene, vec![write(Some(at(0)), &second)]).await, Changed::Stale, "another one");
    let removed = EventTypeWrite { name: "paid".into(), was: Some(at(2)), now: None };
    assert_eq!(wrote(&scene, vec![removed]).await, Changed::Stale);
    assert_eq!(all(&scene).await, [first]);
}

pub async fn all_of_a_change_is_written_or_nothing(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (old, new) = (event_type(&scene, "b"), event_type(&scene, "a"));
    assert_eq!(wrote(&scene, vec![write(None, &old)]).await, made());
    let changed = EventType { updated_at: at(2), ..old.clone() };
    let stale = vec![write(None, &new), write(Some(at(9)), &changed)];
    assert_eq!(wrote(&scene, stale).await, Changed::Stale);
    assert_eq!(all(&scene).await, [old]);
    assert_eq!(wrote(&scene, vec![write(None, &new), write(Some(at(1)), &changed)]).await, made());
    assert_eq!(all(&scene).await, [new, changed]);
}

pub async fn a_repeated_change_writes_nothing_and_names_the_first(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let key = scene.key();
    let first = event_type(&scene, "paid");
    let stale = change(&scene, vec![write(Some(at(1)), &first)], Some(key));
    assert_eq!(scene.change(stale).await, Changed::Stale, "the key stays free");
    let made_first = change(&scene, vec![write(None, &first)], Some(key));
    let Change::WriteEventTypes(EventTypeChange { resource, .. }) = &made_first else { unreachable!() };
    let resource = *resource.as_bytes();
    assert_eq!(scene.change(made_first).await, made());
    let again = change(&scene, vec![write(None, &event_type(&scene, "other"))], Some(key));
    assert_eq!(scene.change(again).await, Changed::Repeated { resource });
    assert_eq!(all(&scene).await, [first]);
}

pub async fn two_organizations_have_event_types_of_one_name(store: Arc<dyn Store>) {
    let (mine, mut other) = (Scene::new(store.clone()), Scene::new(store));
    other.org = mine.id();
    let (first, second) = (event_type(&mine, "paid"), event_type(&other, "paid"));
    assert_eq!(wrote(&mine, vec![write(None, &first)]).await, made());
    assert_eq!(wrote(&other, vec![write(None, &second)]).await, made());
    let removed = EventTypeWrite { name: "paid".into(), was: Some(at(1)), now: None };
    assert_eq!(wrote(&mine, vec![removed]).await, made());
    assert_eq!((all(&mine).await, all(&other).await), (Vec::new(), vec![second]));
}
