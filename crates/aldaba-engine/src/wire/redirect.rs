use super::exchange::Exchanged;
use super::identity::Identity;
use super::target::request_target;
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

/// What is meant for one origin only.
const FOR_THE_ORIGIN: [HeaderName; 5] = [
    AUTHORIZATION,
    PROXY_AUTHORIZATION,
    COOKIE,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-auth-token"),
];

/// What HTTP/2 forbids in a request: it speaks of one connection, or says twice what it says already.
const ABOUT_THE_CONNECTION: [HeaderName; 8] = [
    CONNECTION,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Without what is meant for the first origin alone: all that the endpoint's owner has added.
fn for_another_origin(headers: &HeaderMap) -> HeaderMap {
    let kept =
        |(name, value): &(&HeaderName, &HeaderValue)| !value.is_sensitive() && !FOR_THE_ORIGIN.contains(name);
    headers.iter().filter(kept).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// One request of possibly several: the endpoint's own, then one for each redirect.
pub(super) struct Hop {
    pub(super) url: Arc<Url>,
    pub(super) headers: HeaderMap,
    body: Bytes,
    /// How many redirects may still be followed; `None` if they are answers like any other.
    left: Option<u8>,
    /// Whether the request still goes to the origin that the endpoint names.
    pub(super) at_home: bool,
    pub(super) http2: bool,
    /// For the origin that the endpoint names, and no other.
    pub(super) identity: Option<Arc<Identity>>,
}

impl Hop {
    pub(super) fn first(request: WireRequest) -> Self {
        let WireRequest { url, headers, body, timeouts: _, redirects, http2, identity } = request;
        let left = match redirects {
            Redirects::Follow { hops } => Some(hops),
            Redirects::Fail | Redirects::TakeAsSuccess => None,
        };
        Self { url, headers, body, left, at_home: true, http2, identity }
    }

    /// The body, for this request. It is kept here only if there may be another: so what it takes in
    /// memory is free as soon as it is written, and not when an answer comes.
    pub(super) fn lend_body(&mut self) -> Bytes {
        if self.left.is_some() { self.body.clone() } else { std::mem::take(&mut self.body) }
    }

    /// As HTTP/1.1 writes it.
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

    /// As HTTP/2 writes it: the host is part of the target, and nothing is said about the connection.
    /// The body goes separately.
    pub(super) fn http2_head(&self, length: usize) -> Result<Request<()>, AttemptFailure> {
        let target = request_target(&self.url).map_err(|error| unusable(error.to_string()))?;
        let uri =
            Uri::builder().scheme("https").authority(self.authority()).path_and_query(target.to_string());
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.build().map_err(|error| unusable(error.to_string()))?;
        *request.headers_mut() = self.headers.clone();
        for name in ABOUT_THE_CONNECTION {
            request.headers_mut().remove(name);
        }
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        Ok(request)
    }

    fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Where the answer sends this request, if it is to be followed there.
    pub(super) fn onward(&mut self, exchanged: &Exchanged) -> Result<Option<Self>, AttemptFailure> {
        let (Some(left), 301 | 302 | 303 | 307 | 308, Some(location)) =
            (self.left, exchanged.answer.status, &exchanged.location)
        else {
            return Ok(None);
        };
        let Some(left) = left.checked_sub(1) else {
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
            headers = for_another_origin(&headers);
        }
        let body = self.body.clone();
        Ok(Some(Self {
            url: Arc::new(url),
            headers,
            body,
            left: Some(left),
            at_home: self.at_home && same_origin,
            http2: self.http2,
            identity,
        }))
    }

    fn destination(&self, location: &HeaderValue) -> Result<Url, AttemptFailure> {
        let url = location.to_str().ok().and_then(|text| self.url.join(text).ok());
        let Some(mut url) = url.filter(|url| request_target(url).is_ok()) else {
            return Err(AttemptFailure {
                kind: FailureKind::Malformed,
                detail: "the redirect's location is no URL".into(),
            });
        };
        // Whatever another host writes there, it is no secret of this endpoint.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        Ok(url)
    }
}

fn unusable(why: String) -> AttemptFailure {
    AttemptFailure { kind: FailureKind::Internal, detail: why.into() }
}
