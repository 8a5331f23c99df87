//! How many messages may be sent on a day.

use super::{Scene, at, audit};
use crate::{Accept, Accepted, Application, AuditAction, InlineApplication, Quota, QuotaOf, Store, Tenant};
use aldaba_delivery::Timestamp;
use std::sync::Arc;
use std::time::Duration;

fn event(scene: &Scene, tenant: &Tenant, organization: Option<u64>, application: Option<u64>) -> Accept {
    let quota = Some(Quota { org: scene.org, organization, application });
    Accept { quota, ..scene.event(tenant) }
}

fn is_new(accepted: &Accepted) -> bool {
    matches!(accepted, Accepted::New { .. })
}

pub async fn an_application_sends_so_many_messages_a_day_and_no_more(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (one, other) = (scene.with_endpoints(1).await, scene.with_endpoints(1).await);
    let of = |tenant: &Tenant| event(&scene, tenant, None, Some(3));
    // In one commit and over several.
    let first = scene.accept(vec![of(&one), of(&one)]).await;
    assert!(first.iter().all(is_new), "{first:?}");
    let refused = Accepted::OverQuota(QuotaOf::Application);
    let second = scene.accept(vec![of(&one), of(&one), of(&other)]).await;
    assert!(is_new(&second[0]) && is_new(&second[2]), "{second:?}");
    assert_eq!(second[1], refused);
    let late = of(&one);
    assert_eq!(scene.accept(vec![late.clone()]).await, [refused]);
    let stored = scene.store.message(late.app, late.message.id.to_string()).await.unwrap();
    assert_eq!(stored, None, "what is refused is not stored");
    // Without a limit nothing is counted.
    assert!(is_new(&scene.accept(vec![scene.event(&one)]).await[0]));
}

pub async fn an_organization_sends_so_many_messages_a_day_and_no_more(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (one, other) = (scene.with_endpoints(0).await, scene.with_endpoints(0).await);
    let of = |tenant: &Tenant| event(&scene, tenant, Some(2), Some(100));
    let accepted = scene.accept(vec![of(&one), of(&other), of(&one), of(&other)]).await;
    assert!(is_new(&accepted[0]) && is_new(&accepted[1]), "{accepted:?}");
    let refused = Accepted::OverQuota(QuotaOf::Organization);
    assert_eq!(accepted[2..], [refused.clone(), refused]);
    let of_others = Quota { org: scene.id(), organization: Some(2), application: None };
    let accepted = scene.accept(vec![Accept { quota: Some(of_others), ..scene.event(&one) }]).await;
    assert!(is_new(&accepted[0]), "another organization has its own");
}

pub async fn an_application_is_made_with_its_first_message_or_not_at_all(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let first_of = |uid: &str, organization| {
        let application = Application { uid: Some(uid.into()), ..scene.new_application() };
        let tenant = Tenant::new(application.clone(), 1, Vec::new());
        let audit = scene.audit(AuditAction::new("application.create", &application.id));
        let creates = Some(Box::new(InlineApplication { application, audit }));
        Accept { creates, ..event(&scene, &tenant, organization, None) }
    };
    let there = async |uid: &str| scene.store.application(scene.which(uid)).await.unwrap();
    let noted = async || audit::log(&scene).await.len();
    let refused = first_of("sol", Some(0));
    assert_eq!(scene.accept(vec![refused.clone()]).await, [Accepted::OverQuota(QuotaOf::Organization)]);
    assert_eq!((there("sol").await, noted().await), (None, 0));

    // Two at once: the second finds the first.
    let (one, two) = (first_of("sol", Some(9)), first_of("sol", Some(9)));
    let accepted = scene.accept(vec![one.clone(), two.clone()]).await;
    assert!(is_new(&accepted[0]), "{accepted:?}");
    assert_eq!(accepted[1], Accepted::Stale);
    assert_eq!(there("sol").await.map(|application| application.id), Some(one.app));
    assert_eq!(noted().await, 1);
    assert!(scene.store.message(one.app, one.message.id.to_string()).await.unwrap().is_some());
    assert!(scene.store.message(two.app, two.message.id.to_string()).await.unwrap().is_none());
    let tenant = scene.tenant(one.app).await.unwrap();
    assert!(is_new(&scene.accept(vec![scene.event(&tenant)]).await[0]), "it takes others");
}

pub async fn a_new_day_begins_with_none(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let on = |moment: Timestamp| {
        let mut accept = event(&scene, &tenant, None, Some(1));
        accept.message.created_at = moment;
        accept
    };
    let midnight = Quota::next_day(at(0));
    let before = Timestamp::from_millis(midnight.millis() - 1);
    let refused = Accepted::OverQuota(QuotaOf::Application);
    assert!(is_new(&scene.accept(vec![on(at(0))]).await[0]));
    assert_eq!(scene.accept(vec![on(before)]).await, std::slice::from_ref(&refused));
    let next = scene.accept(vec![on(midnight), on(midnight + Duration::from_secs(3600))]).await;
    assert!(is_new(&next[0]) && next[1] == refused, "{next:?}");
    assert_eq!(scene.accept(vec![on(before)]).await, [refused], "a clock that is set back earns nothing");
}

pub async fn what_is_not_stored_is_not_counted(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let tenant = scene.with_endpoints(0).await;
    let of = || event(&scene, &tenant, None, Some(2));
    let key = Some(scene.key());
    let mut first = Accept { idempotency: key, ..of() };
    Arc::make_mut(&mut first.message.content).event_id = Some("mine".into());
    assert!(is_new(&scene.accept(vec![first.clone()]).await[0]));
    let repeated = Accepted::Repeated { message: first.message.id };
    assert_eq!(
        scene.accept(vec![Accept { idempotency: key, ..of() }]).await,
        std::slice::from_ref(&repeated)
    );
    let mut taken = of();
    Arc::make_mut(&mut taken.message.content).event_id = Some("mine".into());
    let is_taken = Accepted::EventIdTaken { message: first.message.id };
    assert_eq!(scene.accept(vec![taken]).await, [is_taken]);
    assert_eq!(scene.accept(vec![Accept { version: 999, ..of() }]).await, [Accepted::Stale]);
    let mut same = Accept { idempotency: None, ..first.clone() };
    Arc::make_mut(&mut same.message.content).event_id = None;
    assert_eq!(scene.accept(vec![same]).await, std::slice::from_ref(&repeated), "the very same message");
    assert!(is_new(&scene.accept(vec![of()]).await[0]), "one of two was used up");
    assert_eq!(scene.accept(vec![of()]).await, [Accepted::OverQuota(QuotaOf::Application)]);
    // A repeat gets the first answer, quota or not.
    assert_eq!(scene.accept(vec![Accept { idempotency: key, ..of() }]).await, [repeated]);
}
