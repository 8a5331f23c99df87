use super::body_drain::DrainedBody;
use super::connection_slots::ConnectionSlots;
use super::connection_table::TooManyConnections;
use super::cors;
use super::forwarded::{Peer, TrustedProxies};
use super::scheduling_delay::SchedulingDelay;
use crate::api::{Code, Error, Routers};
use crate::dashboard;
use crate::metrics::{Metrics, Refusal};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::header::EXPECT;
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri};
use hyper::body::{Body as _, Incoming};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tower::Service;

/// The health routes.
const HEALTH_PATH: &str = "/api/v1/health";

/// Metrics cost little, and tell what keeps the server busy.
const METRICS_PATH: &str = "/metrics";

/// The URLs of sources.
const SOURCE_PATH: &str = "/in/";

const SMALL_BODY_BYTES: u64 = 16 * 1024;

/// Responds to requests; each has a clone.
#[derive(Clone, Debug)]
pub(super) struct Requests(Arc<RequestParts>);

#[derive(Debug)]
struct RequestParts {
    routers: Routers,
    scheduling_delay: Arc<SchedulingDelay>,
    slots: Arc<ConnectionSlots>,
    proxies: TrustedProxies,
    metrics: Arc<Metrics>,
}

impl Requests {
    pub(super) fn new(
        routers: Routers,
        scheduling_delay: Arc<SchedulingDelay>,
        slots: Arc<ConnectionSlots>,
        proxies: TrustedProxies,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self(Arc::new(RequestParts { routers, scheduling_delay, slots, proxies, metrics }))
    }

    /// A connection is refused without its request being read.
    pub(super) fn count_busy(&self) {
        self.0.metrics.refusals.count(Refusal(Code::Busy));
    }

    pub(super) async fn answer(self, mut request: Request<Incoming>, peer: Peer) -> Response {
        let mut of_client = None;
        if peer.tls || self.0.proxies.any() || is_page(request.uri().path()) || Routers::log_wanted() {
            let origin = self.0.proxies.origin(peer, request.headers());
            // Only a trusted proxy has a client of another address.
            if origin.client != peer.address.to_canonical() {
                match self.0.slots.table().register_request(origin.client) {
                    Ok(tracked) => of_client = Some(tracked),
                    Err(TooManyConnections) => {
                        self.count_busy();
                        return Error::busy().into_response();
                    }
                }
            }
            request.extensions_mut().insert(origin);
        }
        let response = self.answer_page(request).await;
        drop(of_client);
        response
    }

    /// Answers pages of other origins so that they may read it.
    async fn answer_page(self, request: Request<Incoming>) -> Response {
        if let Some(leave) = cors::leave(&request) {
            return leave;
        }
        let from_a_page = cors::concerns(&request);
        let parts = self.0.clone();
        let mut response = self.answer_anyone(request).await;
        if let Some(refusal) = response.extensions().get() {
            parts.metrics.refusals.count(*refusal);
        }
        if from_a_page {
            cors::allow(response.headers_mut());
        }
        response
    }

    async fn answer_anyone(self, mut request: Request<Incoming>) -> Response {
        let stripped = without_trailing_slash(request.uri());
        // A source's URL has its token in it, with or without a slash at its end.
        let may_lack_an_id = stripped.as_ref().is_some_and(|uri| !uri.path().starts_with(SOURCE_PATH));
        if let Some(uri) = stripped {
            *request.uri_mut() = uri;
        }
        if let Some(uri) = hosted(request.uri()) {
            *request.uri_mut() = uri;
        }
        // Health matters most when the server is busy.
        if self.0.scheduling_delay.exceeds_limit(self.0.slots.load())
            && !request.uri().path().starts_with(HEALTH_PATH)
            && request.uri().path() != METRICS_PATH
        {
            if !is_small(&request) {
                drop(request.map(|body| DrainedBody::new(body, self.0.slots.clone())));
            }
            return Error::busy().into_response();
        }
        // A client that waits for `100 Continue` before it sends its body has nothing to drain.
        let request = if request.headers().contains_key(EXPECT) {
            request.map(Body::new)
        } else {
            let slots = self.0.slots.clone();
            request.map(|body| Body::new(DrainedBody::new(body, slots)))
        };
        // A router is always ready. A panic must cost one request, not the others of the connection.
        match AssertUnwindSafe(self.0.routers.now().clone().call(request)).catch_unwind().await {
            // `PUT /app/` names an application without a name, not all of them.
            Ok(Ok(response)) if may_lack_an_id && response.status() == StatusCode::METHOD_NOT_ALLOWED => {
                let detail =
                    "The path ends with a slash where an id is missing; give the id, or leave the slash out";
                Error::not_found(detail).into_response()
            }
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => {
                tracing::error!("a request made the server panic; this is a bug");
                Error::server().into_response()
            }
        }
    }
}

/// Whether the request has no body, or a body that arrived with its head, as far as can be told: then the connection
/// need not be drained.
fn is_small(request: &Request<Incoming>) -> bool {
    request.body().size_hint().upper().is_some_and(|bytes| bytes <= SMALL_BODY_BYTES)
}

/// `/app/` means `/app`.
fn without_trailing_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    if !path.ends_with('/') || path.len() == 1 {
        return None;
    }
    let path = match path.trim_end_matches('/') {
        "" => "/",
        path => path,
    };
    with_path(uri, path)
}

/// SDKs of Svix look for sources beside the API: `/ingest/api/v1/source` means `/api/v1/ingest/source`.
fn hosted(uri: &Uri) -> Option<Uri> {
    let rest = uri.path().strip_prefix("/ingest/api/v1/")?;
    with_path(uri, &format!("/api/v1/ingest/{rest}"))
}

fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let path_and_query = match uri.query() {
        Some(query) => format!("{path}?{query}").parse(),
        None => path.parse::<PathAndQuery>(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path_and_query.ok()?);
    Uri::from_parts(parts).ok()
}

/// Pages limit by address who tries to log in.
fn is_page(path: &str) -> bool {
    path.starts_with(dashboard::ROOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_that_sdks_have_for_sources_is_the_apis() {
        let moved = |uri: &str| hosted(&uri.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(moved("/ingest/api/v1/source/a?limit=1"), Some("/api/v1/ingest/source/a?limit=1".into()));
        assert_eq!(moved("/api/v1/ingest/source"), None);
        assert_eq!(moved("/ingest/api/v1"), None);
    }

    #[test]
    fn a_trailing_slash_is_dropped_and_the_query_kept() {
        let stripped = |uri: &str| without_trailing_slash(&uri.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(stripped("/api/v1/app/"), Some("/api/v1/app".into()));
        assert_eq!(stripped("/api/v1/app/?limit=1"), Some("/api/v1/app?limit=1".into()));
        assert_eq!(stripped("/api/v1/app"), None);
        assert_eq!(stripped("/"), None);
        assert_eq!(stripped("//"), Some("/".into()));
    }
}
