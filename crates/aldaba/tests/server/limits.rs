//! Rates and quotas of organizations and applications.

use crate::client::Reply;
use crate::receiver::Receiver;
use crate::running::{Running, token};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const OTHER: &str = "org_00000000000000000000000000A";

#[expect(clippy::disallowed_methods, reason = "this measures")]
fn now() -> Instant {
    Instant::now()
}

/// The seconds of `Retry-After`, of an answer that must be a 429 of this kind.
#[track_caller]
fn refused(reply: &Reply, code: &str, words: &str) -> u32 {
    let body = reply.expect(429);
    assert_eq!(body["code"], code, "{body}");
    assert!(body["detail"].as_str().unwrap().contains(words), "{body}");
    reply.headers["retry-after"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_organization_that_asks_too_often_is_told_to_wait() {
    let server = Running::with(|config| config.limits.rates.organization = 2).await;
    for _ in 0..2 {
        server.client.post("/app", r#"{"name":"a"}"#).await.expect(201);
    }
    let words = "The organization may make 2 requests a second";
    let seconds = refused(&server.client.post("/app", r#"{"name":"b"}"#).await, "rate_limited", words);
    assert_eq!(seconds, 1);
    // Who has no token is told that first; and whether the server is well is always said.
    server.client.anonymous().post("/app", r#"{"name":"a"}"#).await.expect(401);
    server.client.get("/health").await.expect(200);
    let other = server.client.with_token(&token(OTHER));
    other.post("/app", r#"{"name":"a"}"#).await.expect(201);
    tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await;
    // Reads count a quarter: two seconds' worth are eight.
    for _ in 0..6 {
        let page = server.client.get("/app").await.expect(200);
        assert_eq!(page["data"].as_array().unwrap().len(), 2, "what was refused was not done");
    }
    let mut replies = Vec::new();
    for _ in 0..8 {
        replies.push(server.client.get("/app").await.status.as_u16());
    }
    assert!(replies.contains(&429), "{replies:?}");
    server.stop().await;
}

#[tokio::test]
async fn an_application_has_one_rate_by_whatever_name_it_is_called() {
    let server = Running::with(|config| config.limits.rates.application = 2).await;
    let made = server.client.post("/app", r#"{"name":"a","uid":"my-app"}"#).await.expect(201);
    let other = server.application().await;
    let message = r#"{"eventType":"a","payload":{}}"#;
    let id = made["id"].as_str().unwrap();
    server.client.post(&format!("/app/{id}/msg"), message).await.expect(202);
    server.client.post("/app/my-app/msg", message).await.expect(202);
    for name in [id, "my-app", "my%2Dapp"] {
        let reply = server.client.post(&format!("/app/{name}/msg"), message).await;
        refused(&reply, "rate_limited", "The application may make 2 requests a second");
    }
    server.client.post(&format!("/app/{other}/msg"), message).await.expect(202);
    server.client.post("/app", r#"{"name":"b"}"#).await.expect(201);
    server.client.post("/app/nobody/msg", message).await.expect(404);
    // Of another organization the id means nothing, and uses up nothing.
    let stranger = server.client.with_token(&token(OTHER));
    stranger.post(&format!("/app/{other}/msg"), message).await.expect(404);
    stranger.post(&format!("/app/{other}/msg"), message).await.expect(404);
    server.client.post(&format!("/app/{other}/msg"), message).await.expect(202);
    server.stop().await;
}

#[tokio::test]
async fn a_days_messages_are_counted_over_a_restart() {
    let limit = |config: &mut aldaba::config::Config| config.engine.quotas.application = Some(3);
    let server = Running::with(limit).await;
    let (app, other) = (server.application().await, server.application().await);
    let path = format!("/app/{app}/msg");
    let message = |id: &str| json!({"eventType": "a", "payload": {}, "eventId": id}).to_string();
    let first = server.client.post_once(&path, "first", message("1")).await.expect(202);
    server.client.post(&path, message("2")).await.expect(202);
    server.client.post(&path, message("2")).await.expect(409);
    server.client.post(&path, r#"{"eventType":"a"}"#).await.expect(422);
    let folder = server.stop().await;
    let server = Running::within(folder, limit).await;
    server.client.post(&path, message("3")).await.expect(202);
    let words = "The application may send 3 messages a day (UTC), and has sent them";
    let reply = server.client.post(&path, message("4")).await;
    let seconds = refused(&reply, "quota_exceeded", words);
    assert!((1..=86_400).contains(&seconds), "{seconds}");
    assert!(reply.json()["detail"].as_str().unwrap().ends_with("T00:00:00.000Z"), "{:?}", reply.body);
    assert_eq!(server.stored(&app).await[2], 3);
    // A repeat of what was accepted is answered as it was.
    let again = server.client.post_once(&path, "first", message("1")).await.expect(202);
    assert_eq!(again["id"], first["id"]);
    server.client.post(&format!("/app/{other}/msg"), message("1")).await.expect(202);
    server.stop().await;
}

#[tokio::test]
async fn an_organizations_messages_are_those_of_all_its_applications() {
    let server = Running::with(|config| config.engine.quotas.organization = Some(2)).await;
    let (one, two) = (server.application().await, server.application().await);
    server.message(&one, "a").await;
    server.message(&two, "a").await;
    let reply = server.client.post(&format!("/app/{one}/msg"), r#"{"eventType":"a","payload":{}}"#).await;
    refused(&reply, "quota_exceeded", "The organization may send 2 messages a day");
    let other = server.client.with_token(&token(OTHER));
    let made = other.post("/app", r#"{"name":"a"}"#).await.expect(201);
    let path = format!("/app/{}/msg", made["id"].as_str().unwrap());
    other.post(&path, r#"{"eventType":"a","payload":{}}"#).await.expect(202);
    server.stop().await;
}

#[tokio::test]
async fn the_rate_of_an_application_holds_for_all_its_endpoints_together() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let body = r#"{"name":"a","uid":"slow","throttleRate":5}"#;
    let made = server.client.post("/app", body).await.expect(201);
    assert_eq!((&made["throttleRate"], &made["rateLimit"]), (&json!(5), &json!(5)));
    for uid in ["one", "two"] {
        server.endpoint("slow", json!({"uid": uid, "url": receiver.url(&format!("/{uid}"))})).await;
    }
    let begun = now();
    let mut last = String::new();
    for _ in 0..6 {
        last = server.message("slow", "a").await;
    }
    for _ in 0..3 {
        receiver.next().await;
    }
    let status = async |uid: &str| {
        let path = format!("/app/slow/endpoint/{uid}/rate-limit-status");
        server.client.get(&path).await.expect(200)
    };
    let held = status("one").await;
    assert_eq!(
        (&held["status"], &held["applicationThrottleRate"]),
        (&json!("RateLimited"), &json!(5)),
        "{held}"
    );
    assert!(held["throttledSince"].is_string() && held["throttleRate"].is_null(), "{held}");
    let told = server.client.get(&format!("/app/slow/msg/{last}/endpoint")).await.expect(200);
    let reasons: Vec<_> = told["data"].as_array().unwrap().iter().map(|one| &one["reason"]).collect();
    assert!(reasons.contains(&&json!("application_throttled")), "{told}");
    let mut paths = Vec::new();
    for _ in 3..12 {
        paths.push(receiver.next().await.path);
    }
    let took = now() - begun;
    assert!(took >= Duration::from_millis(2100), "twelve requests at five a second took {took:?}");
    assert!(paths.iter().filter(|path| *path == "/one").count() >= 3, "{paths:?}");
    // Nothing waits any more.
    for _ in 0..100 {
        if status("one").await["status"] == "Ok" && status("two").await["status"] == "Ok" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(status("two").await["throttledSince"], Value::Null);
    // Without a rate all go at once.
    let freed = server.client.patch("/app/slow", r#"{"throttleRate":null}"#).await.expect(200);
    assert_eq!(freed["throttleRate"], Value::Null);
    let begun = now();
    for _ in 0..10 {
        server.message("slow", "a").await;
    }
    for _ in 0..20 {
        receiver.next().await;
    }
    let took = now() - begun;
    assert!(took < Duration::from_secs(3), "{took:?}");
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn an_endpoint_says_whether_its_own_rate_holds_it_back() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    server.endpoint(&app, json!({"uid": "slow", "url": receiver.url("/"), "throttleRate": 2})).await;
    let path = format!("/app/{app}/endpoint/slow/rate-limit-status");
    let idle = server.client.get(&path).await.expect(200);
    assert_eq!(
        idle,
        json!({"status": "Ok", "throttledSince": null, "throttleRate": 2, "applicationThrottleRate": null})
    );
    for _ in 0..4 {
        server.message(&app, "a").await;
    }
    receiver.next().await;
    let held = server.client.get(&path).await.expect(200);
    assert_eq!(held["status"], "RateLimited", "{held}");
    for _ in 0..3 {
        receiver.next().await;
    }
    receiver.nothing_more().await;
    assert_eq!(server.client.get(&path).await.expect(200), idle);
    server.client.get(&format!("/app/{app}/endpoint/nobody/rate-limit-status")).await.expect(404);
    server.stop().await;
}

#[tokio::test]
async fn whoever_is_for_one_application_uses_up_no_others_rate_and_learns_nothing_of_it() {
    let server = Running::with(|config| config.limits.rates.application = 5).await;
    let mut ids = Vec::new();
    for uid in ["one", "two"] {
        let made = server.client.post("/app", json!({"name": uid, "uid": uid}).to_string()).await.expect(201);
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    let portal = server.client.post("/auth/app-portal-access/one", "{}").await.expect(200);
    let portal = server.client.with_token(portal["token"].as_str().unwrap());
    let key = json!({"name": "k", "scope": "send", "appId": "one"}).to_string();
    let key = server.client.post("/api-key", key).await.expect(201);
    let key = server.client.with_token(key["key"].as_str().unwrap());
    let message = r#"{"eventType":"a","payload":{}}"#;
    for name in ["two", &ids[1], "nobody"] {
        let mut statuses = Vec::new();
        for _ in 0..30 {
            statuses.push(portal.get(&format!("/app/{name}")).await.status.as_u16());
            statuses.push(key.post(&format!("/app/{name}/msg"), message).await.status.as_u16());
        }
        // By one's own rate, whether it is there or not.
        assert!(statuses.contains(&429), "{name}: {statuses:?}");
        assert!(statuses.iter().all(|status| [404, 429].contains(status)), "{name}: {statuses:?}");
    }
    for _ in 0..4 {
        server.client.post("/app/two/msg", message).await.expect(202);
    }
    let mut own = Vec::new();
    for _ in 0..40 {
        own.push(portal.get("/app/one").await.status.as_u16());
    }
    assert!(own.contains(&429), "{own:?}");
    server.stop().await;
}
