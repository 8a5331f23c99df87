//! A receiver with TLS that speaks HTTP/2 or HTTP/1.1, and asks for a client certificate.

use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// An issuer of certificates, in a file as an operator has it.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

#[derive(Debug)]
pub(crate) struct Secured {
    pub(crate) version: Version,
    /// Whether the client showed a certificate.
    pub(crate) certificate: bool,
    pub(crate) body: Bytes,
}

pub(crate) struct SecureReceiver {
    pub(crate) port: u16,
    arrivals: mpsc::UnboundedReceiver<Secured>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Certificate and private key, as PEM.
    pub(crate) fn identity(&self) -> [String; 2] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        [params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem()]
    }

    fn acceptor(&self) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

impl SecureReceiver {
    /// Answers every request with this status.
    pub(crate) async fn answering(authority: &Authority, status: u16) -> Self {
        let acceptor = authority.acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (arrived, arrivals) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, arrived) = (acceptor.clone(), arrived.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(tcp).await else { return };
                    let certificate = stream.get_ref().1.peer_certificates().is_some();
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let service = service_fn(move |request: Request<Incoming>| {
                        let arrived = arrived.clone();
                        async move {
                            let version = request.version();
                            let body = request.into_body().collect().await.unwrap().to_bytes();
                            let _ = arrived.send(Secured { version, certificate, body });
                            let mut response = Response::new(Full::new(Bytes::new()));
                            *response.status_mut() = StatusCode::from_u16(status).unwrap();
                            Ok::<_, Infallible>(response)
                        }
                    });
                    let stream = TokioIo::new(stream);
                    if http2 {
                        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        let _ = builder.serve_connection(stream, service).await;
                    } else {
                        let builder = hyper::server::conn::http1::Builder::new();
                        let _ = builder.serve_connection(stream, service).await;
                    }
                });
            }
        });
        Self { port, arrivals }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}/hook", self.port)
    }

    pub(crate) async fn next(&mut self) -> Secured {
        let next = tokio::time::timeout(Duration::from_secs(20), self.arrivals.recv()).await;
        next.expect("something arrives in time").unwrap()
    }
}
