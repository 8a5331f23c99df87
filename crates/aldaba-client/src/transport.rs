//! One HTTP request: pooled connections, TLS, and one timeout for everything.

use crate::Error;
use crate::retry::Failed;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::legacy::{Client as Pool, Error as PoolError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// The largest refusal, in bytes. Every problem of the largest batch fits.
const MAX_REFUSAL_BYTES: usize = 4 << 20;
/// How long an unused connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);
/// How many unused connections are kept.
const MAX_IDLE_CONNECTIONS: usize = 32;

/// A complete answer.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Clone)]
pub(crate) struct Transport {
    pool: Pool<Connector, Full<Bytes>>,
}

impl Transport {
    /// Trusts the public root certificates and those of `more_roots` (PEM), and the servers of `known` (PEM).
    pub(crate) fn new(more_roots: &[Vec<u8>], known: &[Vec<u8>]) -> Result<Self, Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = Connector { tcp, tls: TlsConnector::from(Arc::new(tls(more_roots, known)?)) };
        let pool = Pool::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .pool_timer(TokioTimer::new())
            .build(connector);
        Ok(Self { pool })
    }

    /// Makes the request and reads the whole answer within the limit. An answer of more than `max_bytes` is an error;
    /// of a refusal the beginning is enough.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        max_bytes: usize,
        limit: Duration,
    ) -> Result<HttpResponse, Failed> {
        let exchange = async {
            let response = self.pool.request(request).await.map_err(|cause| not_sent(&cause))?;
            let (parts, body) = response.into_parts();
            let status = parts.status;
            let most = if status.is_success() { max_bytes } else { MAX_REFUSAL_BYTES };
            let read = read(body, most).await;
            let (body, whole) =
                read.map_err(|cause| broken(format!("the answer broke off: {}", innermost(&cause))))?;
            if !whole && status.is_success() {
                let detail = format!("it is longer than {} MiB, which no answer of Aldaba is", most >> 20);
                return Err(Failed { error: Error::unreadable(status.as_u16(), detail), maybe_done: true });
            }
            Ok(HttpResponse { status, headers: parts.headers, body })
        };
        let late = |_| Failed { error: Error::Timeout { after: limit }, maybe_done: true };
        tokio::time::timeout(limit, exchange).await.map_err(late)?
    }
}

/// An answer of which only the head is read.
#[derive(Debug)]
pub(crate) struct OpenAnswer {
    body: Incoming,
}

impl OpenAnswer {
    /// The next piece; `None`: the answer is complete. The limit is for this piece alone.
    pub(crate) async fn piece(&mut self, limit: Duration) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = tokio::time::timeout(limit, self.body.frame());
            let frame = frame.await.map_err(|_| Error::Timeout { after: limit })?;
            let Some(frame) = frame else { return Ok(None) };
            let broke_off = |cause: hyper::Error| Error::Unreachable {
                detail: format!("the answer broke off: {}", innermost(&cause)),
            };
            if let Ok(data) = frame.map_err(broke_off)?.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

impl Transport {
    /// Makes the request and reads the head of the answer within the limit; a refusal is read as a whole.
    pub(crate) async fn open(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Result<OpenAnswer, HttpResponse>, Failed> {
        let exchange = async {
            let response = self.pool.request(request).await.map_err(|cause| not_sent(&cause))?;
            let (parts, body) = response.into_parts();
            if parts.status.is_success() {
                return Ok(Ok(OpenAnswer { body }));
            }
            let (body, _) = read(body, MAX_REFUSAL_BYTES).await.map_err(|cause| broken(innermost(&cause)))?;
            Ok(Err(HttpResponse { status: parts.status, headers: parts.headers, body }))
        };
        let late = |_| Failed { error: Error::Timeout { after: limit }, maybe_done: true };
        tokio::time::timeout(limit, exchange).await.map_err(late)?
    }
}

/// Reads at most `most` bytes, and says whether that is all.
async fn read(mut body: Incoming, most: usize) -> hyper::Result<(Bytes, bool)> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if read.len() + data.len() > most {
            return Ok((read.freeze(), false));
        }
        read.extend_from_slice(&data);
    }
    Ok((read.freeze(), true))
}

/// Without a connection the server cannot have done anything.
fn not_sent(cause: &PoolError) -> Failed {
    let detail = innermost(cause);
    if cause.is_connect() {
        return Failed { error: Error::Unreachable { detail }, maybe_done: false };
    }
    broken(detail)
}

fn broken(detail: String) -> Failed {
    Failed { error: Error::Unreachable { detail }, maybe_done: true }
}

/// The message of the innermost cause; the outer ones are generic.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn tls(more_roots: &[Vec<u8>], known: &[Vec<u8>]) -> Result<ClientConfig, Error> {
    let unusable = |detail: String| Error::Request { detail };
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for pem in more_roots {
        for certificate in certificates(pem)? {
            let wrong = |error| unusable(format!("a root certificate cannot be used: {error}"));
            roots.add(certificate).map_err(wrong)?;
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("TLS cannot be used: {error}")))?;
    if known.is_empty() {
        return Ok(config.with_root_certificates(roots).with_no_client_auth());
    }
    // Only the first certificate of each is the server's own.
    let first = |pem: &Vec<u8>| certificates(pem).map(|mut chain| chain.swap_remove(0));
    let known = known.iter().map(first).collect::<Result<_, _>>()?;
    let others = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unusable(format!("TLS cannot be used: {error}")))?;
    let verifier = Arc::new(KnownServers { known, others });
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// At least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let unusable = |detail: String| Error::Request { detail };
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Err(error) => Err(unusable(format!("a certificate cannot be used: {error}"))),
        Ok(all) if all.is_empty() => Err(unusable("there is no certificate; expected PEM".into())),
        Ok(all) => Ok(all),
    }
}

/// Trusts servers whose own certificate is known, whatever its name, issuer and time; others as usual.
#[derive(Debug)]
struct KnownServers {
    known: Vec<CertificateDer<'static>>,
    others: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for KnownServers {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        issuers: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.known.iter().any(|known| known == certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        self.others.verify_server_cert(certificate, issuers, name, ocsp, now)
    }

    // The server proves that it has the certificate's key: no other can use it.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.others.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.others.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.others.supported_verify_schemes()
    }
}

/// Connects to the host of a URI, with TLS for https.
#[derive(Clone)]
struct Connector {
    tcp: HttpConnector,
    tls: TlsConnector,
}

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl Io for TcpStream {}
impl Io for tokio_rustls::client::TlsStream<TcpStream> {}

impl Connection for Box<dyn Io> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Io>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_ready(context).map_err(io::Error::other)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (tcp, tls) = (self.tcp.call(uri.clone()), self.tls.clone());
        Box::pin(async move {
            let tcp = tcp.await.map_err(io::Error::other)?.into_inner();
            if uri.scheme_str() != Some("https") {
                return Ok(TokioIo::new(Box::new(tcp) as Box<dyn Io>));
            }
            let host = uri.host().unwrap_or_default();
            let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            Ok(TokioIo::new(Box::new(tls.connect(name, tcp).await?) as Box<dyn Io>))
        })
    }
}
