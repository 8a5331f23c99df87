//! API keys: what each may do, and how soon it may not any more.

use crate::credentials::tokens::{OTHER_ORGANIZATION, application_token};
use crate::support::client::Client;
use crate::support::running::{Running, token};
use crate::support::waiting::{next_id_moment, wait_until};
use aldaba_engine::{Clock, SystemClock};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use std::path::Path;

/// Creates a key; returns its representation, and a client that uses it.
async fn key(server: &Running, scope: &str, app: Option<&str>) -> (Value, Client) {
    let body = json!({"name": format!("a {scope} key"), "scope": scope, "appId": app});
    let made = server.client.post("/api-key", body.to_string()).await.expect(201);
    let client = server.client.with_token(made["key"].as_str().unwrap());
    (made, client)
}

fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

#[tokio::test]
async fn a_key_is_shown_once_listed_by_its_prefix_and_revoked_at_once() {
    let server = Running::start().await;
    let (made, client) = key(&server, "admin", None).await;
    let text = made["key"].as_str().unwrap();
    let prefix = made["prefix"].as_str().unwrap();
    assert!(text.starts_with(&format!("aldaba_{prefix}_")) && !text.contains('.'), "{text}");
    assert!(text.len() - format!("aldaba_{prefix}_").len() >= 33, "at least 192 bits");
    client.get("/app").await.expect(200);
    for path in ["/api-key".to_owned(), format!("/api-key/{}", id(&made)), format!("/api-key/{prefix}")] {
        let reply = server.client.get(&path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(!String::from_utf8_lossy(&reply.body).contains(text), "{path}");
    }
    let listed = &server.client.get("/api-key").await.expect(200)["data"][0];
    assert_eq!(listed["name"], "a admin key");
    assert_eq!(
        (&listed["scope"], &listed["appId"], &listed["expiresAt"]),
        (&json!("admin"), &json!(null), &json!(null))
    );
    assert!(listed["lastUsedAt"].is_string(), "{listed}");

    let renamed =
        server.client.patch(&format!("/api-key/{prefix}"), r#"{"name":"the shop"}"#).await.expect(200);
    assert_eq!((&renamed["name"], id(&renamed)), (&json!("the shop"), id(&made)));
    assert_eq!(client.get("/auth/whoami").await.expect(200)["keyName"], "the shop");

    server.client.delete(&format!("/api-key/{prefix}")).await.expect(204);
    assert_eq!(client.get("/app").await.expect(401)["code"], "authentication_failed");
    server.client.delete(&format!("/api-key/{prefix}")).await.expect(404);
    server.client.get(&format!("/api-key/{}", id(&made))).await.expect(404);
    assert_eq!(server.client.get("/api-key").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn keys_that_cannot_be_are_refused() {
    let server = Running::start().await;
    let past = "2020-01-01T00:00:00Z";
    for (body, place) in [
        (json!({"scope": "admin"}), "name"),
        (json!({"name": "", "scope": "admin"}), "name"),
        (json!({"name": "x".repeat(257), "scope": "admin"}), "name"),
        (json!({"name": "a\u{7}b", "scope": "admin"}), "name"),
        (json!({"name": null, "scope": "admin"}), "name"),
        (json!({"name": "a", "scope": null}), "scope"),
        (json!({"name": 5, "scope": "admin"}), "name"),
        (json!({"name": "a"}), "scope"),
        (json!({"name": "a", "scope": "root"}), "scope"),
        (json!({"name": "a", "scope": ["admin"]}), "scope"),
        (json!({"name": "a", "scope": "admin", "appId": 5}), "appId"),
        (json!({"name": "a", "scope": "admin", "expiresAt": past}), "expiresAt"),
        (json!({"name": "a", "scope": "admin", "expiresAt": "soon"}), "expiresAt"),
    ] {
        let problems = server.client.post("/api-key", body.to_string()).await.expect(422);
        assert_eq!(problems["detail"][0]["loc"], json!(["body", place]), "{body}");
    }
    let nowhere = json!({"name": "a", "scope": "send", "appId": "app_23rb8YdGqMT0qIzpgGwdXfHirMu"});
    server.client.post("/api-key", nowhere.to_string()).await.expect(404);
    let (made, _) = key(&server, "send", None).await;
    for body in
        [r#"{"scope":"admin","name":"a"}"#, r#"{"name":"a","expiresAt":null}"#, r#"{"name":""}"#, "{}"]
    {
        server.client.patch(&format!("/api-key/{}", id(&made)), body).await.expect(422);
    }
    server.client.patch("/api-key/nothing", r#"{"name":"a"}"#).await.expect(404);
    assert_eq!(server.client.get("/api-key").await.expect(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_repeated_request_creates_one_key_and_does_not_show_it_again() {
    let server = Running::start().await;
    let body = json!({"name": "a", "scope": "admin"}).to_string();
    server.client.post_once("/api-key", "once", body.clone()).await.expect(201);
    let refused = server.client.post_once("/api-key", "once", body).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("revoke it"), "{refused}");
    assert_eq!(server.client.get("/api-key").await.expect(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn keys_are_listed_both_ways_in_pages() {
    let server = Running::start().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(id(&key(&server, "read", None).await.0).to_owned());
        next_id_moment().await;
    }
    for order in ["ascending", "descending"] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("/api-key?order={order}&limit=2{after}");
            let page = server.client.get(&path).await.expect(200);
            seen.extend(page["data"].as_array().unwrap().iter().map(|key| id(key).to_owned()));
            if page["done"] == true {
                break;
            }
            after = format!("&iterator={}", page["iterator"].as_str().unwrap());
        }
        assert_eq!(seen, ids, "{order}");
        ids.reverse();
    }
    let last = server.client.get(&format!("/api-key?limit=2&iterator={}", ids[2])).await.expect(200);
    let back = last["prevIterator"].as_str().unwrap();
    let back = server.client.get(&format!("/api-key?limit=2&iterator={back}")).await.expect(200);
    let names: Vec<_> = back["data"].as_array().unwrap().iter().map(id).collect();
    assert_eq!(names, [&ids[1], &ids[2]]);
}

/// Every operation of the API's document: method, a path with unknown ids, access.
async fn operations(server: &Running) -> Vec<(Method, String, String)> {
    let document = server.client.get("/openapi.json").await.expect(200);
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        // The URL of a source is outside of the API and accepts no keys.
        let Some(path) = path.strip_prefix("/api/v1") else { continue };
        let filled: Vec<_> =
            path.split('/').map(|part| if part.starts_with('{') { "x" } else { part }).collect();
        for (method, operation) in methods.as_object().unwrap() {
            let access = operation["security"][0]["token"][0].as_str().unwrap_or("open").to_owned();
            operations.push((method.to_uppercase().parse().unwrap(), filled.join("/"), access));
        }
    }
    assert!(operations.len() > 40, "{}", operations.len());
    operations
}

#[tokio::test]
async fn a_key_is_refused_on_every_route_that_is_not_in_its_scope() {
    let server = Running::start().await;
    let app = server.application().await;
    let send = ["open", "known", "send", "precheck"];
    let read = ["open", "known", "read", "read-organization", "precheck"];
    let read_one = ["open", "known", "read", "precheck"];
    for (scope, of, allowed) in [
        ("send", None, &send[..]),
        ("send", Some(app.as_str()), &send[..]),
        ("read", None, &read[..]),
        ("read", Some(app.as_str()), &read_one[..]),
    ] {
        let (_, client) = key(&server, scope, of).await;
        for (method, path, access) in operations(&server).await {
            // It would end the key.
            if path == "/auth/logout" {
                continue;
            }
            let reply = client.send(method.clone(), &path, &[], Bytes::from("{}")).await;
            let refused = reply.status == 403;
            assert_eq!(refused, !allowed.contains(&access.as_str()), "{scope}: {method} {path} ({access})");
            if refused {
                assert_eq!(reply.json()["code"], "insufficient_access", "{method} {path}");
            }
            // Some have their questions in a body.
            let asks = path.ends_with("/msg/search") || path.ends_with("/msg/precheck/active");
            let reads = method == Method::GET || asks;
            assert!(scope != "read" || refused || reads, "a read key: {method} {path}");
        }
    }
}

#[tokio::test]
async fn a_send_key_sends_and_reads_nothing() {
    let server = Running::start().await;
    let app = server.application().await;
    let (_, client) = key(&server, "send", None).await;
    let body = r#"{"eventType":"a","payload":{"b":1}}"#;
    let sent = client.post(&format!("/app/{app}/msg"), body).await.expect(202);
    for path in [
        format!("/app/{app}/msg"),
        format!("/app/{app}/msg/{}", id(&sent)),
        format!("/app/{app}"),
        "/app".into(),
    ] {
        assert!(client.get(&path).await.expect(403)["detail"].as_str().unwrap().contains("`send`"), "{path}");
    }
    client.post("/app", r#"{"name":"a"}"#).await.expect(403);
    client.get("/api-key").await.expect(403);
    client.get("/audit").await.expect(403);
}

#[tokio::test]
async fn a_read_key_reads_neither_secrets_nor_headers_and_changes_nothing() {
    let server = Running::start().await;
    let app = server.application().await;
    let endpoint =
        server.endpoint(&app, json!({"secret": "whsec_bm9ib2R5IHNob3VsZCBzZWUgdGhpcyBzZWNyZXQ="})).await;
    let path = format!("/app/{app}/endpoint/{}", id(&endpoint));
    server
        .client
        .put(&format!("{path}/headers"), r#"{"headers":{"x-hidden":"hidden value"}}"#)
        .await
        .expect(204);
    let (_, client) = key(&server, "read", None).await;
    for readable in ["/app".into(), format!("/app/{app}/endpoint"), path.clone(), format!("/app/{app}/msg")] {
        let reply = client.get(&readable).await;
        reply.expect(200);
        let body = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(!body.contains("whsec_") && !body.contains("hidden"), "{readable}: {body}");
    }
    client.get(&format!("{path}/secret")).await.expect(403);
    client.get(&format!("{path}/headers")).await.expect(403);
    client.post(&format!("{path}/secret/rotate"), "{}").await.expect(403);
    client.patch(&path, r#"{"description":"changed"}"#).await.expect(403);
    client.delete(&path).await.expect(403);
    client.post(&format!("/app/{app}/msg"), r#"{"eventType":"a","payload":{}}"#).await.expect(403);
    assert_eq!(server.client.get(&path).await.expect(200)["description"], "");
}

#[tokio::test]
async fn a_key_for_one_application_finds_no_other() {
    let server = Running::start().await;
    let (mine, other) = (server.application().await, server.application().await);
    server.client.patch(&format!("/app/{other}"), r#"{"uid":"the-other"}"#).await.expect(200);
    let endpoint = server.endpoint(&other, json!({})).await;
    let message = server.message(&other, "a").await;
    let (made, admin) = key(&server, "admin", Some(&mine)).await;
    assert_eq!(made["appId"], json!(mine));
    let (_, send) = key(&server, "send", Some(&mine)).await;
    let (_, read) = key(&server, "read", Some(&mine)).await;
    let body = r#"{"eventType":"a","payload":{}}"#;
    for client in [&admin, &send] {
        client.post(&format!("/app/{mine}/msg"), body).await.expect(202);
        for app in [other.as_str(), "the-other", "nowhere"] {
            client.post(&format!("/app/{app}/msg"), body).await.expect(404);
        }
    }
    // A name that becomes another's leads nowhere from then on.
    server.client.patch(&format!("/app/{mine}"), r#"{"uid":"moves"}"#).await.expect(200);
    send.post("/app/moves/msg", body).await.expect(202);
    server.client.patch(&format!("/app/{mine}"), r#"{"uid":null}"#).await.expect(200);
    server.client.patch(&format!("/app/{other}"), r#"{"uid":"moves"}"#).await.expect(200);
    send.post("/app/moves/msg", body).await.expect(404);
    for client in [&admin, &read] {
        client.get(&format!("/app/{mine}")).await.expect(200);
        for path in ["", "/endpoint", &format!("/endpoint/{}", id(&endpoint)), &format!("/msg/{message}")] {
            client.get(&format!("/app/{other}{path}")).await.expect(404);
        }
        client.get("/app").await.expect(403);
    }
    admin.post(&format!("/app/{mine}/endpoint"), r#"{"url":"https://example.com/"}"#).await.expect(201);
    admin.post(&format!("/app/{other}/endpoint"), r#"{"url":"https://example.com/"}"#).await.expect(404);
    admin.post(&format!("/auth/app-portal-access/{mine}"), "{}").await.expect(200);
    admin.post(&format!("/auth/app-portal-access/{other}"), "{}").await.expect(404);
    admin.post("/app", r#"{"name":"a"}"#).await.expect(403);
    admin.delete(&format!("/app/{mine}")).await.expect(403);
    admin.get("/api-key").await.expect(403);
    admin.get("/audit").await.expect(403);
    // No way around: an application that is made by the way is an application that is made.
    let inline = json!({"application": {"name": "a", "uid": "sneaked"}}).to_string();
    admin.post("/auth/app-portal-access/sneaked", inline).await.expect(403);
    server.client.get("/app/sneaked").await.expect(404);
    assert_eq!(server.stored(&other).await[2], 1);
}

#[tokio::test]
async fn another_organization_neither_sees_nor_revokes_a_key() {
    let server = Running::start().await;
    let (made, client) = key(&server, "admin", None).await;
    let other = server.client.with_token(&token(OTHER_ORGANIZATION));
    assert_eq!(other.get("/api-key").await.expect(200)["data"], json!([]));
    for wanted in [id(&made), made["prefix"].as_str().unwrap()] {
        other.get(&format!("/api-key/{wanted}")).await.expect(404);
        other.patch(&format!("/api-key/{wanted}"), r#"{"name":"mine"}"#).await.expect(404);
        other.delete(&format!("/api-key/{wanted}")).await.expect(404);
    }
    client.get("/app").await.expect(200);
    let app = server.application().await;
    let foreign = json!({"name": "a", "scope": "admin", "appId": app}).to_string();
    other.post("/api-key", foreign).await.expect(404);
    server.client.with_token(&application_token(&app)).get("/api-key").await.expect(403);
}

#[tokio::test]
async fn an_expired_key_counts_no_longer() {
    let server = Running::start().await;
    let clock = SystemClock::new();
    let soon = jiff::Timestamp::from_millisecond(clock.now().millis() + 1500).unwrap();
    let body = json!({"name": "a", "scope": "admin", "expiresAt": soon.to_string()}).to_string();
    let made = server.client.post("/api-key", body).await.expect(201);
    let client = server.client.with_token(made["key"].as_str().unwrap());
    let whoami = client.get("/auth/whoami").await.expect(200);
    assert_eq!(whoami["expiresAt"], made["expiresAt"]);
    wait_until("the key expires", async || client.get("/app").await.status != 200).await;
    assert!(clock.now().millis() >= soon.as_millisecond(), "it ended before its time");
    let refused = client.get("/app").await.expect(401);
    assert_eq!(refused["detail"], "Invalid token: the API key has expired; make another");
    server.client.get(&format!("/api-key/{}", id(&made))).await.expect(200);
}

#[tokio::test]
async fn a_caller_can_ask_who_it_is() {
    let server = Running::start().await;
    let app = server.application().await;
    let (made, client) = key(&server, "send", Some(&app)).await;
    let whoami = client.get("/auth/whoami").await.expect(200);
    assert_eq!(whoami["envId"], aldaba::DEFAULT_ORGANIZATION);
    assert_eq!(
        (&whoami["appId"], &whoami["scope"], &whoami["keyId"]),
        (&json!(app), &json!("send"), &made["id"])
    );
    assert_eq!(whoami["permissionSource"], "RegionalAuthToken");
    let organization = server.client.get("/auth/whoami").await.expect(200);
    assert_eq!((&organization["scope"], &organization["appId"]), (&json!("admin"), &json!(null)));
    assert_eq!(organization["permissionSource"], "SvixJwt");
    server.client.anonymous().get("/auth/whoami").await.expect(401);
}

#[tokio::test]
async fn a_key_that_logs_out_is_revoked() {
    let server = Running::start().await;
    let (made, client) = key(&server, "read", None).await;
    client.post("/auth/logout", "").await.expect(204);
    client.get("/app").await.expect(401);
    server.client.get(&format!("/api-key/{}", id(&made))).await.expect(404);
}

/// Whether any file below the folder holds the text.
fn holds(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[tokio::test]
async fn keys_and_revocations_survive_a_restart_and_no_file_holds_a_key() {
    let server = Running::start().await;
    let (kept, _) = key(&server, "admin", None).await;
    let (revoked, _) = key(&server, "admin", None).await;
    server.client.delete(&format!("/api-key/{}", id(&revoked))).await.expect(204);
    let kept_key = kept["key"].as_str().unwrap();
    server.client.with_token(kept_key).get("/app").await.expect(200);
    let prefix = kept["prefix"].as_str().unwrap();
    let folder = server.stop().await;
    assert!(holds(folder.path(), prefix), "the prefix is on disk, so the looking works");
    let secret = kept_key.rsplit('_').next().unwrap();
    assert!(!holds(folder.path(), secret), "a file holds the key");

    let server = Running::within(folder, |_| {}).await;
    let client = server.client.with_token(kept_key);
    let listed = client.get(&format!("/api-key/{prefix}")).await.expect(200);
    assert!(listed["lastUsedAt"].is_string(), "the use from before: {listed}");
    server.client.with_token(revoked["key"].as_str().unwrap()).get("/app").await.expect(401);
}

#[tokio::test]
async fn an_organization_has_so_many_keys_however_many_are_asked_for_at_once() {
    let server = Running::start().await;
    let most = aldaba_store::ApiKey::MAX_PER_ORGANIZATION;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let client = server.client.clone();
        asking.spawn(async move {
            let (mut made, mut refused) = (0, 0);
            for _ in 0..most / 16 + 8 {
                match client.post("/api-key", r#"{"name": "k", "scope": "read"}"#).await {
                    reply if reply.status == 201 => made += 1,
                    reply if reply.status == 409 => refused += 1,
                    reply => panic!("{reply:?}"),
                }
            }
            (made, refused)
        });
    }
    let counts = asking.join_all().await;
    assert_eq!(counts.iter().map(|(made, _)| made).sum::<usize>(), most);
    assert!(counts.iter().any(|(_, refused)| *refused > 0));
}
