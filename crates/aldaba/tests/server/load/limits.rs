//! Rates and quotas of organizations and applications.

use crate::support::client::Reply;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use crate::support::waiting::wait_until;
use aldaba_engine::{Clock, SystemClock};
use futures_util::future::join_all;
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

/// So many messages in one commit, so that none has left before the last is there; the last one's id.
async fn many(server: &Running, app: &str, count: usize) -> String {
    let messages = vec![json!({"eventType": "a", "payload": {}}); count];
    let body = json!({ "messages": messages }).to_string();
    let sent = server.client.post(&format!("/app/{app}/msg/batch"), body).await.expect(202);
    sent["results"][count - 1]["id"].as_str().unwrap().into()
}

#[tokio::test]
async fn an_organization_over_its_rate_gets_retry_after() {
    let server = Running::with(|config| config.limits.rates.organization = 2).await;
    // Concurrently: while a request waits for the disk, the rate refills.
    let asked = join_all((0..3).map(|_| server.client.post("/app", r#"{"name":"a"}"#))).await;
    let (made, over): (Vec<_>, Vec<_>) = asked.iter().partition(|reply| reply.status == 201);
    assert_eq!((made.len(), over.len()), (2, 1), "{asked:?}");
    let seconds = refused(over[0], "rate_limited", "The organization may make 2 requests a second");
    assert_eq!(seconds, 1);
    // A missing token is reported first; health is always available.
    server.client.anonymous().post("/app", r#"{"name":"a"}"#).await.expect(401);
    server.client.get("/health").await.expect(200);
    let other = server.client.with_token(&token(OTHER));
    other.post("/app", r#"{"name":"a"}"#).await.expect(201);
    // The time that `Retry-After` asks for.
    tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await;
    // Reads count a quarter: two seconds' worth are eight.
    for _ in 0..6 {
        let page = server.client.get("/app").await.expect(200);
        assert_eq!(page["data"].as_array().unwrap().len(), 2, "what was refused was not done");
    }
    let replies = join_all((0..16).map(|_| server.client.get("/app"))).await;
    assert!(replies.iter().any(|reply| reply.status == 429), "{replies:?}");
    server.stop().await;
}

#[tokio::test]
async fn an_application_has_one_rate_for_its_id_and_uid() {
    let server = Running::with(|config| config.limits.rates.application = 2).await;
    let made = server.client.post("/app", r#"{"name":"a","uid":"my-app"}"#).await.expect(201);
    let other = server.application().await;
    let message = r#"{"eventType":"a","payload":{}}"#;
    let names = [made["id"].as_str().unwrap(), "my-app", "my%2Dapp"];
    let send = async |name: &str| server.client.post(&format!("/app/{name}/msg"), message).await;
    let sent = join_all(names.iter().chain(&names).map(|name| send(name))).await;
    let (taken, over): (Vec<_>, Vec<_>) = sent.iter().partition(|reply| reply.status == 202);
    assert_eq!(taken.len(), 2, "{sent:?}");
    for reply in over {
        refused(reply, "rate_limited", "The application may make 2 requests a second");
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

/// Waits for the next day shortly before midnight (UTC), so that a test runs within one day.
async fn a_day_that_goes_on() {
    const DAY: u64 = 24 * 3600;
    let left = DAY - SystemClock::new().wall().millis().unsigned_abs() / 1000 % DAY;
    if left < 60 {
        tokio::time::sleep(Duration::from_secs(left + 1)).await;
    }
}

#[tokio::test]
async fn a_days_messages_are_counted_over_a_restart() {
    a_day_that_goes_on().await;
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
    // A repeat of an accepted request gets the first answer.
    let again = server.client.post_once(&path, "first", message("1")).await.expect(202);
    assert_eq!(again["id"], first["id"]);
    server.client.post(&format!("/app/{other}/msg"), message("1")).await.expect(202);
    server.stop().await;
}

#[tokio::test]
async fn a_message_over_the_quota_does_not_make_its_application() {
    a_day_that_goes_on().await;
    let server = Running::with(|config| config.engine.quotas.organization = Some(1)).await;
    let send = async |uid: &str| {
        let body = json!({"eventType": "a", "payload": {}, "application": {"name": uid, "uid": uid}});
        server.client.post(&format!("/app/{uid}/msg"), body.to_string()).await
    };
    let uids: Vec<_> = (0..8).map(|n| format!("app-{n}")).collect();
    let sent = join_all(uids.iter().map(|uid| send(uid))).await;
    for (uid, reply) in uids.iter().zip(&sent) {
        let there = server.client.get(&format!("/app/{uid}")).await.status;
        match reply.status.as_u16() {
            202 => assert_eq!(there, 200, "{uid}"),
            _ => {
                refused(reply, "quota_exceeded", "The organization may send 1 messages a day");
                assert_eq!(there, 404, "{uid}");
            }
        }
    }
    assert_eq!(sent.iter().filter(|reply| reply.status == 202).count(), 1);
    // The audit log tells of the one that was made.
    let made = server.client.get("/audit?action=application.create").await.expect(200);
    assert_eq!(made["data"].as_array().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn an_organizations_messages_are_those_of_all_its_applications() {
    a_day_that_goes_on().await;
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
    let last = many(&server, "slow", 6).await;
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
    wait_until("both endpoints are Ok", async || {
        status("one").await["status"] == "Ok" && status("two").await["status"] == "Ok"
    })
    .await;
    assert_eq!(status("two").await["throttledSince"], Value::Null);
    // Without a rate all go at once.
    let freed = server.client.patch("/app/slow", r#"{"throttleRate":null}"#).await.expect(200);
    assert_eq!(freed["throttleRate"], Value::Null);
    let begun = now();
    many(&server, "slow", 50).await;
    for _ in 0..100 {
        receiver.next().await;
    }
    let took = now() - begun;
    assert!(took < Duration::from_secs(10), "with the rate it were 19 s: {took:?}");
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn an_endpoint_shows_whether_its_rate_delays_it() {
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
    many(&server, &app, 8).await;
    receiver.next().await;
    let held = server.client.get(&path).await.expect(200);
    assert_eq!(held["status"], "RateLimited", "{held}");
    for _ in 0..7 {
        receiver.next().await;
    }
    receiver.nothing_more().await;
    assert_eq!(server.client.get(&path).await.expect(200), idle);
    server.client.get(&format!("/app/{app}/endpoint/nobody/rate-limit-status")).await.expect(404);
    server.stop().await;
}

#[tokio::test]
async fn credentials_of_one_application_cannot_use_or_see_the_rate_of_another() {
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
        let (app, messages) = (format!("/app/{name}"), format!("/app/{name}/msg"));
        let reads = join_all((0..30).map(|_| portal.get(&app)));
        let sends = join_all((0..30).map(|_| key.post(&messages, message)));
        let (reads, sends) = tokio::join!(reads, sends);
        let statuses: Vec<_> = reads.iter().chain(&sends).map(|reply| reply.status.as_u16()).collect();
        // By one's own rate, whether it is there or not.
        assert!(statuses.contains(&429), "{name}: {statuses:?}");
        assert!(statuses.iter().all(|status| [404, 429].contains(status)), "{name}: {statuses:?}");
    }
    for _ in 0..4 {
        server.client.post("/app/two/msg", message).await.expect(202);
    }
    let own = join_all((0..40).map(|_| portal.get("/app/one"))).await;
    assert!(own.iter().any(|reply| reply.status == 429), "{own:?}");
    server.stop().await;
}
