use super::WireError;
use super::certificate::{Verifier, problem};
use super::identity::Identity;
use super::shortage;
use super::stream::Socket;
use aldaba_delivery::{AttemptFailure, FailureKind};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The most sessions that are remembered for a shorter handshake.
const SESSIONS: usize = 1_024;

/// What a receiver says of a client certificate that it does not like.
const ABOUT_OUR_CERTIFICATE: [AlertDescription; 9] = [
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

/// TLS towards receivers, without early data, which could be replayed on the way.
pub(super) struct Tls {
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

impl Tls {
    pub(super) fn new(extra_roots: Vec<CertificateDer<'static>>) -> Result<Self, WireError> {
        let roots = trusted(extra_roots)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = Verifier::new(roots, Arc::clone(&provider)).map_err(WireError::Tls)?;
        let mut http1 = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| WireError::Tls(error.to_string()))?
            // "Dangerous" are verifiers of one's own; this one asks the library's.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        http1.resumption = Resumption::in_memory_sessions(SESSIONS);
        let mut http2 = http1.clone();
        http2.alpn_protocols.insert(0, b"h2".to_vec());
        http2.resumption = Resumption::in_memory_sessions(SESSIONS);
        Ok(Self { http1: Arc::new(http1), http2: Arc::new(http2) })
    }

    fn connector(&self, http2: bool, identity: Option<&Identity>) -> TlsConnector {
        let shared = if http2 { &self.http2 } else { &self.http1 };
        let Some(identity) = identity else {
            return TlsConnector::from(Arc::clone(shared));
        };
        let mut own = ClientConfig::clone(shared);
        own.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity.key()));
        // A session remembers as whom it was opened, and must not be resumed as somebody else.
        own.resumption = Resumption::disabled();
        TlsConnector::from(Arc::new(own))
    }

    pub(super) async fn handshake(
        &self,
        name: ServerName<'static>,
        socket: Socket,
        http2: bool,
        identity: Option<&Identity>,
    ) -> Result<Box<TlsStream<Socket>>, AttemptFailure> {
        match self.connector(http2, identity).connect(name, socket).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(failure(&error)),
        }
    }
}

/// TLS for who speaks to a server of ours over HTTP/1.1, with the same trust as deliveries.
pub fn client_tls(extra_roots: Vec<CertificateDer<'static>>) -> Result<TlsConnector, WireError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| WireError::Tls(error.to_string()))?
        .with_root_certificates(trusted(extra_roots)?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The public issuers, and the operator's.
fn trusted(extra_roots: Vec<CertificateDer<'static>>) -> Result<RootCertStore, WireError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for root in extra_roots {
        roots.add(root).map_err(|error| WireError::Root(error.to_string()))?;
    }
    Ok(roots)
}

/// The receiver refused our certificate, or missed one. That is between it and this endpoint, and says
/// nothing about its host.
pub(super) fn certificate_alert(error: &io::Error) -> Option<AttemptFailure> {
    // What passed through the HTTP/2 library has only its text left.
    let received = |alert: &AlertDescription| match inner(error) {
        Some(rustls::Error::AlertReceived(received)) => received == alert,
        Some(_) => false,
        None => error
            .get_ref()
            .is_some_and(|text| text.to_string() == rustls::Error::AlertReceived(*alert).to_string()),
    };
    let alert = ABOUT_OUR_CERTIFICATE.iter().find(|alert| received(alert))?;
    let detail = format!("the receiver wants another client certificate: {alert:?}").into();
    Some(AttemptFailure { kind: FailureKind::Broken, detail })
}

/// What the receiver has said, in TLS, in place of an answer; or that it broke TLS.
pub(super) fn alert(error: &io::Error) -> Option<Cow<'static, str>> {
    Some(match inner(error)? {
        rustls::Error::AlertReceived(alert) => format!("the receiver sent the TLS alert {alert:?}").into(),
        _ => "the receiver broke TLS".into(),
    })
}

fn inner(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
}

fn failure(error: &io::Error) -> AttemptFailure {
    if let Some(refused) = certificate_alert(error) {
        return refused;
    }
    let detail: Cow<'static, str> = match inner(error) {
        Some(rustls::Error::InvalidCertificate(invalid)) => problem(invalid).into(),
        Some(rustls::Error::AlertReceived(alert)) => {
            format!("the receiver broke off the TLS handshake: {alert:?}").into()
        }
        Some(rustls::Error::InvalidMessage(_)) => "the receiver did not speak TLS".into(),
        Some(error) => format!("TLS handshake failed: {error}").into(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the receiver closed the connection during the TLS handshake".into()
        }
        None if shortage::is_shortage(error) => {
            return AttemptFailure { kind: FailureKind::Unsent, detail: shortage::NO_SOCKET.into() };
        }
        None => {
            let detail = format!("{} during the TLS handshake", error.kind()).into();
            return AttemptFailure { kind: FailureKind::Connect, detail };
        }
    };
    AttemptFailure { kind: FailureKind::Tls, detail }
}
