//! Certificate authorities, and servers with their certificates.

use crate::options;
use aldaba_engine::wire::{Identity, Wire, WireOptions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// Whether a server asks for a client certificate.
#[derive(Clone, Copy)]
pub(crate) enum Asks {
    Required,
    Optional,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("Trusted")
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn root(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub(crate) fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> TlsAcceptor {
        let (certificate, key) = self.certificate(name, change);
        acceptor(certificate, &key)
    }

    fn certificate(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (CertificateDer<'static>, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().der().clone(), key)
    }

    /// A server that offers these protocols.
    pub(crate) fn speaking(&self, alpn: &[&str]) -> TlsAcceptor {
        self.server(alpn, None)
    }

    /// A server that requires a client certificate of this authority.
    pub(crate) fn asking(&self, alpn: &[&str], asks: Asks) -> TlsAcceptor {
        self.server(alpn, Some(asks))
    }

    fn server(&self, alpn: &[&str], asks: Option<Asks>) -> TlsAcceptor {
        let (certificate, key) = self.certificate("localhost", |_| {});
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match asks {
            None => builder.with_no_client_auth(),
            Some(asks) => {
                let mut roots = RootCertStore::empty();
                roots.add(self.root()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = match asks {
                    Asks::Required => verifier,
                    Asks::Optional => verifier.allow_unauthenticated(),
                };
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = builder.with_single_cert(vec![certificate], key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    /// A client certificate.
    pub(crate) fn identity(&self, name: &str) -> Arc<Identity> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Arc::new(Identity::parse(&format!("{}{}", certificate.pem(), key.serialize_pem())).unwrap())
    }

    pub(crate) fn wire(&self) -> Wire {
        self.wire_with(|_| {})
    }

    pub(crate) fn wire_with(&self, change: impl FnOnce(&mut WireOptions)) -> Wire {
        let mut options = WireOptions { extra_roots: vec![self.root()], ..options() };
        change(&mut options);
        Wire::new(options).unwrap()
    }
}

pub(crate) fn acceptor(certificate: CertificateDer<'static>, key: &KeyPair) -> TlsAcceptor {
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
