//! Messages for later.

use crate::support::receiver::{Arrival, Receiver};
use crate::support::running::Running;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// The time of the only attempt of a message.
async fn attempted(server: &Running, app: &str, message: &str) -> Timestamp {
    first_attempt(server, &format!("/app/{app}/attempt/msg/{message}")).await
}

fn assert_in_time(attempt: Timestamp, moment: Timestamp) {
    let late = attempt.duration_since(moment).as_millis();
    assert!((0..1000).contains(&late), "it left {late} ms after its moment");
}

#[tokio::test]
async fn a_delayed_message_is_sent_at_its_time() {
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
    // Due messages overtake it.
    let other = server.message(&app, "a").await;
    assert_eq!(receiver.next().await.headers["webhook-id"], other);
    assert_eq!(receiver.next().await.headers["webhook-id"], *message);
    assert_in_time(attempted(&server, &app, message).await, moment);
}

#[tokio::test]
async fn a_delayed_message_is_sent_at_its_time_after_a_restart() {
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

/// The number in a payload.
async fn number(receiver: &mut Receiver) -> i64 {
    serde_json::from_slice::<Value>(&receiver.next().await.body).unwrap()["n"].as_i64().unwrap()
}

async fn send(server: &Running, app: &str, number: i64, deliver_at: Option<Timestamp>) -> String {
    let deliver_at = deliver_at.map(|moment| moment.to_string());
    let body = json!({"eventType": "a", "payload": {"n": number}, "deliverAt": deliver_at});
    let sent = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
    sent["id"].as_str().unwrap().into()
}

#[tokio::test]
async fn on_an_ordered_endpoint_a_delayed_message_gets_its_position_at_its_time() {
    let server = Running::delivering().await;
    let policy =
        json!({"name": "brisk", "schedule": {"type": "list", "delays": ["2s"]}, "jitter": {"type": "none"}});
    server.client.post("/policy", policy.to_string()).await.expect(201);
    // The first request is refused, and tried again after two seconds.
    let first = Arc::new(AtomicBool::new(true));
    let judge = move |_: &Arrival| if first.swap(false, Ordering::Relaxed) { 500 } else { 200 };
    let mut ordered = Receiver::judging(SocketAddr::from(([127, 0, 0, 1], 0)), "", judge).await;
    let mut other = Receiver::answering(200, "").await;
    let app = server.application().await;
    let fifo = json!({"url": ordered.url("/"), "ordering": "fifo", "policy": "brisk", "uid": "fifo"});
    server.endpoint(&app, fifo).await;
    server.endpoint(&app, json!({"url": other.url("/"), "uid": "other"})).await;

    let moment = later(&now(&server).await, 1000);
    let message = send(&server, &app, 1, Some(moment)).await;
    let path = format!("/app/{app}/msg/{message}/endpoint");
    let waits = server.client.get(&path).await.expect(200);
    for waits in waits["data"].as_array().unwrap() {
        assert_eq!((&waits["status"], &waits["reason"]), (&json!(1), &json!("scheduled")), "{waits}");
        assert_eq!(later(&waits["nextAttempt"], 0).as_millisecond(), moment.as_millisecond());
    }
    // Other messages do not wait for it meanwhile; at its time it waits for those in the order.
    send(&server, &app, 2, None).await;
    assert_eq!((number(&mut ordered).await, number(&mut other).await), (2, 2));
    assert_eq!(number(&mut other).await, 1, "elsewhere it leaves at its moment");
    assert_in_time(attempted_at(&server, &app, &message, "other").await, moment);
    // The delayed message gets its position in the order before the next one.
    tokio::time::sleep(Duration::from_millis(300)).await;
    send(&server, &app, 3, None).await;
    for expected in [2, 1, 3] {
        assert_eq!(number(&mut ordered).await, expected);
    }
    ordered.nothing_more().await;
    server.stop().await;
}

/// The time of the first attempt of a message at an endpoint.
async fn attempted_at(server: &Running, app: &str, message: &str, endpoint: &str) -> Timestamp {
    first_attempt(server, &format!("/app/{app}/msg/{message}/endpoint/{endpoint}/attempt")).await
}

/// The time of the newest attempt in a list, once there is one.
async fn first_attempt(server: &Running, path: &str) -> Timestamp {
    let list = server.client.get_until(path, |list| list["data"].get(0).is_some()).await;
    list["data"][0]["timestamp"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn on_an_ordered_endpoint_a_delayed_message_gets_its_position_after_a_restart() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "ordering": "fifo"})).await;
    let moment = later(&now(&server).await, 3000);
    let message = send(&server, &app, 1, Some(moment)).await;
    let over = send(&server, &app, 2, Some(later(&now(&server).await, 500))).await;
    let folder = server.stop().await;
    let allowed = vec!["127.0.0.0/8".parse().unwrap()];
    let server = Running::within(folder, |config| config.allow_networks = allowed).await;
    assert_eq!(receiver.next().await.headers["webhook-id"], over);
    assert_eq!(receiver.next().await.headers["webhook-id"], message);
    assert_in_time(attempted(&server, &app, &message).await, moment);
}

#[tokio::test]
async fn an_endpoint_may_change_its_ordering_or_go_while_a_message_for_later_waits() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "uid": "e"})).await;
    let endpoint = format!("/app/{app}/endpoint/e");
    send(&server, &app, 1, Some(later(&now(&server).await, 900))).await;
    server.client.patch(&endpoint, r#"{"ordering": "fifo"}"#).await.expect(200);
    send(&server, &app, 2, None).await;
    assert_eq!((number(&mut receiver).await, number(&mut receiver).await), (2, 1));
    send(&server, &app, 3, Some(later(&now(&server).await, 900))).await;
    server.client.patch(&endpoint, r#"{"ordering": "none"}"#).await.expect(200);
    assert_eq!(number(&mut receiver).await, 3);
    // A delayed message ends with its endpoint, although it has no position yet.
    server.client.patch(&endpoint, r#"{"ordering": "fifo"}"#).await.expect(200);
    let message = send(&server, &app, 4, Some(later(&now(&server).await, 3_600_000))).await;
    server.client.delete(&endpoint).await.expect(204);
    let path = format!("/app/{app}/msg/{message}/endpoint");
    server.client.get_until(&path, |page| page["data"][0]["reason"] == "cancelled").await;
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn a_repeat_with_the_same_key_returns_the_accepted_message() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let body = event(later(&now(&server).await, 3_600_000));
    let first = server.client.post_once(&path, "key", body.clone()).await.expect(202);
    server.endpoint(&app, json!({"ordering": "fifo"})).await;
    assert_eq!(server.client.post_once(&path, "key", body.clone()).await.expect(202), first);
    assert_ne!(server.client.post_once(&path, "another", body).await.expect(202)["id"], first["id"]);
    assert_eq!(server.stored(&app).await[2], 2);
}
