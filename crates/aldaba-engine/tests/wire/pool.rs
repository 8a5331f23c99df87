//! Which connections are kept open.

use crate::receiver::{OK, Receiver};
use crate::{answer, options, post, send, wire};
use aldaba_engine::REQUESTS_PER_ORIGIN;
use aldaba_engine::wire::{PoolLimits, Wire, WireOptions};
use std::time::Duration;

fn with_pool(pool: PoolLimits) -> Wire {
    Wire::new(WireOptions { pool, ..options() }).unwrap()
}

#[tokio::test]
async fn a_hundred_requests_in_a_row_share_one_connection() {
    let receiver = Receiver::answering(OK).await;
    let wire = wire();
    for _ in 0..100 {
        assert_eq!(answer(&send(&wire, post(receiver.url())).await).status, 200);
    }
    assert_eq!((receiver.requests(), receiver.connections()), (100, 1));
    assert_eq!(wire.idle_connections(), 1);
}

#[tokio::test]
async fn chunked_answers_and_large_requests_leave_the_connection_usable() {
    let bytes =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-trailer: y\r\n\r\n";
    let receiver = Receiver::answering(bytes).await;
    let wire = wire();
    for _ in 0..10 {
        let mut request = post(receiver.url());
        request.body = vec![b'x'; 1 << 20].into();
        assert_eq!(send(&wire, request).await.body, "hello");
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn a_connection_closed_before_its_reuse_costs_neither_a_failure_nor_a_second_request() {
    let mut receiver = Receiver::start(|mut connection| async move {
        connection.request().await;
        connection.write(OK).await;
        connection.hang_up();
    })
    .await;
    let wire = wire();
    for _ in 0..50 {
        assert_eq!(answer(&send(&wire, post(receiver.url())).await).status, 200);
        receiver.hung_up().await;
    }
    assert_eq!((receiver.requests(), receiver.connections()), (50, 50));
}

#[tokio::test]
async fn a_connection_reset_before_its_reuse_costs_nothing() {
    let mut receiver = Receiver::start(|mut connection| async move {
        connection.request().await;
        connection.write(OK).await;
        if connection.request().await.is_some() {
            connection.write(OK).await;
        }
        connection.reset();
    })
    .await;
    let wire = wire();
    for _ in 0..20 {
        for _ in 0..2 {
            assert_eq!(answer(&send(&wire, post(receiver.url())).await).status, 200);
        }
        receiver.hung_up().await;
    }
    assert_eq!((receiver.requests(), receiver.connections()), (40, 20));
}

#[tokio::test]
async fn a_response_with_connection_close_is_obeyed() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"[..],
        &b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
    ] {
        let mut receiver = Receiver::answering(bytes).await;
        let wire = wire();
        assert_eq!(answer(&send(&wire, post(receiver.url())).await).status, 200);
        assert_eq!(wire.idle_connections(), 0);
        receiver.closed().await;
    }
}

#[tokio::test]
async fn idle_connections_are_limited() {
    let here = Receiver::answering(OK).await;
    let there = Receiver::answering(OK).await;
    let wire = with_pool(PoolLimits { idle_per_origin: 3, idle_overall: 4, ..PoolLimits::default() });
    for receiver in [&here, &there] {
        let requests = (0..8).map(|_| send(&wire, post(receiver.url())));
        futures_util::future::join_all(requests).await;
    }
    assert_eq!((here.requests(), there.requests()), (8, 8));
    assert_eq!(wire.idle_connections(), 4);
}

#[tokio::test]
async fn the_pool_keeps_as_many_connections_as_concurrent_requests_to_an_origin() {
    // As many as one organization may use, and as several use together.
    for at_once in [REQUESTS_PER_ORIGIN, 300] {
        let receiver = Receiver::answering(OK).await;
        let wire = wire();
        for _ in 0..5 {
            futures_util::future::join_all((0..at_once).map(|_| send(&wire, post(receiver.url())))).await;
        }
        assert_eq!(receiver.requests(), 5 * at_once);
        let connections = receiver.connections();
        assert!(connections <= at_once, "{connections} connections for {at_once} requests at once");
    }
}

#[tokio::test]
async fn a_connection_that_is_idle_too_long_is_closed() {
    let mut receiver = Receiver::answering(OK).await;
    let wire = with_pool(PoolLimits { idle_timeout: Duration::from_millis(40), ..PoolLimits::default() });
    send(&wire, post(receiver.url())).await;
    receiver.closed().await;
    assert_eq!(wire.idle_connections(), 0);
    assert_eq!(answer(&send(&wire, post(receiver.url())).await).status, 200);
}

#[tokio::test]
async fn a_connection_is_not_used_past_its_lifetime() {
    let mut receiver = Receiver::answering(OK).await;
    let wire = with_pool(PoolLimits { max_lifetime: Duration::ZERO, ..PoolLimits::default() });
    send(&wire, post(receiver.url())).await;
    receiver.closed().await;
    assert_eq!(wire.idle_connections(), 0);
}

#[tokio::test]
async fn shutting_down_and_dropping_close_idle_connections() {
    let mut receiver = Receiver::answering(OK).await;
    let wire = wire();
    send(&wire, post(receiver.url())).await;
    wire.shutdown();
    receiver.closed().await;
    send(&wire, post(receiver.url())).await;
    drop(wire);
    receiver.closed().await;
}

#[tokio::test]
async fn a_full_pool_evicts_for_connections_in_use() {
    let mut cold = [Receiver::answering(OK).await, Receiver::answering(OK).await];
    let hot = Receiver::answering(OK).await;
    let wire = with_pool(PoolLimits { idle_overall: 2, ..PoolLimits::default() });
    for receiver in &cold {
        send(&wire, post(receiver.url())).await;
    }
    for _ in 0..10 {
        send(&wire, post(hot.url())).await;
    }
    assert_eq!((hot.requests(), hot.connections()), (10, 1));
    assert_eq!(wire.idle_connections(), 2);
    // One of the two was evicted: its socket is closed.
    let [first, second] = &mut cold;
    tokio::select! {
        () = first.closed() => {}
        () = second.closed() => {}
    }
}
