//! An export has all of an application and nothing of others, and one that was cut off is recognized.

use crate::support::client::Client;
use crate::support::receiver::Receiver;
use crate::support::running::{Running, token};
use crate::support::waiting::wait_until;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

pub(super) async fn lines(client: &Client, path: &str) -> Vec<Value> {
    let reply = client.get(path).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    assert_eq!(reply.headers["content-type"], "application/x-ndjson");
    let text = std::str::from_utf8(&reply.body).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[tokio::test]
async fn an_export_has_everything_of_the_application_and_nothing_of_another() {
    let server = Running::delivering().await;
    let mut receiver = Receiver::answering(200, "thanks").await;
    let (app, other) = (server.application().await, server.application().await);
    let more =
        json!({"url": receiver.url("/hook"), "eventTypes": ["invoice.paid"], "headers": {"x-team": "blue"}});
    let endpoint = server.endpoint(&app, more).await;
    server.endpoint(&other, json!({"url": "https://other.example.com/hook", "disabled": true})).await;
    server.message(&other, "of.other").await;
    // The bytes of a payload are kept: spaces, the order of members, numbers.
    let payload = r#"{ "b": 1.0,  "a": "é" }"#;
    let body = format!(r#"{{"eventType": "invoice.paid", "eventId": "e-1", "payload": {payload}}}"#);
    let message = server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
    receiver.next().await;
    server.client.attempt_id(&app, message["id"].as_str().unwrap()).await;

    let lines = lines(&server.client, &format!("/app/{app}/export")).await;
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    let expected =
        ["export", "application", "endpoint", "message", "delivery", "attempt", "eventType", "summary"];
    assert_eq!(types, expected);
    assert_eq!(
        (&lines[0]["format"], &lines[0]["version"], &lines[0]["appId"], &lines[0]["secrets"]),
        (&json!("aldaba-export"), &json!(1), &json!(app), &json!(false))
    );
    assert_eq!(lines[1]["id"], json!(app));
    assert_eq!((&lines[2]["id"], &lines[2]["headers"]), (&endpoint["id"], &json!({"x-team": "***"})));
    assert!(lines[2].get("secret").is_none(), "{}", lines[2]);
    assert_eq!(
        (&lines[3]["payload"], &lines[3]["encoding"], &lines[3]["eventId"]),
        (&json!(payload), &json!("utf-8"), &json!("e-1"))
    );
    assert_eq!((&lines[4]["state"], &lines[4]["msgId"]), (&json!("delivered"), &message["id"]));
    assert_eq!((&lines[5]["response"], &lines[5]["url"]), (&json!("thanks"), &json!(receiver.url("/hook"))));
    assert_eq!(lines[6]["name"], "invoice.paid");
    let counts = json!({"endpoints": 1, "eventTypes": 1, "messages": 1, "deliveries": 1, "attempts": 1});
    assert_eq!((&lines[7]["counts"], &lines[7]["complete"]), (&counts, &json!(true)));

    let secret =
        server.client.get(&format!("/app/{app}/endpoint/{}/secret", endpoint["id"].as_str().unwrap())).await;
    let with_secrets = self::lines(&server.client, &format!("/app/{app}/export?secrets=true")).await;
    assert_eq!(
        (&with_secrets[2]["secret"], &with_secrets[2]["headers"]),
        (&secret.expect(200)["key"], &json!({"x-team": "blue"}))
    );
    let audit =
        server.client.get(&format!("/audit?app_id={app}&action=application.export")).await.expect(200);
    assert_eq!(audit["data"].as_array().unwrap().len(), 2, "{audit}");
}

#[tokio::test]
async fn an_export_of_a_span_of_time_has_the_messages_of_that_time() {
    let server = Running::start().await;
    let app = server.application().await;
    server.message(&app, "a").await;
    let export = |query: &str| format!("/app/{app}/export?{query}");
    for (query, count) in [
        ("after=2020-01-01T00:00:00Z", 1),
        ("before=2020-01-01T00:00:00Z", 0),
        ("after=2100-01-01T00:00:00Z", 0),
    ] {
        let lines = lines(&server.client, &export(query)).await;
        assert_eq!(of_type(&lines, "message").len(), count, "{query}");
        assert_eq!(of_type(&lines, "summary").len(), 1, "{query}");
    }
    assert_eq!(server.client.get(&export("after=yesterday")).await.status, 422);
}

#[tokio::test]
async fn many_messages_are_exported_in_their_order_and_each_once() {
    let server = Running::start().await;
    let app = server.application().await;
    let messages: Vec<_> =
        (0..1000).map(|n| json!({"eventType": "a", "payload": {"n": n, "text": "x".repeat(1000)}})).collect();
    for chunk in messages.chunks(500) {
        let body = json!({"messages": chunk}).to_string();
        server.client.post(&format!("/app/{app}/msg/batch"), body).await.expect(202);
    }
    let lines = lines(&server.client, &format!("/app/{app}/export")).await;
    let mut ids: Vec<_> =
        of_type(&lines, "message").iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 1000);
    assert!(ids.is_sorted());
    ids.dedup();
    assert_eq!(ids.len(), 1000);
}

#[tokio::test]
async fn who_may_not_read_the_application_gets_no_export() {
    let server = Running::start().await;
    let (app, other) = (server.application().await, server.application().await);
    let key = async |body: Value| {
        let made = server.client.post("/api-key", body.to_string()).await.expect(201);
        server.client.with_token(made["key"].as_str().unwrap())
    };
    let read = key(json!({"name": "read", "scope": "read", "appId": app})).await;
    read.get(&format!("/app/{other}/export")).await.expect(404);
    assert_eq!(lines(&read, &format!("/app/{app}/export")).await.len(), 3);
    assert_eq!(read.get(&format!("/app/{app}/export?secrets=true")).await.status, 403);
    let send = key(json!({"name": "send", "scope": "send"})).await;
    assert_eq!(send.get(&format!("/app/{app}/export")).await.status, 403);
    let stranger = server.client.with_token(&token("org_00000000000000000000000009z"));
    stranger.get(&format!("/app/{app}/export")).await.expect(404);
    assert_eq!(server.client.anonymous().get(&format!("/app/{app}/export")).await.status, 401);
}

/// Begins an export and reads only its head.
async fn begin(server: &Running, app: &str) -> tokio::net::TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let token = server.client.authorization.clone().unwrap();
    let request = format!(
        "GET /api/v1/app/{app}/export HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    stream
}

async fn large_application(server: &Running) -> String {
    let app = server.application().await;
    for _ in 0..12 {
        let body = json!({"eventType": "a", "payload": {"text": "x".repeat(900_000)}});
        server.client.post(&format!("/app/{app}/msg"), body.to_string()).await.expect(202);
    }
    app
}

#[tokio::test]
async fn an_export_that_is_read_slowly_is_complete_and_holds_others_to_the_limit() {
    let server = Running::with(|config| config.limits.progress = Duration::from_secs(2)).await;
    let app = large_application(&server).await;
    let mut slow = begin(&server, &app).await;
    let mut second = begin(&server, &app).await;
    let refused = server.client.get(&format!("/app/{app}/export")).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (429, &json!("too_many_exports")));
    assert!(refused.headers.contains_key("retry-after"));
    // Slower than it is made, and longer than one write may wait.
    let (mut bytes, mut read) = (Vec::new(), vec![0; 128 * 1024]);
    loop {
        match slow.read(&mut read).await.unwrap() {
            0 => break,
            count => bytes.extend_from_slice(&read[..count]),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let end = String::from_utf8_lossy(&bytes[bytes.len() - 200..]).into_owned();
    assert!(end.contains(r#""complete":true}"#), "{end}");
    let mut rest = Vec::new();
    second.read_to_end(&mut rest).await.unwrap();
    // Both are over, and others may begin.
    wait_until("a permit is free", async || {
        server.client.get(&format!("/app/{app}/export")).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn an_export_whose_application_is_deleted_meanwhile_is_cut_off() {
    let server = Running::start().await;
    let app = large_application(&server).await;
    let mut stream = begin(&server, &app).await;
    server.client.delete(&format!("/app/{app}")).await.expect(204);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains(r#""type":"summary""#), "it looks whole");
    assert!(!text.ends_with("0\r\n\r\n"), "the response looks whole");
}
