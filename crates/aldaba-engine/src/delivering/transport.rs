use crate::wire::Identity;
use aldaba_delivery::Outcome;
use aldaba_delivery::policy::{Redirects, Timeouts};
use bytes::Bytes;
use http::HeaderMap;
use std::pin::Pin;
use std::sync::Arc;
use url::Url;

/// The stored part of a response body.
pub const MAX_STORED_RESPONSE_BYTES: usize = 16 * 1024;

/// Sends requests. The server's is [`crate::wire::Wire`]; a simulation has one with faults.
pub trait Transport: Send + Sync + 'static {
    /// Sends at most one request (not counting redirects) and returns its result. It ends within the timeouts of the request,
    /// whatever the receiver does; waits for local resources may add up to the connect timeout.
    fn send(&self, request: WireRequest) -> Sending;
}

pub type Sending = Pin<Box<dyn Future<Output = WireResponse> + Send>>;

/// A signed request.
#[derive(Clone, Debug)]
pub struct WireRequest {
    pub url: Arc<Url>,
    /// All but `host` and `content-length`.
    pub headers: HeaderMap,
    pub body: Bytes,
    pub timeouts: Timeouts,
    pub redirects: Redirects,
    /// HTTP/2 is offered, and used if the receiver chooses it. Only for `https`.
    pub http2: bool,
    /// The client certificate. It is shown to the URL's own origin only, never after a redirect
    /// to another one.
    pub identity: Option<Arc<Identity>>,
}

#[derive(Clone, Debug)]
pub struct WireResponse {
    pub outcome: Outcome,
    /// At most [`MAX_STORED_RESPONSE_BYTES`] bytes, undecoded.
    pub body: Bytes,
}
