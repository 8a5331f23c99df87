use js_option::JsOption;
use sdk_rust::{Scene, eventually, hook, invalid, minutes_ago, unique};
use std::collections::{BTreeMap, BTreeSet};
use svix::api::{EndpointGetStatsOptions, EndpointListOptions};
use svix::models::{
    EndpointHeadersIn, EndpointHeadersPatchIn, EndpointIn, EndpointPatch, EndpointSecretRotateIn,
    EndpointUpsertIn, EventExampleIn, EventTypeIn, MessageStatus, Ordering,
};
use svix::webhooks::Webhook;

const URL: &str = "https://example.com/";

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

fn headers<const N: usize>(headers: [(&str, &str); N]) -> BTreeMap<String, String> {
    headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[tokio::test]
async fn created_resources_are_read_back() {
    let scene = Scene::open("Endpoints").await;
    let (uid, kind) = (unique("hook"), scene.event_type().await);
    let made = scene
        .endpoint_as(EndpointIn {
            uid: Some(uid.clone()),
            description: Some("Theirs".into()),
            throttle_rate: Some(20),
            disabled: Some(true),
            channels: Some(names(["project_1"])),
            event_types: Some(names([&kind])),
            ..EndpointIn::new(URL.into())
        })
        .await;
    assert_eq!((made.url.as_str(), made.description.as_str()), (URL, "Theirs"));
    assert_eq!((made.throttle_rate, made.disabled), (Some(20), Some(true)));
    assert_eq!((&made.channels, &made.event_types), (&Some(names(["project_1"])), &Some(names([&kind]))));
    for key in [made.id.clone(), uid] {
        assert_eq!(scene.svix.endpoint().get(scene.app(), key).await.unwrap(), made);
    }
}

#[tokio::test]
async fn a_filter_on_an_unknown_event_type_is_refused() {
    let scene = Scene::open("Unknown types").await;
    let endpoint =
        EndpointIn { event_types: Some(names(["nobody.made.this"])), ..EndpointIn::new(URL.into()) };
    invalid(scene.svix.endpoint().create(scene.app(), endpoint, None).await);
}

#[tokio::test]
async fn an_update_replaces_every_field_or_creates() {
    let scene = Scene::open("Updates").await;
    let uid = unique("hook");
    let first = EndpointUpsertIn {
        uid: Some(uid.clone()),
        channels: Some(names(["a"])),
        ..EndpointUpsertIn::new(URL.into())
    };
    let made = scene.svix.endpoint().upsert(scene.app(), uid.clone(), first).await.unwrap();
    let secret = scene.secret(&made).await;
    let second = EndpointUpsertIn::new("https://example.com/new".into());
    let changed = scene.svix.endpoint().upsert(scene.app(), uid.clone(), second).await.unwrap();
    assert_eq!((&changed.id, changed.url.as_str()), (&made.id, "https://example.com/new"));
    // The name in the path stays its name, or the same request would make another one the next time.
    assert_eq!((&changed.channels, &changed.uid), (&None, &Some(uid)));
    assert_eq!(scene.secret(&changed).await, secret);
}

#[tokio::test]
async fn a_patch_changes_only_what_is_given() {
    let scene = Scene::open("Patches").await;
    let made =
        EndpointIn { throttle_rate: Some(5), channels: Some(names(["a"])), ..EndpointIn::new(URL.into()) };
    let made = scene.endpoint_as(made).await;
    let description = EndpointPatch { description: Some("New".into()), ..EndpointPatch::new() };
    let changed = scene.svix.endpoint().patch(scene.app(), made.id.clone(), description).await.unwrap();
    assert_eq!((changed.description.as_str(), changed.throttle_rate), ("New", Some(5)));
    assert_eq!(changed.channels, Some(names(["a"])));
    let nothing =
        EndpointPatch { channels: JsOption::Null, throttle_rate: JsOption::Null, ..EndpointPatch::new() };
    let bare = scene.svix.endpoint().patch(scene.app(), made.id, nothing).await.unwrap();
    assert_eq!((bare.channels, bare.throttle_rate), (None, None));
}

#[tokio::test]
async fn a_deleted_one_gets_nothing_more() {
    let scene = Scene::open("Deletions").await;
    let there = hook(204);
    let made = scene.endpoint(&there).await;
    scene.svix.endpoint().delete(scene.app(), made.id).await.unwrap();
    scene.send().await;
    there.stays_silent();
}

#[tokio::test]
async fn pages_lead_there_and_back() {
    let scene = Scene::open("Pages").await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(scene.endpoint_as(EndpointIn::new(URL.into())).await.id);
    }
    // What is made within 4 ms is in no order of its own.
    made.sort();
    let ask = async |iterator: Option<String>| {
        let options = EndpointListOptions { limit: Some(2), iterator, order: Some(Ordering::Ascending) };
        let page = scene.svix.endpoint().list(scene.app(), Some(options)).await.unwrap();
        let ids: Vec<_> = page.data.into_iter().map(|endpoint| endpoint.id).collect();
        (ids, page.iterator, page.prev_iterator, page.done)
    };
    let (first, next, _, done) = ask(None).await;
    assert_eq!((&first[..], done), (&made[..2], false));
    let (second, next, _, done) = ask(next).await;
    assert_eq!((&second[..], done), (&made[2..4], false));
    let (third, _, back, done) = ask(next).await;
    assert_eq!((&third[..], done), (&made[4..], true));
    let (again, _, back, done) = ask(back).await;
    assert_eq!((again, done), (second, false));
    let (beginning, _, _, done) = ask(back).await;
    assert_eq!((beginning, done), (first, true));
}

#[tokio::test]
async fn headers_are_set_shown_sent_changed_and_deleted() {
    let scene = Scene::open("Headers").await;
    let there = hook(204);
    let endpoint = scene.endpoint(&there).await;
    let given = headers([("X-Team", "a"), ("X-Old", "1"), ("Authorization", "Basic c2VjcmV0")]);
    let api = scene.svix.endpoint();
    api.set_headers(scene.app(), endpoint.id.clone(), EndpointHeadersIn::new(given)).await.unwrap();
    let change = EndpointHeadersPatchIn {
        delete_headers: Some(vec!["X-Old".into()]),
        ..EndpointHeadersPatchIn::new(headers([("X-Team", "b")]))
    };
    api.patch_headers(scene.app(), endpoint.id.clone(), change).await.unwrap();
    let shown = api.get_headers(scene.app(), endpoint.id).await.unwrap();
    let names: Vec<_> = shown.headers.into_keys().map(|name| name.to_lowercase()).collect();
    let sensitive: Vec<_> = shown.sensitive.into_iter().map(|name| name.to_lowercase()).collect();
    assert_eq!((names, sensitive), (vec!["x-team".into()], vec!["authorization".into()]));
    scene.send().await;
    let came = there.next();
    assert_eq!(came.headers["x-team"], "b");
    assert_eq!(came.headers["authorization"], "Basic c2VjcmV0");
    assert!(!came.headers.contains_key("x-old"));
}

#[tokio::test]
async fn during_the_grace_period_old_and_new_key_both_verify() {
    let scene = Scene::open("Rotation").await;
    let there = hook(204);
    let endpoint = scene.endpoint(&there).await;
    let old = scene.secret(&endpoint).await;
    let rotation = EndpointSecretRotateIn { key: None, grace_period_seconds: Some(3600) };
    let new = scene.svix.endpoint().rotate_secret(scene.app(), endpoint.id.clone(), rotation, None).await;
    let new = new.unwrap().key;
    assert_eq!(scene.secret(&endpoint).await, new);
    assert_ne!(old, new);
    scene.send().await;
    let came = there.next();
    for secret in [old, new] {
        Webhook::new(&secret).unwrap().verify(&came.body, &came.headers).unwrap();
    }
}

#[tokio::test]
async fn without_a_grace_period_only_the_new_key_verifies() {
    let scene = Scene::open("Hard rotation").await;
    let there = hook(204);
    let endpoint = scene.endpoint(&there).await;
    let old = scene.secret(&endpoint).await;
    let rotation = EndpointSecretRotateIn { key: None, grace_period_seconds: Some(0) };
    let new = scene.svix.endpoint().rotate_secret(scene.app(), endpoint.id, rotation, None).await;
    scene.send().await;
    let came = there.next();
    Webhook::new(&new.unwrap().key).unwrap().verify(&came.body, &came.headers).unwrap();
    Webhook::new(&old).unwrap().verify(&came.body, &came.headers).unwrap_err();
}

#[tokio::test]
async fn statistics_count_attempts() {
    let scene = Scene::open("Statistics").await;
    let (good, bad) = (hook(204), hook(400));
    let (works, fails) = (scene.endpoint(&good).await, scene.quick_endpoint(&bad).await);
    let message = scene.send().await;
    scene.attempt(&message, MessageStatus::Success).await;
    scene.attempt(&message, MessageStatus::Fail).await;
    for (endpoint, expected) in [(works, (1, 0)), (fails, (0, 1))] {
        eventually("the statistics", async || {
            let options = EndpointGetStatsOptions { since: Some(minutes_ago(60)), until: None };
            let api = scene.svix.endpoint();
            let stats = api.get_stats(scene.app(), endpoint.id.clone(), Some(options)).await.unwrap();
            ((stats.success, stats.fail) == expected).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn an_example_is_sent_to_that_endpoint_only() {
    let scene = Scene::open("Examples").await;
    let name = unique("invoice");
    let schemas = serde_json::json!({"1": {"type": "object", "examples": [{"invoice": 7}]}});
    let kind = EventTypeIn { schemas: Some(schemas), ..EventTypeIn::new(name.clone(), String::new()) };
    scene.svix.event_type().create(kind, None).await.unwrap();
    let (here, elsewhere) = (hook(204), hook(204));
    let endpoint = scene.endpoint(&here).await;
    scene.endpoint(&elsewhere).await;
    let example = EventExampleIn::new(name);
    scene.svix.endpoint().send_example(scene.app(), endpoint.id, example, None).await.unwrap();
    assert_eq!(here.next().json(), serde_json::json!({"invoice": 7}));
    elsewhere.stays_silent();
}
