//! Client certificates.

use crate::authority::{Asks, Authority};
use crate::http2_receiver::{Http2Receiver, Manner};
use crate::receiver::Receiver;
use crate::{answer, assert_failed, post, send};
use aldaba_delivery::FailureKind;
use aldaba_delivery::policy::Redirects;
use aldaba_engine::WireRequest;
use aldaba_engine::wire::Identity;
use std::sync::Arc;

const BOTH: &[&str] = &["h2", "http/1.1"];

fn showing(url: String, identity: Option<&Arc<Identity>>, http2: bool) -> WireRequest {
    WireRequest { identity: identity.cloned(), http2, ..post(url) }
}

#[tokio::test]
async fn a_receiver_that_wants_a_certificate_gets_it() {
    let authority = Authority::new();
    let wire = authority.wire();
    let (ours, strange) = (authority.identity("us"), Authority::named("Stranger").identity("them"));
    for http2 in [false, true] {
        let acceptor = authority.asking(BOTH, Asks::Required);
        let mut receiver = Http2Receiver::start(acceptor, Manner::default()).await;
        for _ in 0..3 {
            let response = send(&wire, showing(receiver.url(), Some(&ours), http2)).await;
            assert_eq!(answer(&response).status, 200);
            assert!(receiver.arrival().await.certificate.is_some());
        }
        assert_eq!(receiver.connections(), 1);
        for (identity, words) in [(None, "CertificateRequired"), (Some(&strange), "UnknownCA")] {
            let response = send(&wire, showing(receiver.url(), identity, http2)).await;
            // It does not count against the host: other endpoints there may work.
            assert_failed(&response, FailureKind::Broken, words);
        }
        assert_eq!(receiver.requests(), 3);
    }
}

#[tokio::test]
async fn connections_are_not_shared_between_certificates() {
    let authority = Authority::new();
    let wire = authority.wire();
    let (one, other) = (authority.identity("one"), authority.identity("other"));
    for http2 in [false, true] {
        let acceptor = authority.asking(BOTH, Asks::Optional);
        let mut receiver = Http2Receiver::start(acceptor, Manner::default()).await;
        let mut seen = Vec::new();
        for _ in 0..3 {
            for identity in [None, Some(&one), Some(&other)] {
                let response = send(&wire, showing(receiver.url(), identity, http2)).await;
                assert_eq!(answer(&response).status, 200);
                seen.push(receiver.arrival().await.certificate);
            }
        }
        assert_eq!(receiver.connections(), 3);
        assert!(seen[0].is_none() && seen[1].is_some() && seen[2].is_some() && seen[1] != seen[2]);
        assert!(seen.chunks(3).all(|round| round == &seen[..3]));
    }
}

#[tokio::test]
async fn another_origin_is_not_shown_the_certificate() {
    let authority = Authority::new();
    let identity = authority.identity("us");
    let mut there = Http2Receiver::start(authority.asking(BOTH, Asks::Optional), Manner::default()).await;
    for http2 in [false, true] {
        let redirect = format!("HTTP/1.1 307 x\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", there.url());
        let acceptor = authority.asking(&["http/1.1"], Asks::Required);
        let here = Receiver::start(move |line| {
            let (acceptor, redirect) = (acceptor.clone(), redirect.clone());
            async move {
                let (tcp, line) = line.split();
                let Ok(stream) = acceptor.accept(tcp).await else { return };
                let mut line = line.joined(stream);
                while line.request().await.is_some() {
                    line.write(redirect.as_bytes()).await;
                }
            }
        })
        .await;
        let url = format!("https://localhost:{}/", here.address.port());
        let redirects = Redirects::Follow { hops: 3 };
        let request = WireRequest { redirects, ..showing(url, Some(&identity), http2) };
        assert_eq!(answer(&send(&authority.wire(), request).await).status, 200);
        assert_eq!(here.requests(), 1);
        assert_eq!(there.arrival().await.certificate, None);
    }
}
