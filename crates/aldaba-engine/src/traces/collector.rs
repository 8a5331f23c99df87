//! The collector: an OTLP receiver of the operator, reached by HTTP. It is no target of a tenant, so the guard of deliveries
//! and their proxy do not apply to it.

use crate::wire::{CertificateDer, WireError, client_tls};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::fmt;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::Url;

/// How long one export may take, from the name to the end of the answer.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read. It says little more than its status.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// The path of traces below the URL of a collector.
const TRACES_PATH: &str = "v1/traces";
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// The URL of a collector: `http` or `https`, without credentials, query and fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorUrl(Url);

impl CollectorUrl {
    /// The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let url = Url::parse(text).map_err(|_| "expected http://host:4318 or https://host")?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(
                "expected http://host:4318 or https://host; OTLP over gRPC (port 4317) is not spoken",
            );
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("credentials belong into `otlp_headers`, such as authorization=Basic …");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("a collector's URL has no query and no fragment");
        }
        Ok(Self(url))
    }

    /// For the log: its path may be a secret of the collector.
    pub(super) fn shown(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// The path of requests. A URL that names it already is taken as it is.
    fn path(&self) -> String {
        let path = self.0.path().trim_end_matches('/');
        if path.ends_with(TRACES_PATH) { path.to_owned() } else { format!("{path}/{TRACES_PATH}") }
    }

    fn authority(&self) -> String {
        self.0[url::Position::BeforeHost..url::Position::AfterPort].to_owned()
    }
}

/// Where spans go.
#[derive(Clone)]
pub struct Collector {
    pub(super) url: CollectorUrl,
    pub(super) service: String,
    headers: HeaderMap,
    tls: TlsConnector,
}

#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum CollectorError {
    #[error("the headers for the collector are not pairs such as api-key=abc, separated by commas")]
    Headers,
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Why spans were not exported.
#[derive(Debug)]
pub(super) enum ExportError {
    /// The collector will not take them: sending them again is useless.
    Refused(String),
    /// It may take them later.
    Unavailable(String),
}

impl Collector {
    /// `headers`: pairs such as `api-key=abc`, separated by commas. `roots`: certificates to trust besides the public ones.
    pub fn new(
        url: CollectorUrl,
        service: &str,
        headers: &str,
        roots: Vec<CertificateDer<'static>>,
    ) -> Result<Self, CollectorError> {
        let headers = Self::headers(headers).ok_or(CollectorError::Headers)?;
        Ok(Self { url, service: service.to_owned(), headers, tls: client_tls(roots)? })
    }

    /// Reads headers as in `OTEL_EXPORTER_OTLP_HEADERS`. `None`: they are not well-formed.
    pub fn headers(text: &str) -> Option<HeaderMap> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let header = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            let mut value = HeaderValue::try_from(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(name.trim()).ok()?, value))
        };
        pairs.map(header).collect()
    }

    pub(super) async fn export(&self, body: Vec<u8>) -> Result<(), ExportError> {
        match tokio::time::timeout(EXPORT_TIMEOUT, self.send(body)).await {
            Ok(Ok(status)) if status.is_success() => Ok(()),
            // As OTLP has it: only these are worth another try.
            Ok(Ok(
                status @ (StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT),
            )) => Err(ExportError::Unavailable(format!("HTTP {status}"))),
            Ok(Ok(status)) => Err(ExportError::Refused(format!("HTTP {status}"))),
            Ok(Err(why)) => Err(ExportError::Unavailable(why)),
            Err(_) => Err(ExportError::Unavailable("no answer in time".to_owned())),
        }
    }

    /// A connection for each export: there is one a second at most.
    async fn send(&self, body: Vec<u8>) -> Result<StatusCode, String> {
        let url = &self.url.0;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default().unwrap_or(4318);
        let socket = TcpStream::connect((host.as_str(), port)).await.map_err(|error| error.to_string())?;
        if url.scheme() == "http" {
            return self.exchange(socket, body).await;
        }
        let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
        let stream = self.tls.connect(name, socket).await.map_err(|error| error.to_string())?;
        self.exchange(stream, body).await
    }

    async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        body: Vec<u8>,
    ) -> Result<StatusCode, String> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.path().parse().map_err(|_| "its path cannot be sent".to_owned())?;
        *request.headers_mut() = self.headers.clone();
        let host =
            HeaderValue::try_from(self.url.authority()).map_err(|_| "its host cannot be sent".to_owned())?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(CONTENT_TYPE, PROTOBUF);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
            let status = response.status();
            // What it says is not needed; a collector that says too much is none.
            Limited::new(response.into_body(), MAX_ANSWER_BYTES)
                .collect()
                .await
                .map_err(|error| error.to_string())?;
            Ok(status)
        };
        // Driven here, so that a timeout closes the connection too.
        tokio::select! {
            biased;
            status = exchange => status,
            Err(error) = connection => Err(error.to_string()),
        }
    }
}

/// Without the headers.
impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("url", &self.url.shown()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collectors_url_is_plain_and_its_path_is_that_of_traces() {
        let path = |text: &str| CollectorUrl::parse(text).map(|url| (url.authority(), url.path()));
        let good = |authority: &str, path: &str| Ok((authority.to_owned(), path.to_owned()));
        assert_eq!(path("http://127.0.0.1:4318"), good("127.0.0.1:4318", "/v1/traces"));
        assert_eq!(path("http://127.0.0.1:4318/"), good("127.0.0.1:4318", "/v1/traces"));
        assert_eq!(path("https://otlp.example.com/team/a/"), good("otlp.example.com", "/team/a/v1/traces"));
        assert_eq!(path("http://[::1]:4318/v1/traces"), good("[::1]:4318", "/v1/traces"));
        for (bad, why) in [
            ("127.0.0.1:4318", "expected"),
            ("grpc://127.0.0.1:4317", "gRPC"),
            ("http://user:pass@127.0.0.1", "otlp_headers"),
            ("http://127.0.0.1/?key=a", "query"),
        ] {
            assert!(path(bad).expect_err(bad).contains(why), "{bad}");
        }
    }

    #[test]
    fn headers_are_pairs_and_never_shown() {
        let headers = Collector::headers("api-key=canary, authorization=Bearer a=b").expect("two headers");
        assert_eq!(headers["authorization"], "Bearer a=b");
        assert!(!format!("{headers:?}").contains("canary"));
        assert_eq!(Collector::headers(""), Some(HeaderMap::new()));
        for bad in ["api-key", "a b=c", "a=b\nc"] {
            assert_eq!(Collector::headers(bad), None, "{bad}");
        }
        let url = CollectorUrl::parse("http://127.0.0.1:1/canary").expect("a URL");
        let collector = Collector::new(url, "a", "api-key=canary", Vec::new()).expect("a collector");
        assert!(!format!("{collector:?}").contains("canary"));
    }
}
