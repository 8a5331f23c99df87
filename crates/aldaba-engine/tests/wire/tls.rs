//! Certificates and handshakes.

use crate::authority::{Authority, acceptor};
use crate::receiver::{OK, Receiver};
use crate::{answer, assert_failed, hasty, post, send};
use aldaba_delivery::FailureKind;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::TlsAcceptor;

/// Answers each request on each connection whose handshake succeeds.
pub(crate) async fn receiver(acceptor: TlsAcceptor) -> Receiver {
    Receiver::start(move |line| {
        let acceptor = acceptor.clone();
        async move {
            let (tcp, line) = line.split();
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            let mut line = line.joined(stream);
            while line.request().await.is_some() {
                line.write(OK).await;
            }
        }
    })
    .await
}

pub(crate) fn url(host: &str, receiver: &Receiver) -> String {
    format!("https://{host}:{}/", receiver.address.port())
}

#[tokio::test]
async fn a_trusted_certificate_is_accepted_and_its_connection_kept() {
    let authority = Authority::new();
    for host in ["localhost", "127.0.0.1"] {
        let receiver = receiver(authority.issue(host, |_| {})).await;
        let wire = authority.wire();
        for _ in 0..20 {
            let response = send(&wire, post(url(host, &receiver))).await;
            assert_eq!((answer(&response).status, &response.body[..]), (200, &b"ok"[..]));
        }
        assert_eq!((receiver.connections(), receiver.requests()), (1, 20));
    }
}

#[tokio::test]
async fn a_large_request_passes_over_tls() {
    let authority = Authority::new();
    let receiver = receiver(authority.issue("localhost", |_| {})).await;
    let mut request = post(url("localhost", &receiver));
    request.body = vec![b'x'; 1 << 20].into();
    assert_eq!(answer(&send(&authority.wire(), request).await).status, 200);
}

#[tokio::test]
async fn each_unacceptable_certificate_has_its_own_error() {
    let authority = Authority::new();
    let stranger = Authority::named("Stranger");
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let self_signed = params.self_signed(&key).unwrap();
    // As `openssl req -x509` makes them.
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own_issuer = params.self_signed(&key).unwrap();
    let cases = [
        (authority.issue("other.example", |_| {}), "another name"),
        (authority.issue("localhost", |params| params.not_after = date_time_ymd(2020, 1, 1)), "has expired"),
        (
            authority.issue("localhost", |params| params.not_before = date_time_ymd(2400, 1, 1)),
            "not valid yet",
        ),
        (stranger.issue("localhost", |_| {}), "the certificate's issuer is not trusted"),
        // Two different issuers with one name.
        (
            stranger.issue("localhost", |params| {
                params.distinguished_name.push(DnType::CommonName, "Stranger");
            }),
            "the certificate's issuer is not trusted",
        ),
        (acceptor(self_signed.der().clone(), &key), "the certificate is self-signed"),
        (acceptor(own_issuer.der().clone(), &key), "the certificate is self-signed"),
    ];
    for (acceptor, words) in cases {
        let receiver = receiver(acceptor).await;
        let response = send(&authority.wire(), post(url("localhost", &receiver))).await;
        assert_failed(&response, FailureKind::Tls, words);
        assert_eq!(receiver.requests(), 0);
    }
}

#[tokio::test]
async fn a_stalled_handshake_runs_into_the_connect_timeout() {
    let mut receiver = Receiver::start(|mut line| async move { line.until_closed().await }).await;
    let response = send(&Authority::new().wire(), hasty(url("localhost", &receiver))).await;
    assert_failed(&response, FailureKind::ConnectTimeout, "the TLS handshake took too long");
    receiver.closed().await;
}

#[tokio::test]
async fn a_receiver_without_tls_is_reported_as_such() {
    let plain = Receiver::start(|mut line| async move {
        line.write(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        line.until_closed().await;
    })
    .await;
    let wire = Authority::new().wire();
    let response = send(&wire, post(url("localhost", &plain))).await;
    assert_failed(&response, FailureKind::Tls, "did not speak TLS");

    let closing = Receiver::start(|line| async move { line.hang_up() }).await;
    let response = send(&wire, post(url("localhost", &closing))).await;
    assert!(matches!(&response.outcome, aldaba_delivery::Outcome::Failed(failure)
        if matches!(failure.kind, FailureKind::Tls | FailureKind::Connect) && failure.detail.contains("TLS handshake")));
}

/// Session tickets arrive after the handshake and are not part of a response.
#[tokio::test]
async fn a_close_after_the_handshake_is_not_the_beginning_of_a_response() {
    let authority = Authority::new();
    for reset in [false, true] {
        let acceptor = authority.issue("localhost", |_| {});
        let receiver = Receiver::start(move |line| {
            let acceptor = acceptor.clone();
            async move {
                let (tcp, line) = line.split();
                let Ok(stream) = acceptor.accept(tcp).await else { return };
                let mut line = line.joined(stream);
                line.request().await;
                let (line, stream) = line.apart();
                if reset {
                    line.joined(stream.into_inner().0).reset();
                }
            }
        })
        .await;
        let response = send(&authority.wire(), post(url("localhost", &receiver))).await;
        let words =
            if reset { "connection reset before any answer" } else { "connection closed before any answer" };
        assert_failed(&response, FailureKind::Broken, words);
        assert_eq!(receiver.requests(), 1);
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_read_breaks_tls_and_not_the_head() {
    let authority = Authority::new();
    let acceptor = authority.issue("localhost", |_| {});
    let receiver = Receiver::start(move |line| {
        let acceptor = acceptor.clone();
        async move {
            let (tcp, line) = line.split();
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            let mut line = line.joined(stream);
            line.request().await;
            // A record that cannot be decrypted.
            let (line, stream) = line.apart();
            let mut plain = line.joined(stream.into_inner().0);
            plain.write(&[23, 3, 3, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await;
            plain.until_closed().await;
        }
    })
    .await;
    let response = send(&authority.wire(), post(url("localhost", &receiver))).await;
    assert_failed(&response, FailureKind::Broken, "the receiver broke TLS before any answer");
}

#[tokio::test]
async fn endless_key_updates_are_cut_off() {
    let authority = Authority::new();
    let acceptor = authority.issue("localhost", |_| {});
    let receiver = Receiver::start(move |line| {
        let acceptor = acceptor.clone();
        async move {
            let (tcp, line) = line.split();
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            let mut line = line.joined(stream);
            line.request().await;
            // Each is a record of its own without a byte of a response.
            while line.stream.get_mut().1.refresh_traffic_keys().is_ok() && line.write(b"").await {}
            line.until_closed().await;
        }
    })
    .await;
    let response = send(&authority.wire(), hasty(url("localhost", &receiver))).await;
    let aldaba_delivery::Outcome::Failed(failure) = &response.outcome else { panic!("answered") };
    assert!(matches!(failure.kind, FailureKind::Broken | FailureKind::Malformed), "{failure:?}");
}
