//! From a request to the API to a request at the receiver, and back to what the API tells of it.

use crate::support::receiver::{Arrival, Receiver};
use crate::support::running::Running;
use http::HeaderMap;
use serde_json::{Value, json};
use standardwebhooks::Webhook;

/// Strange on purpose: spacing, order, number spelling, escapes and a repeated key must survive.
const PAYLOAD: &str = r#"{ "z" : 1.0, "a":[1e3 ,"é\/é"],  "z":12345678901234567890123 }"#;

/// Verifies the signature like a receiver, under any header names.
fn verify(arrival: &Arrival, prefix: &str, secret: &str) -> String {
    let mut headers = HeaderMap::new();
    for (name, under) in [
        ("webhook-id", format!("{prefix}-id")),
        ("webhook-timestamp", format!("{prefix}-timestamp")),
        ("webhook-signature", format!("{prefix}-signature")),
    ] {
        headers.insert(name, arrival.headers[&under].clone());
    }
    Webhook::new(secret).unwrap().verify(&arrival.body, &headers).expect("the signature is right");
    headers["webhook-id"].to_str().unwrap().to_owned()
}

/// The items of a list once it has at least this many: an attempt is recorded after its answer.
async fn attempts(server: &Running, path: &str, count: usize) -> Vec<Value> {
    let page = server.client.get_until(path, |page| page["data"].as_array().unwrap().len() >= count).await;
    page["data"].as_array().unwrap().clone()
}

async fn delivered(prefix: &str, profile: Value) {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "thanks").await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/hook?x=1"), "profile": profile})).await;
    let endpoint = endpoint["id"].as_str().unwrap();
    let secret = server.client.get(&format!("/app/{app}/endpoint/{endpoint}/secret")).await.expect(200);
    let body = format!(r#"{{"eventType":"invoice.paid","payload":{PAYLOAD}}}"#);
    let sent = server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
    let message = sent["id"].as_str().unwrap();

    let arrival = receiver.next().await;
    assert_eq!(verify(&arrival, prefix, secret["key"].as_str().unwrap()), message);
    assert_eq!(arrival.path, "/hook?x=1");
    assert_eq!(arrival.body, PAYLOAD.as_bytes());
    assert_eq!(arrival.headers["content-type"], "application/json");

    for path in [format!("attempt/endpoint/{endpoint}"), format!("attempt/msg/{message}")] {
        let attempts = attempts(&server, &format!("/app/{app}/{path}"), 1).await;
        let [attempt] = &attempts[..] else { panic!("one attempt") };
        assert!(attempt["id"].as_str().unwrap().starts_with("atmpt_"));
        assert_eq!(attempt["msgId"], message);
        assert_eq!(attempt["endpointId"], endpoint);
        assert_eq!(attempt["url"], receiver.url("/hook?x=1"));
        assert_eq!(attempt["response"], "thanks");
        assert_eq!(attempt["responseStatusCode"], 200);
        assert_eq!((&attempt["status"], &attempt["statusText"]), (&json!(0), &json!("success")));
        assert_eq!(attempt["triggerType"], 0);
        assert!(attempt["responseDurationMs"].is_u64() && attempt["timestamp"].is_string());
        let bare = server.client.get(&format!("/app/{app}/{path}?with_content=false")).await.expect(200);
        assert_eq!(bare["data"][0]["response"], "{}");
    }
    let destinations = server.client.get(&format!("/app/{app}/msg/{message}/endpoint")).await.expect(200);
    assert_eq!(destinations["data"][0]["status"], 0);
    assert_eq!(destinations["data"][0]["nextAttempt"], Value::Null);
    server.stop().await;
}

#[tokio::test]
async fn a_message_arrives_with_a_standard_webhooks_signature() {
    delivered("webhook", Value::Null).await;
}

#[tokio::test]
async fn a_message_arrives_under_the_svix_headers() {
    delivered("svix", json!("svix")).await;
}

#[tokio::test]
async fn a_failed_attempt_is_listed_with_its_reason_and_the_next_one() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(503, "not now").await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/"), "policy": "job-status"})).await;
    let message = server.message(&app, "a").await;
    let first = receiver.next().await;
    let second = receiver.next().await;
    assert_eq!(first.headers["webhook-id"], second.headers["webhook-id"]);
    let listed = attempts(&server, &format!("/app/{app}/attempt/msg/{message}"), 2).await;
    for attempt in &listed {
        assert_eq!((&attempt["status"], &attempt["statusText"]), (&json!(2), &json!("fail")));
        assert_eq!((&attempt["responseStatusCode"], &attempt["response"]), (&json!(503), &json!("not now")));
        assert_eq!(attempt["error"], "HTTP 503: Service Unavailable");
    }
    let destinations = server.client.get(&format!("/app/{app}/msg/{message}/endpoint")).await.expect(200);
    let destination = &destinations["data"][0];
    assert_eq!((&destination["id"], &destination["status"]), (&endpoint["id"], &json!(2)));
    assert!(destination["nextAttempt"].is_string(), "{destination}");
    // What happened stays visible when the endpoint is gone.
    server
        .client
        .delete(&format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap()))
        .await
        .expect(204);
    let kept = server.client.get(&format!("/app/{app}/attempt/msg/{message}")).await.expect(200);
    assert_eq!(kept["data"][0]["url"], receiver.url("/"));
}

#[tokio::test]
async fn an_endpoint_that_is_gone_reads_disabled_and_plans_no_attempt() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(410, "").await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    assert_eq!(endpoint["disabled"], false);
    let message = server.message(&app, "a").await;
    receiver.next().await;
    attempts(&server, &format!("/app/{app}/attempt/msg/{message}"), 1).await;
    let path = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
    assert_eq!(server.client.get(&path).await.expect(200)["disabled"], true);
    let listed = server.client.get(&format!("/app/{app}/endpoint")).await.expect(200);
    assert_eq!(listed["data"][0]["disabled"], true);
    let held = server.message(&app, "a").await;
    let destinations = server.client.get(&format!("/app/{app}/msg/{held}/endpoint")).await.expect(200);
    let destination = &destinations["data"][0];
    assert_eq!((&destination["disabled"], &destination["status"]), (&json!(true), &json!(1)));
    assert_eq!(destination["nextAttempt"], Value::Null);
}

#[tokio::test]
async fn only_the_endpoints_that_want_a_message_get_it() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(204, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/other-type"), "eventTypes": ["b"]})).await;
    server.endpoint(&app, json!({"url": receiver.url("/other-channel"), "channels": ["c2"]})).await;
    server.endpoint(&app, json!({"url": receiver.url("/off"), "disabled": true})).await;
    server
        .endpoint(&app, json!({"url": receiver.url("/wants"), "eventTypes": ["a"], "channels": ["c1"]}))
        .await;
    let body = r#"{"eventType":"a","payload":{},"channels":["c1"]}"#;
    let sent = server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
    assert_eq!(receiver.next().await.path, "/wants");
    let path = format!("/app/{app}/msg/{}/endpoint", sent["id"].as_str().unwrap());
    let listed = server.client.get(&path).await.expect(200);
    let urls: Vec<_> = listed["data"].as_array().unwrap().iter().map(|one| &one["url"]).collect();
    assert_eq!(urls.len(), 2, "one was skipped, one got it: {listed}");
    let skipped = listed["data"].as_array().unwrap().iter().find(|one| one["url"] == receiver.url("/off"));
    assert_eq!(skipped.unwrap()["reason"], "endpoint_disabled");
}

#[tokio::test]
async fn messages_accepted_before_a_stop_are_delivered_after_it() {
    let server = Running::delivering().await;
    let app = server.application().await;
    // The port is closed until the server has stopped.
    let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    server.endpoint(&app, json!({"url": format!("http://{address}/"), "policy": "job-status"})).await;
    let message = server.message(&app, "a").await;
    let path = format!("/app/{app}/attempt/msg/{message}");
    let failed = attempts(&server, &path, 1).await;
    assert_eq!(failed[0]["responseStatusCode"], 0);
    assert_eq!(failed[0]["response"], failed[0]["error"]);
    let folder = server.stop().await;
    let mut receiver = Receiver::at(address, 200, "").await;
    let allowed = vec!["127.0.0.0/8".parse().unwrap()];
    let server = Running::within(folder, |config| config.allow_networks = allowed).await;
    assert_eq!(receiver.next().await.headers["webhook-id"], message);
    attempts(&server, &path, 2).await;
}

#[tokio::test]
async fn a_large_payload_arrives_byte_for_byte() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url("/")})).await;
    let payload = format!(r#"{{ "a": "{}" , "b":[1 , 2]}}"#, "né".repeat(150_000));
    let body = format!(r#"{{"eventType":"a", "payload":  {payload} }}"#);
    server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
    assert_eq!(receiver.next().await.body, payload.as_bytes());
}
