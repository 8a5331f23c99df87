//! Operational webhooks: an organization is notified about its endpoints and messages.

use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::support::client::Client;
use crate::support::receiver::{Arrival, Receiver};
use crate::support::running::{Running, token};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Tried six times, one after the other.
const HASTY: &str = r#"{"name": "hasty", "schedule": {"type": "list", "delays": ["10ms", "10ms", "10ms", "10ms", "10ms"]},
    "limit": {"attempts": 6}, "endpointFails": {"type": "never"}}"#;

struct Stage {
    server: Running,
    receiver: Receiver,
    /// Receives the operational webhooks.
    ear: Receiver,
    app: String,
    id: String,
}

impl Stage {
    /// The receiver answers with this status.
    async fn new(status: u16) -> Self {
        let server = Running::delivering().await;
        let (receiver, ear) = (Receiver::answering(status, "").await, Receiver::answering(200, "").await);
        let body = json!({"url": ear.url("/ops")}).to_string();
        let made = server.client.post("/operational-webhook/endpoint", body).await.expect(201);
        let app = server.application().await;
        Self { server, receiver, ear, app, id: made["id"].as_str().unwrap().to_owned() }
    }

    async fn endpoint(&mut self, policy: &str) -> String {
        let body = json!({"url": self.receiver.url("/"), "uid": "door", "policy": policy});
        let made = self.server.endpoint(&self.app, body).await;
        made["id"].as_str().unwrap().to_owned()
    }

    async fn hears(&mut self, event: &str) -> Value {
        let Arrival { body, .. } = self.ear.next().await;
        let heard: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(heard["type"], event, "{heard}");
        heard["data"].clone()
    }
}

#[tokio::test]
async fn an_organization_is_notified_about_its_endpoints() {
    let mut stage = Stage::new(200).await;
    let endpoint = stage.endpoint("standard").await;
    let about = |data: &Value| {
        assert_eq!((&data["appId"], &data["endpointId"]), (&json!(stage.app), &json!(endpoint)));
        assert_eq!(data["endpointUid"], "door");
    };
    let path = format!("/app/{}/endpoint/{endpoint}", stage.app);
    let client = stage.server.client.clone();
    client.patch(&path, json!({"description": "x"}).to_string()).await.expect(200);
    client.post(&format!("{path}/secret/rotate"), "{}").await.expect(200);
    client.put(&format!("{path}/headers"), json!({"headers": {"x-a": "1"}}).to_string()).await.expect(204);
    client.patch(&path, json!({"disabled": true}).to_string()).await.expect(200);
    client.patch(&path, json!({"disabled": false}).to_string()).await.expect(200);
    client.delete(&path).await.expect(204);
    let mut heard = Vec::new();
    for _ in 0..8 {
        let Arrival { body, headers, .. } = stage.ear.next().await;
        let secret =
            client.get(&format!("/operational-webhook/endpoint/{}/secret", stage.id)).await.expect(200);
        Webhook::new(secret["key"].as_str().unwrap()).unwrap().verify(&body, &headers).unwrap();
        let event: Value = serde_json::from_slice(&body).unwrap();
        about(&event["data"]);
        heard.push(event["type"].as_str().unwrap().to_owned());
    }
    heard.sort();
    let expected = ["endpoint.created", "endpoint.deleted", "endpoint.disabled", "endpoint.enabled"];
    assert_eq!(heard[..4], expected, "header changes are not told");
    assert!(heard[4..].iter().all(|event| event == "endpoint.updated"), "{heard:?}");
    stage.ear.nothing_more().await;
}

#[tokio::test]
async fn an_organization_is_notified_about_failed_and_recovered_messages() {
    let mut stage = Stage::new(500).await;
    stage.server.client.post("/policy", HASTY).await.expect(201);
    stage.endpoint("hasty").await;
    stage.hears("endpoint.created").await;
    let message = stage.server.message(&stage.app, "a").await;
    let failing = stage.hears("message.attempt.failing").await;
    assert_eq!((&failing["msgId"], &failing["appUid"]), (&json!(message), &Value::Null));
    assert_eq!(failing["lastAttempt"]["responseStatusCode"], 500);
    let exhausted = stage.hears("message.attempt.exhausted").await;
    assert_eq!(exhausted["msgId"], json!(message));
    assert_ne!(exhausted["lastAttempt"]["id"], failing["lastAttempt"]["id"]);

    // Five failures, then a success.
    for _ in 0..6 {
        stage.receiver.next().await;
    }
    let slow = HASTY.replace("\"10ms\"]", "\"2s\"]");
    stage.server.client.put("/policy/hasty", slow).await.expect(200);
    let second = stage.server.message(&stage.app, "b").await;
    stage.hears("message.attempt.failing").await;
    for _ in 0..5 {
        stage.receiver.next().await;
    }
    stage.receiver.answer(200);
    let recovered = stage.hears("message.attempt.recovered").await;
    assert_eq!(recovered["msgId"], json!(second));
    stage.ear.nothing_more().await;
}

#[tokio::test]
async fn the_notice_of_a_gone_endpoint_has_its_trigger_and_time() {
    let mut stage = Stage::new(410).await;
    let endpoint = stage.endpoint("standard").await;
    stage.hears("endpoint.created").await;
    stage.server.message(&stage.app, "a").await;
    let mut heard = Vec::new();
    for _ in 0..2 {
        heard.push(serde_json::from_slice::<Value>(&stage.ear.next().await.body).unwrap());
    }
    let disabled = heard.iter().find(|event| event["type"] == "endpoint.disabled").unwrap();
    let data = &disabled["data"];
    assert_eq!((&data["endpointId"], &data["trigger"]), (&json!(endpoint), &json!("automatic")));
    assert_eq!(data["endpointUid"], "door");
    // It has not failed before: it fails since the attempt that was told so.
    let exhausted = heard.iter().find(|event| event["type"] == "message.attempt.exhausted").unwrap();
    assert_eq!(data["failSince"], exhausted["data"]["lastAttempt"]["timestamp"]);
}

#[tokio::test]
async fn operational_endpoints_are_the_organizations_own() {
    let stage = Stage::new(200).await;
    let client = &stage.server.client;
    let path = format!("/operational-webhook/endpoint/{}", stage.id);
    let listed = client.get("/operational-webhook/endpoint").await.expect(200);
    assert_eq!(listed["data"][0]["id"], json!(stage.id));
    let put = json!({"url": "https://example.com/", "description": "d"}).to_string();
    assert_eq!(client.put(&path, put).await.expect(200)["description"], "d");
    client.put(&format!("{path}/headers"), json!({"headers": {"x-a": "1"}}).to_string()).await.expect(204);
    assert_eq!(client.get(&format!("{path}/headers")).await.expect(200)["headers"], json!({"x-a": "1"}));
    client.post(&format!("{path}/secret/rotate"), "{}").await.expect(200);
    // Neither another organization nor the applications' list knows of them.
    let other = client.with_token(&token(OTHER_ORGANIZATION));
    assert_eq!(other.get("/operational-webhook/endpoint").await.expect(200)["data"], json!([]));
    for path in [path.clone(), format!("{path}/secret"), format!("{path}/headers")] {
        other.get(&path).await.expect(404);
    }
    assert_eq!(client.get("/app").await.expect(200)["data"].as_array().unwrap().len(), 1);
    client.delete(&path).await.expect(204);
    client.get(&path).await.expect(404);
}

#[tokio::test]
async fn the_servers_own_events_are_among_the_event_types_of_the_management_organization() {
    let server = Running::start().await;
    let client = server.client.with_token(&token("org_00000000000SvixManagement00"));
    client.put("/event-type/other", r#"{"description": ""}"#).await.expect(201);
    client.put("/event-type/endpoint.updated", r#"{"description": "mine"}"#).await.expect(201);
    let own = [
        "alert.firing",
        "alert.resolved",
        "endpoint.created",
        "endpoint.deleted",
        "endpoint.disabled",
        "endpoint.enabled",
        "endpoint.updated",
        "message.attempt.exhausted",
        "message.attempt.failing",
        "message.attempt.recovered",
        "operational.left_out",
        "other",
    ];
    let mut seen = Vec::new();
    let mut path = "/event-type?limit=4".to_owned();
    loop {
        let page = client.get(&path).await.expect(200);
        seen.extend(page["data"].as_array().unwrap().iter().map(|one| one["name"].clone()));
        if page["done"] == true {
            break;
        }
        path = format!("/event-type?limit=4&iterator={}", page["iterator"].as_str().unwrap());
    }
    assert_eq!(json!(seen), json!(own));
    for name in own {
        assert_eq!(client.get(&format!("/event-type/{name}")).await.expect(200)["name"], name);
    }
    assert_eq!(client.get("/event-type/endpoint.updated").await.expect(200)["description"], "mine");
    client.patch("/event-type/endpoint.created", r#"{"description": "x"}"#).await.expect(409);
    client.delete("/event-type/endpoint.created").await.expect(409);
    // No other organization gets them.
    assert_eq!(server.client.get("/event-type").await.expect(200)["data"], json!([]));
    server.client.get("/event-type/endpoint.created").await.expect(404);
}

/// Keeps changing an endpoint until it is stopped.
fn keep_putting(client: &Client, path: String, stop: &watch::Receiver<bool>) -> JoinHandle<usize> {
    let (client, stop) = (client.clone(), stop.clone());
    tokio::spawn(async move {
        let mut made = 0;
        while !*stop.borrow() {
            let body =
                json!({"url": "https://example.com/", "disabled": true, "description": made.to_string()});
            let reply = client.put(&path, body.to_string()).await;
            assert!([200, 201, 409].contains(&reply.status.as_u16()), "{reply:?}");
            made += 1;
        }
        made
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_while_an_organizations_own_endpoints_keep_changing() {
    let mut stage = Stage::new(200).await;
    let (stop, stopped) = watch::channel(false);
    let others: Vec<_> = (0..24)
        .map(|n| keep_putting(&stage.server.client, format!("/operational-webhook/endpoint/o{n}"), &stopped))
        .collect();
    let mut made = BTreeSet::new();
    for _ in 0..100 {
        let endpoint = stage.server.endpoint(&stage.app, json!({})).await;
        made.insert(endpoint["id"].as_str().unwrap().to_owned());
        // Spreads the changes over three seconds, concurrent with the others.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    stop.send(true).unwrap();
    for other in others {
        other.await.unwrap();
    }
    for _ in 0..100 {
        let heard: Value = serde_json::from_slice(&stage.ear.next().await.body).unwrap();
        let endpoint = heard["data"]["endpointId"].as_str().unwrap();
        assert!(made.remove(endpoint), "{endpoint} is heard of twice, or was never made");
    }
    stage.ear.nothing_more().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_organization_does_not_delay_the_notices_of_another() {
    let stage = Stage::new(200).await;
    let other = stage.server.client.with_token(&token(OTHER_ORGANIZATION));
    let mut ear = Receiver::answering(200, "").await;
    other.post("/operational-webhook/endpoint", json!({"url": ear.url("/")}).to_string()).await.expect(201);
    other.post("/app", r#"{"name": "b", "uid": "b"}"#).await.expect(201);
    let (stop, stopped) = watch::channel(false);
    let mut noisy = Vec::new();
    for n in 0..24 {
        let uid = format!("n{n}");
        stage.server.client.post("/app", json!({"name": "n", "uid": uid}).to_string()).await.expect(201);
        noisy.push(keep_putting(&stage.server.client, format!("/app/{uid}/endpoint/x"), &stopped));
    }
    // The notices of the first organization pile up meanwhile.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let made = other.post("/app/b/endpoint", r#"{"url": "https://example.com/"}"#).await.expect(201);
    let heard = tokio::time::timeout(Duration::from_secs(3), ear.next()).await.expect("soon");
    let heard: Value = serde_json::from_slice(&heard.body).unwrap();
    assert_eq!(heard["data"]["endpointId"], made["id"]);
    stop.send(true).unwrap();
    let mut puts = 0;
    for noisy in noisy {
        puts += noisy.await.unwrap();
    }
    assert!(puts > 100, "{puts} were no noise to speak of");
}

#[tokio::test]
async fn a_read_key_sees_operational_endpoints_and_no_secrets_and_own_policies_are_refused_there() {
    let stage = Stage::new(200).await;
    let client = &stage.server.client;
    let path = format!("/operational-webhook/endpoint/{}", stage.id);
    let key = async |body: Value| {
        let key = client.post("/api-key", body.to_string()).await.expect(201);
        client.with_token(key["key"].as_str().unwrap())
    };
    let read = key(json!({"name": "r", "scope": "read"})).await;
    read.get("/operational-webhook/endpoint").await.expect(200);
    read.get(&path).await.expect(200);
    for secret in [format!("{path}/secret"), format!("{path}/headers")] {
        read.get(&secret).await.expect(403);
    }
    read.delete(&path).await.expect(403);
    for scope in ["admin", "read"] {
        let of_one = key(json!({"name": "o", "scope": scope, "appId": stage.app})).await;
        of_one.get("/operational-webhook/endpoint").await.expect(403);
    }
    client.post("/policy", HASTY).await.expect(201);
    let body = |policy: &str| json!({"url": "https://example.com/", "policy": policy}).to_string();
    client.post("/operational-webhook/endpoint", body("hasty")).await.expect(422);
    client.post("/operational-webhook/endpoint", body("persistent")).await.expect(201);
}
