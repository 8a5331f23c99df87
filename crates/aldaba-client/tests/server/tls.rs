//! A server behind TLS.

use crate::running::{Running, token};
use aldaba_client::{Client, Error, Retries};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Takes TLS off in front of a server. Its address, and its certificate as PEM.
async fn in_front_of(server: SocketAddr) -> (SocketAddr, String) {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut secure) = acceptor.accept(stream).await else { return };
                let mut plain = TcpStream::connect(server).await.unwrap();
                let _ = copy_bidirectional(&mut secure, &mut plain).await;
            });
        }
    });
    (address, identity.cert.pem())
}

#[tokio::test]
async fn a_certificate_counts_only_if_it_is_trusted_and_of_that_name() {
    let server = Running::start().await;
    let (address, pem) = in_front_of(server.address).await;
    let client = |host: &str| {
        Client::builder(&format!("https://{host}:{}", address.port()), &token()).retries(Retries::none())
    };
    let trusting = client("localhost").root_certificates(pem.as_bytes()).build().unwrap();
    assert!(trusting.whoami().await.unwrap().env_id.starts_with("org_"));
    let error = client("localhost").build().unwrap().ping().await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { detail } if detail.contains("certificate")), "{error:?}");
    let other_name = client("127.0.0.1").root_certificates(pem.as_bytes()).build().unwrap();
    assert!(matches!(other_name.ping().await, Err(Error::Unreachable { .. })));
    server.stop().await;
}
