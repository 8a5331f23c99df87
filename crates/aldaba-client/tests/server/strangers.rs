//! Answers of other servers: of a proxy, a firewall, another page.

use crate::proxy::{Fault, Proxy};
use crate::running::{Running, client_of, timed};
use aldaba_client::{Client, Error, NewPolicy, Retries};
use std::time::{Duration, SystemTime};

const PAGE: &str = "<html>a proxy's own page</html>";

/// A server with the application `acme`, a wire to it, and a client at its end.
async fn wired() -> (Running, Proxy, Client) {
    let server = Running::start().await;
    server.application("acme").await;
    let proxy = Proxy::to(server.address).await;
    let quick = Retries::default().pauses(Duration::from_millis(20), Duration::from_millis(100));
    let client = client_of(proxy.address).with_retries(quick);
    (server, proxy, client)
}

#[tokio::test]
async fn a_proxy_that_knows_no_such_page_has_deleted_nothing() {
    let (server, proxy, client) = wired().await;
    proxy.plan([Fault::Answer(502, None, "Bad Gateway"), Fault::Answer(404, None, "404 page not found\n")]);
    let error = client.app("acme").delete().await.unwrap_err();
    assert!(matches!(error, Error::Answer { status: 404, .. }), "{error:?}");
    assert!(!error.is_not_found(), "nobody who knows has said so");
    server.client.app("acme").get().await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn the_retry_after_of_a_proxy_is_obeyed_as_seconds_and_as_a_date() {
    let (server, proxy, client) = wired().await;
    proxy.plan([Fault::Answer(503, Some(1), PAGE)]);
    let (shown, took) = timed(client.app("acme").get()).await;
    shown.unwrap();
    assert!(took >= Duration::from_secs(1), "{took:?}");
    // A date has whole seconds.
    proxy.plan([Fault::BusyUntil(in_seconds(3))]);
    let (shown, took) = timed(client.app("acme").get()).await;
    shown.unwrap();
    assert!(took >= Duration::from_secs(2), "{took:?}");
    // A time in the past means now, and one too far ahead is reported at once.
    proxy.plan([Fault::BusyUntil(SystemTime::UNIX_EPOCH), Fault::BusyUntil(in_seconds(3600))]);
    let (shown, took) = timed(client.app("acme").get()).await;
    let error = shown.unwrap_err();
    assert!(error.retry_after().unwrap() > Duration::from_secs(3500), "{error:?}");
    assert!(error.to_string().contains("Try again in"), "{error}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    server.stop().await;
}

#[expect(clippy::disallowed_methods, reason = "the calendar that the client reads, too")]
fn in_seconds(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_busy_proxy_is_no_proof_that_nothing_was_done() {
    let (server, proxy, client) = wired().await;
    // Such as one whose connection to Aldaba broke after the request had gone out.
    for status in [429, 503] {
        let before = proxy.seen().len();
        proxy.plan([Fault::Answer(status, None, PAGE)]);
        let made = client.policies().create(&NewPolicy::with_delays("mine", &["1s"])).await;
        assert!(matches!(made, Err(Error::Answer { .. })), "{made:?}");
        assert_eq!(proxy.seen().len(), before + 1);
    }
    server.stop().await;
}

#[tokio::test]
async fn an_endless_answer_is_an_error_and_not_retried() {
    let (server, proxy, client) = wired().await;
    proxy.plan([Fault::Endless(200)]);
    let error = client.app("acme").get().await.unwrap_err();
    assert!(matches!(error, Error::Answer { status: 200, .. }), "{error:?}");
    assert!(error.to_string().contains("is longer than"), "{error}");
    assert_eq!(proxy.seen().len(), 1);
    // The limit for refusals is smaller. A busy proxy is retried as usual.
    proxy.plan([Fault::Endless(403)]);
    let error = client.app("acme").get().await.unwrap_err();
    assert!(matches!(error, Error::Answer { status: 403, .. }), "{error:?}");
    proxy.plan([Fault::Endless(503)]);
    client.app("acme").get().await.unwrap();
    server.stop().await;
}
