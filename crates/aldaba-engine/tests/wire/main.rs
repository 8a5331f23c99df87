//! Tests of the HTTP client against misbehaving receivers, name servers and URLs.

mod authority;
mod dns;
mod guard;
mod hostile;
mod http2;
mod http2_hostile;
mod http2_receiver;
mod mtls;
mod own_waits;
mod pool;
mod proxy;
mod proxy_server;
mod receiver;
mod redirects;
mod tls;

use aldaba_delivery::policy::{Redirects, Timeouts};
use aldaba_delivery::{FailureKind, Outcome, ResponseHead};
use aldaba_engine::wire::{Wire, WireOptions};
use aldaba_engine::{MAX_STORED_RESPONSE_BYTES, Transport, WireRequest, WireResponse};
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;

/// The deadline of requests that are meant to exceed it.
const SHORT: Duration = Duration::from_millis(300);
/// A deadline that no test here should reach.
const LONG: Duration = Duration::from_secs(10);
/// How much later than its deadline an attempt may end.
const GRACE: Duration = Duration::from_secs(1);

/// A client that may reach this machine under one of its addresses only.
fn wire() -> Wire {
    Wire::new(options()).unwrap()
}

fn options() -> WireOptions {
    WireOptions { allow_networks: vec!["127.0.0.1/32".parse().unwrap()], ..WireOptions::default() }
}

fn post(url: impl AsRef<str>) -> WireRequest {
    WireRequest {
        url: Arc::new(url.as_ref().parse().unwrap()),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{\"hello\":\"world\"}"),
        timeouts: within(LONG),
        redirects: Redirects::Fail,
        http2: false,
        identity: None,
    }
}

/// A request with a short deadline, so that a stalled receiver is noticed quickly.
fn hasty(url: impl AsRef<str>) -> WireRequest {
    WireRequest { timeouts: within(SHORT), ..post(url) }
}

fn within(total: Duration) -> Timeouts {
    Timeouts { connect: total, answer: total, total }
}

/// Sends a request and checks that it ends in time and keeps no more than allowed.
async fn send(wire: &Wire, request: WireRequest) -> WireResponse {
    let limit = request.timeouts.total + GRACE;
    let response =
        tokio::time::timeout(limit, wire.send(request)).await.expect("it ends within its deadline");
    assert!(response.body.len() <= MAX_STORED_RESPONSE_BYTES);
    response
}

#[track_caller]
fn assert_failed(response: &WireResponse, kind: FailureKind, words: &str) {
    match &response.outcome {
        Outcome::Failed(failure) => {
            assert_eq!(failure.kind, kind, "{failure:?}");
            assert!(failure.detail.contains(words), "{failure:?} should speak of {words:?}");
            assert!(!failure.detail.contains("127.0.0."), "{failure:?} shows an address");
        }
        Outcome::Response(answer) => panic!("answered: {answer:?}"),
    }
}

#[track_caller]
fn answer(response: &WireResponse) -> &ResponseHead {
    match &response.outcome {
        Outcome::Response(answer) => answer,
        Outcome::Failed(failure) => panic!("failed: {failure:?}"),
    }
}
