//! Time that a request waits in a local queue does not count against the host.

use crate::authority::Authority;
use crate::http2::offering;
use crate::http2_receiver::{Http2Receiver, Manner};
use crate::receiver::Receiver;
use crate::{LONG, SHORT, answer, assert_failed, send};
use aldaba_delivery::policy::Timeouts;
use aldaba_delivery::{FailureKind, Outcome};
use aldaba_engine::WireRequest;
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

fn connecting_within(connect: Duration, url: impl AsRef<str>) -> WireRequest {
    let timeouts = Timeouts { connect, answer: LONG, total: LONG };
    WireRequest { timeouts, ..offering(url) }
}

/// Regression: ten streams per connection and 24 endpoints with eight requests each. Twenty connections one
/// after the other take three times the connect timeout.
#[tokio::test]
async fn requests_that_wait_for_a_shared_connection_do_not_run_into_the_connect_timeout() {
    let authority = Authority::new();
    let manner = Manner {
        most_streams: Some(10),
        takes: Duration::from_secs(1),
        begins_after: Duration::from_millis(300),
        ..Manner::default()
    };
    let receiver = Http2Receiver::start(authority.speaking(&["h2"]), manner).await;
    let wire = authority.wire();
    let connect = Duration::from_secs(2);
    let requests = (0..24 * 8).map(|_| send(&wire, connecting_within(connect, receiver.url())));
    let responses = join_all(requests).await;
    let mut answered = 0;
    for response in &responses {
        match &response.outcome {
            Outcome::Response(answer) => {
                assert_eq!(answer.status, 200);
                answered += 1;
            }
            // On a busy machine a request may wait too long.
            Outcome::Failed(failure) => assert_eq!(failure.kind, FailureKind::Unsent, "{failure:?}"),
        }
    }
    assert!(answered > 24 * 4, "{answered} of {} were answered", responses.len());
    assert_eq!(receiver.requests(), answered);
}

#[tokio::test]
async fn a_free_stream_is_given_to_a_queued_request() {
    let authority = Authority::new();
    let manner = Manner {
        most_streams: Some(1),
        takes: Duration::from_millis(50),
        begins_after: Duration::from_millis(400),
        ..Manner::default()
    };
    let receiver = Http2Receiver::start(authority.speaking(&["h2"]), manner).await;
    let wire = authority.wire();
    let responses = join_all((0..9).map(|_| send(&wire, offering(receiver.url())))).await;
    for response in responses {
        assert_eq!(answer(&response).status, 200);
    }
    // At most eight connect at once after the first; requests that get a free stream do not connect.
    assert!(receiver.connections() <= 9, "{}", receiver.connections());
    assert_eq!(receiver.requests(), 9);
}

#[tokio::test]
async fn a_failed_connection_fails_all_requests_that_wait_for_it() {
    let authority = Authority::new();
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("https://localhost:{}/", nobody.port());
    let wire = authority.wire();
    let refused = join_all((0..50).map(|_| send(&wire, offering(&url)))).await;
    for response in refused {
        assert_failed(&response, FailureKind::Connect, "connection refused");
    }
}

/// Requests in the queue may have different policies.
#[tokio::test]
async fn the_short_timeout_of_one_request_does_not_fail_another() {
    let authority = Authority::new();
    let acceptor = authority.speaking(&["h2"]);
    let accepted = Arc::new(AtomicUsize::new(0));
    let receiver = Receiver::start(move |line| {
        let (acceptor, first) = (acceptor.clone(), accepted.fetch_add(1, Ordering::SeqCst) == 0);
        async move {
            let (tcp, line) = line.split();
            if first {
                return line.joined(tcp).until_closed().await;
            }
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            let Ok(mut connection) = h2::server::handshake(stream).await else { return };
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                drop(respond.send_response(http::Response::new(()), true));
            }
        }
    })
    .await;
    let url = format!("https://localhost:{}/", receiver.address.port());
    let wire = authority.wire();
    let hasty = send(&wire, connecting_within(SHORT, &url));
    let patient = async {
        tokio::task::yield_now().await;
        send(&wire, connecting_within(LONG, &url)).await
    };
    let (hasty, patient) = tokio::join!(hasty, patient);
    assert_failed(&hasty, FailureKind::ConnectTimeout, "the TLS handshake took too long");
    assert_eq!(answer(&patient).status, 200);
    assert_eq!(receiver.connections(), 2);
}

/// The receiver accepts connections one at a time, with one stream each.
#[tokio::test]
async fn a_request_that_waits_too_long_for_a_stream_uses_up_no_attempt() {
    let authority = Authority::new();
    let connect = Duration::from_millis(1500);
    let manner = Manner {
        most_streams: Some(1),
        takes: Duration::from_secs(5),
        begins_after: Duration::from_secs(1),
        ..Manner::default()
    };
    let receiver = Http2Receiver::start(authority.speaking(&["h2"]), manner).await;
    let wire = authority.wire();
    let requests = (0..30).map(|_| send(&wire, connecting_within(connect, receiver.url())));
    let responses = join_all(requests).await;
    let unsent = |response: &&aldaba_engine::WireResponse| match &response.outcome {
        Outcome::Response(_) => false,
        Outcome::Failed(_) => {
            assert_failed(
                response,
                FailureKind::Unsent,
                "waited too long for a stream on a shared connection",
            );
            true
        }
    };
    let uncounted = responses.iter().filter(unsent).count();
    assert!((1..30).contains(&uncounted), "{uncounted}");
    assert_eq!(receiver.requests(), 30 - uncounted);
}

/// Connecting is always in progress and never succeeds.
#[tokio::test]
async fn a_host_that_accepts_no_connection_fails_queued_requests_too() {
    let authority = Authority::new();
    let receiver = Receiver::start(|mut line| async move { line.until_closed().await }).await;
    let url = format!("https://localhost:{}/", receiver.address.port());
    let wire = authority.wire();
    let patient = tokio::spawn({
        let (wire, url) = (wire.clone(), url.clone());
        async move { send(&wire, connecting_within(LONG / 2, url)).await }
    });
    while receiver.connections() == 0 {
        tokio::task::yield_now().await;
    }
    let waiting = join_all((0..20).map(|_| send(&wire, connecting_within(SHORT, &url)))).await;
    for response in waiting {
        assert_failed(&response, FailureKind::ConnectTimeout, "connecting took too long");
    }
    assert_eq!(receiver.connections(), 1);
    patient.abort();
}
