//! Sending to a URL that is no endpoint.

use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use std::time::Duration;

#[expect(clippy::disallowed_methods, reason = "this is about real time")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

async fn dispatch(server: &Running, app: &str, body: Value) -> Value {
    server.client.post(&format!("/app/{app}/dispatch"), body.to_string()).await.expect(202)
}

/// The record once it is no longer pending.
async fn ended(server: &Running, app: &str, id: &Value) -> Value {
    let path = format!("/app/{app}/dispatch/{}", id.as_str().unwrap());
    server.client.get_until(&path, |record| record["status"] != "pending").await
}

async fn application_key(server: &Running, app: &str) -> String {
    let secret = server.client.get(&format!("/app/{app}/dispatch/secret")).await.expect(200);
    secret["key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn any_json_goes_out_byte_by_byte_and_signed_with_the_applications_key() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let key = application_key(&server, &app).await;
    for payload in ["[1, 2.50,\"ñ\"]", "{ \"b\":1e3 , \"a\":\"\\u00e9\" }", "\"text\"", "7", "null"] {
        let body = format!(r#"{{"payload": {payload}, "url": "{}"}}"#, receiver.url("/x"));
        let told = server.client.post(&format!("/app/{app}/dispatch"), body).await.expect(202);
        let arrival = receiver.next().await;
        assert_eq!(arrival.body, payload);
        Webhook::new(&key).unwrap().verify(&arrival.body, &arrival.headers).unwrap();
        assert_eq!(arrival.headers["webhook-id"], told["id"].as_str().unwrap());
        let record = ended(&server, &app, &told["id"]).await;
        assert_eq!((&record["status"], &record["attempts"]), (&json!("success"), &json!(1)));
        assert_eq!(record["payload"], serde_json::from_str::<Value>(payload).unwrap());
    }
    assert_eq!(application_key(&server, &app).await, key, "it is always the same");
    let other = server.application().await;
    assert_ne!(application_key(&server, &other).await, key);
    // All went to one address.
    let listed = server.client.get(&format!("/app/{app}/dispatch")).await.expect(200);
    let mut addresses: Vec<_> =
        listed["data"].as_array().unwrap().iter().map(|one| one["endpointId"].clone()).collect();
    assert_eq!(addresses.len(), 5);
    addresses.dedup();
    assert_eq!(addresses.len(), 1);
}

#[tokio::test]
async fn the_key_survives_a_restart_and_so_does_what_waits() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let key = application_key(&server, &app).await;
    let gone = Receiver::answering(200, "").await;
    let (address, url) = (gone.address, gone.url("/later"));
    gone.stop().await;
    let told = dispatch(
        &server,
        &app,
        json!({"url": url, "payload": {"n": 1}, "policy": "quick",
        "headers": {"x-secret": "s3cret"}}),
    )
    .await;
    let folder = server.stop().await;
    let mut receiver = Receiver::at(address, 200, "").await;
    let server =
        Running::within(folder, |config| config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()]).await;
    let arrival = receiver.next().await;
    Webhook::new(&key).unwrap().verify(&arrival.body, &arrival.headers).unwrap();
    assert_eq!(arrival.headers["x-secret"], "s3cret");
    assert_eq!(ended(&server, &app, &told["id"]).await["status"], "success");
    assert_eq!(application_key(&server, &app).await, key);
}

#[tokio::test]
async fn a_secret_a_profile_and_headers_of_its_own_are_for_this_one_alone() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDQUFB";
    let url = receiver.url("/").replace("http://", "http://user:pass@");
    let body = json!({"url": url, "payload": {}, "secret": secret, "profile": "svix",
        "headers": {"X-Trace": "t-1", "X-Api-Key": "k"}, "eventType": "report.ready", "tags": ["a"]});
    let told = dispatch(&server, &app, body).await;
    let arrival = receiver.next().await;
    let value = |name: &str| arrival.headers[name].to_str().unwrap().to_owned();
    assert_eq!((value("x-trace"), value("x-api-key")), ("t-1".into(), "k".into()));
    assert_eq!(value("authorization"), "Basic dXNlcjpwYXNz");
    let mut renamed = http::HeaderMap::new();
    for part in ["id", "timestamp", "signature"] {
        let name: http::HeaderName = format!("webhook-{part}").parse().unwrap();
        renamed.insert(name, arrival.headers[format!("svix-{part}")].clone());
    }
    Webhook::new(secret).unwrap().verify(&arrival.body, &renamed).unwrap();
    assert_eq!(told["url"], receiver.url("/"), "without its password");
    assert_eq!(told["eventType"], "report.ready");
    // The next one has none of it.
    dispatch(&server, &app, json!({"url": receiver.url("/"), "payload": {}})).await;
    let arrival = receiver.next().await;
    for absent in ["x-trace", "x-api-key", "authorization", "svix-id"] {
        assert!(!arrival.headers.contains_key(absent), "{absent}");
    }
    // The sent headers are shown, except secret ones.
    let attempt = server.client.attempt_id(&app, told["id"].as_str().unwrap()).await;
    let shown = format!("/app/{app}/msg/{}/attempt/{attempt}/headers", told["id"].as_str().unwrap());
    let shown = server.client.get(&shown).await.expect(200);
    assert_eq!(shown["sentHeaders"]["x-trace"], "t-1");
    assert!(!shown.to_string().contains("\"k\"") && !shown.to_string().contains("dXNlcjpwYXNz"), "{shown}");
}

#[tokio::test]
async fn a_dispatch_endpoint_is_unlisted_unchangeable_and_gets_no_other_events() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let told = dispatch(&server, &app, json!({"url": receiver.url("/"), "payload": {}})).await;
    receiver.next().await;
    let address = told["endpointId"].as_str().unwrap();
    server.message(&app, "invoice.paid").await;
    receiver.nothing_more().await;
    assert_eq!(server.stored(&app).await, [1, 0, 2]);
    let path = format!("/app/{app}/endpoint/{address}");
    assert_eq!(server.client.get(&path).await.expect(200)["url"], receiver.url("/"));
    server.client.patch(&path, r#"{"disabled": true}"#).await.expect(404);
    server.client.delete(&path).await.expect(404);
    server.client.post(&format!("{path}/secret/rotate"), "{}").await.expect(404);
    let headers = json!({"headers": {"a": "b"}}).to_string();
    server.client.put(&format!("{path}/headers"), headers).await.expect(404);
    let example = json!({"eventType": "svix.ping"}).to_string();
    server.client.post(&format!("{path}/send-example"), example).await.expect(404);
    // What it missed is nothing: events are not for it.
    let since = json!({"since": "2020-01-01T00:00:00Z"}).to_string();
    server.client.post(&format!("{path}/replay-missing"), since).await.expect(202);
    receiver.stays_quiet(Duration::from_millis(500)).await;
    // Its policy is in use, and it does not count toward the limit of endpoints.
    server.endpoint(&app, json!({})).await;
    // With its application it is gone.
    server.client.delete(&format!("/app/{app}")).await.expect(204);
    server.client.get(&format!("/app/{app}/dispatch/{}", told["id"].as_str().unwrap())).await.expect(404);
}

#[tokio::test]
async fn a_dead_dispatch_is_in_the_dead_letter_and_can_be_recovered_and_sent_again() {
    let server = Running::delivering().await;
    let app = server.application().await;
    // Under `quick` a 400 ends a delivery at once.
    let mut receiver = Receiver::answering(400, "no").await;
    let body = json!({"url": receiver.url("/"), "payload": {}, "policy": "quick", "headers": {"x-own": "1"}});
    let told = dispatch(&server, &app, body).await;
    receiver.next().await;
    let dead = ended(&server, &app, &told["id"]).await;
    assert_eq!((&dead["status"], &dead["lastStatusCode"]), (&json!("failed"), &json!(400)));
    assert_eq!(dead["maxAttempts"], 6);
    let letter = server.client.get(&format!("/app/{app}/delivery?state=dead")).await.expect(200);
    assert_eq!(letter["data"][0]["msgId"], told["id"], "{letter}");
    let failed = server.client.get(&format!("/app/{app}/dispatch?status=failed")).await.expect(200);
    assert_eq!(failed["data"][0]["id"], told["id"]);
    let address = told["endpointId"].as_str().unwrap();
    let since = json!({"since": "2020-01-01T00:00:00Z"}).to_string();
    receiver.answer(200);
    server.client.post(&format!("/app/{app}/endpoint/{address}/recover"), since).await.expect(202);
    assert_eq!(receiver.next().await.headers["x-own"], "1");
    assert_eq!(ended(&server, &app, &told["id"]).await["status"], "success");
    let again = format!("/app/{app}/msg/{}/endpoint/{address}/resend", told["id"].as_str().unwrap());
    server.client.post(&again, "").await.expect(202);
    assert_eq!(receiver.next().await.headers["x-own"], "1");
    // A resend to an ordinary endpoint sends the payload, and not the headers of the address.
    let endpoint = server.endpoint(&app, json!({"url": receiver.url("/other")})).await;
    let again = again.replace(address, endpoint["id"].as_str().unwrap());
    server.client.post(&again, "").await.expect(202);
    let arrival = receiver.next().await;
    assert_eq!((arrival.path.as_str(), arrival.headers.contains_key("x-own")), ("/other", false));
}

#[tokio::test]
async fn headers_of_one_url_are_not_sent_to_another() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let with = json!({"url": receiver.url("/a"), "payload": {}, "headers": {"x-own": "1"}});
    let with = dispatch(&server, &app, with).await;
    let without = dispatch(&server, &app, json!({"url": receiver.url("/b"), "payload": {}})).await;
    for told in [&with, &without] {
        receiver.next().await;
        ended(&server, &app, &told["id"]).await;
    }
    let resend = |message: &Value, address: &Value| {
        let (message, address) = (message["id"].as_str().unwrap(), address["endpointId"].as_str().unwrap());
        format!("/app/{app}/msg/{message}/endpoint/{address}/resend")
    };
    server.client.post(&resend(&with, &without), "").await.expect(409);
    receiver.nothing_more().await;
    // Without headers it can be resent there, and neither record changes.
    server.client.post(&resend(&without, &with), "").await.expect(202);
    assert_eq!(receiver.next().await.path, "/a");
    let path = format!("/app/{app}/dispatch/{}", without["id"].as_str().unwrap());
    let record = server.client.get(&path).await.expect(200);
    assert_eq!((&record["url"], &record["attempts"]), (&json!(receiver.url("/b")), &json!(1)));
}

#[tokio::test]
async fn a_410_does_not_end_later_dispatches() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(410, "").await;
    // Under `standard` a 410 would turn an endpoint off, and under `public-api` so would the last failure.
    for policy in ["standard", "public-api"] {
        receiver.answer(410);
        let body = json!({"url": receiver.url("/"), "payload": {}, "policy": policy});
        let gone = dispatch(&server, &app, body.clone()).await;
        receiver.next().await;
        // It is taken at its word for what it answers, and for nothing else.
        let gone = ended(&server, &app, &gone["id"]).await;
        assert_eq!(
            (&gone["status"], &gone["attempts"], &gone["lastStatusCode"]),
            (&json!("failed"), &json!(1), &json!(410))
        );
        receiver.answer(200);
        let told = dispatch(&server, &app, body).await;
        assert_eq!(receiver.next().await.headers["webhook-id"], told["id"].as_str().unwrap());
        assert_eq!(ended(&server, &app, &told["id"]).await["status"], "success");
    }
}

#[tokio::test]
async fn event_ids_keys_and_delays_are_as_for_messages() {
    let server = Running::delivering().await;
    let app = server.application().await;
    let mut receiver = Receiver::answering(200, "").await;
    let path = format!("/app/{app}/dispatch");
    let body = json!({"url": receiver.url("/"), "payload": {}, "eventId": "e-1"}).to_string();
    let first = server.client.post_once(&path, "k", body.clone()).await.expect(202);
    receiver.next().await;
    let again = server.client.post_once(&path, "k", body.clone()).await.expect(202);
    assert_eq!((&again["id"], &again["endpointId"]), (&first["id"], &first["endpointId"]));
    server.client.post(&path, body).await.expect(409);
    receiver.nothing_more().await;
    let by_name = server.client.get(&format!("{path}/e-1")).await.expect(200);
    assert_eq!(by_name["id"], first["id"]);
    let soon = now() + jiff::SignedDuration::from_secs(1);
    let later = json!({"url": receiver.url("/"), "payload": {}, "deliverAt": soon.to_string()});
    let told = dispatch(&server, &app, later).await;
    assert_eq!(told["status"], "pending");
    receiver.next().await;
    assert!(now() >= soon);
    let message = server.message(&app, "a").await;
    server.client.get(&format!("{path}/{message}")).await.expect(404);
}

#[tokio::test]
async fn an_invalid_dispatch_is_explained_and_not_stored() {
    let server = Running::start().await;
    let app = server.application().await;
    let good = json!({"url": "https://example.com/", "payload": {}});
    let path = format!("/app/{app}/dispatch");
    for (field, wrong) in [
        ("url", json!(null)),
        ("url", json!("example.com")),
        ("url", json!("http://localhost/")),
        ("url", json!("http://10.0.0.1/")),
        ("url", json!("http://2130706433/")),
        ("url", json!("https://example.com:99999/")),
        ("eventType", json!("a b")),
        ("policy", json!("no-such")),
        ("profile", json!("no-such")),
        ("profile", json!(5)),
        ("secret", json!("plain")),
        ("eventId", json!("msg_1")),
        ("deliverAt", json!("later")),
        ("deliverAt", json!("2999-01-01T00:00:00Z")),
        ("tags", json!([])),
    ] {
        let mut body = good.clone();
        body[field] = wrong.clone();
        let refused = server.client.post(&path, body.to_string()).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", field]), "{wrong}");
    }
    for headers in [
        json!({"host": "x"}),
        json!({"a": "b\r\nc: d"}),
        json!({"webhook-id": "x"}),
        json!([]),
        json!({"a": 1}),
    ] {
        let mut body = good.clone();
        body["headers"] = headers;
        server.client.post(&path, body.to_string()).await.expect(422);
    }
    for missing in ["url", "payload"] {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(missing);
        server.client.post(&path, body.to_string()).await.expect(422);
    }
    let large = json!({"url": "https://example.com/", "payload": "x".repeat(1 << 20)}).to_string();
    server.client.post(&path, large).await.expect(413);
    let other = server.client.with_token(&token(OTHER_ORGANIZATION));
    other.post(&path, good.to_string()).await.expect(404);
    other.get(&format!("{path}/secret")).await.expect(404);
    let key = |scope: &str| json!({"name": "k", "scope": scope}).to_string();
    let send = server.client.post("/api-key", key("send")).await.expect(201);
    let send = server.client.with_token(send["key"].as_str().unwrap());
    send.get(&format!("{path}/secret")).await.expect(403);
    send.get(&path).await.expect(403);
    let read = server.client.post("/api-key", key("read")).await.expect(201);
    let read = server.client.with_token(read["key"].as_str().unwrap());
    read.post(&path, good.to_string()).await.expect(403);
    read.get(&path).await.expect(200);
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}
