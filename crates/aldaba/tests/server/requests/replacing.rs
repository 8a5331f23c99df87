//! PUT and PATCH of applications and endpoints.

use crate::support::client::Reply;
use crate::support::running::Running;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn without_times(mut value: Value) -> Value {
    for name in ["updatedAt", "createdAt", "id", "health"] {
        value.as_object_mut().unwrap().remove(name);
    }
    value
}

#[tokio::test]
async fn an_application_is_replaced_whole_and_patched_in_part() {
    let server = Running::start().await;
    let first = json!({"name": "one", "uid": "first", "metadata": {"plan": "gold"}});
    let made = server.client.post("/app", first.to_string()).await.expect(201);
    let id = made["id"].as_str().unwrap();
    let path = format!("/app/{id}");
    let put = server.client.put(&path, json!({"name": "two"}).to_string()).await.expect(200);
    assert_eq!((put["id"].as_str(), put["createdAt"].as_str()), (Some(id), made["createdAt"].as_str()));
    assert_eq!((&put["name"], &put["metadata"]), (&json!("two"), &json!({})), "what is not given is gone");
    assert!(put.get("uid").is_none());
    assert!(put["updatedAt"].as_str() > made["updatedAt"].as_str());
    server.client.get("/app/first").await.expect(404);
    let patch = json!({"uid": "again", "metadata": {"a": "b"}});
    let patched = server.client.patch(&path, patch.to_string()).await.expect(200);
    assert_eq!((&patched["name"], &patched["uid"]), (&json!("two"), &json!("again")));
    let cleared =
        server.client.patch(&path, json!({"uid": null, "metadata": null}).to_string()).await.expect(200);
    assert!(cleared.get("uid").is_none());
    assert_eq!(cleared["metadata"], json!({}));
    for wrong in
        [json!({"name": null}), json!({"name": ""}), json!({"uid": "app_x"}), json!({"metadata": {"a": 1}})]
    {
        server.client.patch(&path, wrong.to_string()).await.expect(422);
    }
    server.client.patch("/app/nobody", "{}").await.expect(404);
}

#[tokio::test]
async fn a_put_makes_what_is_not_there_under_the_name_in_the_path() {
    let server = Running::start().await;
    let made = server.client.put("/app/shop", json!({"name": "Shop"}).to_string()).await.expect(201);
    assert_eq!(made["uid"], "shop");
    assert_eq!(server.client.get("/app/shop").await.expect(200)["id"], made["id"]);
    let other = json!({"name": "Other", "uid": "other"}).to_string();
    assert_eq!(server.client.put("/app/unknown", other.clone()).await.expect(201)["uid"], "other");
    server
        .client
        .put("/app/app_23rb8YdGqMT0qIzpgGwdXfHirMu", json!({"name": "x"}).to_string())
        .await
        .expect(404);
    server.client.put("/app/shop", other).await.expect(409);
    let url = json!({"url": "https://example.com/"}).to_string();
    let endpoint = server.client.put("/app/shop/endpoint/door", url.clone()).await.expect(201);
    assert_eq!(endpoint["uid"], "door");
    let secret = server.client.get("/app/shop/endpoint/door/secret").await.expect(200);
    assert!(secret["key"].as_str().unwrap().starts_with("whsec_"));
    server.client.put("/app/shop/endpoint/ep_23rb8YdGqMT0qIzpgGwdXfHirMu", url.clone()).await.expect(404);
    server.client.put("/app/nobody/endpoint/door", url).await.expect(404);
}

#[tokio::test]
async fn a_put_endpoint_keeps_its_secret_and_headers_and_nothing_else() {
    let server = Running::start().await;
    let app = server.application().await;
    let full = json!({
        "url": "https://user:pass@example.com/a", "uid": "door", "description": "d", "version": 3, "channels": ["c"],
        "throttleRate": 5, "policy": "quick", "profile": "svix", "metadata": {"a": "b"}, "disabled": true,
        "headers": {"x-team": "billing"},
    });
    let made = server.endpoint(&app, full).await;
    let path = format!("/app/{app}/endpoint/door");
    let secret = server.client.get(&format!("{path}/secret")).await.expect(200);
    let put = json!({"url": "https://example.com/a", "uid": "door"});
    let put = server.client.put(&path, put.to_string()).await.expect(200);
    assert_eq!(put["id"], made["id"]);
    let bare = server.endpoint(&app, json!({"url": "https://example.com/a"})).await;
    let mut expected = without_times(bare);
    expected["uid"] = json!("door");
    assert_eq!(without_times(put), expected);
    assert_eq!(server.client.get(&format!("{path}/secret")).await.expect(200), secret);
    let headers = server.client.get(&format!("{path}/headers")).await.expect(200);
    assert_eq!(headers, json!({"headers": {"x-team": "billing"}, "sensitive": []}));
    for (wrong, place) in [
        (
            json!({"url": "https://example.com/", "secret": "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"}),
            "secret",
        ),
        (json!({"url": "https://example.com/", "headers": {"x-a": "1"}}), "headers"),
        (json!({"description": "no url"}), "url"),
    ] {
        let refused = server.client.put(&path, wrong.to_string()).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", place]));
    }
}

#[tokio::test]
async fn an_alert_address_is_set_kept_and_cleared() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/alert-email");
    server.client.patch(&path, json!({"email": "people@example.com"}).to_string()).await.expect(200);
    let shown = server.client.get(&format!("/app/{app}")).await.expect(200);
    assert_eq!(shown["alertEmail"], "people@example.com");
    let put =
        server.client.put(&format!("/app/{app}"), json!({"name": "other"}).to_string()).await.expect(200);
    assert_eq!(put["alertEmail"], "people@example.com", "it has a route of its own");
    for wrong in ["people", "a@", "@b", "a b@c", "a@b\r\nbcc: x@y", "A <a@b>", "a@b,c@d", &"x".repeat(300)] {
        server.client.patch(&path, json!({"email": wrong}).to_string()).await.expect(422);
    }
    server.client.patch(&path, json!({"email": null}).to_string()).await.expect(200);
    assert!(server.client.get(&format!("/app/{app}")).await.expect(200).get("alertEmail").is_none());
}

#[tokio::test]
async fn a_message_can_bring_its_application_along() {
    let server = Running::start().await;
    let body =
        |application: Value| json!({"eventType": "a", "payload": {}, "application": application}).to_string();
    let sent =
        server.client.post("/app/shop/msg", body(json!({"name": "Shop", "uid": "shop"}))).await.expect(202);
    let app = server.client.get("/app/shop").await.expect(200);
    assert_eq!(app["name"], "Shop");
    let path = format!("/app/shop/msg/{}", sent["id"].as_str().unwrap());
    server.client.get(&path).await.expect(200);
    // It is there now: what is described is not looked at.
    server.client.post("/app/shop/msg", body(json!({"name": "Other", "uid": "shop"}))).await.expect(202);
    assert_eq!(server.client.get("/app/shop").await.expect(200)["name"], "Shop");
    for (application, kind) in [
        (json!({"name": "x"}), "application_uid_missing"),
        (json!({"name": "x", "uid": "y"}), "application_uid_mismatch"),
        (json!({"uid": "new"}), "value_error"),
    ] {
        let refused = server.client.post("/app/new/msg", body(application)).await.expect(422);
        assert_eq!(refused["detail"][0]["type"], kind);
    }
    server.client.get("/app/new").await.expect(404);
}

#[tokio::test]
async fn one_that_several_put_at_the_same_time_is_made_once_and_changed_by_the_others() {
    let server = Running::start().await;
    let app = server.application().await;
    for path in ["/app/new".to_owned(), format!("/app/{app}/endpoint/new")] {
        let puts = (0..8).map(|n| {
            let body = match path.contains("endpoint") {
                true => json!({"description": format!("n{n}"), "url": "https://example.com", "uid": "new"}),
                false => json!({"name": format!("n{n}"), "uid": "new"}),
            };
            server.client.put(&path, body.to_string())
        });
        let replies = futures_util::future::join_all(puts).await;
        let mut statuses: Vec<_> = replies.iter().map(|reply| reply.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201], "{path}");
        let ids: std::collections::BTreeSet<_> =
            replies.iter().map(|reply| reply.json()["id"].to_string()).collect();
        assert_eq!(ids.len(), 1, "{path}");
        // Without a uid in the body the name in the path is it.
        let path = path.replace("new", "other");
        let body = match path.contains("endpoint") {
            true => r#"{"url": "https://example.com"}"#,
            false => r#"{"name": "n"}"#,
        };
        let puts = (0..8).map(|_| server.client.put(&path, body));
        let made = futures_util::future::join_all(puts).await;
        assert!(made.iter().all(|reply| [200, 201].contains(&reply.status.as_u16())), "{made:?}");
    }
    // A uid that is not the name in the path is still taken.
    server.client.put("/app/another", r#"{"name": "n", "uid": "new"}"#).await.expect(409);
}

/// For how long a change that meets others is tried.
const TRIED: Duration = Duration::from_secs(5);

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn now() -> Instant {
    Instant::now()
}

/// Asks again where the server has tried for as long as it does: a busy machine may take that long for others' changes.
async fn settled(ask: impl AsyncFn() -> Reply) -> Reply {
    loop {
        let begun = now();
        let reply = ask().await;
        if reply.status != 503 {
            return reply;
        }
        assert_eq!(reply.json()["code"], "unsettled");
        assert!(now() - begun >= TRIED, "it was given up after {:?}", now() - begun);
    }
}

#[tokio::test]
async fn concurrent_changes_of_one_resource_all_take_effect() {
    const CLIENTS: usize = 16;
    const ROUNDS: usize = 6;
    let server = Running::start().await;
    let app = server.application().await;
    let made = server.endpoint(&app, json!({"uid": "e"})).await;
    server.event_type("a.b").await;
    assert!(made["id"].is_string());
    let paths = [format!("/app/{app}"), format!("/app/{app}/endpoint/e"), "/event-type/a.b".to_owned()];
    for path in &paths {
        let field = if path.starts_with("/app") { "metadata" } else { "description" };
        let client = async |number: usize| {
            let mut statuses = Vec::new();
            for round in 0..ROUNDS {
                let value = format!("{number}-{round}");
                let body = match field {
                    "metadata" => json!({field: {"v": value}}),
                    _ => json!({field: value}),
                };
                let reply = settled(async || server.client.patch(path, body.to_string()).await).await;
                statuses.push(reply.status.as_u16());
            }
            statuses
        };
        let statuses = futures_util::future::join_all((0..CLIENTS).map(client)).await.concat();
        assert!(statuses.iter().all(|status| *status == 200), "{path}: {statuses:?}");
    }
    // Headers are merged: every one of them is there in the end.
    let path = format!("{}/headers", paths[1]);
    let patch = async |n: usize| {
        let body = json!({"headers": {format!("x-{n}"): "v"}}).to_string();
        settled(async || server.client.patch(&path, body.clone()).await).await
    };
    let patches = (0..CLIENTS).map(patch);
    for reply in futures_util::future::join_all(patches).await {
        reply.expect(204);
    }
    let headers = server.client.get(&path).await.expect(200);
    assert_eq!(headers["headers"].as_object().unwrap().len(), CLIENTS);
    // So many old keys may be at once.
    let rotate = format!("{}/secret/rotate", paths[1]);
    let rotations = (0..10).map(|_| settled(async || server.client.post(&rotate, "{}").await));
    for reply in futures_util::future::join_all(rotations).await {
        reply.expect(200);
    }
}

#[tokio::test]
async fn the_same_put_again_and_again_is_one_thing_under_its_name() {
    let server = Running::start().await;
    let app = server.application().await;
    let operational = "/operational-webhook/endpoint/same".to_owned();
    let url = r#"{"url": "https://example.com/"}"#;
    for (path, body) in [
        ("/app/same".to_owned(), r#"{"name": "x"}"#),
        (format!("/app/{app}/endpoint/same"), url),
        (operational, url),
    ] {
        let first = server.client.put(&path, body).await.expect(201);
        for _ in 0..3 {
            let again = server.client.put(&path, body).await.expect(200);
            assert_eq!((&again["id"], &again["uid"]), (&first["id"], &json!("same")), "{path}");
        }
        // A null says the same as nothing: otherwise the request would make another one next time.
        let mut without: serde_json::Value = serde_json::from_str(body).unwrap();
        without["uid"] = serde_json::Value::Null;
        for _ in 0..2 {
            let again = server.client.put(&path, without.to_string()).await.expect(200);
            assert_eq!((&again["id"], &again["uid"]), (&first["id"], &json!("same")), "{path}");
        }
    }
}
