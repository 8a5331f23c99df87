//! Client certificates of endpoints.

use crate::credentials::tokens::application_token;
use crate::endpoints::egress::trusting;
use crate::support::running::Running;
use crate::support::secure_receiver::{Authority, SecureReceiver};
use serde_json::{Value, json};

fn identity(parts: &[String; 2]) -> String {
    json!({"identity": parts.concat()}).to_string()
}

async fn with_endpoint(server: &Running, more: Value) -> (String, String) {
    let app = server.application().await;
    let endpoint = server.endpoint(&app, more).await;
    let path = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
    (app, path)
}

#[tokio::test]
async fn a_certificate_is_set_shown_and_taken_away_from_one_attempt_to_the_next() {
    let authority = Authority::new();
    let server = trusting(&authority).await;
    for http2 in [false, true] {
        let mut receiver = SecureReceiver::answering(&authority, 200).await;
        let (app, path) = with_endpoint(&server, json!({"url": receiver.url(), "http2": http2})).await;
        let secret = server.client.get(&format!("{path}/secret")).await.expect(200);
        for shown in [false, true, true, false] {
            let mtls = format!("{path}/mtls");
            if shown {
                server.client.put(&mtls, identity(&authority.identity())).await.expect(204);
            } else {
                server.client.delete(&mtls).await.expect(204);
            }
            server.message(&app, "a").await;
            assert_eq!(receiver.next().await.certificate, shown);
        }
        assert_eq!(server.client.get(&format!("{path}/secret")).await.expect(200), secret);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_survives_a_restart_and_its_key_is_never_shown() {
    let authority = Authority::new();
    let server = trusting(&authority).await;
    let mut receiver = SecureReceiver::answering(&authority, 200).await;
    let (app, path) = with_endpoint(&server, json!({"url": receiver.url()})).await;
    let status = |enabled| json!({"enabled": enabled, "config": Value::Null});
    assert_eq!(server.client.get(&format!("{path}/mtls-config")).await.expect(200), status(false));
    server.client.get(&format!("{path}/mtls")).await.expect(404);
    let [certificate, key] = authority.identity();
    server.client.put(&format!("{path}/mtls"), identity(&[certificate, key.clone()])).await.expect(204);

    let config = server.client.get(&format!("{path}/mtls")).await.expect(200);
    assert_eq!(config["certificateSha256"].as_str().unwrap().len(), 64);
    let told = server.client.get(&format!("{path}/mtls-config")).await.expect(200);
    assert_eq!(told, json!({"enabled": true, "config": config}));
    let secret_line = key.lines().nth(1).unwrap();
    for place in ["", "/mtls", "/mtls-config", "/secret"] {
        let body = server.client.get(&format!("{path}{place}")).await.body;
        assert!(!String::from_utf8_lossy(&body).contains(secret_line));
    }
    let folder = server.stop().await;
    for file in std::fs::read_dir(folder.path().join("data")).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret_line.len()).any(|window| window == secret_line.as_bytes()));
    }
    let server = Running::within(folder, |config| {
        config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
        config.ca_file = Some(authority.file());
    })
    .await;
    server.message(&app, "a").await;
    assert!(receiver.next().await.certificate);
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_client_identity_is_refused_with_the_reason() {
    let authority = Authority::new();
    let server = Running::start().await;
    let (_, path) = with_endpoint(&server, json!({})).await;
    let [certificate, key] = authority.identity();
    let [_, other] = authority.identity();
    for (text, words) in [
        (String::new(), "holds no private key"),
        (certificate.clone(), "holds no private key"),
        (key.clone(), "holds no certificate"),
        (format!("{certificate}{other}"), "does not belong to the first certificate"),
    ] {
        let body = json!({"identity": text}).to_string();
        let refused = server.client.put(&format!("{path}/mtls"), body).await.expect(422);
        assert_eq!(refused["detail"][0]["loc"], json!(["body", "identity"]));
        assert!(refused["detail"][0]["msg"].as_str().unwrap().contains(words), "{refused}");
        assert!(!refused.to_string().contains(other.lines().nth(1).unwrap()));
    }
    for body in ["", "{}", r#"{"identity":null}"#, r#"{"identity":7}"#, "[]"] {
        server.client.put(&format!("{path}/mtls"), body).await.expect(422);
    }
    server.client.get(&format!("{path}/mtls")).await.expect(404);

    let (_, plain) = with_endpoint(&server, json!({"url": "http://example.com/"})).await;
    let body = identity(&[certificate, key]);
    let refused = server.client.put(&format!("{plain}/mtls"), body).await.expect(422);
    assert!(refused.to_string().contains("needs an https:// URL"), "{refused}");
}

#[tokio::test]
async fn an_application_changes_its_own_certificates_only() {
    let authority = Authority::new();
    let server = Running::start().await;
    let (app, path) = with_endpoint(&server, json!({})).await;
    let body = identity(&authority.identity());
    let own = server.client.with_token(&application_token(&app));
    own.put(&format!("{path}/mtls"), body.clone()).await.expect(204);
    let stranger = server.client.with_token(&application_token(&server.application().await));
    stranger.put(&format!("{path}/mtls"), body.clone()).await.expect(404);
    stranger.get(&format!("{path}/mtls-config")).await.expect(404);
    stranger.delete(&format!("{path}/mtls")).await.expect(404);
    server.client.anonymous().put(&format!("{path}/mtls"), body).await.expect(401);
    own.get(&format!("{path}/mtls")).await.expect(200);
}
