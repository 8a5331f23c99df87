mod certificate;
mod expiry;
mod identity;
mod roots;

pub use expiry::first_expiry;
pub(super) use identity::Fingerprint;
pub use identity::{Identity, IdentityError};
pub use roots::{RootsError, read_roots};

use crate::wire::WireError;
use crate::wire::connect_error;
use crate::wire::stream::Socket;
use aldaba_delivery::{AttemptFailure, FailureKind};
use certificate::{CertificateVerifier, describe};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The most TLS sessions that are cached for resumption.
const MAX_CACHED_SESSIONS: usize = 1_024;

/// Alerts that mean the receiver rejects the client certificate.
const CLIENT_CERTIFICATE_ALERTS: [AlertDescription; 9] = [
    AlertDescription::NoCertificate,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
    AlertDescription::CertificateRequired,
];

/// TLS to receivers, without early data, which could be replayed.
pub(in crate::wire) struct Tls {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl Tls {
    pub(in crate::wire) fn new(extra_roots: Vec<CertificateDer<'static>>) -> Result<Self, WireError> {
        let roots = root_store(extra_roots)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = CertificateVerifier::new(roots, Arc::clone(&provider)).map_err(WireError::Tls)?;
        let mut http1 = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| WireError::Tls(error.to_string()))?
            // Custom verifiers are behind "dangerous"; this one delegates to the library's.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        http1.resumption = Resumption::in_memory_sessions(MAX_CACHED_SESSIONS);
        let mut http2 = http1.clone();
        http2.alpn_protocols.insert(0, b"h2".to_vec());
        http2.resumption = Resumption::in_memory_sessions(MAX_CACHED_SESSIONS);
        Ok(Self { http1: Arc::new(http1), http2: Arc::new(http2) })
    }

    fn connector(&self, http2: bool, identity: Option<&Identity>) -> TlsConnector {
        let shared = if http2 { &self.http2 } else { &self.http1 };
        let Some(identity) = identity else {
            return TlsConnector::from(Arc::clone(shared));
        };
        let mut own = ClientConfig::clone(shared);
        own.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity.key()));
        // A session is bound to its client certificate and must not be resumed with another.
        own.resumption = Resumption::disabled();
        TlsConnector::from(Arc::new(own))
    }

    pub(in crate::wire) async fn handshake(
        &self,
        name: ServerName<'static>,
        socket: Socket,
        http2: bool,
        identity: Option<&Identity>,
    ) -> Result<Box<TlsStream<Socket>>, AttemptFailure> {
        match self.connector(http2, identity).connect(name, socket).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(handshake_failure(&error)),
        }
    }
}

/// TLS for HTTP/1.1 clients of this server, with the same trust as deliveries.
pub fn client_tls(extra_roots: Vec<CertificateDer<'static>>) -> Result<TlsConnector, WireError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| WireError::Tls(error.to_string()))?
        .with_root_certificates(root_store(extra_roots)?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The public roots and the operator's.
fn root_store(extra_roots: Vec<CertificateDer<'static>>) -> Result<RootCertStore, WireError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for root in extra_roots {
        roots.add(root).map_err(|error| WireError::Root(error.to_string()))?;
    }
    Ok(roots)
}

/// The receiver rejected the client certificate, or required one. That concerns this endpoint, not its host.
pub(in crate::wire) fn certificate_alert(error: &io::Error) -> Option<AttemptFailure> {
    // The HTTP/2 library keeps only the text of an error.
    let received = |alert: &AlertDescription| match rustls_error(error) {
        Some(rustls::Error::AlertReceived(received)) => received == alert,
        Some(_) => false,
        None => error
            .get_ref()
            .is_some_and(|text| text.to_string() == rustls::Error::AlertReceived(*alert).to_string()),
    };
    let alert = CLIENT_CERTIFICATE_ALERTS.iter().find(|alert| received(alert))?;
    let detail = format!("the receiver wants another client certificate: {alert:?}").into();
    Some(AttemptFailure { kind: FailureKind::Broken, detail })
}

/// The TLS error that the receiver sent or caused.
pub(in crate::wire) fn alert(error: &io::Error) -> Option<Cow<'static, str>> {
    Some(match rustls_error(error)? {
        rustls::Error::AlertReceived(alert) => format!("the receiver sent the TLS alert {alert:?}").into(),
        _ => "the receiver broke TLS".into(),
    })
}

fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>())
}

fn handshake_failure(error: &io::Error) -> AttemptFailure {
    if let Some(refused) = certificate_alert(error) {
        return refused;
    }
    let detail: Cow<'static, str> = match rustls_error(error) {
        Some(rustls::Error::InvalidCertificate(invalid)) => describe(invalid).into(),
        Some(rustls::Error::AlertReceived(alert)) => {
            format!("the receiver broke off the TLS handshake: {alert:?}").into()
        }
        Some(rustls::Error::InvalidMessage(_)) => "the receiver did not speak TLS".into(),
        Some(error) => format!("TLS handshake failed: {error}").into(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the receiver closed the connection during the TLS handshake".into()
        }
        None if connect_error::is_shortage(error) => {
            return AttemptFailure {
                kind: FailureKind::Unsent,
                detail: connect_error::NO_LOCAL_RESOURCES.into(),
            };
        }
        None => {
            let detail = format!("{} during the TLS handshake", error.kind()).into();
            return AttemptFailure { kind: FailureKind::Connect, detail };
        }
    };
    AttemptFailure { kind: FailureKind::Tls, detail }
}
