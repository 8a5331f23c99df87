//! Endpoint headers, rotation of signing secrets, public keys.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::waiting::wait_until;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

const ASYMMETRIC: &str =
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";

struct Stage {
    server: Running,
    receiver: Receiver,
    app: String,
    path: String,
}

impl Stage {
    async fn new(fields: Value) -> Self {
        let server = Running::delivering().await;
        let receiver = Receiver::answering(200, "").await;
        let app = server.application().await;
        let mut endpoint = json!({"url": receiver.url("/")});
        endpoint.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let endpoint = server.endpoint(&app, endpoint).await;
        let path = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
        Self { server, receiver, app, path }
    }

    async fn arrival(&mut self) -> crate::support::receiver::Arrival {
        self.server.message(&self.app, "a").await;
        self.receiver.next().await
    }

    async fn rotate(&self, body: Value) -> crate::support::client::Reply {
        self.server.client.post(&format!("{}/secret/rotate", self.path), body.to_string()).await
    }
}

#[tokio::test]
async fn header_changes_apply_from_the_next_message() {
    let mut stage = Stage::new(json!({"headers": {"X-Team": "billing", "x-api-key": "k-1"}})).await;
    let arrival = stage.arrival().await;
    assert_eq!(
        (&arrival.headers["x-team"], &arrival.headers["x-api-key"]),
        (&"billing".parse().unwrap(), &"k-1".parse().unwrap())
    );
    let path = format!("{}/headers", stage.path);
    let client = stage.server.client.clone();
    let shown = client.get(&path).await.expect(200);
    assert_eq!(shown, json!({"headers": {"X-Team": "billing"}, "sensitive": ["x-api-key"]}));
    let patch = json!({"headers": {"x-team": "sales", "x-new": "1"}, "deleteHeaders": ["X-API-KEY"]});
    client.patch(&path, patch.to_string()).await.expect(204);
    let arrival = stage.arrival().await;
    assert_eq!(
        (&arrival.headers["x-team"], &arrival.headers["x-new"]),
        (&"sales".parse().unwrap(), &"1".parse().unwrap())
    );
    assert!(!arrival.headers.contains_key("x-api-key"));
    client.put(&path, json!({"headers": {"accept": "text/plain"}}).to_string()).await.expect(204);
    let arrival = stage.arrival().await;
    assert_eq!(arrival.headers["accept"], "text/plain");
    assert!(!arrival.headers.contains_key("x-team"));
    client.patch(&path, json!({"headers": {"accept": null}}).to_string()).await.expect(204);
    assert_eq!(client.get(&path).await.expect(200)["headers"], json!({}));
}

#[tokio::test]
async fn headers_that_would_break_a_request_are_refused_by_every_route() {
    let stage = Stage::new(json!({})).await;
    let path = format!("{}/headers", stage.path);
    let client = &stage.server.client;
    for (name, value) in [
        ("content-length", json!("5")),
        ("Webhook-Signature", json!("v1,x")),
        ("x-a", json!("a\r\nx: y")),
        ("x-a", json!("x".repeat(4097))),
        ("x-a", json!(5)),
        ("a b", json!("x")),
    ] {
        let body = json!({"headers": {name: value}}).to_string();
        let place = json!(["body", "headers", name]);
        assert_eq!(client.put(&path, body.clone()).await.expect(422)["detail"][0]["loc"], place);
        assert_eq!(client.patch(&path, body).await.expect(422)["detail"][0]["loc"], place);
        let endpoint = json!({"url": "https://example.com/", "headers": {name: value}}).to_string();
        let made = client.post(&format!("/app/{}/endpoint", stage.app), endpoint).await.expect(422);
        assert_eq!(made["detail"][0]["loc"], place);
    }
    client.put(&path, "{}").await.expect(422);
    assert_eq!(client.get(&path).await.expect(200)["headers"], json!({}));
}

#[tokio::test]
async fn a_rotated_secret_signs_beside_the_old_one_until_its_grace_is_over() {
    let mut stage = Stage::new(json!({})).await;
    let old = stage.server.client.get(&format!("{}/secret", stage.path)).await.expect(200);
    let old = old["key"].as_str().unwrap().to_owned();
    let new = stage.rotate(json!({})).await.expect(200)["key"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    assert_eq!(stage.server.client.get(&format!("{}/secret", stage.path)).await.expect(200)["key"], new);
    let arrival = stage.arrival().await;
    for secret in [&old, &new] {
        Webhook::new(secret).unwrap().verify(&arrival.body, &arrival.headers).unwrap();
    }
    let first = arrival.headers["webhook-signature"].to_str().unwrap().split(' ').count();
    assert_eq!(first, 2, "one signature for each key");
    let chosen = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    let answer = stage.rotate(json!({"key": chosen, "gracePeriodSeconds": 0})).await.expect(200);
    assert_eq!(answer["key"], chosen);
    let arrival = stage.arrival().await;
    assert!(Webhook::new(chosen).unwrap().verify(&arrival.body, &arrival.headers).is_ok());
    assert!(
        Webhook::new(&old).unwrap().verify(&arrival.body, &arrival.headers).is_ok(),
        "its own grace lasts"
    );
    assert!(Webhook::new(&new).unwrap().verify(&arrival.body, &arrival.headers).is_err(), "dropped at once");
}

#[tokio::test]
async fn a_repeated_rotation_rotates_once_and_ten_old_keys_are_the_most() {
    let stage = Stage::new(json!({})).await;
    let path = format!("{}/secret/rotate", stage.path);
    let key = [("idempotency-key", "once")];
    let first = stage.server.client.send(http::Method::POST, &path, &key, "{}".into()).await.expect(200);
    let again = stage.server.client.send(http::Method::POST, &path, &key, "{}".into()).await.expect(200);
    assert_eq!(first, again);
    for _ in 0..9 {
        stage.rotate(json!({})).await.expect(200);
    }
    assert_eq!(stage.rotate(json!({})).await.expect(400)["code"], "limit_reached");
    stage.rotate(json!({"gracePeriodSeconds": 0})).await.expect(200);
    for wrong in [
        json!({"gracePeriodSeconds": 604_801}),
        json!({"gracePeriodSeconds": -1}),
        json!({"key": "nonsense"}),
    ] {
        stage.rotate(wrong).await.expect(422);
    }
    // No body says as much as an empty object.
    let empty = stage.server.client.post(&path, "").await;
    assert_eq!(empty.expect(400)["code"], "limit_reached");
}

#[tokio::test]
async fn the_public_keys_of_an_application_are_readable_without_credentials() {
    let mut stage = Stage::new(json!({"secret": ASYMMETRIC})).await;
    let shown = stage.server.client.get(&format!("{}/secret", stage.path)).await.expect(200);
    let public =
        BASE64_STANDARD.decode(shown["key"].as_str().unwrap().strip_prefix("whpk_").unwrap()).unwrap();
    let nobody = stage.server.client.anonymous();
    let path = format!("/app/{}/jwks.json", stage.app);
    let set = nobody.get(&path).await.expect(200);
    let key = &set["keys"][0];
    assert_eq!((&key["kty"], &key["crv"]), (&json!("OKP"), &json!("Ed25519")));
    assert_eq!(BASE64_URL_SAFE_NO_PAD.decode(key["x"].as_str().unwrap()).unwrap(), public);
    assert!(stage.path.ends_with(key["endpoints"][0].as_str().unwrap()));
    // A symmetric secret is never shown.
    server_with_symmetric(&stage).await;
    assert_eq!(nobody.get(&path).await.expect(200)["keys"].as_array().unwrap().len(), 1);
    stage.rotate(json!({})).await.expect(200);
    assert_eq!(nobody.get(&path).await.expect(200)["keys"].as_array().unwrap().len(), 2, "both sign");
    let arrival = stage.arrival().await;
    let signature = arrival.headers["webhook-signature"].to_str().unwrap();
    assert_eq!(signature.split(' ').filter(|one| one.starts_with("v1a,")).count(), 2);
    let unknown = "/app/app_23rb8YdGqMT0qIzpgGwdXfHirMu/jwks.json";
    for missing in ["/app/nobody/jwks.json", "/app/ep_23rb8YdGqMT0qIzpgGwdXfHirMu/jwks.json", unknown] {
        nobody.get(missing).await.expect(404);
    }
    stage.server.client.delete(&format!("/app/{}", stage.app)).await.expect(204);
    nobody.get(&path).await.expect(404);
}

#[tokio::test]
async fn public_keys_change_with_every_rotation_and_expiry() {
    let stage = Stage::new(json!({"secret": ASYMMETRIC})).await;
    let nobody = stage.server.client.anonymous();
    let path = format!("/app/{}/jwks.json", stage.app);
    let count = async || nobody.get(&path).await.expect(200)["keys"].as_array().unwrap().len();
    assert_eq!((count().await, count().await), (1, 1));
    stage.rotate(json!({"gracePeriodSeconds": 2})).await.expect(200);
    assert_eq!((count().await, count().await), (2, 2));
    wait_until("the former key has ended", async || count().await != 2).await;
    stage.server.client.delete(&stage.path).await.expect(204);
    assert_eq!(count().await, 0);
}

#[tokio::test]
async fn requests_for_public_keys_have_their_own_rate() {
    let stage = Stage::new(json!({"secret": ASYMMETRIC})).await;
    let path = format!("/app/{}/jwks.json", stage.app);
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (nobody, path) = (stage.server.client.anonymous(), path.clone());
        asking.spawn(async move {
            for _ in 0..1000 {
                let reply = nobody.get(&path).await;
                if reply.status == 429 {
                    return Some(reply);
                }
            }
            None
        });
    }
    let refused = asking.join_all().await.into_iter().flatten().next().expect("so many are too many");
    assert_eq!(refused.expect(429)["code"], "rate_limited");
    assert!(refused.headers.contains_key("retry-after"));
    stage.server.client.get(&format!("/app/{}", stage.app)).await.expect(200);
}

async fn server_with_symmetric(stage: &Stage) {
    stage.server.endpoint(&stage.app, json!({"url": "https://example.com/"})).await;
}
