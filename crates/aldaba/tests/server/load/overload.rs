//! More than there is room for: refused at once and with the advice to come back, and nothing that was
//! accepted suffers.

use crate::support::client::Reply;
use crate::support::running::Running;
use crate::support::waiting::wait_until;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A message whose whole request body has this many bytes.
fn message(bytes: usize) -> String {
    let frame = json!({"eventType": "a", "payload": {"a": ""}}).to_string().len();
    json!({"eventType": "a", "payload": {"a": "x".repeat(bytes - frame)}}).to_string()
}

#[track_caller]
fn says_come_back(reply: &Reply) {
    let body = reply.expect(503);
    assert_eq!(body["code"], "busy", "{body}");
    assert!(body["detail"].as_str().unwrap().ends_with("Nothing was stored; try again"), "{body}");
    assert_eq!(reply.headers["retry-after"], "1");
}

/// A request that has announced a body and sent half of it.
async fn half_sent(server: &Running, app: &str, authorization: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/v1/app/{app}/msg HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{}", &body[..body.len() / 2]).as_bytes()).await.unwrap();
    stream
}

/// The status of the next answer.
async fn status(stream: &mut TcpStream) -> String {
    let mut start = [0; 12];
    let read = tokio::time::timeout(WAIT_TIMEOUT, stream.read_exact(&mut start)).await;
    read.expect("an answer").expect("a whole one");
    String::from_utf8_lossy(&start).into_owned()
}

/// Sends the same until the answer has this status.
async fn send_until(server: &Running, app: &str, body: &str, status: u16) -> Reply {
    let send = async {
        loop {
            let reply = server.client.post(&format!("/app/{app}/msg"), body.to_owned()).await;
            if reply.status == status {
                return reply;
            }
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, send).await.expect("such an answer")
}

#[tokio::test]
async fn a_body_beyond_the_memory_budget_is_refused_until_memory_is_free() {
    let server = Running::with(|config| config.limits.body_bytes = 4096).await;
    let app = server.application().await;
    let authorization = server.client.authorization.clone().unwrap();
    let body = message(3000);
    let mut first = half_sent(&server, &app, &authorization, &body).await;
    says_come_back(&send_until(&server, &app, &body, 503).await);
    let stored = server.stored(&app).await[2];
    says_come_back(&server.client.post(&format!("/app/{app}/msg"), body.clone()).await);
    says_come_back(&server.client.post("/app", body.clone()).await);
    assert_eq!(server.stored(&app).await, [1, 0, stored]);
    // The rest of the budget is for other callers.
    server.client.post(&format!("/app/{app}/msg"), message(1000)).await.expect(202);
    // The first connection was accepted, and the others do not affect it.
    first.write_all(&body.as_bytes()[body.len() / 2..]).await.unwrap();
    assert_eq!(status(&mut first).await, "HTTP/1.1 202");
    server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
    assert_eq!(server.stored(&app).await, [1, 0, stored + 3]);
}

#[tokio::test]
async fn memory_is_released_by_a_client_that_disconnects_or_is_too_slow() {
    let limits = |config: &mut aldaba::config::Config| {
        config.limits.body_bytes = 4096;
        config.limits.progress = Duration::from_secs(1);
    };
    let server = Running::with(limits).await;
    let app = server.application().await;
    let authorization = server.client.authorization.clone().unwrap();
    let body = message(3000);
    let first = half_sent(&server, &app, &authorization, &body).await;
    send_until(&server, &app, &body, 503).await;
    drop(first);
    send_until(&server, &app, &body, 202).await;
    let mut second = half_sent(&server, &app, &authorization, &body).await;
    send_until(&server, &app, &body, 503).await;
    assert_eq!(status(&mut second).await, "HTTP/1.1 408");
    server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
}

#[tokio::test]
async fn bodies_without_a_length_are_charged_as_they_arrive() {
    let server = Running::with(|config| config.limits.body_bytes = 4096).await;
    let app = server.application().await;
    let authorization = server.client.authorization.clone().unwrap();
    let head = format!(
        "POST /api/v1/app/{app}/msg HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
         transfer-encoding: chunked\r\n\r\n"
    );
    for (bytes, expected) in [(4000, "HTTP/1.1 202"), (5000, "HTTP/1.1 503"), (4000, "HTTP/1.1 202")] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        for piece in message(bytes).as_bytes().chunks(1000) {
            let size = format!("{:x}\r\n", piece.len());
            stream.write_all(&[size.as_bytes(), piece, b"\r\n"].concat()).await.unwrap();
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
        assert_eq!(status(&mut stream).await, expected, "{bytes}");
    }
}

#[tokio::test]
async fn a_request_without_a_token_uses_no_memory_budget() {
    let server = Running::with(|config| config.limits.body_bytes = 4096).await;
    let app = server.application().await;
    let body = message(3000);
    let mut strangers = Vec::new();
    for _ in 0..8 {
        let mut stranger = half_sent(&server, &app, "Bearer none", &body).await;
        assert_eq!(status(&mut stranger).await, "HTTP/1.1 401");
        strangers.push(stranger);
    }
    server.client.post(&format!("/app/{app}/msg"), body).await.expect(202);
}

#[tokio::test]
async fn a_connection_over_the_limit_gets_retry_after() {
    let server = Running::with(|config| config.limits.connections = 1).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\n\r\n";
    first.write_all(request).await.unwrap();
    assert_eq!(status(&mut first).await, "HTTP/1.1 200");
    // More connections than may wait: each gets an answer.
    let many = (0..200).map(|_| async { server.client.get("/health").await });
    let all = tokio::time::timeout(WAIT_TIMEOUT, futures_util::future::join_all(many)).await;
    for reply in all.expect("answers") {
        says_come_back(&reply);
    }
    drop(first);
    server.client.get("/health").await.expect(200);
}

#[tokio::test]
async fn an_idle_connection_is_closed_for_a_new_one_at_the_limit() {
    let server = Running::with(|config| {
        config.limits.connections = 1;
        config.limits.header = Duration::from_secs(600);
    })
    .await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert_eq!(status(&mut first).await, "HTTP/1.1 200");
    // The connection stays open while idle, and is closed for a new one.
    wait_until("a slot is free", async || server.client.get("/health").await.status == 200).await;
    let closed = tokio::time::timeout(WAIT_TIMEOUT, first.read_to_end(&mut Vec::new())).await;
    closed.expect("the end of the first connection").unwrap();
}

/// The secret of a key that is for one application alone.
async fn key_of(server: &Running, scope: &str, app: &str) -> String {
    let body = json!({"name": "k", "scope": scope, "appId": app}).to_string();
    server.client.post("/api-key", body).await.expect(201)["key"].as_str().unwrap().to_owned()
}

/// A batch that announces `bytes` and sends `sent` of them.
async fn hanging(server: &Running, app: &str, token: &str, bytes: usize, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/v1/app/{app}/msg/batch HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-length: {bytes}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; sent]).await.unwrap();
    stream
}

/// Whether a body is being read: it has no answer when many who came later have theirs. They share a thread with it, so that
/// it has had its turn by then, however slow the machine is.
async fn hangs(server: &Running, stream: &mut TcpStream) -> bool {
    for _ in 0..50 {
        server.client.get("/health/ping").await.expect(204);
    }
    let mut start = [0; 12];
    let read = tokio::time::timeout(Duration::from_millis(50), stream.read_exact(&mut start)).await;
    if read.is_ok() {
        assert_eq!(&start, b"HTTP/1.1 503");
    }
    read.is_err()
}

/// An application of another organization, and a client for it.
async fn another(server: &Running, number: u8) -> (crate::support::client::Client, String) {
    let org = format!("org_0000000000000000000000000{number:02}");
    let client = server.client.with_token(&crate::support::running::token(&org));
    let made = client.post("/app", r#"{"name":"a"}"#).await.expect(201);
    (client, made["id"].as_str().unwrap().to_owned())
}

fn bearer(client: &crate::support::client::Client) -> String {
    client.authorization.as_deref().unwrap().strip_prefix("Bearer ").unwrap().to_owned()
}

#[tokio::test]
async fn an_announced_body_is_not_charged_before_it_arrives() {
    let server = Running::start().await;
    let app = server.application().await;
    let key = key_of(&server, "send", &app).await;
    let (other, others) = another(&server, 1).await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(hanging(&server, &app, &key, 16 << 20, 1).await);
    }
    for stream in &mut streams {
        assert!(hangs(&server, stream).await);
    }
    for (client, app) in [(&other, &others), (&server.client, &app)] {
        client.post(&format!("/app/{app}/msg"), message(1000)).await.expect(202);
        client.post(&format!("/app/{app}/msg"), message(1_000_000)).await.expect(202);
        client.patch(&format!("/app/{app}"), r#"{"name":"b"}"#).await.expect(200);
        let batch = format!(r#"{{"messages":[{}]}}"#, vec![message(1_000_000); 9].join(","));
        client.post(&format!("/app/{app}/msg/batch"), batch).await.expect(202);
    }
}

#[tokio::test]
async fn a8_slow_bodies_of_an_application_and_of_an_organization_fill_a_share_and_no_more() {
    const KIB: usize = 1024;
    // The memory of a body grows by doubling, so these hold 4 MiB each.
    let hang = async |server: &Running, app: &str, token: &str| {
        let mut stream = hanging(server, app, token, 4096 * KIB, 3000 * KIB).await;
        hangs(server, &mut stream).await.then_some(stream)
    };
    let server = Running::with(|config| config.limits.body_bytes = 32 << 20).await;
    let app = server.application().await;
    let key = key_of(&server, "send", &app).await;
    let path = format!("/app/{app}/msg");
    let mut held = Vec::new();
    for number in 0..4 {
        let stream = hang(&server, &app, &key).await;
        assert_eq!(stream.is_some(), number < 2, "{number}: a quarter for a key of one application");
        held.extend(stream);
    }
    // Other callers of the organization are not affected, nor are small bodies in one piece.
    server.client.post(&path, message(200 * KIB)).await.expect(202);
    server.client.with_token(&key).post(&path, message(1000)).await.expect(202);
    let whole = bearer(&server.client);
    for number in 0..4 {
        let stream = hang(&server, &app, &whole).await;
        assert_eq!(stream.is_some(), number < 2, "{number}: half for the organization");
        held.extend(stream);
    }
    says_come_back(&server.client.post(&path, message(200 * KIB)).await);
    server.client.post(&path, message(1000)).await.expect(202);
    let second = server.application().await;
    let innocent = server.client.with_token(&key_of(&server, "send", &second).await);
    innocent.post(&format!("/app/{second}/msg"), message(30 * KIB)).await.expect(202);
    let (other, others) = another(&server, 1).await;
    let others = format!("/app/{others}/msg");
    other.post(&others, message(200 * KIB)).await.expect(202);
    // Even all together leave the rest to the small ones of others.
    for number in 2..6 {
        let (hostile, app) = another(&server, number).await;
        held.extend(hang(&server, &app, &bearer(&hostile)).await);
    }
    assert_eq!(held.len(), 6, "three quarters");
    says_come_back(&other.post(&others, message(200 * KIB)).await);
    for _ in 0..10 {
        other.post(&others, message(30 * KIB)).await.expect(202);
        innocent.post(&format!("/app/{second}/msg"), message(30 * KIB)).await.expect(202);
    }
    drop(held);
    send_until(&server, &app, &message(200 * KIB), 202).await;
}

/// Asks for a page of messages and reads nothing but the status.
async fn unread_page(server: &Running, app: &str, token: &str) -> (TcpStream, String) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    // Small buffers of the system, so that the answer stays in the server's memory.
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let request = format!(
        "GET /api/v1/app/{app}/msg HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let status = status(&mut stream).await;
    (stream, status)
}

#[tokio::test]
async fn large_answers_that_are_not_read_fill_a_share_and_no_more() {
    let server = Running::with(|config| config.limits.answer_bytes = 32 << 20).await;
    let (other, others) = another(&server, 1).await;
    let app = server.application().await;
    for (client, app) in [(&server.client, &app), (&other, &others)] {
        for _ in 0..9 {
            let path = format!("/app/{app}/msg?with_content=false");
            client.post(&path, message(1_000_000)).await.expect(202);
        }
    }
    let key = key_of(&server, "read", &app).await;
    let mut pages = Vec::new();
    for number in 0..6 {
        let (page, status) = unread_page(&server, &app, &key).await;
        let expected = if number == 0 { "HTTP/1.1 200" } else { "HTTP/1.1 503" };
        assert_eq!(status, expected, "{number}: a quarter is one page of more than 8 MiB");
        pages.push(page);
    }
    let mut refused = String::new();
    pages[1].read_to_string(&mut refused).await.unwrap();
    assert!(
        refused.contains("retry-after: 1") && refused.contains("Large answers wait to be read"),
        "{refused}"
    );
    // The others have their own share, and small answers need none.
    other.get(&format!("/app/{others}/msg")).await.expect(200);
    let reader = server.client.with_token(&key);
    reader.get(&format!("/app/{app}/msg?with_content=false")).await.expect(200);
    let mut first = Vec::new();
    pages[0].read_to_end(&mut first).await.unwrap();
    assert!(first.len() > 8 << 20, "it was let in, and is whole");
    drop(pages);
    let again = async { while reader.get(&format!("/app/{app}/msg")).await.status != 200 {} };
    tokio::time::timeout(WAIT_TIMEOUT, again).await.expect("room again");
}
