use crate::support::running::{ISSUED, JWT_SECRET, Running, token};
use aldaba::JwtSecret;
use aldaba::config::Config;
use aldaba_engine::{Entropy, Installation, Setup, SystemClock, SystemEntropy};
use axum::body::Body;
use http::Request;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

pub(crate) const OTHER_ORGANIZATION: &str = "org_23rb8YdGqMT0qIzpgGwdXfHirMv";

pub(crate) fn signed(claims: &Value) -> String {
    let key = EncodingKey::from_secret(JWT_SECRET.as_bytes());
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).unwrap()
}

#[tokio::test]
async fn a_token_cannot_be_signed_without_the_secret() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.folder = folder.path().join("data");
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy::new());
    let setup = Setup {
        store: config.store.clone(),
        clock: Arc::new(SystemClock::new()),
        entropy: entropy.clone(),
        encryption_key: Some([7; 32]),
        wire: Default::default(),
        overrides: config.overrides,
        engine: config.engine.clone(),
    };
    let Installation { engine, .. } = Installation::start(setup).await.unwrap();
    let api = aldaba::server::api(&engine, &*entropy, &config).await.unwrap();
    let claims = json!({"sub": aldaba::DEFAULT_ORGANIZATION});
    for secret in ["", "\0", &"0".repeat(64), &"00".repeat(32)] {
        let key = EncodingKey::from_secret(secret.as_bytes());
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &key).unwrap();
        let request =
            Request::builder().uri("/api/v1/app").header("authorization", format!("Bearer {token}"));
        let answer = api.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 401, "{secret:?}");
    }
    engine.shutdown(Duration::from_secs(5)).await;
}

#[test]
fn a_secret_that_signs_tokens_is_no_shorter_than_32_bytes() {
    for short in ["", "x", "31 bytes, one fewer than needed"] {
        let error = JwtSecret::new(short).unwrap_err().to_string();
        assert!(error.contains("at least 32 bytes"), "{error}");
    }
    JwtSecret::new("32 bytes, just as many as needed").unwrap();
}

pub(crate) fn application_token(app: &str) -> String {
    signed(&json!({"sub": app, "org": aldaba::DEFAULT_ORGANIZATION}))
}

#[tokio::test]
async fn without_a_valid_token_nothing_is_reached_and_nothing_stored() {
    let server = Running::start().await;
    let app = server.application().await;
    let past = ISSUED.millis() / 1000 - 3600;
    let mut callers = vec![server.client.anonymous()];
    for token in [
        "nonsense".to_owned(),
        aldaba::issue_token(
            &JwtSecret::new("another secret, and a long one too").unwrap(),
            aldaba::DEFAULT_ORGANIZATION.parse().unwrap(),
            ISSUED,
        ),
        signed(&json!({"sub": aldaba::DEFAULT_ORGANIZATION, "exp": past})),
        signed(&json!({})),
        JWT_SECRET.to_owned(),
    ] {
        callers.push(server.client.with_token(&token));
    }
    let mut basic = server.client.clone();
    basic.authorization = Some("Basic dXNlcjpwYXNz".into());
    callers.push(basic);
    for caller in callers {
        for (path, body) in [
            ("/app".to_owned(), r#"{"name":"a"}"#),
            (format!("/app/{app}/endpoint"), r#"{"url":"https://example.com/"}"#),
            (format!("/app/{app}/msg"), r#"{"eventType":"a","payload":{}}"#),
        ] {
            assert_eq!(caller.get(&path).await.expect(401)["code"], "authentication_failed");
            let refused = caller.post(&path, body).await.expect(401);
            assert!(refused["detail"].as_str().unwrap().starts_with("Invalid token"), "{refused}");
        }
    }
    let without = server.client.anonymous().get("/app").await.expect(401);
    assert!(without["detail"].as_str().unwrap().contains("send `Authorization: Bearer`"), "{without}");
    for (claims, code) in [
        (json!({"sub": "admin"}), "bad_token"),
        (json!({"sub": "app_23rb8YdGqMT0qIzpgGwdXfHirMu"}), "bad_token"),
        (json!({"sub": "app_x", "org": aldaba::DEFAULT_ORGANIZATION}), "bad_token"),
    ] {
        let caller = server.client.with_token(&signed(&claims));
        assert_eq!(caller.get("/app").await.expect(400)["code"], code, "{claims}");
    }
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn health_requires_no_token() {
    let server = Running::start().await;
    let nobody = server.client.anonymous();
    assert_eq!(nobody.get("/health").await.expect(200)["database"]["status"], "ok");
    let head = nobody.send(http::Method::HEAD, "/health", &[], bytes::Bytes::new()).await;
    assert_eq!(head.status, 200);
    nobody.get("/health/ping").await.expect(204);
    assert_eq!(nobody.get("/openapi.json").await.expect(200)["openapi"], "3.1.0");
}

#[tokio::test]
async fn another_organization_sees_nothing() {
    let server = Running::start().await;
    let app = server.application().await;
    let endpoint = server.endpoint(&app, json!({})).await["id"].as_str().unwrap().to_owned();
    let message = server.message(&app, "a").await;
    let other = server.client.with_token(&token(OTHER_ORGANIZATION));
    assert_eq!(other.get("/app").await.expect(200)["data"], json!([]));
    for path in [
        String::new(),
        "/endpoint".into(),
        format!("/endpoint/{endpoint}"),
        format!("/endpoint/{endpoint}/secret"),
        "/msg".into(),
        format!("/msg/{message}"),
        format!("/msg/{message}/endpoint"),
        format!("/attempt/endpoint/{endpoint}"),
        format!("/attempt/msg/{message}"),
    ] {
        other.get(&format!("/app/{app}{path}")).await.expect(404);
    }
    other.post(&format!("/app/{app}/msg"), r#"{"eventType":"a","payload":{}}"#).await.expect(404);
    other.post(&format!("/app/{app}/endpoint"), r#"{"url":"https://example.com/"}"#).await.expect(404);
    other.delete(&format!("/app/{app}/endpoint/{endpoint}")).await.expect(404);
    other.delete(&format!("/app/{app}")).await.expect(404);
    assert_eq!(server.stored(&app).await, [1, 1, 1]);
}

#[tokio::test]
async fn an_endpoint_or_message_of_another_application_is_not_found() {
    let server = Running::start().await;
    let (mine, other) = (server.application().await, server.application().await);
    let endpoint = server.endpoint(&other, json!({})).await["id"].as_str().unwrap().to_owned();
    let message = server.message(&other, "a").await;
    for path in [
        format!("endpoint/{endpoint}"),
        format!("endpoint/{endpoint}/secret"),
        format!("msg/{message}"),
        format!("attempt/endpoint/{endpoint}"),
        format!("attempt/msg/{message}"),
    ] {
        server.client.get(&format!("/app/{mine}/{path}")).await.expect(404);
    }
    server.client.delete(&format!("/app/{mine}/endpoint/{endpoint}")).await.expect(404);
    assert_eq!(server.stored(&other).await, [2, 1, 1]);
}

#[tokio::test]
async fn an_application_token_reaches_its_own_application_and_no_other() {
    let server = Running::start().await;
    let (mine, other) = (server.application().await, server.application().await);
    let caller = server.client.with_token(&application_token(&mine));
    let message = server.message(&mine, "a").await;
    let created = caller.post(&format!("/app/{mine}/endpoint"), r#"{"url":"https://example.com/"}"#).await;
    let endpoint = created.expect(201)["id"].as_str().unwrap().to_owned();
    for path in [
        String::new(),
        "/endpoint".into(),
        format!("/endpoint/{endpoint}"),
        format!("/endpoint/{endpoint}/secret"),
        "/msg".into(),
        format!("/msg/{message}"),
        format!("/attempt/endpoint/{endpoint}"),
        format!("/attempt/msg/{message}"),
    ] {
        caller.get(&format!("/app/{mine}{path}")).await.expect(200);
        caller.get(&format!("/app/{other}{path}")).await.expect(404);
    }
    caller.post(&format!("/app/{other}/endpoint"), r#"{"url":"https://example.com/"}"#).await.expect(404);
    let forbidden = caller.get("/app").await.expect(403);
    assert_eq!(forbidden["code"], "insufficient_access");
    caller.post("/app", r#"{"name":"a"}"#).await.expect(403);
    caller.delete(&format!("/app/{mine}")).await.expect(403);
    caller.post(&format!("/app/{mine}/msg"), r#"{"eventType":"a","payload":{}}"#).await.expect(403);
    caller.delete(&format!("/app/{mine}/endpoint/{endpoint}")).await.expect(204);
    assert_eq!(server.stored(&mine).await, [2, 0, 1]);
}
