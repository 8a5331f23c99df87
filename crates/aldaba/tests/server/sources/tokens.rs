//! Tokens: what a sender's URL ends with.

use crate::sources::stage::{InboundSource, inside};
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use aldaba_store::Source;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test]
async fn old_tokens_count_beside_the_newest_and_only_so_many() {
    let server = Running::start().await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({})).await;
    let mut urls = vec![inbound.source["ingestUrl"].clone()];
    let path = inbound.path("/token/rotate");
    let rotate = || server.client.post(&path, "");
    for _ in 0..Source::MAX_OLD_TOKENS {
        urls.push(rotate().await.expect(200)["ingestUrl"].clone());
        assert_eq!(
            server.client.get(&inbound.path("")).await.expect(200)["ingestUrl"],
            *urls.last().unwrap()
        );
    }
    let refused = rotate().await;
    let said = refused.expect(429);
    assert_eq!(said["code"], "too_many_tokens");
    assert!(said["detail"].as_str().unwrap().contains("ends at 20"), "{said}");
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((47 * 3600..=48 * 3600).contains(&wait), "{wait}");
    let different: BTreeSet<_> = urls.iter().map(Value::to_string).collect();
    assert_eq!(different.len(), urls.len());
    for (number, url) in urls.iter().enumerate() {
        let token = url.as_str().unwrap().rsplit('/').next().unwrap();
        assert!(token.len() >= 24, "{token}");
        server.client.anonymous().post(&inside(url), number.to_string()).await.expect(200);
    }
    assert_eq!(inbound.messages().await.len(), urls.len(), "all of them lead to the same source");
    server.stop().await;
}

#[tokio::test]
async fn a_repeated_rotation_rotates_once() {
    let server = Running::start().await;
    let inbound = InboundSource::new(&server, "generic-webhook", json!({})).await;
    let path = inbound.path("/token/rotate");
    let first = server.client.post_once(&path, "k", "").await.expect(200);
    let second = server.client.post_once(&path, "k", "").await.expect(200);
    assert_eq!(first, second);
    assert_ne!(first["ingestUrl"], inbound.source["ingestUrl"]);
    server.stop().await;
}

#[tokio::test]
async fn a_source_and_its_memory_of_ids_outlive_the_server() {
    let allow =
        |config: &mut aldaba::config::Config| config.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "").await;
    let config = json!({"config": {"secret": "a plain secret", "brand": "Acme"}, "filterTypes": ["a"]});
    let inbound = InboundSource::new(&server, "branded", config).await.forwarding(&receiver, json!({})).await;
    let inside = inbound.inside();
    let body = r#"{"n": 1}"#;
    let headers = || {
        let at = crate::sources::stage::now();
        let signed = crate::sources::stage::mac(b"a plain secret", &[format!("{at}.{body}").as_bytes()]);
        format!("t={at},v1={}", crate::sources::stage::hex(&signed))
    };
    let send = |address, signature: String| {
        let client = crate::support::client::Client { address, authorization: None };
        let inside = inside.clone();
        async move {
            let headers =
                [("acme-signature", signature.as_str()), ("acme-event-id", "e1"), ("acme-event-type", "a")];
            client.send(http::Method::POST, &inside, &headers, body.into()).await
        }
    };
    assert_eq!(send(server.address, headers()).await.expect(200), json!({"received": true}));
    receiver.next().await;
    let folder = server.stop().await;
    let server = Running::within(folder, allow).await;
    let again = send(server.address, headers()).await.expect(200);
    assert_eq!(again, json!({"received": true, "duplicate": true}));
    receiver.nothing_more().await;
    server.stop().await;
}
