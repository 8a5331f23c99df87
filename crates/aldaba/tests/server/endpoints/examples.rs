//! Examples of event types, sent to one endpoint.

use crate::credentials::tokens::application_token;
use crate::requests::bad_input::places;
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use serde_json::{Value, json};

fn example(event_type: &str) -> String {
    json!({"eventType": event_type}).to_string()
}

async fn described(server: &Running, name: &str, schemas: Value) {
    let body = json!({"description": "", "schemas": schemas}).to_string();
    server.client.put(&format!("/event-type/{name}"), body).await.expect(201);
}

#[tokio::test]
async fn an_example_goes_to_its_endpoint_alone_as_it_was_written() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let (mut mine, mut other) = (Receiver::answering(200, "ok").await, Receiver::answering(200, "ok").await);
    server.endpoint(&app, json!({"uid": "mine", "url": mine.url("/")})).await;
    server.endpoint(&app, json!({"uid": "other", "url": other.url("/")})).await;
    let body = r#"{"description": "", "schemas": {"1": {"examples": [{ "n":1.0 }, {"second": true}]}}}"#;
    server.client.put("/event-type/order", body).await.expect(201);
    let path = format!("/app/{app}/endpoint/mine/send-example");
    let sent = server.client.post(&path, example("order")).await.expect(202);
    assert_eq!((&sent["eventType"], &sent["payload"]), (&json!("order"), &json!({"n": 1.0})));
    let arrived = mine.next().await;
    assert_eq!(&arrived.body[..], br#"{ "n":1.0 }"#);
    assert_eq!(arrived.headers["webhook-id"], sent["id"].as_str().unwrap());
    let second = json!({"eventType": "order", "exampleIndex": 1}).to_string();
    server.client.post(&path, second).await.expect(202);
    assert_eq!(&mine.next().await.body[..], br#"{"second": true}"#);
    server.client.post(&path, example("svix.ping")).await.expect(202);
    assert_eq!(mine.next().await.body, r#"{"success": true}"#.as_bytes());

    // The other endpoint got nothing, misses nothing, and its explanation says why.
    let id = sent["id"].as_str().unwrap();
    let why = server.client.get(&format!("/app/{app}/msg/{id}/endpoint?all=true")).await.expect(200);
    let why = why["data"].as_array().unwrap().iter().find(|one| one["uid"] == "other").unwrap().clone();
    assert_eq!(why["reason"], "for_another_endpoint", "{why}");
    let missing = format!("/app/{app}/endpoint/other/replay-missing");
    let since = json!({"since": "2026-01-01T00:00:00Z"});
    let since = match server.client.post(&missing, since.to_string()).await {
        reply if reply.status == 202 => reply.json(),
        reply => panic!("{:?}", reply.body),
    };
    let task = format!("/background-task/{}", since["id"].as_str().unwrap());
    server.client.get_until(&task, |task| task["status"] == "finished").await;
    server.message(&app, "order").await;
    assert_eq!(&other.next().await.body[..], br#"{"a":1}"#, "nothing came before it");
}

#[tokio::test]
async fn the_filters_of_the_endpoint_still_apply() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "ok").await;
    let more = json!({"uid": "e", "url": receiver.url("/"), "eventTypes": ["wanted"]});
    server.endpoint(&app, more).await;
    let examples = json!({"1": {"examples": [{"n": 1}]}});
    described(&server, "unwanted", examples.clone()).await;
    let body = json!({"description": "", "schemas": examples}).to_string();
    server.client.put("/event-type/wanted", body).await.expect(200);
    let path = format!("/app/{app}/endpoint/e/send-example");
    server.client.post(&path, example("unwanted")).await.expect(202);
    let wanted = server.client.post(&path, example("wanted")).await.expect(202);
    assert_eq!(receiver.next().await.headers["webhook-id"], wanted["id"].as_str().unwrap());
    receiver.nothing_more().await;
}

#[tokio::test]
async fn examples_that_cannot_be_sent_are_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    server.endpoint(&app, json!({"uid": "e"})).await;
    let path = format!("/app/{app}/endpoint/e/send-example");
    described(&server, "none", json!({"1": {}})).await;
    described(&server, "newer-has-none", json!({"1": {"examples": [{}]}, "2": {}})).await;
    described(&server, "text", json!({"1": {"examples": ["x"]}})).await;
    server.event_type("bare").await;
    let strict =
        json!({"description": "", "validate": true, "schemas": {"1": {"required": ["a"], "examples": [{}]}}});
    server.client.put("/event-type/strict", strict.to_string()).await.expect(201);
    for name in ["none", "newer-has-none", "text", "bare", "strict"] {
        let refused = server.client.post(&path, example(name)).await.expect(400);
        assert_eq!(refused["code"], "invalid_scheme", "{name}");
    }
    let beyond = json!({"eventType": "strict", "exampleIndex": 1}).to_string();
    assert_eq!(server.client.post(&path, beyond).await.expect(400)["code"], "invalid_scheme");
    server.client.post(&path, example("missing")).await.expect(404);
    server
        .client
        .post(&format!("/app/{app}/endpoint/x/send-example"), example("svix.ping"))
        .await
        .expect(404);
    server.client.post("/app/x/endpoint/e/send-example", example("svix.ping")).await.expect(404);
    for (body, found) in [
        (json!({}), "body.eventType"),
        (json!({"eventType": null}), "body.eventType"),
        (json!({"eventType": "a b"}), "body.eventType"),
        (json!({"eventType": "svix.ping", "exampleIndex": -1}), "body.exampleIndex"),
        (json!({"eventType": "svix.ping", "exampleIndex": "0"}), "body.exampleIndex"),
    ] {
        assert_eq!(places(&server.client.post(&path, body.to_string()).await), [found], "{body}");
    }
    let portal = server.client.with_token(&application_token(&app));
    portal.post(&path, example("svix.ping")).await.expect(403);
    assert_eq!(server.stored(&app).await, [1, 1, 0]);
}

#[tokio::test]
async fn a_repeated_request_sends_one_example() {
    let server = Running::start().await;
    let app = server.application().await;
    server.endpoint(&app, json!({"uid": "e"})).await;
    let path = format!("/app/{app}/endpoint/e/send-example");
    let first = server.client.post_once(&path, "k", example("svix.ping")).await.expect(202);
    let again = server.client.post_once(&path, "k", example("svix.ping")).await.expect(202);
    assert_eq!(first, again);
    assert_eq!(server.stored(&app).await, [1, 1, 1]);
}
