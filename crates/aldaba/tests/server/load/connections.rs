//! What a client may do to the server at the level of connections.

use crate::support::running::Running;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything that the server sends until it closes the connection.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let read = tokio::time::timeout(WAIT_TIMEOUT, stream.read_to_end(&mut all)).await;
    let _ = read.expect("the server closes the connection");
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn a_half_sent_head_is_not_waited_for() {
    let server = Running::with(|config| config.limits.header = Duration::from_millis(200)).await;
    for half in ["", "G", "GET /api/v1/health HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(half.as_bytes()).await.unwrap();
        assert!(!until_closed(&mut stream).await.starts_with("HTTP/1.1 200"), "{half:?}");
    }
    server.client.get("/health").await.expect(200);
}

#[tokio::test]
async fn a_half_sent_body_is_not_waited_for() {
    let server = Running::with(|config| config.limits.progress = Duration::from_millis(200)).await;
    let app = server.application().await;
    let authorization = server.client.authorization.clone().unwrap();
    let head = format!(
        "POST /api/v1/app/{app}/msg HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\ncontent-length: 100\r\n\r\n"
    );
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(format!("{head}{{\"eventType\":").as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read =
        tokio::time::timeout(WAIT_TIMEOUT, stream.read(&mut answer)).await.expect("an answer").unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("did not come within 200ms"), "{answer}");
    assert_eq!(server.stored(&app).await, [1, 0, 0]);
}

#[tokio::test]
async fn too_many_headers_or_too_large_ones_are_refused() {
    let server = Running::start().await;
    for headers in ["x-a: b\r\n".repeat(65), format!("x-a: {}\r\n", "b".repeat(17 * 1024))] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET /api/v1/health HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
        let _ = stream.write_all(request.as_bytes()).await;
        let answer = until_closed(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
}

#[tokio::test]
async fn a_connection_too_many_waits_until_another_one_closes() {
    let server = Running::with(|config| config.limits.connections = 2).await;
    let request = b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
        held.push(stream);
    }
    let mut third = TcpStream::connect(server.address).await.unwrap();
    third.write_all(request).await.unwrap();
    let mut start = [0; 12];
    let early = tokio::time::timeout(Duration::from_millis(300), third.read_exact(&mut start)).await;
    assert!(early.is_err(), "it must wait");
    drop(held.pop());
    tokio::time::timeout(WAIT_TIMEOUT, third.read_exact(&mut start)).await.expect("its turn comes").unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
}

/// Many clients send their whole request before they look for an answer. If the server has closed
/// the connection by then, they see that and not the answer.
#[tokio::test]
async fn a_refused_request_with_a_large_body_still_gets_its_answer() {
    let server = Running::start().await;
    let body = vec![b'x'; 4 << 20];
    for (path, authorization, status) in [
        ("/app/unknown/msg", "none", "401"),
        ("/app", server.client.authorization.as_deref().unwrap(), "413"),
        ("/app/unknown/endpoint", server.client.authorization.as_deref().unwrap(), "404"),
        ("/nothing", "none", "404"),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST /api/v1{path} HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
             content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.expect("all of it can be sent");
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.expect("an answer");
        assert_eq!(String::from_utf8_lossy(&start), format!("HTTP/1.1 {status}"), "{path}");
    }
}

#[tokio::test]
async fn a_batch_that_is_too_large_gets_its_answer_while_it_is_still_being_sent() {
    let server = Running::start().await;
    let app = server.application().await;
    let (length, piece) = (20 << 20, vec![b'x'; 64 << 10]);
    let authorization = server.client.authorization.as_deref().unwrap();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/v1/app/{app}/msg/batch HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
         content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..length / piece.len() {
        stream.write_all(&piece).await.expect("all of it can be sent");
    }
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.expect("an answer");
    assert_eq!(String::from_utf8_lossy(&start), "HTTP/1.1 413");
}

#[tokio::test]
async fn a_client_that_asks_before_sending_is_refused_without_sending() {
    let server = Running::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head =
        "POST /api/v1/app HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9999999\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = until_closed(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_loses_its_connection() {
    let limits = |config: &mut aldaba::config::Config| {
        config.limits.progress = Duration::from_millis(500);
        config.limits.connections = 1;
    };
    let server = Running::with(limits).await;
    let app = server.application().await;
    let body = format!(r#"{{"eventType":"a","payload":{{"a":"{}"}}}}"#, "x".repeat(1_000_000));
    for _ in 0..16 {
        server.client.post(&format!("/app/{app}/msg?with_content=false"), body.clone()).await.expect(202);
    }
    let authorization = server.client.authorization.clone().unwrap();
    let head = format!("host: x\r\nauthorization: {authorization}\r\n\r\n");
    let mut stuck = TcpStream::connect(server.address).await.unwrap();
    stuck.write_all(format!("GET /api/v1/app/{app}/msg HTTP/1.1\r\n{head}").as_bytes()).await.unwrap();
    // The only slot is free again after the server's timeout.
    let healthy = async { while server.client.get("/health").await.status != 200 {} };
    tokio::time::timeout(WAIT_TIMEOUT, healthy).await.expect("a turn");
    let mut all = Vec::new();
    let _ = stuck.read_to_end(&mut all).await;
    assert!(all.len() < 16_000_000, "it was cut off");
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_takes_no_new_ones() {
    let server = Running::start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /api/v1/health/ping HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut start = [0; 12];
    idle.read_exact(&mut start).await.unwrap();
    let address = server.address;
    tokio::time::timeout(WAIT_TIMEOUT, server.stop()).await.expect("it stops");
    until_closed(&mut idle).await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_second_server_on_the_same_folder_is_refused() {
    let server = Running::start().await;
    let app = server.application().await;
    let folder = server.stop().await;
    let path = folder.path().join("data");
    let server = Running::within(folder, |_| {}).await;
    let mut config = aldaba::config::Config::default();
    config.store.folder = path;
    config.jwt_secret = Some(crate::support::running::jwt_secret());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    assert!(aldaba::server::Server::start(listener, config).await.is_err());
    server.client.get(&format!("/app/{app}")).await.expect(200);
}
