use super::WireError;
use super::stream::Socket;
use aldaba_delivery::{Failure, FailureKind};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The most sessions that are remembered for a shorter handshake.
const SESSIONS: usize = 1_024;

/// TLS towards receivers: HTTP/1.1 only, and no early data, which could be replayed on the way.
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn new(extra_roots: Vec<CertificateDer<'static>>) -> Result<Self, WireError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for root in extra_roots {
            roots.add(root).map_err(|error| WireError::Root(error.to_string()))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| WireError::Tls(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    pub(super) async fn handshake(
        &self,
        name: ServerName<'static>,
        socket: Socket,
    ) -> Result<Box<TlsStream<Socket>>, Failure> {
        match self.0.connect(name, socket).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(failure(&error)),
        }
    }
}

fn failure(error: &io::Error) -> Failure {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let detail: Cow<'static, str> = match inner {
        Some(rustls::Error::InvalidCertificate(problem)) => certificate(problem).into(),
        Some(rustls::Error::AlertReceived(alert)) => {
            format!("the receiver broke off the TLS handshake: {alert:?}").into()
        }
        Some(rustls::Error::InvalidMessage(_)) => "the receiver did not speak TLS".into(),
        Some(error) => format!("TLS handshake failed: {error}").into(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the receiver closed the connection during the TLS handshake".into()
        }
        None => {
            let detail = format!("{} during the TLS handshake", error.kind()).into();
            return Failure { kind: FailureKind::Connect, detail };
        }
    };
    Failure { kind: FailureKind::Tls, detail }
}

/// In words of our own: the library's would name what the certificate is valid for, which can be
/// an internal host.
fn certificate(problem: &CertificateError) -> &'static str {
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another name"
        }
        CertificateError::UnknownIssuer => "the certificate is self-signed, or its issuer is not trusted",
        CertificateError::Revoked => "the certificate has been revoked",
        CertificateError::BadSignature => "the certificate's signature is wrong",
        CertificateError::BadEncoding => "the certificate cannot be read",
        _ => "the certificate is not acceptable",
    }
}
