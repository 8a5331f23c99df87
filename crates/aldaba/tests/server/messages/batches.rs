//! Many messages in one request, and the check whether any endpoint would get one.

use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn batch(messages: &[Value]) -> String {
    json!({ "messages": messages }).to_string()
}

fn statuses(answer: &Value) -> Vec<u64> {
    answer["results"].as_array().unwrap().iter().map(|result| result["status"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn every_message_of_a_batch_has_a_result_of_its_own() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let filter = json!({"not": {"payload": "$.n", "eq": 5}});
    server.endpoint(&app, json!({"url": receiver.url("/"), "ordering": "fifo", "filter": filter})).await;
    let message = |n: u64| json!({"eventType": "a", "payload": {"n": n}});
    let with = |n: u64, name: &str, value: Value| {
        let mut message = message(n);
        message[name] = value;
        message
    };
    let path = format!("/app/{app}/msg/batch");
    let body = batch(&[
        with(0, "eventId", json!("mine")),
        with(1, "eventType", json!("not a type")),
        with(2, "eventId", json!("mine")),
        message(3),
        json!(7),
        message(5),
        with(6, "deliverAt", json!("2500-01-01T00:00:00Z")),
        with(7, "payload", json!([])),
        message(8),
    ]);
    let reply = server.client.post(&path, body).await.expect(202);
    assert_eq!(statuses(&reply), [202, 422, 409, 202, 422, 202, 422, 422, 202], "{reply}");
    assert_eq!(reply["accepted"], 4);
    let result = |n: usize| &reply["results"][n];
    assert!(result(0)["id"].as_str().unwrap().starts_with("msg_") && result(0).get("error").is_none());
    assert_eq!(result(1)["error"]["detail"][0]["loc"], json!(["body", "eventType"]));
    assert!(result(1).get("id").is_none());
    assert_eq!(result(2)["error"]["code"], "conflict");
    assert_eq!(result(6)["error"]["detail"][0]["loc"], json!(["body", "deliverAt"]));
    for n in [0, 3, 8] {
        assert_eq!(receiver.next().await.body, json!({"n": n}).to_string(), "in the order of the batch");
    }
    receiver.nothing_more().await;
    assert_eq!(server.stored(&app).await[2], 4);
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_batch_has_no_second_effect() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg/batch");
    let good = json!({"eventType": "a", "payload": {}});
    let body = batch(&[good.clone(), json!({"eventType": "a"}), good.clone()]);
    let first = server.client.post_once(&path, "once", body.clone()).await.expect(202);
    assert_eq!(statuses(&first), [202, 422, 202]);
    assert_ne!(first["results"][0]["id"], first["results"][2]["id"]);
    let again = server.client.post_once(&path, "once", body).await.expect(202);
    assert_eq!(again, first);
    // A rejected message can be accepted now.
    let mended = batch(&[good.clone(), good.clone(), good.clone()]);
    let again = server.client.post_once(&path, "once", mended.clone()).await.expect(202);
    assert_eq!(statuses(&again), [202, 202, 202]);
    assert_eq!(again["results"][0]["id"], first["results"][0]["id"]);
    assert_eq!(server.stored(&app).await[2], 3);
    let another = server.client.post_once(&path, "other", mended).await.expect(202);
    assert_ne!(another["results"][0]["id"], first["results"][0]["id"]);
    assert_eq!(server.stored(&app).await[2], 6);
    server.stop().await;
}

#[tokio::test]
async fn a_batch_has_a_size() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg/batch");
    let message = |padding: usize| json!({"eventType": "a", "payload": {"p": "x".repeat(padding)}});
    let thousand: Vec<_> = (0..1000).map(|_| message(1000)).collect();
    let reply = server.client.post(&path, batch(&thousand)).await.expect(202);
    assert_eq!(reply["accepted"], 1000);
    let ids: BTreeSet<_> =
        reply["results"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 1000);
    let more: Vec<_> = (0..1001).map(|_| message(1)).collect();
    for body in [
        batch(&more),
        batch(&[]),
        "{}".to_owned(),
        "[]".to_owned(),
        String::new(),
        r#"{"messages": {}}"#.to_owned(),
        r#"{"messages": null}"#.to_owned(),
        r#"{"messages": [], "messages": []}"#.to_owned(),
    ] {
        server.client.post(&path, body).await.expect(422);
    }
    let deep = format!("{{\"messages\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(statuses(&server.client.post(&path, deep).await.expect(202)), [422]);
    // Each payload may be as large as that of a single message.
    let reply = server.client.post(&path, batch(&[message(1 << 20), message(1)])).await.expect(202);
    assert_eq!(statuses(&reply), [413, 202]);
    let largest: Vec<_> = (0..15).map(|_| message((1 << 20) - 100)).collect();
    assert_eq!(server.client.post(&path, batch(&largest)).await.expect(202)["accepted"], 15);
    server.client.post(&path, Bytes::from(vec![b' '; (16 << 20) + 1])).await.expect(413);
    server.client.post("/app/nobody/msg/batch", batch(&[message(1)])).await.expect(404);
    server.client.anonymous().post(&path, batch(&[message(1)])).await.expect(401);
    server.stop().await;
}

#[tokio::test]
async fn the_messages_of_a_batch_count_one_by_one() {
    let server = Running::with(|config| {
        config.engine.quotas.application = Some(3);
        config.limits.rates.application = 2;
    })
    .await;
    let app = server.application().await;
    let message = json!({"eventType": "a", "payload": {}});
    let body = batch(&vec![message.clone(); 20]);
    let reply = server.client.post(&format!("/app/{app}/msg/batch"), body).await.expect(202);
    assert_eq!(statuses(&reply)[..5], [202, 202, 202, 429, 429]);
    let last = &reply["results"][19];
    assert_eq!(last["error"]["code"], "quota_exceeded");
    assert!(last["retryAfter"].as_u64().unwrap() >= 1, "{last}");
    // Twenty at two a second, of which one second's worth was saved up; some of it has passed.
    let refused = server.client.post(&format!("/app/{app}/msg"), message.to_string()).await;
    assert_eq!(refused.expect(429)["code"], "rate_limited");
    let seconds: u32 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((2..=10).contains(&seconds), "{seconds}");
    server.stop().await;
}

#[tokio::test]
async fn a_message_of_a_batch_is_checked_as_it_would_be_alone() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let schema = json!({"1": {"type": "object", "required": ["id"]}});
    let described = json!({"name": "order", "description": "", "validate": true, "schemas": schema});
    server.client.post("/event-type", described.to_string()).await.expect(201);
    let body = batch(&[
        json!({"eventType": "order", "payload": {"id": 1}}),
        json!({"eventType": "order", "payload": {}}),
        json!({"eventType": "other", "payload": {}, "application": {"name": "a", "uid": "a"}}),
        json!({"eventType": "other", "payload": {}, "transformationsParams": {"rawPayload": "plain text"}}),
    ]);
    let path = format!("/app/{app}/msg/batch");
    let reply = server.client.post_once(&path, "once", body.clone()).await.expect(202);
    assert_eq!(statuses(&reply), [202, 422, 422, 202], "{reply}");
    assert_eq!(reply["results"][1]["error"]["detail"][0]["loc"], json!(["body", "payload"]));
    assert_eq!(reply["results"][2]["error"]["detail"][0]["loc"], json!(["body", "application"]));
    let mut arrived = [receiver.next().await.body, receiver.next().await.body];
    arrived.sort_unstable();
    assert_eq!(arrived, ["plain text", r#"{"id":1}"#]);
    assert_eq!(server.client.post_once(&path, "once", body).await.expect(202), reply);
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn a_batch_for_many_endpoints_is_stored_in_parts() {
    let server = Running::start().await;
    let app = server.application().await;
    for _ in 0..30 {
        server.endpoint(&app, json!({"disabled": true})).await;
    }
    let messages: Vec<_> = (0..700).map(|n| json!({"eventType": "a", "payload": {"n": n}})).collect();
    let path = format!("/app/{app}/msg/batch");
    let reply = server.client.post_once(&path, "once", batch(&messages)).await.expect(202);
    assert_eq!(reply["accepted"], 700);
    assert_eq!(server.client.post_once(&path, "once", batch(&messages)).await.expect(202), reply);
    let last = reply["results"][699]["id"].as_str().unwrap();
    let told = server.client.get(&format!("/app/{app}/msg/{last}/endpoint?limit=250")).await.expect(200);
    assert_eq!(told["data"].as_array().unwrap().len(), 30);
    server.stop().await;
}

#[tokio::test]
async fn whether_anybody_would_get_a_message_can_be_asked_before() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg/precheck/active");
    let asked = async |body: Value| server.client.post(&path, body.to_string()).await.expect(200);
    assert_eq!(asked(json!({"eventType": "a"})).await, json!({"active": false}), "there is no endpoint");
    server.endpoint(&app, json!({"uid": "a", "eventTypes": ["a"]})).await;
    server.endpoint(&app, json!({"uid": "c", "eventTypes": ["b"], "channels": ["c"]})).await;
    server.endpoint(&app, json!({"uid": "off", "eventTypes": ["d"], "disabled": true})).await;
    server.endpoint(&app, json!({"uid": "f", "eventTypes": ["e"], "filter": {"tag": "x"}})).await;
    for (body, active) in [
        (json!({"eventType": "a"}), true),
        (json!({"eventType": "a", "channels": ["x"]}), true),
        (json!({"eventType": "b"}), false),
        (json!({"eventType": "b", "channels": ["x", "c"]}), true),
        (json!({"eventType": "b", "channels": ["x"]}), false),
        (json!({"eventType": "d"}), false),
        (json!({"eventType": "e"}), true),
        (json!({"eventType": "z"}), false),
    ] {
        assert_eq!(asked(body.clone()).await, json!({ "active": active }), "{body}");
    }
    server.client.delete(&format!("/app/{app}/endpoint/a")).await.expect(204);
    assert_eq!(asked(json!({"eventType": "a"})).await, json!({"active": false}), "as it is now");
    for body in [json!({}), json!({"eventType": "a b"}), json!({"eventType": "a", "channels": []})] {
        server.client.post(&path, body.to_string()).await.expect(422);
    }
    let stranger = server.client.with_token(&token("org_00000000000000000000000000A"));
    stranger.post(&path, r#"{"eventType":"a"}"#).await.expect(404);
    assert_eq!(server.stored(&app).await[2], 0);
    server.stop().await;
}
