//! Retention removes expired data while the server runs, and nothing else.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::wait_until;
use aldaba::config::Config;
use aldaba_engine::{SteppedClock, SystemClock};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Delivers to this machine, and runs retention often.
fn tidy(config: &mut Config) {
    config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    config.engine.retention.interval = Duration::from_millis(50);
}

/// The same, and trusts a clock soon that is far ahead of the last one.
fn tidy_and_trusting(config: &mut Config) {
    tidy(config);
    config.engine.clock_trusted_after = Duration::from_millis(100);
}

/// A policy with this retention of delivered messages.
async fn policy(server: &Running, name: &str, delivered: Value) {
    let policy = json!({
        "name": name,
        "schedule": {"type": "list", "delays": ["1s"]},
        "jitter": {"type": "none"},
        "rejects": ["404"],
        "retention": {"delivered": delivered, "dead": {"for": "untilRemoved"}},
    });
    let made = server.client.post("/policy", policy.to_string()).await.expect(201);
    assert_eq!(made["retention"]["dead"], json!({"for": "untilRemoved"}));
}

async fn ids(server: &Running, path: &str) -> Vec<String> {
    let list = server.client.get(path).await.expect(200);
    list["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().into()).collect()
}

#[tokio::test]
async fn a5_delivered_ones_go_after_their_time_and_failed_ones_stay_also_over_a_restart() {
    let server = Running::with(tidy).await;
    let (mut good, mut bad) = (Receiver::answering(200, "ok").await, Receiver::answering(404, "no").await);
    policy(&server, "brief", json!({"for": "1s"})).await;
    let app = server.application().await;
    let subscribed = |url: String, kind: &str| json!({"url": url, "policy": "brief", "filterTypes": [kind]});
    let endpoint = server.endpoint(&app, subscribed(good.url("/"), "good")).await;
    server.endpoint(&app, subscribed(bad.url("/"), "bad")).await;
    let (delivered, dead) = (server.message(&app, "good").await, server.message(&app, "bad").await);
    good.next().await;
    bad.next().await;
    let (messages, attempts) = (
        format!("/app/{app}/msg"),
        format!("/app/{app}/attempt/endpoint/{}", endpoint["id"].as_str().unwrap()),
    );
    wait_until("the attempt is recorded", async || ids(&server, &attempts).await.len() == 1).await;
    let first = format!("/app/{app}/msg/{delivered}");
    server.client.get(&first).await.expect(200);

    let server = Running::within(server.stop().await, tidy).await;
    wait_until("the delivered one goes", async || ids(&server, &messages).await == [dead.clone()]).await;
    server.client.get(&first).await.expect(404);
    assert_eq!(ids(&server, &attempts).await, Vec::<String>::new());
    let failed = server.client.get(&format!("/app/{app}/attempt/msg/{dead}")).await.expect(200);
    assert_eq!(failed["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a5_the_newest_of_an_application_are_kept_over_all_its_endpoints() {
    let server = Running::with(tidy).await;
    let mut receiver = Receiver::answering(200, "ok").await;
    policy(&server, "few", json!({"newest": 3})).await;
    let (app, other) = (server.application().await, server.application().await);
    for kind in ["a", "b"] {
        let more = json!({"url": receiver.url("/"), "policy": "few", "filterTypes": [kind]});
        server.endpoint(&app, more).await;
    }
    server.endpoint(&other, json!({"url": receiver.url("/"), "policy": "few"})).await;
    let apart = server.message(&other, "a").await;
    receiver.next().await;
    let mut sent = Vec::new();
    for number in 0..8 {
        sent.push(server.message(&app, if number % 3 == 0 { "a" } else { "b" }).await);
        receiver.next().await;
        // Results are recorded in batches: the next message ends in a later batch.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let path = format!("/app/{app}/msg");
    wait_until("three are left", async || ids(&server, &path).await.len() == 3).await;
    let newest: Vec<_> = sent.iter().rev().take(3).cloned().collect();
    assert_eq!(ids(&server, &path).await, newest);
    assert_eq!(ids(&server, &format!("/app/{other}/msg")).await, [apart]);
}

#[tokio::test]
async fn a_replay_that_has_ended_goes_after_its_time() {
    let server = Running::with(|config| {
        tidy(config);
        // Long enough to be seen ended.
        config.engine.retention.replays = Duration::from_secs(3);
        config.engine.idempotency_kept = Duration::from_secs(3);
    })
    .await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({})).await;
    let path = format!("/app/{app}/endpoint/{}/recover", endpoint["id"].as_str().unwrap());
    let body = json!({"since": "2020-01-01T00:00:00Z"}).to_string();
    let task = server.client.post(&path, body).await.expect(202);
    let id = task["id"].as_str().unwrap().to_owned();
    let finished = "/background-task?status=finished";
    wait_until("it has ended", async || ids(&server, finished).await == [id.clone()]).await;
    wait_until("it goes", async || ids(&server, "/background-task").await.is_empty()).await;
    server.client.get(&format!("/background-task/{id}")).await.expect(404);
}

#[tokio::test]
async fn a_repeat_of_what_is_no_longer_kept_names_the_first_and_sends_nothing() {
    let server = Running::with(tidy).await;
    let mut receiver = Receiver::answering(200, "ok").await;
    policy(&server, "brief", json!({"for": "1s"})).await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "brief"})).await;
    let path = format!("/app/{app}/msg");
    let message = r#"{"eventType":"a.b","payload":{"n":1.0},"eventId":"order-7","channels":["x"]}"#;
    let first = server.client.post_once(&path, "k1", message).await.expect(202);
    receiver.next().await;
    wait_until("it goes", async || ids(&server, &path).await.is_empty()).await;
    let mut again = server.client.post_once(&path, "k1", message).await.expect(202);
    // The id knows the moment to 4 ms.
    again["timestamp"] = first["timestamp"].clone();
    assert_eq!(again, first);
    server.client.post_once(&path, "k2", message).await.expect(409);
    assert_eq!(ids(&server, &path).await, Vec::<String>::new());
}

#[tokio::test]
async fn a5_a_discarded_failed_one_goes_with_its_attempts_and_its_message_also_without_its_endpoint() {
    let server = Running::with(tidy).await;
    let mut bad = Receiver::answering(404, "no").await;
    let app = server.application().await;
    let mut endpoints = Vec::new();
    for kind in ["a", "b"] {
        let more = json!({"url": bad.url("/"), "policy": "quick", "filterTypes": [kind]});
        endpoints.push(server.endpoint(&app, more).await["id"].as_str().unwrap().to_owned());
    }
    let mut sent = Vec::new();
    for kind in ["a", "a", "b"] {
        sent.push(server.message(&app, kind).await);
        bad.next().await;
    }
    let dead = format!("/app/{app}/delivery?state=dead");
    wait_until("all have failed", async || ids(&server, &dead).await.len() == 3).await;
    let list = server.client.get(&dead).await.expect(200);
    let discard = async |message: &str| {
        let is_it = |one: &&Value| one["msgId"] == message;
        let id =
            list["data"].as_array().unwrap().iter().find(is_it).unwrap()["id"].as_str().unwrap().to_owned();
        server.client.delete(&format!("/app/{app}/delivery/{id}")).await.expect(204);
        wait_until("it goes", async || {
            server.client.get(&format!("/app/{app}/msg/{message}")).await.status == 404
                && server.client.get(&format!("/app/{app}/delivery/{id}")).await.status == 404
        })
        .await;
    };
    discard(&sent[0]).await;
    server.client.delete(&format!("/app/{app}/endpoint/{}", endpoints[1])).await.expect(204);
    discard(&sent[2]).await;
    // A delivery that is not discarded stays, with its attempt.
    assert_eq!(ids(&server, &format!("/app/{app}/msg")).await, [sent[1].clone()]);
    assert_eq!(ids(&server, &format!("/app/{app}/attempt/msg/{}", sent[1])).await.len(), 1);
}

async fn payload(server: &Running, app: &str, message: &str) -> Value {
    server.client.get(&format!("/app/{app}/msg/{message}")).await.expect(200)["payload"].clone()
}

#[tokio::test]
async fn a_payload_goes_after_its_time_unless_something_waits_for_it_and_its_message_stays() {
    let clock = |hours: i64| Arc::new(SteppedClock::new(Arc::new(SystemClock::new()), hours * 3_600_000));
    let server = Running::on_clock(tempfile::tempdir().unwrap(), clock(0), tidy).await;
    let mut receiver = Receiver::answering(200, "ok").await;
    let app = server.application().await;
    let endpoint = |uid: &str, more: Value| {
        let mut endpoint = json!({"url": receiver.url("/"), "uid": uid, "filterTypes": [uid]});
        endpoint.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        endpoint
    };
    server.endpoint(&app, endpoint("sent", json!({}))).await;
    server.endpoint(&app, endpoint("held", json!({"disabled": true, "whenDisabled": "hold"}))).await;
    let message = |kind: &str, more: Value| {
        let mut body = json!({"eventType": kind, "payload": {"a": 1}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let path = format!("/app/{app}/msg");
    let mut ids = Vec::new();
    for (kind, more) in [
        ("sent", json!({"payloadRetentionHours": 1})),
        ("sent", json!({"payloadRetentionHours": 30, "payloadRetentionPeriod": 90})),
        ("sent", json!({"payloadRetentionPeriod": 1, "payloadRetentionHours": null})),
        ("sent", json!({"payloadRetentionPeriod": null})),
        ("held", json!({"payloadRetentionHours": 1})),
    ] {
        let sent = server.client.post(&path, message(kind, more).to_string()).await.expect(202);
        ids.push(sent["id"].as_str().unwrap().to_owned());
    }
    let batch = json!({"messages": [message("sent", json!({"payloadRetentionHours": 1}))]}).to_string();
    let batch = server.client.post(&format!("{path}/batch"), batch).await.expect(202);
    let in_batch = batch["results"][0]["id"].as_str().unwrap().to_owned();
    for _ in 0..5 {
        receiver.next().await;
    }
    let attempts = format!("/app/{app}/attempt/endpoint/sent");
    wait_until("the attempts are recorded", async || self::ids(&server, &attempts).await.len() == 5).await;

    let folder = server.stop().await;
    let server = Running::on_clock(folder, clock(2), tidy).await;
    let (gone, whole) = (json!({"expired": true}), json!({"a": 1}));
    for message in [&ids[0], &in_batch] {
        wait_until("the payload is gone", async || payload(&server, &app, message).await == gone).await;
    }
    for kept in &ids[1..] {
        assert_eq!(payload(&server, &app, kept).await, whole);
    }
    let resend = format!("/app/{app}/msg/{}/endpoint/sent/resend", ids[0]);
    assert_eq!(server.client.post(&resend, "").await.expect(400)["code"], "missing_payload");
    let all = json!({"since": "2020-01-01T00:00:00Z", "status": 0, "dryRun": true}).to_string();
    let counted = server.client.post(&format!("/app/{app}/endpoint/sent/bulk-replay"), all).await.expect(200);
    assert_eq!(counted["count"], 3, "a replay passes over what has no payload");
    // Held messages are sent unchanged; then nothing needs the payload any more.
    server.client.patch(&format!("/app/{app}/endpoint/held"), r#"{"disabled": false}"#).await.expect(200);
    assert_eq!(&receiver.next().await.body[..], br#"{"a":1}"#);
    wait_until("it is gone, too", async || payload(&server, &app, &ids[4]).await == gone).await;

    let folder = server.stop().await;
    let server = Running::on_clock(folder, clock(25), tidy_and_trusting).await;
    wait_until("a day is over", async || payload(&server, &app, &ids[2]).await == gone).await;
    assert_eq!(payload(&server, &app, &ids[1]).await, whole);
    assert_eq!(payload(&server, &app, &ids[3]).await, whole);
    server.stop().await;
}
