//! Which redirects are followed.

use crate::receiver::{OK, Receiver};
use crate::{answer, assert_failed, post, send, wire};
use aldaba_delivery::FailureKind;
use aldaba_delivery::policy::Redirects;
use aldaba_engine::WireRequest;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn following(url: impl AsRef<str>) -> WireRequest {
    WireRequest { redirects: Redirects::Follow { hops: 3 }, ..post(url) }
}

fn to(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
}

#[tokio::test]
async fn a3_a_redirect_is_followed_with_method_and_body() {
    for status in [301, 302, 303, 307, 308] {
        let receiver = Receiver::start(move |mut line| async move {
            while let Some(request) = line.request().await {
                assert_eq!(request.body, b"{\"hello\":\"world\"}");
                if request.head.starts_with("POST /hook HTTP/1.1\r\n") {
                    line.write(to(status, "/other?x#fragment").as_bytes()).await;
                } else {
                    assert!(request.head.starts_with("POST /other?x HTTP/1.1\r\n"));
                    line.write(OK).await;
                }
            }
        })
        .await;
        let response = send(&wire(), following(receiver.url())).await;
        assert_eq!((answer(&response).status, &response.body[..]), (200, &b"ok"[..]));
        assert_eq!((receiver.requests(), receiver.connections()), (2, 1));
    }
}

#[tokio::test]
async fn secrets_do_not_go_to_another_origin() {
    let mut other = Receiver::answering(OK).await;
    let mut first = Receiver::answering_once(to(307, &format!("http://user:word@{}/x", other.address))).await;
    let mut request = following(first.url());
    for name in ["authorization", "cookie", "x-api-key", "webhook-id"] {
        request.headers.insert(name, "value".parse().unwrap());
    }
    assert_eq!(answer(&send(&wire(), request).await).status, 200);
    assert!(first.request().await.head.contains("authorization: value"));
    let arrived = other.request().await;
    let names: Vec<&str> = arrived.head.lines().filter_map(|line| line.split(": ").next()).collect();
    assert!(names.contains(&"webhook-id"));
    for name in ["authorization", "cookie", "x-api-key"] {
        assert!(!names.contains(&name), "{name} was passed on");
    }
}

#[tokio::test]
async fn b7_and_d3_a_redirect_is_an_answer_unless_the_policy_follows() {
    for redirects in [Redirects::Fail, Redirects::TakeAsSuccess] {
        let receiver = Receiver::answering_once(to(302, "/other")).await;
        let response = send(&wire(), WireRequest { redirects, ..post(receiver.url()) }).await;
        assert_eq!(answer(&response).status, 302);
        assert_eq!(receiver.requests(), 1);
    }
}

#[tokio::test]
async fn a3_what_is_no_redirect_is_an_answer() {
    for bytes in [
        "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
        to(300, "/x"),
        "HTTP/1.1 304 Not Modified\r\nlocation: /x\r\n\r\n".to_owned(),
        to(305, "/x"),
        to(200, "/x"),
    ] {
        let receiver = Receiver::answering_once(bytes).await;
        let response = send(&wire(), following(receiver.url())).await;
        assert!([200, 300, 302, 304, 305].contains(&answer(&response).status));
        assert_eq!(receiver.requests(), 1);
    }
}

#[tokio::test]
async fn a_redirect_loop_ends() {
    let receiver =
        Receiver::answering(b"HTTP/1.1 302 Found\r\nlocation: /hook\r\ncontent-length: 0\r\n\r\n").await;
    let response = send(&wire(), following(receiver.url())).await;
    assert_failed(&response, FailureKind::TooManyRedirects, "redirects");
    assert_eq!(receiver.requests(), 4);
}

#[tokio::test]
async fn a3_no_redirect_leads_inside() {
    // The same machine under a forbidden address.
    let reached = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&reached);
    let canary = Receiver::start_at("127.0.0.2:0", move |_| {
        flag.store(true, Ordering::SeqCst);
        async {}
    })
    .await;
    let port = canary.address.port();
    let forbidden = [
        format!("http://127.0.0.2:{port}/"),
        format!("//127.0.0.2:{port}/"),
        format!("http://2130706434:{port}/"),
        format!("http://0x7f.2:{port}/"),
        format!("http://[::ffff:127.0.0.2]:{port}/"),
        format!("http://user@127.0.0.2:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::1]/".to_owned(),
    ];
    for location in forbidden {
        let first = Receiver::answering_once(to(307, &location)).await;
        let response = send(&wire(), following(first.url())).await;
        let words = "the redirect was refused: the target leads to a private, local or reserved address";
        assert_failed(&response, FailureKind::TargetForbidden, words);
        assert_eq!(first.requests(), 1, "{location}");
    }
    assert_eq!(canary.connections(), 0);
    assert!(!reached.load(Ordering::SeqCst));
}

#[tokio::test]
async fn no_redirect_leads_out_of_http() {
    for (location, words) in [
        ("file:///etc/passwd", "http:// or https://"),
        ("ftp://127.0.0.1/", "http:// or https://"),
        ("gopher://127.0.0.1:1/", "http:// or https://"),
        ("http://127.0.0.1:0/", "port 0"),
    ] {
        let first = Receiver::answering_once(to(307, location)).await;
        let response = send(&wire(), following(first.url())).await;
        assert_failed(&response, FailureKind::TargetForbidden, words);
        assert_failed(&response, FailureKind::TargetForbidden, "the redirect was refused: ");
    }
}

#[tokio::test]
async fn a_location_that_is_no_url_is_malformed() {
    for location in ["http://", "http://[::1/", "http://./", "h\u{fc}tte"] {
        let first = Receiver::answering_once(to(307, location)).await;
        let response = send(&wire(), following(first.url())).await;
        assert_failed(&response, FailureKind::Malformed, "redirect");
    }
}

#[tokio::test]
async fn a_failure_after_a_redirect_is_not_counted_against_the_host() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let first = Receiver::answering_once(to(307, &format!("http://{nobody}/"))).await;
    let response = send(&wire(), following(first.url())).await;
    assert_failed(&response, FailureKind::Broken, "after a redirect: connection refused");
}
