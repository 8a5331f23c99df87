//! Misbehaving receivers: each has its own outcome, in time.

use crate::receiver::{OK, Receiver};
use crate::{SHORT, answer, assert_failed, hasty, post, send, wire};
use aldaba_delivery::{FailureKind, RetryAfter, Timestamp};
use aldaba_engine::{MAX_STORED_RESPONSE_BYTES, WireRequest};
use bytes::Bytes;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};

#[tokio::test]
async fn a_request_arrives_as_it_was_given() {
    let mut receiver = Receiver::answering(OK).await;
    let mut request = post(format!("http://{}/a%20path?b={{c}}&d", receiver.address));
    request.headers.insert("webhook-id", "msg_1".parse().unwrap());
    let response = send(&wire(), request).await;

    assert_eq!((answer(&response).status, &answer(&response).phrase[..]), (200, "OK"));
    assert_eq!(response.body, "ok");
    let arrived = receiver.request().await;
    assert_eq!(arrived.body, b"{\"hello\":\"world\"}");
    let mut lines: Vec<&str> = arrived.head.trim_end().lines().collect();
    assert_eq!(lines.remove(0), "POST /a%20path?b={c}&d HTTP/1.1");
    lines.sort_unstable();
    let host = format!("host: {}", receiver.address);
    assert_eq!(lines, ["content-length: 17", &host, "webhook-id: msg_1"]);
}

#[tokio::test]
async fn an_empty_body_is_sent_with_its_length() {
    let mut receiver = Receiver::answering(OK).await;
    let response = send(&wire(), WireRequest { body: Bytes::new(), ..post(receiver.url()) }).await;
    assert_eq!(answer(&response).status, 200);
    assert!(receiver.request().await.head.contains("content-length: 0\r\n"));
}

#[tokio::test]
async fn a_receiver_that_never_accepts_runs_into_the_connect_timeout() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Its accept queue is full once a connection is left open.
    let mut queue = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(50), TcpStream::connect(address)).await
    {
        queue.push(stream);
    }
    let response = send(&wire(), hasty(format!("http://{address}/"))).await;
    assert_failed(&response, FailureKind::ConnectTimeout, "connecting took too long");
}

#[tokio::test]
async fn a_port_without_a_listener_is_refused() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let response = send(&wire(), post(format!("http://{address}/"))).await;
    assert_failed(&response, FailureKind::Connect, "connection refused");
}

#[tokio::test]
async fn a_silent_receiver_is_dropped_at_the_deadline() {
    let mut receiver = Receiver::start(|mut connection| async move {
        connection.request().await;
        connection.until_closed().await;
    })
    .await;
    let response = send(&wire(), hasty(receiver.url())).await;
    assert_failed(&response, FailureKind::Timeout, "no answer came in time");
    receiver.closed().await;
}

#[tokio::test]
async fn a_cancelled_request_closes_its_socket_immediately() {
    let mut receiver = Receiver::start(|mut connection| async move {
        connection.request().await;
        connection.until_closed().await;
    })
    .await;
    let wire = wire();
    tokio::select! {
        biased;
        _ = send(&wire, post(receiver.url())) => panic!("nobody answers"),
        _ = receiver.request() => {}
    }
    receiver.closed().await;
}

#[tokio::test]
async fn d6_the_answer_timeout_counts_by_itself() {
    let receiver = Receiver::start(|mut connection| async move { connection.until_closed().await }).await;
    let mut request = post(receiver.url());
    request.timeouts.answer = SHORT;
    let wire = wire();
    let sent = tokio::time::timeout(SHORT * 4, send(&wire, request)).await.expect("long before the total");
    assert_failed(&sent, FailureKind::Timeout, "no answer came in time");
}

#[tokio::test]
async fn a_receiver_that_never_reads_runs_into_the_deadline() {
    let receiver = Receiver::start(|connection| async move {
        std::future::pending::<()>().await;
        drop(connection);
    })
    .await;
    let body = Bytes::from(vec![b'x'; 16 << 20]);
    let response = send(&wire(), WireRequest { body, ..hasty(receiver.url()) }).await;
    assert_failed(&response, FailureKind::Timeout, "did not take the whole request in time");
}

#[tokio::test]
async fn a_response_before_the_body_was_read_counts() {
    let receiver = Receiver::start(|mut connection| async move {
        connection.write(b"HTTP/1.1 413 Too Big For Me\r\ncontent-length: 0\r\n\r\n").await;
        std::future::pending::<()>().await;
    })
    .await;
    let body = Bytes::from(vec![b'x'; 16 << 20]);
    let wire = wire();
    let response = send(&wire, WireRequest { body, ..post(receiver.url()) }).await;
    assert_eq!((answer(&response).status, &answer(&response).phrase[..]), (413, "Too Big For Me"));
    assert_eq!(wire.idle_connections(), 0);
}

#[tokio::test]
async fn a_trickling_response_ends_at_the_deadline() {
    let head = "HTTP/1.1 200 OK\r\n";
    let body = "the response body was not complete in time";
    let cases = [
        (
            format!("{head}x-filler: {}\r\n\r\n", "a".repeat(1000)),
            "the response head was not complete in time",
        ),
        (format!("{head}content-length: 1000\r\n\r\n{}", "a".repeat(1000)), body),
        (format!("{head}transfer-encoding: chunked\r\n\r\n{}", "1\r\na\r\n".repeat(200)), body),
        (format!("{head}transfer-encoding: chunked\r\n\r\n{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(12)), body),
    ];
    for (case, words) in cases {
        let split = case.find("\r\n\r\n").filter(|_| !case.contains("filler")).map_or(0, |end| end + 4);
        let mut receiver = Receiver::start(move |mut connection| {
            let case = case.clone();
            async move {
                connection.request().await;
                connection.write(&case.as_bytes()[..split]).await;
                connection.trickle(&case.as_bytes()[split..]).await;
            }
        })
        .await;
        let response = send(&wire(), hasty(receiver.url())).await;
        assert_failed(&response, FailureKind::Timeout, words);
        receiver.closed().await;
    }
}

#[tokio::test]
async fn the_beginning_of_an_endless_body_is_kept() {
    let heads: [(&[u8], &[u8]); 3] = [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n", b"aaaaaaaaaaaaaaaa"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"10\r\naaaaaaaaaaaaaaaa\r\n"),
        (b"HTTP/1.0 200 OK\r\n\r\n", b"aaaaaaaaaaaaaaaa"),
    ];
    for (head, chunk) in heads {
        let mut receiver = Receiver::start(move |mut connection| async move {
            connection.request().await;
            connection.write(head).await;
            connection.write_forever(&chunk.repeat(100)).await;
        })
        .await;
        let wire = wire();
        let response = send(&wire, post(receiver.url())).await;
        assert_eq!(answer(&response).status, 200);
        assert_eq!(response.body, vec![b'a'; MAX_STORED_RESPONSE_BYTES]);
        assert_eq!(wire.idle_connections(), 0);
        receiver.closed().await;
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_kept_size_leaves_the_connection_usable() {
    let answer_bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {MAX_STORED_RESPONSE_BYTES}\r\n\r\n{}",
        "a".repeat(MAX_STORED_RESPONSE_BYTES)
    );
    let receiver = Receiver::answering_once(answer_bytes).await;
    let wire = wire();
    let response = send(&wire, post(receiver.url())).await;
    assert_eq!(response.body.len(), MAX_STORED_RESPONSE_BYTES);
    assert_eq!(wire.idle_connections(), 1);
}

#[tokio::test]
async fn a_compressed_body_is_not_decoded() {
    let bomb: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0xed, 0xc1];
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    let receiver = Receiver::answering_once([head.as_bytes(), bomb].concat()).await;
    let response = send(&wire(), post(receiver.url())).await;
    assert_eq!(response.body, bomb);
}

#[tokio::test]
async fn a_body_shorter_than_announced_is_broken_or_late() {
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort";
    let receiver = Receiver::answering_and_closing(short).await;
    assert_failed(
        &send(&wire(), post(receiver.url())).await,
        FailureKind::Broken,
        "in the middle of the response body",
    );
    let receiver = Receiver::answering_once(short).await;
    let late = send(&wire(), hasty(receiver.url())).await;
    assert_failed(&late, FailureKind::Timeout, "the response body was not complete in time");
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel";
    let receiver = Receiver::answering_and_closing(chunked).await;
    assert_failed(
        &send(&wire(), post(receiver.url())).await,
        FailureKind::Broken,
        "in the middle of the response body",
    );
}

#[tokio::test]
async fn bytes_after_the_announced_end_make_the_connection_unusable() {
    let receiver =
        Receiver::answering_once("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 500 Oops\r\n\r\n")
            .await;
    let wire = wire();
    for _ in 0..3 {
        let response = send(&wire, post(receiver.url())).await;
        assert_eq!((answer(&response).status, &response.body[..]), (200, &b"ok"[..]));
    }
    assert_eq!(receiver.connections(), 3);
}

#[tokio::test]
async fn a_body_may_end_with_the_connection() {
    let receiver = Receiver::answering_and_closing("HTTP/1.0 200 OK\r\n\r\nuntil the end").await;
    let response = send(&wire(), post(receiver.url())).await;
    assert_eq!((answer(&response).status, &response.body[..]), (200, &b"until the end"[..]));
}

#[tokio::test]
async fn a_response_that_is_not_http_is_malformed() {
    let not_http = "not acceptable as HTTP";
    let framing = "not framed as HTTP";
    let chunked = |body: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}");
    let cases = [
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned(), not_http),
        ("HTTP/1.1 20 OK\r\n\r\n".to_owned(), not_http),
        ("HTTP/9.9 200 OK\r\n\r\n".to_owned(), not_http),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), not_http),
        ("\0\0\0\0\0\0\0\0".to_owned(), not_http),
        ("HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n".to_owned(), not_http),
        ("HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n".to_owned(), not_http),
        ("HTTP/1.1 200 OK\r\ncontent-length: abc\r\n\r\n".to_owned(), not_http),
        ("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n".to_owned(), not_http),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned(), not_http),
        (format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101)), "more than 100 headers"),
        ("\r\n".repeat(100 << 10), "nothing but empty lines"),
        (format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)), "larger than 64 KiB"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
                .to_owned(),
            "switched protocols (101)",
        ),
        (chunked("zz\r\nhello\r\n"), framing),
        (chunked("5\r\nhelloXX"), framing),
        (chunked("ffffffffffffffffff\r\n"), framing),
        (chunked(&format!("1;{}\r\na\r\n", "e".repeat(32 << 10))), framing),
        (chunked(&format!("0\r\n{}\r\n", "t: v\r\n".repeat(101))), framing),
    ];
    for (case, words) in cases {
        let receiver = Receiver::answering_once(case).await;
        let response = send(&wire(), post(receiver.url())).await;
        assert_failed(&response, FailureKind::Malformed, words);
    }
}

#[tokio::test]
async fn a_hundred_headers_are_read() {
    let head = format!("HTTP/1.1 204 No Content\r\n{}\r\n", "x: y\r\n".repeat(100));
    let receiver = Receiver::answering_once(head).await;
    assert_eq!(answer(&send(&wire(), post(receiver.url())).await).status, 204);
}

#[tokio::test]
async fn a_flood_of_interim_responses_ends_long_before_the_deadline() {
    let large = format!("HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n", "x".repeat(60_000));
    for interim in ["HTTP/1.1 102 Processing\r\n\r\n".repeat(100), "HTTP/1.1 100 \r\n\r\n".to_owned(), large]
    {
        let mut receiver = Receiver::start(move |mut connection| {
            let interim = interim.clone();
            async move {
                connection.request().await;
                connection.write_forever(interim.as_bytes()).await;
            }
        })
        .await;
        let wire = wire();
        let response = send(&wire, post(receiver.url())).await;
        assert_failed(&response, FailureKind::Malformed, "more than 16 interim answers (1xx)");
        receiver.closed().await;
        assert_eq!((receiver.connections(), wire.idle_connections()), (1, 0));
    }
}

#[tokio::test]
async fn a_timeout_after_interim_responses_names_them() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n";
    let receiver = Receiver::answering_once(interim).await;
    let response = send(&wire(), hasty(receiver.url())).await;
    assert_failed(&response, FailureKind::Timeout, "nothing but interim answers (1xx) came in time");
    let receiver = Receiver::answering_and_closing(interim).await;
    let response = send(&wire(), post(receiver.url())).await;
    assert_failed(&response, FailureKind::Broken, "connection closed after interim answers (1xx)");
}

#[tokio::test]
async fn interim_responses_up_to_the_limit_are_skipped_on_every_request() {
    let interim = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(16);
    let answer_bytes: &'static [u8] = format!("{interim}HTTP/1.1 204 No Content\r\n\r\n").leak().as_bytes();
    let receiver = Receiver::answering(answer_bytes).await;
    let wire = wire();
    for _ in 0..3 {
        assert_eq!(answer(&send(&wire, post(receiver.url())).await).status, 204);
    }
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn a_body_that_is_mostly_framing_is_cut_off() {
    let heads: [&[u8]; 2] = [b"000000000000", b"1\r\na\r\n0000000000000000000000000000000000000000000000"];
    for framing in heads {
        let mut receiver = Receiver::start(move |mut connection| async move {
            connection.request().await;
            connection.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            connection.write(framing).await;
            connection.write_forever(&[b'0'; 1000]).await;
        })
        .await;
        let response = send(&wire(), post(receiver.url())).await;
        assert_failed(&response, FailureKind::Malformed, "too many bytes on its chunk sizes");
        receiver.closed().await;
    }
}

#[tokio::test]
async fn a_body_in_chunks_of_one_byte_is_read_in_part_and_the_status_counts() {
    let chunks = "1\r\na\r\n".repeat(MAX_STORED_RESPONSE_BYTES);
    for status in [200, 500] {
        let head = format!("HTTP/1.1 {status} X\r\ntransfer-encoding: chunked\r\n\r\n");
        let mut receiver = Receiver::answering_once(format!("{head}{chunks}0\r\n\r\n")).await;
        let wire = wire();
        let response = send(&wire, post(receiver.url())).await;
        assert_eq!((answer(&response).status, response.body.len()), (status, 2048));
        receiver.closed().await;
        assert_eq!(wire.idle_connections(), 0);
    }
}

#[tokio::test]
async fn interim_responses_before_the_final_one_are_skipped() {
    let bytes = [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ];
    let receiver = Receiver::answering_once(bytes.concat()).await;
    assert_eq!(answer(&send(&wire(), post(receiver.url())).await).status, 200);
}

#[tokio::test]
async fn resets_and_closes_are_distinguished_by_when_they_happen() {
    let head: &[u8] = b"HTTP/1.1 200 OK\r\nx: y";
    let body: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc";
    let cases: [(&[u8], bool, &str); 6] = [
        (b"", true, "connection reset before any answer"),
        (b"", false, "connection closed before any answer"),
        // A reset may overtake data that was sent before it.
        (head, true, "connection reset"),
        (head, false, "connection closed in the middle of the response head"),
        (body, true, "connection reset"),
        (body, false, "connection closed in the middle of the response body"),
    ];
    for (bytes, reset, words) in cases {
        let receiver = Receiver::start(move |mut connection| async move {
            connection.request().await;
            connection.write(bytes).await;
            if reset {
                connection.reset();
            }
        })
        .await;
        let response = send(&wire(), post(receiver.url())).await;
        assert_failed(&response, FailureKind::Broken, words);
        assert_eq!(receiver.requests(), 1, "a request that has left is never repeated");
    }
}

#[tokio::test]
async fn a_reset_on_accept_is_broken() {
    let receiver = Receiver::start(|connection| async move { connection.reset() }).await;
    let response = send(&wire(), post(receiver.url())).await;
    assert_failed(&response, FailureKind::Broken, "");
}

#[tokio::test]
async fn retry_after_is_used_only_if_it_is_unambiguous() {
    let cases = [
        ("retry-after: 120\r\n", Some(RetryAfter::Seconds(120))),
        ("retry-after: 315360000\r\n", Some(RetryAfter::Seconds(315_360_000))),
        ("retry-after: 99999999999999999999999\r\n", Some(RetryAfter::Seconds(u64::MAX))),
        ("retry-after: 7\r\nRetry-After: 7\r\n", Some(RetryAfter::Seconds(7))),
        ("retry-after: 7\r\nretry-after: 8\r\n", None),
        ("retry-after: -5\r\n", None),
        ("retry-after: 1e300\r\n", None),
        ("retry-after: inf\r\n", None),
        ("retry-after: NaN\r\n", None),
        ("retry-after:\r\n", None),
        // The parser does not know the current time; a past date means no delay.
        (
            "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            Some(RetryAfter::At(Timestamp::from_millis(784_111_777_000))),
        ),
        ("retry-after: yesterday\r\n", None),
        ("", None),
    ];
    for (header, wish) in cases {
        let receiver =
            Receiver::answering_once(format!("HTTP/1.1 503 Busy\r\n{header}content-length: 0\r\n\r\n")).await;
        let response = send(&wire(), post(receiver.url())).await;
        assert_eq!(answer(&response).retry_after, wish, "{header:?}");
    }
}

#[tokio::test]
async fn any_status_and_phrase_is_a_response() {
    let cases: [(&str, u16, &str); 5] = [
        ("299 Whatever", 299, "Whatever"),
        ("599", 599, ""),
        ("999 ", 999, ""),
        ("204 No Content", 204, "No Content"),
        ("304 Not Modified", 304, "Not Modified"),
    ];
    for (connection, status, phrase) in cases {
        let receiver = Receiver::answering_and_closing(format!("HTTP/1.1 {connection}\r\n\r\n")).await;
        let response = send(&wire(), post(receiver.url())).await;
        assert_eq!((answer(&response).status, &answer(&response).phrase[..]), (status, phrase));
    }
}
