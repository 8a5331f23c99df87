//! The explanation why a message has or has not reached an endpoint.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::{next_id_moment, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::net::TcpListener;

/// The explanations of a message's endpoints, by uid.
async fn told(server: &Running, app: &str, message: &str) -> BTreeMap<String, Value> {
    let page = server.client.get(&format!("/app/{app}/msg/{message}/endpoint?all=true")).await.expect(200);
    let data = page["data"].as_array().unwrap();
    data.iter().map(|one| (one["uid"].as_str().unwrap().to_owned(), one.clone())).collect()
}

/// The explanation of an endpoint once it has this reason.
async fn until(server: &Running, app: &str, message: &str, uid: &str, reason: &str) -> Value {
    wait_for(&format!("{uid} has the reason {reason}"), async || {
        told(server, app, message).await.remove(uid).filter(|one| one["reason"] == reason)
    })
    .await
}

fn says(one: &Value, words: &str) {
    assert!(one["explanation"].as_str().unwrap().contains(words), "{one}");
}

#[tokio::test]
async fn every_endpoint_explains_why_it_got_a_message_or_not() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let (good, bad) = (Receiver::answering(200, "").await, Receiver::answering(503, "").await);
    let gone = Receiver::answering(404, "").await;
    let endpoint = async |uid: &str, url: String, more: Value| {
        let mut body = json!({"uid": uid, "url": url});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.endpoint(&app, body).await
    };
    endpoint("good", good.url("/"), json!({})).await;
    endpoint("retried", bad.url("/"), json!({"policy": "public-api"})).await;
    endpoint("rejected", gone.url("/"), json!({"policy": "public-api"})).await;
    endpoint("other-type", good.url("/"), json!({"eventTypes": ["b"]})).await;
    endpoint("other-channel", good.url("/"), json!({"channels": ["c"]})).await;
    endpoint("off", good.url("/"), json!({"disabled": true})).await;
    let message = server.message(&app, "a").await;
    next_id_moment().await;
    endpoint("newer", good.url("/"), json!({})).await;

    let one = until(&server, &app, &message, "good", "delivered").await;
    assert_eq!((&one["status"], &one["nextAttempt"]), (&json!(0), &Value::Null));
    says(&one, "Delivered by attempt 1");
    let one = until(&server, &app, &message, "retried", "retry").await;
    assert_eq!(one["status"], 2);
    assert!(one["nextAttempt"].is_string());
    says(&one, "Retry 1 of 5 is planned for");
    says(&one, "after: HTTP 503: Service Unavailable");
    let delivery = one["deliveryId"].as_str().unwrap();
    let shown = server.client.get(&format!("/app/{app}/delivery/{delivery}")).await.expect(200);
    for field in ["reason", "explanation", "nextAttempt"] {
        assert_eq!(shown[field], one[field]);
    }
    let one = until(&server, &app, &message, "rejected", "rejected").await;
    says(&one, "Non-retriable error");
    let told = told(&server, &app, &message).await;
    for (uid, reason, words) in [
        ("other-type", "event_type_not_subscribed", "does not subscribe to a (as it is now)"),
        ("other-channel", "channel_not_subscribed", "none of the endpoint's channels"),
        ("newer", "endpoint_newer", "created after the message"),
    ] {
        let one = &told[uid];
        assert_eq!((&one["reason"], &one["nextAttempt"]), (&json!(reason), &Value::Null), "{one}");
        assert!(one.get("status").is_none() && one["deliveryId"].is_null(), "{one}");
        says(one, words);
    }
    let off = &told["off"];
    assert_eq!((&off["reason"], &off["nextAttempt"]), (&json!("endpoint_disabled"), &Value::Null), "{off}");
    says(off, "turned off");
    server.event_type("a").await;
    let change = json!({"eventTypes": ["a"]}).to_string();
    server.client.patch(&format!("/app/{app}/endpoint/other-type"), change).await.expect(200);
    until(&server, &app, &message, "other-type", "subscription_changed").await;
    // Without `all` only those that it goes to, as SDKs expect, and the one that it was skipped for.
    let page = server.client.get(&format!("/app/{app}/msg/{message}/endpoint")).await.expect(200);
    assert_eq!(page["data"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn both_kinds_of_endpoints_come_in_pages() {
    let server = Running::start().await;
    let app = server.application().await;
    let mut ids = Vec::new();
    for number in 0..5 {
        let types = if number % 2 == 0 { json!(["a"]) } else { json!(["b"]) };
        let url = format!("https://unreachable.invalid/{number}");
        let made = server.endpoint(&app, json!({"url": url, "eventTypes": types})).await;
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    let message = server.message(&app, "a").await;
    crate::requests::pages::walk(&server, &format!("/app/{app}/msg/{message}/endpoint?all=true"), &ids).await;
}

#[tokio::test]
async fn held_deliveries_name_the_cause() {
    let server = Running::delivering().await;
    let app = server.application().await;
    // The policy gives the endpoint up as soon as a delivery is exhausted.
    let failing = json!({
        "name": "strict",
        "schedule": {"type": "list", "delays": ["10ms"]},
        "jitter": {"type": "none"},
        "success": ["200-299"],
        "endpointFails": {"type": "whenExhausted"},
        "probe": null,
    });
    server.client.post("/policy", failing.to_string()).await.expect(201);
    let bad = Receiver::answering(500, "").await;
    server
        .endpoint(
            &app,
            json!({"uid": "failed", "url": bad.url("/"), "policy": "strict", "eventTypes": ["f"]}),
        )
        .await;
    let first = server.message(&app, "f").await;
    until(&server, &app, &first, "failed", "exhausted").await;
    let held = server.message(&app, "f").await;
    let one = until(&server, &app, &held, "failed", "endpoint_failed").await;
    assert_eq!((&one["status"], &one["nextAttempt"]), (&json!(1), &Value::Null));
    says(&one, "waits for someone to resume it");

    // The port is closed: after five failures in a row the host is held.
    let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", place.local_addr().unwrap());
    drop(place);
    server.endpoint(&app, json!({"uid": "down", "url": url, "eventTypes": ["d"]})).await;
    for _ in 0..8 {
        server.message(&app, "d").await;
    }
    let held = wait_for("the host is held", async || {
        let last = server.message(&app, "d").await;
        told(&server, &app, &last).await.remove("down").filter(|one| one["reason"] == "host_held")
    })
    .await;
    says(&held, "the host cannot be reached");

    // One request a second, and the first one takes long.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let slow = json!({"uid": "slow", "url": url, "eventTypes": ["s"], "throttleRate": 1});
    server.endpoint(&app, slow).await;
    let sent = server.message(&app, "s").await;
    let _connection = silent.accept().await.unwrap();
    until(&server, &app, &sent, "slow", "in_flight").await;
    let next = server.message(&app, "s").await;
    let one = until(&server, &app, &next, "slow", "throttled").await;
    says(&one, "at most 1 requests a second");
    assert!(one["nextAttempt"].is_string());
}
