//! Requests through the operator's egress proxy.

use crate::authority::Authority;
use crate::http2::offering;
use crate::http2_receiver::{Http2Receiver, Manner};
use crate::proxy_server::ProxyServer;
use crate::receiver::{OK, Receiver};
use crate::{SHORT, answer, assert_failed, hasty, options, post, send, tls};
use aldaba_delivery::FailureKind;
use aldaba_engine::wire::{EgressProxy, Wire, WireOptions};
use std::time::Duration;

fn through(proxy: EgressProxy) -> Wire {
    Wire::new(WireOptions { egress_proxy: Some(proxy), ..options() }).unwrap()
}

#[tokio::test]
async fn both_kinds_of_proxy_carry_http_to_the_checked_address() {
    let [mut http, mut socks] = [ProxyServer::http().await, ProxyServer::socks5(None).await];
    for (proxy, is_http) in [(&mut http, true), (&mut socks, false)] {
        let mut receiver = Receiver::answering(OK).await;
        let wire = through(proxy.with(""));
        let port = receiver.address.port();
        for _ in 0..20 {
            let response = send(&wire, post(format!("http://localhost:{port}/hook"))).await;
            assert_eq!((answer(&response).status, &response.body[..]), (200, &b"ok"[..]));
        }
        assert_eq!((proxy.connections(), receiver.connections(), receiver.requests()), (1, 1, 20));
        let request = receiver.request().await;
        assert!(request.head.starts_with("POST /hook HTTP/1.1\r\n"), "{}", request.head);
        assert!(request.head.contains(&format!("host: localhost:{port}\r\n")), "{}", request.head);
        assert!(!request.head.contains("proxy"), "{}", request.head);
        let asked = proxy.asked();
        if is_http {
            let expected = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
            assert_eq!(asked, expected);
        } else {
            assert_eq!(asked, format!("127.0.0.1:{port}"));
        }
    }
}

#[tokio::test]
async fn tls_and_http2_pass_through_with_the_name_of_the_receiver() {
    let authority = Authority::new();
    for proxy in [ProxyServer::http().await, ProxyServer::socks5(None).await] {
        let wire = authority.wire_with(|options| options.egress_proxy = Some(proxy.with("")));
        let receiver = tls::receiver(authority.issue("localhost", |_| {})).await;
        for _ in 0..5 {
            assert_eq!(answer(&send(&wire, post(tls::url("localhost", &receiver))).await).status, 200);
        }
        let http2 = Http2Receiver::start(authority.speaking(&["h2"]), Manner::default()).await;
        for _ in 0..5 {
            assert_eq!(answer(&send(&wire, offering(http2.url())).await).status, 200);
        }
        assert_eq!((proxy.connections(), receiver.connections(), http2.connections()), (2, 1, 1));
        let stranger = Authority::named("Stranger");
        let untrusted = tls::receiver(stranger.issue("localhost", |_| {})).await;
        let response = send(&wire, post(tls::url("localhost", &untrusted))).await;
        assert_failed(&response, FailureKind::Tls, "issuer is not trusted");
    }
}

#[tokio::test]
async fn a_proxy_gives_no_access_to_forbidden_addresses() {
    for proxy in [ProxyServer::http().await, ProxyServer::socks5(None).await] {
        let wire = through(proxy.with(""));
        for url in ["http://10.0.0.1/", "http://127.0.0.2/", "http://169.254.169.254/", "https://[::1]/"] {
            let response = send(&wire, post(url)).await;
            assert_failed(&response, FailureKind::TargetForbidden, "private, local or reserved");
        }
        assert_eq!(proxy.connections(), 0);
    }
}

#[tokio::test]
async fn credentials_are_used_and_never_shown() {
    let receiver = Receiver::answering(OK).await;
    let mut http = ProxyServer::http().await;
    assert_eq!(answer(&send(&through(http.with("me:s%40cret@")), post(receiver.url())).await).status, 200);
    assert!(http.asked().contains("\r\nProxy-Authorization: Basic bWU6c0BjcmV0\r\n"));

    let socks = ProxyServer::socks5(Some(("me", "s@cret"))).await;
    assert_eq!(answer(&send(&through(socks.with("me:s%40cret@")), post(receiver.url())).await).status, 200);
    for credentials in ["me:wrong@", ""] {
        let wire = through(socks.with(credentials));
        let response = send(&wire, post(receiver.url())).await;
        assert_failed(&response, FailureKind::Unsent, "the egress proxy wants");
        assert!(!format!("{response:?}").contains("wrong"));
    }
    let picky = ProxyServer::saying("http", b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    let response = send(&through(picky.with("me:wrong@")), post(receiver.url())).await;
    assert_failed(&response, FailureKind::Unsent, "wants other credentials (HTTP 407)");
    assert_eq!(receiver.requests(), 2);
}

#[tokio::test]
async fn a_receiver_that_is_down_is_distinguished_from_a_proxy_that_is() {
    let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = place.local_addr().unwrap();
    drop(place);
    for proxy in [ProxyServer::http().await, ProxyServer::socks5(None).await] {
        let response = send(&through(proxy.with("")), post(format!("http://{nobody}/"))).await;
        assert_failed(&response, FailureKind::Connect, "the egress proxy could not reach the receiver");
    }
    for scheme in ["http", "socks5"] {
        let down = format!("{scheme}://localhost:{}", nobody.port()).parse().unwrap();
        let response = send(&through(down), post("http://127.0.0.1:9/")).await;
        assert_failed(&response, FailureKind::Unsent, "the egress proxy cannot be connected to");
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_or_misbehaves_is_not_counted_against_the_receiver() {
    let cases: [(&str, &[u8], &str); 11] = [
        ("http", b"HTTP/1.1 403 Forbidden\r\n\r\n", "refused the connection (HTTP 403)"),
        ("http", b"HTTP/1.1 503 Unavailable\r\n\r\n", "refused the connection (HTTP 503)"),
        ("http", b"SSH-2.0-nothing\r\n\r\n", "did not speak HTTP"),
        ("http", b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "sent more than its answer"),
        ("http", &[b'x'; 20_000], "sent too long an answer"),
        ("http", b"", "said nothing in time"),
        ("socks5", b"", "said nothing in time"),
        ("socks5", b"\x05\x00\x05\x02\x00\x01", "does not allow this connection"),
        ("socks5", b"\x05\x00\x05\x01\x00\x01", "refused the connection (SOCKS reply 1)"),
        ("socks5", b"\x05\x00HTTP", "did not speak SOCKS5"),
        ("socks5", b"\x05\x00\x05\x00\x00\x09", "did not speak SOCKS5"),
    ];
    for (scheme, bytes, words) in cases {
        let proxy = ProxyServer::saying(scheme, bytes).await;
        let response = send(&through(proxy.with("")), hasty("http://127.0.0.1:9/")).await;
        assert_failed(&response, FailureKind::Internal, words);
    }
    for (scheme, bytes, words) in [
        ("socks5", &b"HTTP/1.1 400"[..], "did not speak SOCKS5"),
        ("socks5", &b"\x05\xff"[..], "wants another kind of authentication"),
    ] {
        let proxy = ProxyServer::saying(scheme, bytes).await;
        let response = send(&through(proxy.with("")), hasty("http://127.0.0.1:9/")).await;
        assert_failed(&response, FailureKind::Unsent, words);
    }
    let closing = ProxyServer::start("http", |client, _| async move { drop(client) }).await;
    let response = send(&through(closing.with("")), hasty("http://127.0.0.1:9/")).await;
    assert_failed(&response, FailureKind::Internal, "closed the connection without an answer");
}

#[tokio::test]
async fn a_silent_receiver_behind_a_live_proxy_is_counted_against_the_receiver() {
    // The proxy connects to one port only and hangs for any other.
    let receiver = Receiver::answering(OK).await;
    let living = receiver.address.to_string();
    let proxy = ProxyServer::start("http", move |mut client, _| {
        let living = living.clone();
        async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut head = [0; 1024];
            let read = client.read(&mut head).await.unwrap();
            if !String::from_utf8_lossy(&head[..read]).contains(&living) {
                return tokio::time::sleep(Duration::from_secs(60)).await;
            }
            let mut server = tokio::net::TcpStream::connect(living).await.unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
    })
    .await;
    let wire = through(proxy.with(""));
    let (silent, healthy) = tokio::join!(send(&wire, hasty("http://127.0.0.1:9/")), async {
        tokio::time::sleep(SHORT / 3).await;
        send(&wire, post(receiver.url())).await
    });
    assert_failed(&silent, FailureKind::ConnectTimeout, "did not reach the receiver in time");
    assert_eq!(answer(&healthy).status, 200);
}
