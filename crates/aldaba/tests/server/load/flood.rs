//! Many connections that never finish a request do not block complete requests.

use crate::support::running::Running;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
const HALF: &[u8] = b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\nx-slow: ";

/// A connection from one of the addresses of this machine.
async fn connect(to: SocketAddr, from: Ipv4Addr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

/// Keeps so many connections with a half-sent head open from an address, and opens another one for each that is closed.
fn keep_open(to: SocketAddr, from: Ipv4Addr, count: usize, sends: &'static [u8]) -> Vec<JoinHandle<()>> {
    let keep = |_| {
        tokio::spawn(async move {
            loop {
                if let Ok(mut stream) = connect(to, from).await {
                    let _ = stream.write_all(sends).await;
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                }
                // The pace of the flood.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    };
    (0..count).map(keep).collect()
}

/// The status of an answer on a new connection; `None` without an answer.
async fn asks(to: SocketAddr, from: Ipv4Addr) -> Option<u16> {
    let asked = async {
        let mut stream = connect(to, from).await?;
        stream.write_all(b"GET /api/v1/health/ping HTTP/1.1\r\nhost: x\r\n\r\n").await?;
        let mut start = [0; 12];
        stream.read_exact(&mut start).await?;
        std::io::Result::Ok(String::from_utf8_lossy(&start[9..]).into_owned())
    };
    tokio::time::timeout(WAIT_TIMEOUT, asked).await.expect("an end").ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_heads_do_not_block_complete_requests() {
    for sends in [HALF, b""] {
        let server = Running::with(|config| {
            config.limits.connections = 64;
            // Only the eviction may help.
            config.limits.header = Duration::from_secs(600);
        })
        .await;
        let floods: Vec<_> = (2..8)
            .flat_map(|last| keep_open(server.address, Ipv4Addr::new(127, 0, 0, last), 50, sends))
            .collect();
        // The first connections are protected from eviction for a moment; the flood fills all slots meanwhile.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for number in 0..40 {
            let status = asks(server.address, Ipv4Addr::LOCALHOST).await;
            assert_eq!(status, Some(204), "request {number} beside {} half-sent heads", floods.len());
        }
        floods.iter().for_each(JoinHandle::abort);
    }
}

#[tokio::test]
async fn a_connection_that_is_served_does_not_give_way_to_half_sent_heads() {
    let server = Running::with(|config| {
        config.limits.connections = 16;
        config.limits.header = Duration::from_secs(600);
    })
    .await;
    let app = server.application().await;
    let authorization = server.client.authorization.clone().unwrap();
    let body = r#"{"eventType":"a","payload":{"a":1}}"#;
    let mut sending = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/v1/app/{app}/msg HTTP/1.1\r\nhost: x\r\nauthorization: {authorization}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    sending.write_all(format!("{head}{}", &body[..10]).as_bytes()).await.unwrap();
    let flood = keep_open(server.address, Ipv4Addr::new(127, 0, 0, 9), 60, HALF);
    // In this time nothing must happen to the connection: the flood evicts others.
    tokio::time::sleep(Duration::from_secs(1)).await;
    sending.write_all(&body.as_bytes()[10..]).await.unwrap();
    let mut start = [0; 12];
    let read = tokio::time::timeout(WAIT_TIMEOUT, sending.read_exact(&mut start)).await;
    read.expect("an answer").expect("a whole one");
    assert_eq!(&start, b"HTTP/1.1 202");
    flood.iter().for_each(JoinHandle::abort);
}

#[tokio::test]
async fn an_address_with_as_many_connections_as_it_may_have_is_refused_and_others_are_not() {
    let server = Running::with(|config| config.limits.connections_per_address = 3).await;
    let (many, other) = (Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3));
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(server.address, many).await.unwrap();
        stream.write_all(b"GET /api/v1/health/ping HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        stream.read_exact(&mut [0; 12]).await.unwrap();
        held.push(stream);
    }
    assert_eq!(asks(server.address, many).await, Some(503));
    assert_eq!(asks(server.address, other).await, Some(204));
    held.pop();
    let comes_in = async { while asks(server.address, many).await != Some(204) {} };
    tokio::time::timeout(WAIT_TIMEOUT, comes_in).await.expect("a place");
}

#[tokio::test]
async fn half_sent_heads_of_an_address_give_way_to_its_own_requests() {
    let server = Running::with(|config| {
        config.limits.connections_per_address = 3;
        config.limits.header = Duration::from_secs(600);
    })
    .await;
    let address = Ipv4Addr::new(127, 0, 0, 2);
    let mut half_sent = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(server.address, address).await.unwrap();
        stream.write_all(HALF).await.unwrap();
        half_sent.push(stream);
    }
    let comes_in = async { while asks(server.address, address).await != Some(204) {} };
    tokio::time::timeout(WAIT_TIMEOUT, comes_in).await.expect("a place");
    let closed = tokio::time::timeout(WAIT_TIMEOUT, half_sent[0].read_to_end(&mut Vec::new())).await;
    closed.expect("the oldest one is closed").unwrap();
}

#[tokio::test]
async fn without_a_limit_an_address_may_open_any_number_of_connections() {
    let server = Running::with(|config| config.limits.connections_per_address = 0).await;
    let mut held = Vec::new();
    for _ in 0..1500 {
        held.push(TcpStream::connect(server.address).await.unwrap());
    }
    assert_eq!(asks(server.address, Ipv4Addr::LOCALHOST).await, Some(204));
    let last = held.last_mut().unwrap();
    last.write_all(b"GET /api/v1/health/ping HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    last.read_exact(&mut [0; 12]).await.expect("none was closed for another");
}
