//! How deliveries leave: HTTP/2, the operator's certificates and proxy.

use crate::support::receiver::Receiver;
use crate::support::running::Running;
use crate::support::secure_receiver::{Authority, SecureReceiver};
use aldaba::config::Config;
use aldaba::server::Server;
use http::Version;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn allowed() -> Vec<ipnet::IpNet> {
    vec!["127.0.0.0/8".parse().unwrap()]
}

pub(crate) async fn trusting(authority: &Authority) -> Running {
    Running::with(|config| {
        config.allow_networks = allowed();
        config.ca_file = Some(authority.file());
    })
    .await
}

#[tokio::test]
async fn http2_is_spoken_to_endpoints_that_ask_for_it() {
    let authority = Authority::new();
    let server = trusting(&authority).await;
    let app = server.application().await;
    for (http2, version) in [(json!(true), Version::HTTP_2), (json!(false), Version::HTTP_11)] {
        let mut receiver = SecureReceiver::answering(&authority, 200).await;
        let endpoint = server.endpoint(&app, json!({"url": receiver.url(), "http2": http2})).await;
        assert_eq!(endpoint["http2"], http2);
        server.message(&app, "a").await;
        let arrival = receiver.next().await;
        assert_eq!((arrival.version, &arrival.body[..]), (version, &br#"{"a":1}"#[..]));
        let path = format!("/app/{app}/endpoint/{}", endpoint["id"].as_str().unwrap());
        assert_eq!(server.client.get(&path).await.expect(200)["http2"], http2);
        server.client.delete(&path).await.expect(204);
    }
    server.stop().await;
}

#[tokio::test]
async fn http2_needs_https() {
    let server = Running::start().await;
    let app = server.application().await;
    let body = json!({"url": "http://example.com/", "http2": true});
    let refused = server.client.post(&format!("/app/{app}/endpoint"), body.to_string()).await.expect(422);
    assert_eq!(refused["detail"][0]["loc"], json!(["body", "http2"]));
    assert!(refused["detail"][0]["msg"].as_str().unwrap().contains("https://"), "{refused}");
    let body = json!({"url": "https://example.com/", "http2": "yes"});
    server.client.post(&format!("/app/{app}/endpoint"), body.to_string()).await.expect(422);
    assert_eq!(server.endpoint(&app, json!({})).await["http2"], json!(false));
}

#[tokio::test]
async fn without_its_issuer_a_certificate_is_not_trusted() {
    let authority = Authority::new();
    let receiver = SecureReceiver::answering(&authority, 200).await;
    let server = Running::delivering().await;
    let app = server.application().await;
    server.endpoint(&app, json!({"url": receiver.url()})).await;
    let message = server.message(&app, "a").await;
    let path = format!("/app/{app}/attempt/msg/{message}");
    let attempts = server.client.get_until(&path, |page| page["data"].get(0).is_some()).await;
    let attempt = &attempts["data"][0];
    assert!(attempt["error"].as_str().unwrap().contains("issuer is not trusted"), "{attempt}");
}

#[tokio::test]
async fn a_file_without_certificates_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let start = async || {
        let mut config = Config::default();
        config.store.folder = folder.path().join("data");
        config.ca_file = Some(file.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Server::start(listener, config).await.unwrap_err().to_string()
    };
    let missing = start().await;
    assert!(
        missing.starts_with("ca_file: cannot use ") && missing.contains("ca.pem: No such file"),
        "{missing}"
    );
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (text, words) in [
        ("", "it holds no certificate"),
        ("just words", "it holds no certificate"),
        ("-----BEGIN CERTIFICATE-----\n!", "a block is not valid PEM"),
        (broken, "a root certificate cannot be used"),
    ] {
        std::fs::write(&file, text).unwrap();
        let message = start().await;
        assert!(message.contains(words), "{message}");
    }
}

/// A proxy that connects to any address, and counts the connections.
async fn proxy() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") && client.read_buf(&mut head).await.unwrap() > 0 {}
                let head = String::from_utf8(head).unwrap();
                assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
                let mut server = TcpStream::connect(head.split(' ').nth(1).unwrap()).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (port, connections)
}

#[tokio::test]
async fn every_request_uses_the_operators_proxy() {
    let (port, connections) = proxy().await;
    let authority = Authority::new();
    let server = Running::with(|config| {
        config.allow_networks = allowed();
        config.ca_file = Some(authority.file());
        config.egress_proxy = Some(format!("http://me:secret@127.0.0.1:{port}").parse().unwrap());
    })
    .await;
    let app = server.application().await;
    let mut plain = Receiver::answering(200, "").await;
    let mut secure = SecureReceiver::answering(&authority, 200).await;
    server.endpoint(&app, json!({"url": plain.url("/")})).await;
    server.endpoint(&app, json!({"url": secure.url(), "http2": true})).await;
    for _ in 0..3 {
        server.message(&app, "a").await;
        plain.next().await;
        assert_eq!(secure.next().await.version, Version::HTTP_2);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 2);
    server.stop().await;
}
