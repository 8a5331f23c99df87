//! What organizations want to hear of.

use super::scene::made;
use super::{Scene, at};
use crate::{Change, Changed, Fence, Notice, NoticeNumber, Record, Store};
use aldaba_delivery::OrgId;
use std::sync::Arc;

fn notice(scene: &Scene, event: &str) -> Notice {
    Notice { org: scene.org, event: event.into(), body: r#"{"a": "ñ"}"#.into() }
}

async fn forget(scene: &Scene, org: OrgId, notices: Vec<NoticeNumber>) -> Changed {
    scene.change(Change::ForgetNotices { org, notices }).await
}

/// Keeps all of them in one commit.
async fn keep(scene: &Scene, notices: Vec<Notice>) {
    let app = scene.with_endpoints(0).await.application.id;
    let endpoint = scene.new_endpoint(app);
    assert_eq!(scene.change(Change::CreateEndpoint { endpoint, idempotency: None, notices }).await, made());
}

async fn kept(scene: &Scene) -> Vec<(NoticeNumber, Notice)> {
    scene.store.notices(scene.org, 100).await.unwrap()
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
    assert_eq!(scene.store.notices(scene.org, 2).await.unwrap(), found[..2]);
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
    assert_eq!(forget(&scene, scene.org, vec![first]).await, made());
    assert_eq!(kept(&scene).await, []);
    scene.change(delete(1)).await;
    assert!(kept(&scene).await[0].0 > first);
}

pub async fn each_organization_has_its_own_notices(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (here, there): (OrgId, OrgId) = (scene.org, scene.id());
    let of = |org: OrgId, event: &str| Notice { org, ..notice(&scene, event) };
    keep(&scene, vec![of(there, "a"), of(here, "b"), of(there, "c")]).await;
    assert_eq!(scene.store.notice_organizations(None, 10).await.unwrap(), [here, there]);
    assert_eq!(scene.store.notice_organizations(None, 1).await.unwrap(), [here]);
    assert_eq!(scene.store.notice_organizations(Some(here), 10).await.unwrap(), [there]);
    let theirs = scene.store.notices(there, 10).await.unwrap();
    assert_eq!(
        theirs.iter().map(|(_, notice)| notice.clone()).collect::<Vec<_>>(),
        [of(there, "a"), of(there, "c")]
    );
    // Nobody forgets those of another one.
    let numbers: Vec<_> = theirs.iter().map(|(number, _)| *number).collect();
    forget(&scene, here, numbers.clone()).await;
    assert_eq!(scene.store.notices(there, 10).await.unwrap(), theirs);
    forget(&scene, there, numbers).await;
    assert_eq!(scene.store.notice_organizations(None, 10).await.unwrap(), [here]);
}

pub async fn so_many_notices_wait_and_one_says_how_many_were_left_out(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let most = usize::try_from(Notice::MAX_PENDING).unwrap();
    let other = Notice { org: scene.id(), ..notice(&scene, "another's") };
    let many = vec![notice(&scene, "a"); most + 2];
    keep(&scene, [many, vec![other.clone()]].concat()).await;
    keep(&scene, vec![notice(&scene, "b")]).await;
    let all = scene.store.notices(scene.org, 2 * most).await.unwrap();
    assert_eq!(all.len(), most);
    assert_eq!(scene.store.notices(other.org, 10).await.unwrap().len(), 1, "the room of others is theirs");
    // Nothing was forgotten: there is no room, and nothing to say yet.
    forget(&scene, scene.org, Vec::new()).await;
    assert_eq!(scene.store.notices(scene.org, 2 * most).await.unwrap().len(), most);
    forget(&scene, scene.org, all[..10].iter().map(|(number, _)| *number).collect()).await;
    keep(&scene, vec![notice(&scene, "c")]).await;
    let now = scene.store.notices(scene.org, 2 * most).await.unwrap();
    assert_eq!(now[..most - 10], all[10..]);
    let new: Vec<_> = now[most - 10..].iter().map(|(_, notice)| notice.clone()).collect();
    assert_eq!(new, [Notice::left_out(scene.org, 3), notice(&scene, "c")], "where they would have been");
    // It is said once.
    forget(&scene, scene.org, now.iter().map(|(number, _)| *number).collect()).await;
    assert_eq!(scene.store.notice_organizations(None, 10).await.unwrap(), [other.org]);
}
