//! Deleted payloads are neither read nor sent, and no delivery waits for them forever.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use aldaba_engine::{Clock, SystemClock};
use serde_json::{Value, json};

async fn send(server: &Running, app: &str, more: Value) -> String {
    let mut body = json!({"eventType": "a", "payload": {"secret": "hunter2"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let sent = server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
    sent["id"].as_str().unwrap().into()
}

/// The page of a list once it has this many items.
async fn until(server: &Running, path: &str, count: usize) -> Value {
    server.client.get_until(path, |page| page["data"].as_array().unwrap().len() == count).await
}

#[tokio::test]
async fn a_deleted_payload_is_neither_read_nor_sent_again() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "ok").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "uid": "e"})).await;
    let message = send(&server, &app, json!({"eventId": "order-7"})).await;
    receiver.next().await;
    until(&server, &format!("/app/{app}/attempt/msg/{message}"), 1).await;
    let path = format!("/app/{app}/msg/{message}");
    let raw = server.client.get(&format!("{path}/raw")).await.expect(200);
    assert_eq!(raw, json!({"payload": r#"{"secret":"hunter2"}"#}));
    server.client.delete(&format!("/app/{app}/msg/order-7/content")).await.expect(204);
    let expired = json!({"expired": true});
    assert_eq!(server.client.get(&path).await.expect(200)["payload"], expired);
    assert_eq!(
        server.client.get(&format!("{path}?with_content=false")).await.expect(200)["payload"],
        json!({})
    );
    let list = server.client.get(&format!("/app/{app}/msg")).await.expect(200);
    assert_eq!(list["data"][0]["payload"], expired);
    let of_endpoint = server.client.get(&format!("/app/{app}/endpoint/e/msg")).await.expect(200);
    assert_eq!(
        (&of_endpoint["data"][0]["payload"], &of_endpoint["data"][0]["status"]),
        (&expired, &json!(0))
    );
    assert_eq!(server.client.get(&format!("{path}/raw")).await.expect(404)["code"], "missing_payload");
    let again = server.client.post(&format!("{path}/endpoint/e/resend"), "").await.expect(400);
    assert_eq!(again["code"], "missing_payload");
    receiver.nothing_more().await;
    // A replay passes it over.
    let all = json!({"since": "2020-01-01T00:00:00Z", "dryRun": true});
    let count =
        server.client.post(&format!("/app/{app}/endpoint/e/bulk-replay"), all.to_string()).await.expect(200);
    assert_eq!(count["count"], 0);
    // Twice is as good as once; and its name stays taken.
    server.client.delete(&format!("{path}/content")).await.expect(204);
    let repeated = json!({"eventType": "a", "payload": {}, "eventId": "order-7"});
    server.client.post(&format!("/app/{app}/msg"), repeated.to_string()).await.expect(409);
    server.client.delete(&format!("/app/{app}/msg/order-8/content")).await.expect(404);
}

#[tokio::test]
async fn deliveries_of_a_deleted_payload_become_dead_at_once() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(500, "no").await;
    let app = server.application().await;
    for (uid, disabled) in [("retried", false), ("off", true)] {
        let more =
            json!({"url": receiver.url("/"), "uid": uid, "disabled": disabled, "whenDisabled": "hold"});
        server.endpoint(&app, more).await;
    }
    let message = send(&server, &app, json!({})).await;
    receiver.next().await;
    let other = send(&server, &app, json!({"eventType": "b"})).await;
    receiver.next().await;
    until(&server, &format!("/app/{app}/attempt/endpoint/retried"), 2).await;
    assert_eq!(until(&server, &format!("/app/{app}/delivery?state=pending"), 4).await["done"], true);
    server.client.delete(&format!("/app/{app}/msg/{message}/content")).await.expect(204);
    let dead = server.client.get(&format!("/dead-letter?app={app}")).await.expect(200);
    let dead = dead["data"].as_array().unwrap();
    assert_eq!(dead.len(), 2, "{dead:?}");
    for delivery in dead {
        assert_eq!(delivery["msgId"], *message);
        assert_eq!((&delivery["state"], &delivery["reason"]), (&json!("dead"), &json!("payload_deleted")));
        assert_eq!(delivery["reasonText"], "Payload deleted");
    }
    // The other one is not concerned, and nothing more of this one leaves when its endpoint is on again.
    let waiting = server.client.get(&format!("/app/{app}/delivery?state=pending")).await.expect(200);
    assert!(waiting["data"].as_array().unwrap().iter().all(|one| one["msgId"] == *other), "{waiting}");
    receiver.answer(200);
    receiver.all_there();
    server.client.patch(&format!("/app/{app}/endpoint/off"), r#"{"disabled":false}"#).await.expect(200);
    let arrival = receiver.next().await;
    assert_eq!(arrival.headers["webhook-id"], *other);
}

#[tokio::test]
async fn a_deleted_delayed_message_is_not_sent_even_after_a_restart() {
    let local = |config: &mut aldaba::config::Config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    };
    let server = Running::with(local).await;
    let mut receiver = Receiver::answering(200, "ok").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let soon =
        jiff::Timestamp::from_millisecond(SystemClock::new().wall().millis() + 2000).unwrap().to_string();
    let (deleted, kept) = (
        send(&server, &app, json!({"deliverAt": soon})).await,
        send(&server, &app, json!({"deliverAt": soon})).await,
    );
    server.client.delete(&format!("/app/{app}/msg/{deleted}/content")).await.expect(204);
    let server = Running::within(server.stop().await, local).await;
    assert_eq!(receiver.next().await.headers["webhook-id"], *kept);
    receiver.nothing_more().await;
    let delivered = server.client.get(&format!("/app/{app}/delivery?state=history")).await.expect(200);
    assert_eq!(delivered["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_deleted_response_is_gone_and_its_attempt_stays() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(500, "a secret of the receiver").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "uid": "answers"})).await;
    server.endpoint(&app, json!({"url": "http://127.0.0.1:1/", "uid": "refuses"})).await;
    let message = send(&server, &app, json!({})).await;
    let list = until(&server, &format!("/app/{app}/attempt/msg/{message}"), 2).await;
    for attempt in list["data"].as_array().unwrap() {
        let path = format!("/app/{app}/msg/{message}/attempt/{}", attempt["id"].as_str().unwrap());
        let mut before = server.client.get(&path).await.expect(200);
        server.client.delete(&format!("{path}/content")).await.expect(204);
        let after = server.client.get(&path).await.expect(200);
        assert_eq!(after["response"], "EXPUNGED");
        before["response"] = after["response"].clone();
        assert_eq!(after, before, "all else is as it was");
    }
    let list = server.client.get(&format!("/app/{app}/attempt/msg/{message}")).await.expect(200);
    assert!(!list.to_string().contains("secret of the receiver"));
    let bare =
        server.client.get(&format!("/app/{app}/attempt/msg/{message}?with_content=false")).await.expect(200);
    assert_eq!(bare["data"][0]["response"], "{}");
}

#[tokio::test]
async fn the_headers_of_an_attempt_are_shown_without_secrets() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "ok").await;
    let app = server.application().await;
    let url = receiver.url("/").replace("http://", "http://user:hunter2@");
    server
        .endpoint(&app, json!({"url": url, "uid": "e", "headers": {"X-Team": "north", "X-Api-Key": "k-123"}}))
        .await;
    let message = send(&server, &app, json!({})).await;
    let arrival = receiver.next().await;
    let list = until(&server, &format!("/app/{app}/attempt/msg/{message}"), 1).await;
    let path = format!("/app/{app}/msg/{message}/attempt/{}", list["data"][0]["id"].as_str().unwrap());
    let told = server.client.get(&format!("{path}/headers")).await.expect(200);
    let sent = told["sentHeaders"].as_object().unwrap();
    for name in
        ["webhook-id", "webhook-timestamp", "webhook-signature", "content-type", "user-agent", "x-team"]
    {
        assert_eq!(sent[name], arrival.headers[name].to_str().unwrap(), "{name}");
    }
    assert_eq!(told["responseHeaders"], Value::Null);
    let mut hidden: Vec<_> =
        told["sensitive"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    hidden.sort_unstable();
    assert_eq!(hidden, ["authorization", "x-api-key"]);
    assert!(!told.to_string().contains("k-123") && !told.to_string().contains("hunter2"));
    // A deleted payload cannot be signed again.
    server.client.delete(&format!("/app/{app}/msg/{message}/content")).await.expect(204);
    let told = server.client.get(&format!("{path}/headers")).await.expect(200);
    assert!(told["sentHeaders"].get("webhook-signature").is_none());
    assert_eq!(told["sentHeaders"]["webhook-id"], *message);
    // A deleted endpoint is still known by what it was.
    server.client.delete(&format!("/app/{app}/endpoint/e")).await.expect(204);
    server.client.get(&format!("{path}/headers")).await.expect(200);
}
