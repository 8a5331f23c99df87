//! Certificates and handshakes.

use crate::receiver::{OK, Receiver};
use crate::{answer, assert_failed, hasty, options, post, send};
use aldaba_delivery::FailureKind;
use aldaba_engine::wire::{Wire, WireOptions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        Self::named("Trusted")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn root(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> TlsAcceptor {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        acceptor(params.signed_by(&key, &self.0).unwrap().der().clone(), &key)
    }

    fn wire(&self) -> Wire {
        Wire::new(WireOptions { extra_roots: vec![self.root()], ..options() }).unwrap()
    }
}

fn acceptor(certificate: CertificateDer<'static>, key: &KeyPair) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Answers each request on each connection whose handshake succeeds.
async fn receiver(acceptor: TlsAcceptor) -> Receiver {
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

fn url(host: &str, receiver: &Receiver) -> String {
    format!("https://{host}:{}/", receiver.address.port())
}

#[tokio::test]
async fn a_trusted_certificate_is_taken_and_its_connection_kept() {
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
async fn certificates_that_are_not_acceptable_are_told_apart() {
    let authority = Authority::new();
    let stranger = Authority::named("Stranger");
    let key = KeyPair::generate().unwrap();
    let self_signed =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let cases = [
        (authority.issue("other.example", |_| {}), "another name"),
        (authority.issue("localhost", |params| params.not_after = date_time_ymd(2020, 1, 1)), "has expired"),
        (
            authority.issue("localhost", |params| params.not_before = date_time_ymd(2400, 1, 1)),
            "not valid yet",
        ),
        (stranger.issue("localhost", |_| {}), "issuer is not trusted"),
        (acceptor(self_signed.der().clone(), &key), "self-signed"),
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
async fn what_does_not_speak_tls_is_said_so() {
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
