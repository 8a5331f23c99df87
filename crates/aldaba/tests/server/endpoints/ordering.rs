//! Ordered endpoints: nothing overtakes.

use crate::support::receiver::{Arrival, Receiver};
use crate::support::running::Running;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// Three attempts, 300 ms apart.
const BRISK: &str = r#"{"name": "brisk", "schedule": {"type": "list", "delays": ["300ms", "300ms"]},
    "jitter": {"type": "none"}}"#;

/// The same, with time for a change before the second.
const LEISURELY: &str = r#"{"name": "leisurely", "schedule": {"type": "list", "delays": ["4s", "300ms"]},
    "jitter": {"type": "none"}}"#;

/// The number in a payload.
fn number(arrival: &Arrival) -> i64 {
    serde_json::from_slice::<Value>(&arrival.body).unwrap()["n"].as_i64().unwrap()
}

/// Refuses each message as often as `refusals` says for its number.
async fn refusing(refusals: fn(i64) -> u32) -> Receiver {
    let seen: Arc<Mutex<HashMap<i64, u32>>> = Arc::default();
    let judge = move |arrival: &Arrival| {
        let number = number(arrival);
        let mut seen = seen.lock().unwrap();
        let times = seen.entry(number).or_default();
        *times += 1;
        if *times <= refusals(number) { 500 } else { 200 }
    };
    Receiver::judging(SocketAddr::from(([127, 0, 0, 1], 0)), "", judge).await
}

/// A server with an application; its endpoint is where the receiver is.
async fn with_endpoint(receiver: &Receiver, more: Value) -> (Running, String, String) {
    let server = Running::delivering().await;
    for policy in [BRISK, LEISURELY] {
        server.client.post("/policy", policy).await.expect(201);
    }
    let app = server.application().await;
    let mut endpoint = json!({"url": receiver.url("/"), "policy": "brisk"});
    endpoint.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let endpoint = server.endpoint(&app, endpoint).await["id"].as_str().unwrap().to_owned();
    (server, app, endpoint)
}

async fn send(server: &Running, app: &str, number: i64) -> String {
    let body = json!({"eventType": "a", "payload": {"n": number}});
    let sent = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
    sent["id"].as_str().unwrap().into()
}

async fn numbers(receiver: &mut Receiver, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        numbers.push(number(&receiver.next().await));
    }
    numbers
}

/// The answer once it is as wanted.
async fn until(server: &Running, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    server.client.get_until(path, wanted).await
}

#[tokio::test]
async fn later_messages_wait_for_the_retries_of_the_first() {
    let mut receiver = refusing(|n| if n % 4 == 1 { 2 } else { 0 }).await;
    let (server, app, endpoint) = with_endpoint(&receiver, json!({"ordering": "fifo"})).await;
    let path = format!("/app/{app}/endpoint/{endpoint}");
    let shown = server.client.get(&path).await.expect(200);
    assert_eq!((&shown["ordering"], &shown["onExhausted"]), (&json!("fifo"), &json!("skip")));
    for n in 1..=6 {
        send(&server, &app, n).await;
    }
    assert_eq!(numbers(&mut receiver, 10).await, [1, 1, 1, 2, 3, 4, 5, 5, 5, 6]);
    assert!(receiver.is_quiet_for(500).await);
}

#[tokio::test]
async fn deliveries_behind_the_first_show_that_they_wait_for_it() {
    let mut receiver = refusing(|_| 100).await;
    let (server, app, _) = with_endpoint(&receiver, json!({"ordering": "fifo", "policy": "standard"})).await;
    let (first, second) = (send(&server, &app, 1).await, send(&server, &app, 2).await);
    assert_eq!(numbers(&mut receiver, 1).await, [1]);
    let to = |message: &str| format!("/app/{app}/msg/{message}/endpoint");
    // Its first attempt has failed, and the next comes in about five seconds.
    let first = until(&server, &to(&first), |list| list["data"][0]["status"] == 2).await;
    let second = server.client.get(&to(&second)).await.expect(200);
    assert_eq!(second["data"][0]["status"], 1);
    assert_eq!(second["data"][0]["nextAttempt"], first["data"][0]["nextAttempt"]);
}

#[tokio::test]
async fn a_message_that_is_never_taken_is_skipped() {
    let mut receiver = refusing(|n| if n == 1 { 100 } else { 0 }).await;
    let (server, app, _) = with_endpoint(&receiver, json!({"ordering": "fifo", "onExhausted": "skip"})).await;
    for n in 1..=3 {
        send(&server, &app, n).await;
    }
    assert_eq!(numbers(&mut receiver, 5).await, [1, 1, 1, 2, 3]);
}

#[tokio::test]
async fn a_failing_message_blocks_until_the_owner_skips_it() {
    let mut receiver = refusing(|n| if n == 1 { 100 } else { 0 }).await;
    let (server, app, endpoint) =
        with_endpoint(&receiver, json!({"ordering": "fifo", "onExhausted": "block"})).await;
    let path = format!("/app/{app}/endpoint/{endpoint}");
    send(&server, &app, 1).await;
    let second = send(&server, &app, 2).await;
    assert_eq!(numbers(&mut receiver, 3).await, [1, 1, 1]);
    let shown = until(&server, &path, |endpoint| endpoint["blocked"] == true).await;
    assert_eq!(shown["disabled"], false, "what comes is taken and waits");
    send(&server, &app, 3).await;
    let waits = server.client.get(&format!("/app/{app}/msg/{second}/endpoint")).await.expect(200);
    assert_eq!((&waits["data"][0]["status"], &waits["data"][0]["nextAttempt"]), (&json!(1), &Value::Null));
    assert!(receiver.is_quiet_for(500).await);
    // A new start changes nothing, nor does another change of the endpoint.
    let folder = server.stop().await;
    let allowed = vec!["127.0.0.0/8".parse().unwrap()];
    let server = Running::within(folder, |config| config.allow_networks = allowed).await;
    let shown = server.client.patch(&path, r#"{"description": "blocked"}"#).await.expect(200);
    assert_eq!(shown["blocked"], true);
    assert!(receiver.is_quiet_for(500).await);
    let shown = server.client.patch(&path, r#"{"onExhausted": "skip"}"#).await.expect(200);
    assert_eq!((&shown["ordering"], &shown["onExhausted"]), (&json!("fifo"), &json!("skip")));
    assert_ne!(shown["health"]["status"], "blocked", "the answer shows what the change has done");
    assert_eq!(numbers(&mut receiver, 2).await, [2, 3]);
    assert_eq!(server.client.get(&path).await.expect(200)["blocked"], false);
}

#[tokio::test]
async fn an_endpoint_becomes_ordered_while_deliveries_wait() {
    let mut receiver = refusing(|n| if n <= 3 { 2 } else { 0 }).await;
    let (server, app, endpoint) = with_endpoint(&receiver, json!({"policy": "leisurely"})).await;
    let path = format!("/app/{app}/endpoint/{endpoint}");
    for n in 1..=3 {
        send(&server, &app, n).await;
    }
    let mut first = numbers(&mut receiver, 3).await;
    first.sort_unstable();
    assert_eq!(first, [1, 2, 3]);
    let shown = server.client.patch(&path, r#"{"ordering": "fifo"}"#).await.expect(200);
    assert_eq!((&shown["ordering"], &shown["onExhausted"]), (&json!("fifo"), &json!("skip")));
    send(&server, &app, 4).await;
    let last = numbers(&mut receiver, 7).await;
    assert_eq!(last, [1, 1, 2, 2, 3, 3, 4]);
    // And back: what it was asked to do when one ends goes with it.
    let shown = server.client.patch(&path, r#"{"ordering": "none"}"#).await.expect(200);
    assert_eq!((&shown["ordering"], &shown["onExhausted"]), (&json!("none"), &Value::Null));
    send(&server, &app, 5).await;
    assert_eq!(numbers(&mut receiver, 1).await, [5]);
}

#[tokio::test]
async fn a_replay_for_later_does_not_delay_other_deliveries() {
    let mut receiver = refusing(|_| 0).await;
    let server = Running::delivering().await;
    let app = server.application().await;
    // Accepted while there was no endpoint that would have had to wait for it.
    let made = server.client.post("/app", r#"{"name":"clock"}"#).await.expect(201)["createdAt"].clone();
    let now: jiff::Timestamp = made.as_str().unwrap().parse().unwrap();
    let later = (now + jiff::SignedDuration::from_hours(24)).to_string();
    let body = json!({"eventType": "a", "payload": {"n": 1}, "deliverAt": later});
    server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
    send(&server, &app, 2).await;
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "ordering": "fifo"})).await;
    let path = format!("/app/{app}/endpoint/{}/replay-missing", made["id"].as_str().unwrap());
    let counted = json!({"since": "2020-01-01T00:00:00Z", "dryRun": true}).to_string();
    assert_eq!(server.client.post(&path, counted).await.expect(200)["count"], 2);
    let replay = json!({"since": "2020-01-01T00:00:00Z"}).to_string();
    let task = server.client.post(&path, replay).await.expect(202);
    let task = format!("/background-task/{}", task["id"].as_str().unwrap());
    let ended = until(&server, &task, |task| task["status"] == "finished").await;
    assert_eq!((&ended["data"]["messagesSent"], &ended["data"]["messagesSeen"]), (&json!(2), &json!(2)));
    send(&server, &app, 3).await;
    assert_eq!(numbers(&mut receiver, 2).await, [2, 3]);
    let pending = format!("/app/{app}/delivery?state=pending");
    let waits = until(&server, &pending, |page| page["data"].as_array().unwrap().len() == 1).await;
    assert_eq!(waits["data"][0]["reason"], "scheduled", "{waits}");
}

#[tokio::test]
async fn invalid_combinations_are_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/endpoint");
    for (field, more) in [
        ("ordering", json!({"ordering": "lifo"})),
        ("ordering", json!({"ordering": true})),
        ("onExhausted", json!({"ordering": "fifo", "onExhausted": "retry"})),
        ("onExhausted", json!({"ordering": "none", "onExhausted": "block"})),
        ("onExhausted", json!({"onExhausted": "skip"})),
    ] {
        let mut body = json!({"url": "https://example.com/"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let refused = server.client.post(&path, body.to_string()).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{more}");
    }
    let endpoint = server.endpoint(&app, json!({})).await;
    let path = format!("{path}/{}", endpoint["id"].as_str().unwrap());
    server.client.patch(&path, r#"{"onExhausted": "block"}"#).await.expect(422);
}
