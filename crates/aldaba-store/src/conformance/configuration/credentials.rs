//! API keys, and tokens that count no longer.

use crate::conformance::retention::{found as found_expired, remove_all};
use crate::conformance::scene::made;
use crate::conformance::{Scene, at};
use crate::operations::{ExpiredItem, Search};
use crate::{ApiKey, Change, Changed, KeyScope, PortalExpiry, RevokedToken, Store};
use aldaba_delivery::{AppId, OrgId};
use std::sync::Arc;

fn key(scene: &Scene, prefix: &str, app: Option<AppId>) -> ApiKey {
    let mut digest = [7; 32];
    digest[..prefix.len()].copy_from_slice(prefix.as_bytes());
    ApiKey {
        id: scene.id(),
        org: scene.org,
        app,
        name: "la llave ñ".into(),
        prefix: prefix.into(),
        digest,
        scope: KeyScope::Send,
        created_at: at(1),
        expires_at: None,
        last_used_at: None,
    }
}

async fn create(scene: &Scene, key: &ApiKey) -> Changed {
    scene.change(Change::CreateApiKey { key: key.clone(), idempotency: None }).await
}

async fn keys(scene: &Scene) -> Vec<ApiKey> {
    scene.store.api_keys().await.unwrap()
}

pub async fn a_key_comes_back_as_it_was_given(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = scene.with_endpoints(0).await.application.id;
    let mut all = vec![key(&scene, "a", None), key(&scene, "b", Some(app)), key(&scene, "c", None)];
    for (key, scope) in all.iter_mut().zip(KeyScope::ALL) {
        key.scope = scope;
    }
    all[1].expires_at = Some(at(100));
    for key in &all {
        assert_eq!(create(&scene, key).await, made());
    }
    assert_eq!(keys(&scene).await, all);
    let again = ApiKey { id: scene.id(), digest: [9; 32], ..key(&scene, "a", None) };
    assert_eq!(create(&scene, &again).await, Changed::UidTaken, "no two have the same prefix");
    assert_eq!(keys(&scene).await, all);
}

pub async fn a_key_made_twice_by_one_request_is_made_once(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (first, second) = (key(&scene, "a", None), key(&scene, "b", None));
    let idempotency = Some(scene.key());
    let create = |key: &ApiKey| Change::CreateApiKey { key: key.clone(), idempotency };
    assert_eq!(scene.change(create(&first)).await, made());
    let repeated = Changed::Repeated { resource: *first.id.as_bytes() };
    assert_eq!(scene.change(create(&second)).await, repeated);
    assert_eq!(keys(&scene).await, [first]);
}

pub async fn a_key_for_an_application_needs_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = scene.with_endpoints(0).await.application.id;
    let of_others = ApiKey { org: scene.id(), ..key(&scene, "a", Some(app)) };
    assert_eq!(create(&scene, &of_others).await, Changed::NotFound);
    assert_eq!(create(&scene, &key(&scene, "a", Some(scene.id()))).await, Changed::NotFound);
    scene.change(Change::DeleteApplication { app, at: at(1) }).await;
    assert_eq!(create(&scene, &key(&scene, "a", Some(app))).await, Changed::NotFound);
    assert_eq!(keys(&scene).await, []);
}

pub async fn an_organization_has_so_many_keys_and_no_more(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let numbered = |number: usize| key(&scene, &format!("k{number}"), None);
    for number in 0..ApiKey::MAX_PER_ORGANIZATION {
        assert_eq!(create(&scene, &numbered(number)).await, made());
    }
    let one_more = numbered(ApiKey::MAX_PER_ORGANIZATION);
    assert_eq!(create(&scene, &one_more).await, Changed::TooMany);
    let of_another = ApiKey { org: scene.id(), ..key(&scene, "other", None) };
    assert_eq!(create(&scene, &of_another).await, made(), "that is no concern of others");
    let first = keys(&scene).await[0].id;
    scene.change(Change::RevokeApiKey { org: scene.org, id: first }).await;
    assert_eq!(create(&scene, &one_more).await, made());
}

pub async fn the_keys_of_an_application_go_with_it(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (app, other) =
        (scene.with_endpoints(0).await.application.id, scene.with_endpoints(0).await.application.id);
    let (of_app, of_other, of_all) =
        (key(&scene, "a", Some(app)), key(&scene, "b", Some(other)), key(&scene, "c", None));
    for key in [&of_app, &of_other, &of_all] {
        create(&scene, key).await;
    }
    scene.change(Change::DeleteApplication { app, at: at(1) }).await;
    assert_eq!(keys(&scene).await, [of_other, of_all]);
}

pub async fn only_its_organization_renames_and_revokes_a_key(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let kept = key(&scene, "a", None);
    create(&scene, &kept).await;
    let stranger: OrgId = scene.id();
    let rename = |org| Change::RenameApiKey { org, id: kept.id, name: "new".into() };
    let revoke = |org| Change::RevokeApiKey { org, id: kept.id };
    assert_eq!(scene.change(rename(stranger)).await, Changed::NotFound);
    assert_eq!(scene.change(revoke(stranger)).await, Changed::NotFound);
    assert_eq!(keys(&scene).await, std::slice::from_ref(&kept));
    assert_eq!(scene.change(rename(scene.org)).await, made());
    assert_eq!(keys(&scene).await, [ApiKey { name: "new".into(), ..kept.clone() }]);
    assert_eq!(scene.change(revoke(scene.org)).await, made());
    assert_eq!(scene.change(revoke(scene.org)).await, Changed::NotFound);
    assert_eq!(scene.change(rename(scene.org)).await, Changed::NotFound);
    assert_eq!(keys(&scene).await, []);
}

pub async fn the_last_use_of_a_key_never_moves_back(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (a, b) = (key(&scene, "a", None), key(&scene, "b", None));
    create(&scene, &a).await;
    create(&scene, &b).await;
    let note = async |uses| scene.change(Change::NoteKeyUses { uses }).await;
    assert_eq!(note(vec![(a.id, at(50)), (scene.id(), at(60))]).await, made());
    assert_eq!(note(vec![(a.id, at(40)), (b.id, at(41))]).await, made());
    let used: Vec<_> = keys(&scene).await.iter().map(|key| key.last_used_at).collect();
    assert_eq!(used, [Some(at(50)), Some(at(41))]);
}

pub async fn a_revoked_token_is_kept_until_it_would_have_ended(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let token = |mark: u8, expires_at| RevokedToken { org: scene.org, mark: [mark; 32], expires_at };
    let (short, long, endless) = (token(1, Some(at(10))), token(2, Some(at(20))), token(3, None));
    for token in [endless, short, long] {
        assert_eq!(scene.change(Change::RevokeToken { token }).await, made());
        assert_eq!(scene.change(Change::RevokeToken { token }).await, Changed::Unchanged);
    }
    assert_eq!(scene.store.revoked_tokens().await.unwrap(), [short, long, endless]);
    let found = async |before, limit| found_expired(&scene, Search::Revocations(before), limit).await;
    assert_eq!(found(at(10), 9).await, []);
    assert_eq!(found(at(11), 9).await, [ExpiredItem::RevokedToken([1; 32], at(11))]);
    assert_eq!(found(at(99), 1).await, [ExpiredItem::RevokedToken([1; 32], at(99))], "the oldest first");
    let late = [1, 2, 3].map(|mark| ExpiredItem::RevokedToken([mark; 32], at(20))).to_vec();
    assert_eq!(remove_all(&scene, late, at(20)).await.revocations, 1, "those that count stay");
    assert_eq!(scene.store.revoked_tokens().await.unwrap(), [long, endless]);
}

pub async fn a_cut_of_portal_tokens_takes_the_place_of_those_it_covers(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = scene.with_endpoints(0).await.application.id;
    let cut = |session: &str, before, ends| PortalExpiry {
        app,
        session: Some(session.to_owned()).filter(|session| !session.is_empty()),
        issued_before: at(before),
        ends_at: at(ends),
        expires_at: (!session.is_empty()).then(|| at(before + 1000)),
    };
    let end = async |cuts: Vec<PortalExpiry>, now| {
        scene.change(Change::EndPortalTokens { app, cuts, at: at(now) }).await
    };
    let all = async || scene.store.portal_expiries().await.unwrap();
    assert_eq!(end(vec![cut("", 10, 10), cut("ana", 12, 500)], 10).await, made());
    // Later ones are cut off too, but not yet; those of before have ended, and stay so.
    assert_eq!(end(vec![cut("", 20, 90)], 20).await, made());
    assert_eq!(all().await, [cut("", 10, 10), cut("", 20, 90)]);
    assert_eq!(end(vec![cut("", 15, 95)], 20).await, made());
    assert_eq!(end(vec![cut("ana", 15, 95)], 20).await, made());
    assert_eq!(all().await.len(), 2, "they are covered already");
    // An end for all at once is the end of every session, and nothing else need be remembered.
    assert_eq!(end(vec![cut("ana", 30, 40), cut("eva", 31, 31)], 31).await, made());
    assert_eq!(all().await.len(), 4);
    assert_eq!(end(vec![cut("", 100, 100)], 100).await, made());
    assert_eq!(all().await, [cut("", 100, 100)]);
    assert_eq!(end(vec![cut("ana", 110, 500)], 110).await, made());

    let stale = found_expired(&scene, Search::Revocations(at(2000)), 9).await;
    assert_eq!(
        stale,
        [ExpiredItem::PortalExpiry(cut("ana", 110, 500))],
        "one for all is kept with its application"
    );
    assert_eq!(remove_all(&scene, stale, at(2000)).await.revocations, 1);
    scene.change(Change::DeleteApplication { app, at: at(3) }).await;
    assert_eq!(end(vec![cut("", 200, 200)], 200).await, Changed::NotFound);
    assert_eq!(scene.change(Change::GrantPortalAccess { app }).await, Changed::NotFound);
    let removed = remove_all(&scene, vec![ExpiredItem::Application(app)], at(2000)).await;
    assert_eq!((removed.applications, removed.revocations), (1, 1));
    assert_eq!(all().await, []);
}
