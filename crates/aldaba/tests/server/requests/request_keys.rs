//! What makes two requests with an `idempotency-key` the same one.

use crate::credentials::tokens::OTHER_ORGANIZATION;
use crate::support::client::Client;
use crate::support::receiver::Receiver;
use crate::support::running::{ISSUED, Running, jwt_secret, token};
use aldaba::{DEFAULT_ORGANIZATION, issue_token};
use aldaba_delivery::Timestamp;
use http::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

const MESSAGE: &str = r#"{"eventType":"a","payload":{}}"#;

fn id(json: &Value) -> String {
    json["id"].as_str().unwrap().to_owned()
}

/// A caller with an API key.
async fn with_key(server: &Running, body: Value) -> Client {
    let made = server.client.post("/api-key", body.to_string()).await.expect(201);
    server.client.with_token(made["key"].as_str().unwrap())
}

async fn application(client: &Client, uid: &str) -> String {
    id(&client.post("/app", json!({"name": uid, "uid": uid}).to_string()).await.expect(201))
}

/// The same organization by other credentials, and by other spellings of one.
async fn callers(server: &Running, app: &str) -> Vec<Client> {
    let later = Timestamp::from_millis(ISSUED.millis() + 1000);
    let fresh = issue_token(&jwt_secret(), DEFAULT_ORGANIZATION.parse().unwrap(), later);
    let mut lower = server.client.clone();
    lower.authorization = lower.authorization.map(|value| value.replace("Bearer ", "bearer   "));
    vec![
        server.client.clone(),
        lower,
        server.client.with_token(&fresh),
        with_key(server, json!({"name": "n", "scope": "send"})).await,
        with_key(server, json!({"name": "n", "scope": "admin", "appId": app})).await,
    ]
}

#[tokio::test]
async fn one_idempotency_key_is_one_message_for_all_credentials_and_spellings() {
    let server = Running::start().await;
    let app = application(&server.client, "sol").await;
    let mut made = BTreeSet::new();
    for client in callers(&server, &app).await {
        for name in [app.as_str(), "sol", "s%6Fl"] {
            for query in ["", "?with_content=false", "?with_content=true"] {
                let sent = client.post_once(&format!("/app/{name}/msg{query}"), "k", MESSAGE).await;
                made.insert(id(&sent.expect(202)));
            }
        }
    }
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(server.stored(&app).await, [1, 0, 1]);

    // Another organization has its own keys, also if its application has the same name.
    let stranger = server.client.with_token(&token(OTHER_ORGANIZATION));
    let other = application(&stranger, "sol").await;
    let sent = stranger.post_once("/app/sol/msg", "k", MESSAGE).await.expect(202);
    assert!(made.insert(id(&sent)));
    let again = stranger.post_once(&format!("/app/{other}/msg"), "k", MESSAGE).await.expect(202);
    assert_eq!(id(&again), id(&sent));
    server.stop().await;
}

#[tokio::test]
async fn another_key_route_or_application_is_another_request() {
    let server = Running::start().await;
    let (app, _) = (application(&server.client, "sol").await, application(&server.client, "luna").await);
    let dispatch = r#"{"url":"https://example.com/","payload":{}}"#;
    let mut made = BTreeSet::new();
    for (path, key, body) in [
        (format!("/app/{app}/msg"), "k1", MESSAGE),
        (format!("/app/{app}/msg"), "k2", MESSAGE),
        ("/app/luna/msg".to_owned(), "k1", MESSAGE),
        (format!("/app/{app}/dispatch"), "k1", dispatch),
    ] {
        let sent = server.client.post_once(&path, key, body).await.expect(202);
        assert!(made.insert(id(&sent)), "{path} {key}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_message_that_makes_its_application_is_one_by_its_key_too() {
    let server = Running::start().await;
    let inline = json!({"eventType": "a", "payload": {}, "application": {"name": "Sol", "uid": "sol"}});
    let sends = (0..8).map(|_| server.client.post_once("/app/sol/msg", "k", inline.to_string()));
    let replies = futures_util::future::join_all(sends).await;
    let mut made: BTreeSet<_> = replies.iter().map(|reply| id(&reply.expect(202))).collect();
    let app = id(&server.client.get("/app/sol").await.expect(200));
    for path in [format!("/app/{app}/msg"), "/app/sol/msg".to_owned()] {
        made.insert(id(&server.client.post_once(&path, "k", MESSAGE).await.expect(202)));
    }
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(server.stored(&app).await, [1, 0, 1]);
    server.stop().await;
}

#[tokio::test]
async fn a_batch_is_the_same_by_any_credential() {
    let server = Running::start().await;
    let app = application(&server.client, "sol").await;
    let batch = json!({"messages": [{"eventType": "a", "payload": {}}, {"eventType": "b", "payload": {}}]});
    let mut made = BTreeSet::new();
    for client in callers(&server, &app).await {
        for name in [app.as_str(), "sol"] {
            let sent = client.post_once(&format!("/app/{name}/msg/batch"), "k", batch.to_string()).await;
            made.insert(sent.expect(202)["results"].to_string());
        }
    }
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(server.stored(&app).await, [1, 0, 2]);
    server.stop().await;
}

#[tokio::test]
async fn endpoints_messages_and_sources_are_the_same_by_id_and_by_uid() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let app = application(&server.client, "sol").await;
    let made = server.endpoint(&app, json!({"url": receiver.url("/"), "uid": "door"})).await;
    let endpoint = id(&made);
    let message = json!({"eventType": "a", "payload": {}, "eventId": "order-1"}).to_string();
    let message = id(&server.client.post(&format!("/app/{app}/msg"), message).await.expect(202));
    receiver.next().await;
    let attempts = format!("/app/{app}/attempt/msg/{message}");
    let made = async || server.client.get(&attempts).await.expect(200)["data"].as_array().unwrap().len();
    server.client.attempt_id(&app, &message).await;

    // One manual attempt.
    for path in [
        format!("/app/{app}/msg/{message}/endpoint/{endpoint}/resend"),
        "/app/sol/msg/order-1/endpoint/door/resend".to_owned(),
        format!("/app/{app}/msg/order-1/endpoint/{endpoint}/resend"),
        format!("/app/sol/msg/{message}/endpoint/door/resend"),
    ] {
        server.client.post_once(&path, "k", "").await.expect(202);
    }
    receiver.next().await;
    assert_eq!(made().await, 2, "the first, and one by hand");

    // One replay, one new secret.
    for (action, body, shown) in [
        ("recover", json!({"since": "2020-01-01T00:00:00Z"}), "id"),
        ("replay-missing", json!({"since": "2020-01-01T00:00:00Z"}), "id"),
        ("bulk-replay", json!({"since": "2020-01-01T00:00:00Z", "status": 2}), "id"),
        ("secret/rotate", json!({}), "key"),
        ("send-example", json!({"eventType": "svix.ping"}), "id"),
    ] {
        let mut answers = BTreeSet::new();
        for path in [format!("/app/{app}/endpoint/{endpoint}"), "/app/sol/endpoint/door".to_owned()] {
            let reply = server.client.post_once(&format!("{path}/{action}"), "k", body.to_string()).await;
            assert!(reply.status.is_success(), "{action}: {:?}", reply.body);
            answers.insert(reply.json()[shown].to_string());
        }
        assert_eq!(answers.len(), 1, "{action}: {answers:?}");
    }
    receiver.next().await;

    let source = json!({"name": "s", "uid": "spring", "type": "generic-webhook"}).to_string();
    let source = id(&server.client.post("/ingest/source", source).await.expect(201));
    let mut urls = BTreeSet::new();
    for name in [source.as_str(), "spring"] {
        let path = format!("/ingest/source/{name}/token/rotate");
        let rotated = server.client.post_once(&path, "k", "").await.expect(200);
        urls.insert(rotated["ingestUrl"].to_string());
    }
    assert_eq!(urls.len(), 1, "{urls:?}");
    receiver.nothing_more().await;
    server.stop().await;
}

#[tokio::test]
async fn idempotency_keys_are_private_to_those_who_may_access_the_application() {
    let server = Running::start().await;
    let (app, other) = (application(&server.client, "sol").await, application(&server.client, "luna").await);
    let path = format!("/app/{app}/msg");
    server.client.post_once(&path, "k", MESSAGE).await.expect(202);
    let stranger = server.client.with_token(&token(OTHER_ORGANIZATION));
    let read = with_key(&server, json!({"name": "n", "scope": "read"})).await;
    let of_other = with_key(&server, json!({"name": "n", "scope": "send", "appId": other})).await;
    for (client, status) in [(server.client.anonymous(), 401), (read, 403), (stranger, 404), (of_other, 404)]
    {
        // With the key as with any other one.
        let answers =
            [client.post_once(&path, "k", MESSAGE).await, client.post_once(&path, "x", MESSAGE).await];
        let [used, unused] = answers.map(|reply| reply.expect(status));
        assert_eq!(used, unused);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_repeat_with_another_body_gets_the_first_answer() {
    let server = Running::start().await;
    let app = server.application().await;
    let path = format!("/app/{app}/msg");
    let first =
        server.client.post_once(&path, "k", r#"{"eventType":"a","payload":{"n":1}}"#).await.expect(202);
    let again =
        server.client.post_once(&path, "k", r#"{"eventType":"b","payload":{"n":2}}"#).await.expect(202);
    assert_eq!(again, first);
    server.stop().await;
}

/// As servers made it that took the credential for a part of the request. Of the path they saw what follows `/api/v1`.
fn former_digest(authorization: &str, key: &str, path_without_application: &str) -> Vec<u8> {
    let text = format!("{authorization}\0{key}\0{path_without_application}\0");
    Sha256::digest(text.as_bytes())[..16].to_vec()
}

#[tokio::test]
async fn keys_that_a_former_version_has_stored_are_honoured() {
    let server = Running::start().await;
    let app = application(&server.client, "sol").await;
    let path = format!("/app/{app}/msg");
    let batch = json!({"messages": [{"eventType": "a", "payload": {}}]}).to_string();
    let first = server.client.post_once(&path, "k", MESSAGE).await.expect(202);
    let authorization = server.client.authorization.clone().unwrap();
    let folder = server.stop().await;

    let file = folder.path().join("data").join("aldaba.db");
    let replace = |digest: &[u8]| {
        let connection = Connection::open(&file).unwrap();
        let changed = connection.execute("UPDATE unique_key SET key = ?1 WHERE kind = 1", (digest,)).unwrap();
        assert_eq!(changed, 1);
    };
    replace(&former_digest(&authorization, "k", "/app//msg"));
    let server = Running::within(folder, |_| {}).await;
    for name in [app.as_str(), "sol"] {
        let again = server.client.post_once(&format!("/app/{name}/msg"), "k", MESSAGE).await.expect(202);
        assert_eq!(again, first, "{name}");
    }
    assert_eq!(server.stored(&app).await, [1, 0, 1]);

    // Items of a batch, whose digests are made of that of the whole.
    let folder = server.stop().await;
    let whole = former_digest(&authorization, "b", "/app//msg/batch");
    replace(&Sha256::digest([&whole[..], &0u64.to_be_bytes()].concat())[..16]);
    let server = Running::within(folder, |_| {}).await;
    let again = server.client.post_once(&format!("{path}/batch"), "b", batch).await.expect(202);
    assert_eq!(again["results"][0]["id"], first["id"]);

    // Resources of a whole organization.
    let folder = server.stop().await;
    replace(&former_digest(&authorization, "a", "/app?get_if_exists=false"));
    let connection = Connection::open(&file).unwrap();
    connection
        .execute(
            "UPDATE unique_key SET owner = (SELECT org FROM application), resource =
        (SELECT id FROM application) WHERE kind = 1",
            (),
        )
        .unwrap();
    drop(connection);
    let server = Running::within(folder, |_| {}).await;
    let again = server.client.post_once("/app?get_if_exists=false", "a", r#"{"name":"another"}"#).await;
    assert_eq!(id(&again.expect(201)), app);
    assert_eq!(server.stored(&app).await, [1, 0, 1]);
    server.stop().await;
}

#[tokio::test]
async fn a_put_that_makes_something_is_one_by_its_key() {
    let server = Running::start().await;
    let put = async |path: &str| {
        let key = [("idempotency-key", "k")];
        let body = match path.contains("endpoint") {
            true => json!({"url": "https://example.com/"}),
            false => json!({"name": "a"}),
        };
        server.client.send(Method::PUT, path, &key, body.to_string().into()).await
    };
    let sol = put("/app/sol").await.expect(201);
    // The same key and route, but another thing.
    let luna = put("/app/luna").await.expect(201);
    assert_ne!(sol["id"], luna["id"]);
    let (one, two) = (put("/app/sol/endpoint/one").await, put("/app/sol/endpoint/two").await);
    assert_ne!(one.expect(201)["id"], two.expect(201)["id"]);
    // Another name since: the repeat makes no second one.
    server.client.patch("/app/sol", r#"{"uid":"marte"}"#).await.expect(200);
    assert_eq!(put("/app/sol").await.expect(201)["id"], sol["id"]);
    server.stop().await;
}
