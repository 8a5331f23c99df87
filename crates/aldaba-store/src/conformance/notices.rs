//! What organizations want to hear of.

use super::scene::made;
use super::{Scene, at};
use crate::{Change, Changed, Fence, Notice, NoticeNumber, Record, Store};
use std::sync::Arc;

fn notice(scene: &Scene, event: &str) -> Notice {
    Notice { org: scene.org, event: event.into(), body: r#"{"a": "ñ"}"#.into() }
}

async fn kept(scene: &Scene) -> Vec<(NoticeNumber, Notice)> {
    scene.store.notices(100).await.unwrap()
}

pub async fn a_notice_is_kept_with_what_it_tells_of(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let app = tenant.application.id;
    let endpoint = scene.new_endpoint(app);
    let notices = vec![notice(&scene, "a"), notice(&scene, "b")];
    let create = |notices| Change::CreateEndpoint { endpoint: endpoint.clone(), idempotency: None, notices };
    assert_eq!(scene.change(create(notices.clone())).await, made());
    // The very same once more: nothing is made, and there is nothing to tell.
    assert!(matches!(scene.change(create(notices.clone())).await, Changed::Repeated { .. }));
    let event = scene.event(&scene.tenant(app).await.unwrap());
    let seq = scene.accepted(&event).await;
    let delivered = Record { notices: vec![notice(&scene, "c")], ..scene.delivered(&event, seq) };
    scene.record(vec![delivered.clone()]).await;
    scene.record(vec![delivered]).await;
    let found = kept(&scene).await;
    assert_eq!(found.iter().map(|(_, notice)| notice.event.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(found[0].1, notices[0]);
    assert!(found.is_sorted_by_key(|(number, _)| *number));
    assert_eq!(scene.store.notices(2).await.unwrap(), found[..2]);
}

pub async fn a_notice_of_a_refused_change_is_not_kept(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(1).await;
    let before = scene.endpoint(tenant.endpoints[0].id).await;
    let was = Fence { sealed: b"another".to_vec(), ..Fence::from(&before) };
    let notices = vec![notice(&scene, "a")];
    let update =
        Change::UpdateEndpoint { endpoint: before.clone(), was, resume: false, notices: notices.clone() };
    assert_eq!(scene.change(update).await, Changed::Stale);
    let (app, endpoint) = (before.app, before.id);
    let resume = Change::ResumeEndpoint { app, endpoint, at: at(1), recovery: None, notices };
    assert_eq!(scene.change(resume).await, Changed::Unchanged);
    assert_eq!(kept(&scene).await, []);
}

pub async fn forgotten_notices_are_gone_and_their_numbers_stay_theirs(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(2).await;
    let app = tenant.application.id;
    let delete = |n: usize| Change::DeleteEndpoint {
        app,
        endpoint: tenant.endpoints[n].id,
        at: at(1),
        notices: vec![notice(&scene, "a")],
    };
    scene.change(delete(0)).await;
    let first = kept(&scene).await[0].0;
    assert_eq!(scene.change(Change::ForgetNotices { notices: vec![first] }).await, made());
    assert_eq!(kept(&scene).await, []);
    scene.change(delete(1)).await;
    assert!(kept(&scene).await[0].0 > first);
}
