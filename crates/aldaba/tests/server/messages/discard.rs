//! Giving deliveries up: dead ones are discarded, waiting ones cancelled.

use crate::messages::dead_letter::{id, list, policy, until};
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::{wait_for, wait_until};
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[tokio::test]
async fn a_dead_delivery_is_discarded_and_its_history_stays() {
    let server = Running::delivering().await;
    let (app, receiver) = (server.application().await, Receiver::answering(404, "").await);
    let ok = Receiver::answering(200, "").await;
    server
        .endpoint(&app, json!({"url": receiver.url("/"), "policy": "public-api", "eventTypes": ["a"]}))
        .await;
    server.endpoint(&app, json!({"url": ok.url("/"), "eventTypes": ["b"]})).await;
    server.message(&app, "a").await;
    server.message(&app, "b").await;
    let history = until(&server, &format!("/app/{app}/delivery?state=history"), 2).await;
    // Messages of the same few milliseconds come in any order.
    let of = |state: &str| history.iter().find(|one| one["state"] == state).unwrap();
    let (delivered, dead) = (of("delivered"), of("dead"));
    let path = |one: &Value| format!("/app/{app}/delivery/{}", id(one));
    let refused = server.client.delete(&path(delivered)).await.expect(409);
    let detail =
        format!("The delivery {} was delivered, or skipped: there is nothing to discard", id(delivered));
    assert_eq!(refused["detail"], detail);
    assert_eq!(dead["discarded"], false);
    server.client.delete(&path(dead)).await.expect(204);
    server.client.delete(&path(dead)).await.expect(204);
    assert_eq!(list(&server, &format!("/app/{app}/delivery?state=dead")).await, Vec::<Value>::new());
    assert_eq!(list(&server, "/dead-letter").await, Vec::<Value>::new());
    assert_eq!(list(&server, &format!("/app/{app}/delivery?state=history")).await.len(), 2);
    let shown = server.client.get(&path(dead)).await.expect(200);
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("dead"), &json!("rejected")));
    assert_eq!((&shown["discarded"], shown["attempts"].as_array().unwrap().len()), (&json!(true), 1));
}

#[tokio::test]
async fn many_are_discarded_by_a_filter() {
    let server = Running::delivering().await;
    let (app, receiver) = (server.application().await, Receiver::answering(404, "").await);
    let first = server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "public-api"})).await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "uid": "second", "policy": "public-api"})).await;
    for event_type in ["a", "b", "a"] {
        server.message(&app, event_type).await;
    }
    until(&server, "/dead-letter", 6).await;
    let discard = async |filter: Value| {
        let answer = server.client.post(&format!("/app/{app}/delivery/discard"), filter.to_string()).await;
        let answer = answer.expect(200);
        assert_eq!((&answer["done"], &answer["iterator"]), (&json!(true), &Value::Null));
        answer["discarded"].as_u64().unwrap()
    };
    assert_eq!(discard(json!({"reason": "exhausted"})).await, 0);
    assert_eq!(discard(json!({"before": "2020-01-01T00:00:00Z"})).await, 0);
    assert_eq!(discard(json!({"endpoint": "second", "eventType": "b"})).await, 1);
    assert_eq!(discard(json!({"endpoint": first["id"], "reason": "rejected"})).await, 3);
    assert_eq!(discard(json!({})).await, 2);
    assert_eq!(list(&server, "/dead-letter").await, Vec::<Value>::new());
    for (wrong, field) in [
        (json!({"state": "delivered"}), "state"),
        (json!({"reason": "because"}), "reason"),
        (json!({"before": 5}), "before"),
        (json!({"iterator": "x"}), "iterator"),
    ] {
        let path = format!("/app/{app}/delivery/discard");
        let refused = server.client.post(&path, wrong.to_string()).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{refused}");
    }
}

#[tokio::test]
async fn a_waiting_delivery_is_cancelled_before_its_next_send() {
    let server = Running::delivering().await;
    policy(&server, "soon", json!({"schedule": {"type": "list", "delays": ["1s", "1s", "1s"]}})).await;
    let (app, mut receiver) = (server.application().await, Receiver::answering(500, "").await);
    server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "soon"})).await;
    let cancelled = server.message(&app, "cancelled").await;
    let kept = server.message(&app, "kept").await;
    for _ in 0..2 {
        receiver.next().await;
    }
    let pending = format!("/app/{app}/delivery?state=pending&eventType=cancelled");
    let path = format!("/app/{app}/delivery/{}", id(&until(&server, &pending, 1).await[0]));
    let answer = wait_for("the delivery is no longer in flight", async || {
        let answer = server.client.delete(&path).await;
        if answer.status == 409 {
            // The first attempt is still being recorded.
            let (code, retry_after) = (&answer.json()["code"], &answer.headers["retry-after"]);
            assert_eq!((code, retry_after), (&json!("in_flight"), &"1".parse().unwrap()));
            return None;
        }
        Some(answer)
    })
    .await;
    answer.expect(204);
    let shown = server.client.get(&path).await.expect(200);
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("dead"), &json!("cancelled")));
    assert_eq!((&shown["attemptCount"], &shown["reasonText"]), (&json!(1), &json!("Cancelled")));
    // The other one goes on, three more times; this one never comes again.
    for _ in 0..3 {
        assert_eq!(receiver.next().await.headers["webhook-id"].to_str().unwrap(), kept);
    }
    until(&server, &format!("/app/{app}/delivery?state=pending"), 0).await;
    let attempts = list(&server, &format!("/app/{app}/attempt/msg/{cancelled}")).await;
    assert_eq!(attempts.len(), 1);
}

#[tokio::test]
async fn deliveries_in_flight_are_not_cancelled() {
    let server = Running::delivering().await;
    let app = server.application().await;
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    server.endpoint(&app, json!({"url": url})).await;
    server.message(&app, "a").await;
    let _connection = silent.accept().await.unwrap();
    let pending = until(&server, &format!("/app/{app}/delivery?state=pending"), 1).await;
    assert_eq!((&pending[0]["reason"], &pending[0]["nextAttempt"]), (&json!("in_flight"), &Value::Null));
    let refused = server.client.delete(&format!("/app/{app}/delivery/{}", id(&pending[0]))).await;
    assert_eq!(refused.expect(409)["code"], "in_flight");
    let body = json!({"state": "pending"}).to_string();
    let answer = server.client.post(&format!("/app/{app}/delivery/discard"), body).await.expect(200);
    assert_eq!((&answer["discarded"], &answer["inFlight"]), (&json!(0), &json!(1)));
}

#[tokio::test]
async fn everything_that_waits_for_an_endpoint_is_cancelled_and_stays_so_after_a_restart() {
    let server = Running::delivering().await;
    let app = server.application().await;
    policy(&server, "later", json!({"schedule": {"type": "list", "delays": ["1h"]}})).await;
    let receiver = Receiver::answering(500, "").await;
    let doomed = json!({"url": receiver.url("/"), "uid": "doomed", "policy": "later"});
    server.endpoint(&app, doomed).await;
    server.endpoint(&app, json!({"url": receiver.url("/"), "uid": "kept", "policy": "later"})).await;
    for _ in 0..20 {
        server.message(&app, "a").await;
    }
    let pending = |endpoint: &str| format!("/app/{app}/delivery?state=pending&endpoint={endpoint}");
    let mut cancelled = 0;
    wait_until("all 20 are cancelled", async || {
        let body = json!({"state": "pending", "endpoint": "doomed"}).to_string();
        let answer = server.client.post(&format!("/app/{app}/delivery/discard"), body).await.expect(200);
        cancelled += answer["discarded"].as_u64().unwrap();
        cancelled >= 20
    })
    .await;
    assert_eq!(cancelled, 20);
    assert_eq!(list(&server, &pending("doomed")).await, Vec::<Value>::new());
    let server = Running::within(server.stop().await, |_| {}).await;
    assert_eq!(list(&server, &pending("doomed")).await, Vec::<Value>::new());
    assert_eq!(list(&server, &pending("kept")).await.len(), 20);
    let dead = list(&server, &format!("/app/{app}/delivery?state=dead&reason=cancelled")).await;
    assert_eq!(dead.len(), 20);
}

#[tokio::test]
async fn deliveries_of_a_deleted_endpoint_end_with_it() {
    let server = Running::delivering().await;
    let app = server.application().await;
    policy(&server, "later", json!({"schedule": {"type": "list", "delays": ["1h"]}})).await;
    let mut receiver = Receiver::answering(500, "").await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "later"})).await;
    server.message(&app, "a").await;
    receiver.next().await;
    let endpoint = endpoint["id"].as_str().unwrap();
    server.client.delete(&format!("/app/{app}/endpoint/{endpoint}")).await.expect(204);
    let ended = until(&server, &format!("/app/{app}/delivery?state=history&endpoint={endpoint}"), 1).await;
    assert_eq!((&ended[0]["reason"], &ended[0]["attemptCount"]), (&json!("cancelled"), &json!(1)));
    assert_eq!(ended[0]["discarded"], true);
    assert_eq!(list(&server, "/dead-letter").await, Vec::<Value>::new());
}

#[tokio::test]
async fn cancel_msgs_ends_what_waits_for_an_endpoint_and_is_older() {
    let server = Running::delivering().await;
    let app = server.application().await;
    for uid in ["one", "other"] {
        let waits = json!({"uid": uid, "disabled": true, "whenDisabled": "hold"});
        server.endpoint(&app, waits).await;
    }
    for _ in 0..3 {
        server.message(&app, "a").await;
    }
    let path = format!("/app/{app}/endpoint/one/cancel-msgs");
    server.client.post(&path, r#"{"createdBefore": "2020-01-01T00:00:00Z"}"#).await.expect(204);
    let waiting = async |endpoint: &str| {
        let path = format!("/app/{app}/delivery?state=pending&endpoint={endpoint}");
        server.client.get(&path).await.expect(200)["data"].as_array().unwrap().len()
    };
    assert_eq!((waiting("one").await, waiting("other").await), (3, 3), "nothing is that old");
    server.client.post(&path, r#"{"createdBefore": "2200-01-01T00:00:00Z"}"#).await.expect(204);
    assert_eq!((waiting("one").await, waiting("other").await), (0, 3));
    server.client.post(&path, "{}").await.expect(422);
    server.stop().await;
}
