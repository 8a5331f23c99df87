use super::http1::ExchangeResponse;
use super::target::request_target;
use super::tls::Identity;
use crate::delivering::WireRequest;
use aldaba_delivery::policy::Redirects;
use aldaba_delivery::{AttemptFailure, FailureKind};
use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use std::sync::Arc;
use url::{Position, Url};

/// Headers that are sent to one origin only.
const ORIGIN_HEADERS: [HeaderName; 5] = [
    AUTHORIZATION,
    PROXY_AUTHORIZATION,
    COOKIE,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-auth-token"),
];

/// Headers that HTTP/2 forbids in a request.
const CONNECTION_HEADERS: [HeaderName; 8] = [
    CONNECTION,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The headers without those for the first origin: everything that the endpoint's owner added.
fn without_origin_headers(headers: &HeaderMap) -> HeaderMap {
    let kept =
        |(name, value): &(&HeaderName, &HeaderValue)| !value.is_sensitive() && !ORIGIN_HEADERS.contains(name);
    headers.iter().filter(kept).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// One request: the endpoint's own, or one per redirect.
pub(super) struct Hop {
    pub(super) url: Arc<Url>,
    pub(super) headers: HeaderMap,
    body: Bytes,
    /// Redirects that may still be followed. `None`: redirects are ordinary responses.
    redirects_left: Option<u8>,
    /// Whether the request still goes to the endpoint's origin.
    pub(super) on_original_origin: bool,
    pub(super) http2: bool,
    /// Sent to the endpoint's origin only.
    pub(super) identity: Option<Arc<Identity>>,
}

impl Hop {
    pub(super) fn first(request: WireRequest) -> Self {
        let WireRequest { url, headers, body, timeouts: _, redirects, http2, identity } = request;
        let redirects_left = match redirects {
            Redirects::Follow { hops } => Some(hops),
            Redirects::Fail | Redirects::TakeAsSuccess => None,
        };
        Self { url, headers, body, redirects_left, on_original_origin: true, http2, identity }
    }

    /// Takes the body for this request. A copy is kept only if a redirect may follow, so its memory is
    /// otherwise free as soon as it is written.
    pub(super) fn take_body(&mut self) -> Bytes {
        if self.redirects_left.is_some() { self.body.clone() } else { std::mem::take(&mut self.body) }
    }

    /// The request in HTTP/1.1 form.
    pub(super) fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, AttemptFailure> {
        let target = request_target(&self.url).map_err(|error| unusable(error.to_string()))?;
        let host = HeaderValue::from_str(self.authority()).map_err(|error| unusable(error.to_string()))?;
        let length = HeaderValue::from(body.len());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(CONTENT_LENGTH, length);
        Ok(request)
    }

    /// The request head in HTTP/2 form: the host is part of the target, and headers about the connection are
    /// left out. The body is sent separately.
    pub(super) fn http2_head(&self, length: usize) -> Result<Request<()>, AttemptFailure> {
        let target = request_target(&self.url).map_err(|error| unusable(error.to_string()))?;
        let uri =
            Uri::builder().scheme("https").authority(self.authority()).path_and_query(target.to_string());
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.build().map_err(|error| unusable(error.to_string()))?;
        *request.headers_mut() = self.headers.clone();
        for name in CONNECTION_HEADERS {
            request.headers_mut().remove(name);
        }
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        Ok(request)
    }

    fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// The next hop, if the response is a redirect that is followed.
    pub(super) fn next_hop(&mut self, exchanged: &ExchangeResponse) -> Result<Option<Self>, AttemptFailure> {
        let (Some(redirects_left), 301 | 302 | 303 | 307 | 308, Some(location)) =
            (self.redirects_left, exchanged.answer.status, &exchanged.location)
        else {
            return Ok(None);
        };
        let Some(redirects_left) = redirects_left.checked_sub(1) else {
            return Err(AttemptFailure {
                kind: FailureKind::TooManyRedirects,
                detail: "too many redirects, or a loop of them".into(),
            });
        };
        let url = self.destination(location)?;
        let same_origin = url.origin() == self.url.origin();
        let mut headers = std::mem::take(&mut self.headers);
        let mut identity = self.identity.take();
        if !same_origin {
            identity = None;
            headers = without_origin_headers(&headers);
        }
        let body = self.body.clone();
        Ok(Some(Self {
            url: Arc::new(url),
            headers,
            body,
            redirects_left: Some(redirects_left),
            on_original_origin: self.on_original_origin && same_origin,
            http2: self.http2,
            identity,
        }))
    }

    fn destination(&self, location: &HeaderValue) -> Result<Url, AttemptFailure> {
        let url = location.to_str().ok().and_then(|text| self.url.join(text).ok());
        let Some(mut url) = url.filter(|url| request_target(url).is_ok()) else {
            return Err(AttemptFailure {
                kind: FailureKind::Malformed,
                detail: "the redirect's location is not a URL".into(),
            });
        };
        // Credentials that another host puts into a URL are not this endpoint's.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        Ok(url)
    }
}

fn unusable(why: String) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Internal, detail: why.into() }
}
