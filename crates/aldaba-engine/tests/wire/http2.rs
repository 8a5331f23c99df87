//! HTTP/2 with a real server: many requests over one connection.

use crate::authority::Authority;
use crate::http2_receiver::{Http2Receiver, Manner};
use crate::{answer, post, send};
use aldaba_engine::WireRequest;
use aldaba_engine::wire::{PoolLimits, Wire};
use bytes::Bytes;
use futures_util::future::join_all;
use http::Version;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const BOTH: &[&str] = &["h2", "http/1.1"];

pub(crate) fn offering(url: impl AsRef<str>) -> WireRequest {
    WireRequest { http2: true, ..post(url) }
}

async fn all_answered(wire: &Wire, receiver: &Http2Receiver, count: usize) {
    let responses = join_all((0..count).map(|_| send(wire, offering(receiver.url())))).await;
    for response in responses {
        assert_eq!(answer(&response).status, 200);
        assert_eq!(response.body, r#"{"hello":"world"}"#);
    }
}

#[tokio::test]
async fn concurrent_requests_share_one_connection() {
    let authority = Authority::new();
    let manner = Manner { takes: Duration::from_millis(100), ..Manner::default() };
    let mut receiver = Http2Receiver::start(authority.speaking(BOTH), manner).await;
    let wire = authority.wire();
    for _ in 0..3 {
        all_answered(&wire, &receiver, 30).await;
    }
    assert_eq!((receiver.connections(), receiver.requests()), (1, 90));
    assert_eq!(receiver.most_at_once(), 30);
    assert_eq!(wire.idle_connections(), 1);
    let arrival = receiver.arrival().await;
    assert_eq!((arrival.version, arrival.method.as_str()), (Version::HTTP_2, "POST"));
    assert_eq!(arrival.uri.to_string(), receiver.url());
    assert_eq!(arrival.headers["content-length"], "17");
    assert_eq!(arrival.headers.get("host"), None);
    assert_eq!(arrival.body, r#"{"hello":"world"}"#);
}

#[tokio::test]
async fn an_endpoint_without_the_http2_setting_gets_http_1_1() {
    let authority = Authority::new();
    let mut receiver = Http2Receiver::start(authority.speaking(BOTH), Manner::default()).await;
    let wire = authority.wire();
    for request in [post(receiver.url()), offering(receiver.url()), post(receiver.url())] {
        assert_eq!(answer(&send(&wire, request).await).status, 200);
    }
    let versions = [receiver.arrival().await, receiver.arrival().await, receiver.arrival().await];
    assert_eq!(
        versions.map(|arrival| arrival.version),
        [Version::HTTP_11, Version::HTTP_2, Version::HTTP_11]
    );
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn requests_to_a_receiver_without_http2_do_not_queue() {
    let authority = Authority::new();
    for alpn in [&["http/1.1"][..], &[]] {
        let manner = Manner { takes: Duration::from_millis(50), ..Manner::default() };
        let mut receiver = Http2Receiver::start(authority.speaking(alpn), manner).await;
        let wire = authority.wire();
        for _ in 0..3 {
            all_answered(&wire, &receiver, 10).await;
        }
        assert_eq!(receiver.arrival().await.version, Version::HTTP_11);
        assert_eq!((receiver.connections(), receiver.requests()), (10, 30));
    }
}

#[tokio::test]
async fn a_large_request_is_sent_and_only_the_beginning_of_a_large_response_is_kept() {
    let authority = Authority::new();
    let mut receiver = Http2Receiver::start(authority.speaking(BOTH), Manner::default()).await;
    let wire = authority.wire();
    for _ in 0..5 {
        let body = Bytes::from(vec![b'x'; 1 << 20]);
        let response = send(&wire, WireRequest { body: body.clone(), ..offering(receiver.url()) }).await;
        assert_eq!(answer(&response).status, 200);
        assert_eq!(response.body, body[..aldaba_engine::MAX_STORED_RESPONSE_BYTES]);
        assert_eq!(receiver.arrival().await.body, body);
    }
    let empty = send(&wire, WireRequest { body: Bytes::new(), ..offering(receiver.url()) }).await;
    assert_eq!((answer(&empty).status, empty.body.len()), (200, 0));
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn the_receivers_limit_of_streams_is_honoured() {
    let authority = Authority::new();
    let manner = Manner { most_streams: Some(2), takes: Duration::from_millis(50), ..Manner::default() };
    let receiver = Http2Receiver::start(authority.speaking(BOTH), manner).await;
    let wire = authority.wire();
    all_answered(&wire, &receiver, 10).await;
    assert_eq!(receiver.requests(), 10);
    assert!((2..=5).contains(&receiver.connections()), "{}", receiver.connections());
}

#[tokio::test]
async fn a_goaway_causes_neither_a_failure_nor_a_repetition() {
    let authority = Authority::new();
    let told = Arc::new(Notify::new());
    let manner = Manner { goes_away: Some(Arc::clone(&told)), ..Manner::default() };
    let receiver = Http2Receiver::start(authority.speaking(BOTH), manner).await;
    let wire = authority.wire();
    for round in 1..=20 {
        all_answered(&wire, &receiver, 2).await;
        told.notify_waiters();
        // The GOAWAY may arrive before the next request or cross it.
        if round % 2 == 0 {
            receiver.closed(receiver.connections()).await;
        }
    }
    assert_eq!(receiver.requests(), 40);
    assert!(receiver.connections() <= 20, "{}", receiver.connections());
}

#[tokio::test]
async fn a_shared_connection_that_is_idle_too_long_or_too_old_is_closed() {
    let authority = Authority::new();
    let receiver = Http2Receiver::start(authority.speaking(BOTH), Manner::default()).await;
    let idle_timeout = Duration::from_millis(40);
    let wire = authority.wire_with(|options| options.pool.idle_timeout = idle_timeout);
    all_answered(&wire, &receiver, 3).await;
    receiver.closed(1).await;
    assert_eq!(wire.idle_connections(), 0);
    all_answered(&wire, &receiver, 3).await;
    assert_eq!(receiver.connections(), 2);
    receiver.closed(2).await;

    wire.shutdown();
    all_answered(&wire, &receiver, 1).await;
    wire.shutdown();
    receiver.closed(3).await;
    all_answered(&wire, &receiver, 1).await;
    drop(wire);
    receiver.closed(4).await;
}

#[tokio::test]
async fn a_shared_connection_is_not_used_past_its_lifetime() {
    let authority = Authority::new();
    let limits = |max_lifetime| PoolLimits {
        idle_timeout: Duration::from_millis(200),
        max_lifetime,
        ..PoolLimits::default()
    };
    for (max_lifetime, connections) in [(Duration::from_secs(300), 1), (Duration::ZERO, 10)] {
        let receiver = Http2Receiver::start(authority.speaking(BOTH), Manner::default()).await;
        let wire = authority.wire_with(|options| options.pool = limits(max_lifetime));
        for _ in 0..10 {
            all_answered(&wire, &receiver, 1).await;
            // Shorter than the idle timeout: the connection stays open.
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        assert_eq!(receiver.connections(), connections);
    }
}

#[tokio::test]
async fn idle_shared_connections_are_limited() {
    let authority = Authority::new();
    let mut receivers = Vec::new();
    let pool = PoolLimits { idle_overall: 2, ..PoolLimits::default() };
    let wire = authority.wire_with(|options| options.pool = pool);
    for _ in 0..4 {
        let receiver = Http2Receiver::start(authority.speaking(BOTH), Manner::default()).await;
        all_answered(&wire, &receiver, 2).await;
        receivers.push(receiver);
    }
    assert_eq!(wire.idle_connections(), 2);
    for oldest in &receivers[..2] {
        oldest.closed(1).await;
    }
    all_answered(&wire, &receivers[3], 1).await;
    assert_eq!(receivers[3].connections(), 1);
    // Both protocols share one limit.
    assert_eq!(answer(&send(&wire, post(receivers[3].url())).await).status, 200);
    assert_eq!(wire.idle_connections(), 2);
}
