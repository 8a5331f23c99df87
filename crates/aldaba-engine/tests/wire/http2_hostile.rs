//! Misbehaving HTTP/2 receivers.

use crate::authority::Authority;
use crate::http2::offering;
use crate::http2_receiver::{Http2Receiver, Stream};
use crate::{SHORT, answer, assert_failed, send, within};
use aldaba_delivery::FailureKind;
use aldaba_engine::WireRequest;
use bytes::Bytes;
use h2::Reason;
use http::{HeaderValue, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const SETTINGS_ACK: &[u8] = &[0, 0, 0, 4, 1, 0, 0, 0, 0];

fn hasty(url: impl AsRef<str>) -> WireRequest {
    WireRequest { timeouts: within(SHORT), ..offering(url) }
}

fn server(authority: &Authority) -> TlsAcceptor {
    authority.speaking(&["h2"])
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A receiver that opens the connection properly and then repeats these bytes.
async fn flooding(authority: &Authority, first: Vec<u8>, then: Vec<u8>) -> Http2Receiver {
    Http2Receiver::serving(server(authority), move |mut stream, _| {
        let (first, then) = (first.clone(), then.clone());
        async move {
            let mut buffer = [0; 4096];
            let _ = stream.write_all(&[SETTINGS, SETTINGS_ACK].concat()).await;
            let _ = stream.read(&mut buffer).await;
            let _ = stream.read(&mut buffer).await;
            if stream.write_all(&first).await.is_err() {
                return;
            }
            if then.is_empty() {
                return until_closed(&mut stream).await;
            }
            while stream.write_all(&then).await.is_ok() {}
        }
    })
    .await
}

async fn until_closed(stream: &mut Stream) {
    let mut buffer = [0; 4096];
    while matches!(stream.read(&mut buffer).await, Ok(read) if read > 0) {}
}

fn ok(body_follows: bool) -> (Response<()>, bool) {
    (Response::new(()), !body_follows)
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_on_a_new_connection() {
    let authority = Authority::new();
    let receiver = Http2Receiver::scripted(server(&authority), |number, _request, mut response| async move {
        match number {
            0 => response.send_reset(Reason::REFUSED_STREAM),
            _ => drop(response.send_response(ok(false).0, true)),
        }
    })
    .await;
    assert_eq!(answer(&send(&authority.wire(), offering(receiver.url())).await).status, 200);
    assert_eq!((receiver.connections(), receiver.requests()), (2, 2));
}

#[tokio::test]
async fn a_receiver_that_always_refuses_ends_the_attempt() {
    let authority = Authority::new();
    let receiver = Http2Receiver::scripted(server(&authority), |_, _request, mut response| async move {
        response.send_reset(Reason::REFUSED_STREAM);
    })
    .await;
    let response = send(&authority.wire(), offering(receiver.url())).await;
    assert_failed(&response, FailureKind::Broken, "REFUSED_STREAM");
    assert_eq!(receiver.requests(), 3);
}

#[tokio::test]
async fn a_stream_that_is_reset_for_another_reason_is_not_sent_again() {
    let authority = Authority::new();
    for reason in [Reason::INTERNAL_ERROR, Reason::CANCEL, Reason::NO_ERROR, Reason::HTTP_1_1_REQUIRED] {
        let receiver =
            Http2Receiver::scripted(server(&authority), move |_, _request, mut response| async move {
                response.send_reset(reason);
            })
            .await;
        let response = send(&authority.wire(), offering(receiver.url())).await;
        assert_failed(&response, FailureKind::Broken, &format!("{reason:?}"));
        assert_eq!(receiver.requests(), 1);
    }
}

#[tokio::test]
async fn a_reset_after_the_response_began_is_no_refusal() {
    let authority = Authority::new();
    let receiver = Http2Receiver::scripted(server(&authority), |_, _request, mut response| async move {
        let mut body = response.send_response(ok(true).0, false).unwrap();
        let _ = body.send_data(Bytes::from_static(b"half"), false);
        tokio::time::sleep(SHORT / 3).await;
        body.send_reset(Reason::REFUSED_STREAM);
    })
    .await;
    let response = send(&authority.wire(), offering(receiver.url())).await;
    assert_failed(&response, FailureKind::Broken, "in the middle of the response body");
    assert_eq!(receiver.requests(), 1);
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_request_costs_one_attempt_and_one_request() {
    let authority = Authority::new();
    let receiver = Http2Receiver::serving(server(&authority), |stream, _| async move {
        let Ok(mut connection) = h2::server::handshake(stream).await else { return };
        let _ = connection.accept().await;
    })
    .await;
    let wire = authority.wire();
    let response = send(&wire, offering(receiver.url())).await;
    assert_failed(&response, FailureKind::Broken, "before any answer");
    assert_eq!(receiver.connections(), 1);
    // The next request does not use the dead connection.
    assert_failed(&send(&wire, offering(receiver.url())).await, FailureKind::Broken, "before any answer");
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn a_stalled_stream_ends_in_time_and_leaves_the_others_alone() {
    let authority = Authority::new();
    let receiver = Http2Receiver::scripted(server(&authority), |number, _request, mut response| async move {
        if number == 0 {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(SHORT * 2).await;
        drop(response.send_response(ok(false).0, true));
    })
    .await;
    let wire = authority.wire();
    let (stalled, other) = tokio::join!(send(&wire, hasty(receiver.url())), async {
        tokio::time::sleep(SHORT / 3).await;
        send(&wire, offering(receiver.url())).await
    });
    assert_failed(&stalled, FailureKind::Timeout, "no answer came in time");
    assert_eq!(answer(&other).status, 200);
    assert_eq!(receiver.connections(), 1);
    // A request after a timeout does not reuse the connection.
    assert_eq!(answer(&send(&wire, offering(receiver.url())).await).status, 200);
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn a_body_that_trickles_or_a_window_that_never_opens_ends_in_time() {
    let authority = Authority::new();
    let receiver = Http2Receiver::scripted(server(&authority), |_, _request, mut response| async move {
        let mut body = response.send_response(ok(true).0, false).unwrap();
        while body.send_data(Bytes::from_static(b"x"), false).is_ok() {
            tokio::time::sleep(SHORT / 10).await;
        }
    })
    .await;
    let response = send(&authority.wire(), hasty(receiver.url())).await;
    assert_failed(&response, FailureKind::Timeout, "the response body was not complete in time");

    // The request body is larger than the window, and the receiver never reads it.
    let receiver = Http2Receiver::scripted(server(&authority), |_, request, response| async move {
        let _both = (request, response);
        std::future::pending::<()>().await;
    })
    .await;
    let body = Bytes::from(vec![b'x'; 1 << 20]);
    let response = send(&authority.wire(), WireRequest { body, ..hasty(receiver.url()) }).await;
    assert_failed(&response, FailureKind::Timeout, "did not take the whole request in time");
}

#[tokio::test]
async fn an_early_response_counts_although_the_request_is_not_read() {
    let authority = Authority::new();
    let receiver = Http2Receiver::scripted(server(&authority), |_, request, mut response| async move {
        let refusal = Response::builder().status(413).body(()).unwrap();
        drop(response.send_response(refusal, true));
        drop(request);
    })
    .await;
    let body = Bytes::from(vec![b'x'; 1 << 20]);
    let response = send(&authority.wire(), WireRequest { body, ..offering(receiver.url()) }).await;
    assert_eq!(answer(&response).status, 413);
}

#[tokio::test]
async fn headers_beyond_the_limit_are_refused() {
    let authority = Authority::new();
    let receiver = Http2Receiver::scripted(server(&authority), |_, _request, mut response| async move {
        let mut huge = ok(false).0;
        for number in 0..100 {
            let name = http::HeaderName::from_bytes(format!("x-{number}").as_bytes()).unwrap();
            huge.headers_mut().insert(name, HeaderValue::from_bytes(&[b'x'; 2000]).unwrap());
        }
        drop(response.send_response(huge, true));
    })
    .await;
    let response = send(&authority.wire(), offering(receiver.url())).await;
    assert_failed(&response, FailureKind::Malformed, "a head larger than 64 KiB");
    assert_eq!(receiver.requests(), 1);
}

#[tokio::test]
async fn floods_end_long_before_the_deadline_and_without_a_second_request() {
    let authority = Authority::new();
    let junk = [0_u8; 1000];
    let ping = frame(6, 0, 0, &[0; 8]);
    // Repeated complete `:status: 103` heads, and a header block that never ends.
    let informational = frame(1, 4, 1, &[0x08, 0x03, b'1', b'0', b'3']);
    let endless = (frame(1, 0, 1, &[0x88]), frame(9, 0, 1, &[0; 0]));
    let endless_large = (frame(1, 0, 1, &[0x88]), frame(9, 0, 1, &junk));
    let small_data = (frame(1, 4, 1, &[0x88]), frame(0, 0, 1, b""));
    let far_more = "far more than its answers need";
    let cases = [
        ("pings", (Vec::new(), ping), far_more),
        ("settings", (Vec::new(), SETTINGS.to_vec()), far_more),
        ("informational answers", (Vec::new(), informational), "more than 16 interim answers (1xx)"),
        ("empty continuations", endless, ""),
        ("continuations", endless_large, ""),
        ("empty data", small_data, ""),
        ("resets of what never was", (Vec::new(), frame(3, 0, 99, &[0; 4])), ""),
        ("window updates", (Vec::new(), frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff])), ""),
        ("frames of another world", (Vec::new(), frame(200, 0, 0, &junk)), far_more),
    ];
    for (name, (first, then), words) in cases {
        let receiver = flooding(&authority, first, then).await;
        let wire = authority.wire();
        let response = send(&wire, offering(receiver.url())).await;
        let aldaba_delivery::Outcome::Failed(failure) = &response.outcome else { panic!("{name}: answered") };
        let expected = [FailureKind::Malformed, FailureKind::Broken];
        assert!(expected.contains(&failure.kind), "{name}: {failure:?}");
        assert!(failure.detail.contains(words), "{name}: {failure:?}");
        assert_eq!(receiver.connections(), 1, "{name}");
        drop(wire);
        receiver.closed(1).await;
    }
}

#[tokio::test]
async fn interim_responses_are_counted_per_request() {
    let authority = Authority::new();
    let receiver = Http2Receiver::scripted(server(&authority), |number, _request, mut response| async move {
        let interim = || Response::builder().status(103).body(()).unwrap();
        for _ in 0..if number == 3 { 17 } else { 16 } {
            response.send_informational(interim()).unwrap();
        }
        if number < 2 {
            drop(response.send_response(ok(false).0, true));
        } else {
            std::future::pending::<()>().await;
        }
    })
    .await;
    let wire = authority.wire();
    for _ in 0..2 {
        assert_eq!(answer(&send(&wire, offering(receiver.url())).await).status, 200);
    }
    let response = send(&wire, hasty(receiver.url())).await;
    assert_failed(&response, FailureKind::Timeout, "nothing but interim answers (1xx) came in time");
    let response = send(&wire, offering(receiver.url())).await;
    assert_failed(&response, FailureKind::Malformed, "more than 16 interim answers (1xx)");
}

#[tokio::test]
async fn a_receiver_that_never_opens_http2_runs_into_the_connect_timeout() {
    let authority = Authority::new();
    let silent = Http2Receiver::serving(server(&authority), |mut stream, _| async move {
        until_closed(&mut stream).await;
    })
    .await;
    let response = send(&authority.wire(), hasty(silent.url())).await;
    assert_failed(&response, FailureKind::ConnectTimeout, "the HTTP/2 handshake took too long");
    silent.closed(1).await;

    for (bytes, kind) in
        [(&b"HTTP/1.1 200 OK\r\n\r\n"[..], FailureKind::Malformed), (&b""[..], FailureKind::Connect)]
    {
        let receiver = Http2Receiver::serving(server(&authority), move |mut stream, _| async move {
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
            until_closed(&mut stream).await;
        })
        .await;
        let response = send(&authority.wire(), offering(receiver.url())).await;
        assert_failed(&response, kind, "HTTP/2");
    }
}
