//! Messages for later.

use crate::receiver::Receiver;
use crate::running::Running;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// The server's own time: when it made something, and so much later.
fn later(made: &Value, millis: i64) -> Timestamp {
    made.as_str().unwrap().parse::<Timestamp>().unwrap() + SignedDuration::from_millis(millis)
}

async fn now(server: &Running) -> Value {
    server.client.post("/app", r#"{"name":"clock"}"#).await.expect(201)["createdAt"].clone()
}

fn event(deliver_at: Timestamp) -> String {
    json!({"eventType": "a", "payload": {"a": 1}, "deliverAt": deliver_at.to_string()}).to_string()
}

/// When the one attempt of a message was made.
async fn attempted(server: &Running, app: &str, message: &str) -> Timestamp {
    for _ in 0..200 {
        let list = server.client.get(&format!("/app/{app}/attempt/msg/{message}")).await.expect(200);
        if let Some(attempt) = list["data"].get(0) {
            return attempt["timestamp"].as_str().unwrap().parse().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{message} was never attempted");
}

fn assert_in_time(attempt: Timestamp, moment: Timestamp) {
    let late = attempt.duration_since(moment).as_millis();
    assert!((0..1000).contains(&late), "it left {late} ms after its moment");
}

#[tokio::test]
async fn a_message_leaves_at_its_moment() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let moment = later(&now(&server).await, 1500);
    let sent = server.client.post(&format!("/app/{app}/msg"), event(moment)).await.expect(202);
    let message = sent["id"].as_str().unwrap();
    let shown = server.client.get(&format!("/app/{app}/msg/{message}")).await.expect(200);
    assert_eq!(shown["deliverAt"], sent["deliverAt"]);
    assert_eq!(later(&shown["deliverAt"], 0).as_millisecond(), moment.as_millisecond());
    let waits = server.client.get(&format!("/app/{app}/msg/{message}/endpoint")).await.expect(200);
    assert_eq!(
        (&waits["data"][0]["status"], &waits["data"][0]["nextAttempt"]),
        (&json!(1), &sent["deliverAt"])
    );
    // What is due goes past it.
    let other = server.message(&app, "a").await;
    assert_eq!(receiver.next().await.headers["webhook-id"], other);
    assert_eq!(receiver.next().await.headers["webhook-id"], *message);
    assert_in_time(attempted(&server, &app, message).await, moment);
}

#[tokio::test]
async fn a_message_leaves_at_its_moment_although_the_server_was_started_anew() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let moment = later(&now(&server).await, 3000);
    let sent = server.client.post(&format!("/app/{app}/msg"), event(moment)).await.expect(202);
    let message = sent["id"].as_str().unwrap();
    let folder = server.stop().await;
    let allowed = vec!["127.0.0.0/8".parse().unwrap()];
    let server = Running::within(folder, |config| config.allow_networks = allowed).await;
    assert_eq!(receiver.next().await.headers["webhook-id"], *message);
    assert_in_time(attempted(&server, &app, message).await, moment);
}

#[tokio::test]
async fn a_moment_that_is_over_means_at_once() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "ordering": "fifo"})).await;
    let over = later(&now(&server).await, -60_000);
    let sent = server.client.post(&format!("/app/{app}/msg"), event(over)).await.expect(202);
    assert_eq!(sent["deliverAt"], Value::Null);
    assert_eq!(receiver.next().await.headers["webhook-id"], *sent["id"].as_str().unwrap());
}

#[tokio::test]
async fn a_moment_too_far_ahead_is_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    let day: i64 = 24 * 3_600_000;
    let now = now(&server).await;
    let path = format!("/app/{app}/msg");
    server.client.post(&path, event(later(&now, 366 * day))).await.expect(202);
    let refused = server.client.post(&path, event(later(&now, 366 * day + 3_600_000))).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "deliverAt"]));
}

#[tokio::test]
async fn an_ordered_endpoint_takes_no_message_for_later() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    let ordered = json!({"url": receiver.url("/ordered"), "ordering": "fifo", "channels": ["c"]});
    let ordered = server.endpoint(&app, ordered).await["id"].as_str().unwrap().to_owned();
    server.endpoint(&app, json!({"url": receiver.url("/other")})).await;
    let path = format!("/app/{app}/msg");
    let moment = later(&now(&server).await, 60_000);
    let with_channel =
        json!({"eventType": "a", "payload": {}, "channels": ["c"], "deliverAt": moment.to_string()});
    // It wants to go to both, and goes to neither.
    let refused = server.client.post(&path, with_channel.to_string()).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "deliverAt"]));
    let text = refused["detail"][0]["msg"].as_str().unwrap();
    assert!(text.contains(&ordered) && text.contains("Nothing was stored"), "{text}");
    assert_eq!(server.stored(&app).await[2], 0);
    // One that goes past it is taken.
    let soon = later(&now(&server).await, 300);
    server.client.post(&path, event(soon)).await.expect(202);
    assert_eq!(receiver.next().await.path, "/other");
    // As soon as the endpoint is not ordered, so is the first.
    let endpoint = format!("/app/{app}/endpoint/{ordered}");
    server.client.patch(&endpoint, r#"{"ordering": "none"}"#).await.expect(200);
    server.client.post(&path, with_channel.to_string()).await.expect(202);
    // And now the endpoint cannot become ordered before that one is gone.
    let refused = server.client.patch(&endpoint, r#"{"ordering": "fifo"}"#).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("deliverAt"), "{refused}");
}

#[tokio::test]
async fn whoever_asks_again_under_the_same_key_hears_what_was_accepted_before() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let body = event(later(&now(&server).await, 3_600_000));
    let first = server.client.post_once(&path, "key", body.clone()).await.expect(202);
    server.endpoint(&app, json!({"ordering": "fifo"})).await;
    assert_eq!(server.client.post_once(&path, "key", body.clone()).await.expect(202), first);
    server.client.post_once(&path, "another", body.clone()).await.expect(422);
    server.client.post(&path, body).await.expect(422);
    assert_eq!(server.stored(&app).await[2], 1);
}
