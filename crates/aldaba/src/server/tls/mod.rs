//! TLS on the listeners: HTTP/1.1 and HTTP/2 by ALPN, TLS 1.2 and 1.3. The certificate is taken anew when its files
//! change; connections that are open keep theirs.

mod certificate;
mod handshake;
mod renewal;

pub use certificate::{CertificateError, CertificateFiles};
pub(super) use handshake::{HandshakeError, Protocol, REFUSED_HANDSHAKE};
pub(crate) use renewal::{CertificateState, Renewal};

use aldaba_delivery::Timestamp;
use aldaba_engine::{CertificateExpiries, CertificateKind};
use certificate::{FilesDigest, ServerCertificate};
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use std::fmt;
use std::sync::Arc;

const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// The server's side of TLS. Clones share it.
#[derive(Clone)]
pub(crate) struct ListenerTls(Arc<TlsState>);

struct TlsState {
    current: RwLock<Current>,
    /// Where the alert and the metric look up the expiry of `current`.
    expiries: CertificateExpiries,
}

/// What new connections get.
#[derive(Clone)]
struct Current {
    files: CertificateFiles,
    digest: FilesDigest,
    expires_at: Option<Timestamp>,
    http1: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
    /// Why what the files hold now is not used.
    problem: Option<String>,
}

impl ListenerTls {
    /// Reads the files. An expired certificate is used: clients that check it say so, and deliveries must not wait for it.
    pub(crate) fn load(
        files: CertificateFiles,
        expiries: CertificateExpiries,
    ) -> Result<Self, CertificateError> {
        let current = Current::load(files)?;
        expiries.put(CertificateKind::Listener, current.expires_at);
        Ok(Self(Arc::new(TlsState { current: RwLock::new(current), expiries })))
    }

    fn config(&self, http2: bool) -> Arc<ServerConfig> {
        let current = self.0.current.read();
        if http2 { current.http2.clone() } else { current.http1.clone() }
    }
}

impl Current {
    fn load(files: CertificateFiles) -> Result<Self, CertificateError> {
        let contents = files.read()?;
        let digest = contents.digest();
        let certificate = contents.parse(&files)?;
        files.warn_of_readers();
        Self::new(files, digest, certificate)
    }

    fn new(
        files: CertificateFiles,
        digest: FilesDigest,
        certificate: ServerCertificate,
    ) -> Result<Self, CertificateError> {
        let ServerCertificate { key, expires_at } = certificate;
        let mut http1 = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(CertificateError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
        // Resumed sessions live in the client's ticket, so they cost no memory here. A new certificate comes with new keys
        // for tickets: no session outlives the certificate that it began with.
        http1.session_storage = Arc::new(NoServerSessionStorage {});
        http1.ticketer = Ticketer::new().map_err(CertificateError::Setup)?;
        http1.alpn_protocols = vec![HTTP1.to_vec()];
        let mut http2 = http1.clone();
        http2.alpn_protocols.insert(0, HTTP2.to_vec());
        Ok(Self { files, digest, expires_at, http1: Arc::new(http1), http2: Arc::new(http2), problem: None })
    }
}

impl fmt::Debug for ListenerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerTls")
            .field("expires_at", &self.0.current.read().expires_at)
            .finish_non_exhaustive()
    }
}
