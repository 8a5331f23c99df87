//! A line in the log for each request, at level debug: `ALDABA_LOG=info,aldaba::requests=debug`. There is a router with this
//! layer and one without, so that the line costs nothing while nobody wants it.

use crate::api::Api;
use crate::server::RequestOrigin;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::{HeaderName, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::Level;

const TARGET: &str = "aldaba::requests";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_ID_BYTES: usize = 64;

#[derive(Clone)]
struct RequestLog {
    api: Api,
    ids: Arc<RequestIds>,
}

/// Ids of requests that bring none: the start of the server and a number.
struct RequestIds {
    started: i64,
    next: AtomicU64,
}

/// The routes of the API, and the same with the layer.
#[derive(Clone, Debug)]
pub(crate) struct Routers {
    plain: Router,
    logged: Router,
}

impl Routers {
    pub(crate) fn new(plain: Router<Api>, api: &Api) -> Self {
        let logged = logged(plain.clone(), api).with_state(api.clone());
        Self { plain: plain.with_state(api.clone()), logged }
    }

    /// Whether the log wants the line now.
    pub(crate) fn log_wanted() -> bool {
        tracing::enabled!(target: TARGET, Level::DEBUG)
    }

    /// The router for the next request.
    pub(crate) fn now(&self) -> &Router {
        if Self::log_wanted() { &self.logged } else { &self.plain }
    }

    /// The router for all requests, by what the log wants now.
    pub(crate) fn for_all(self) -> Router {
        self.now().clone()
    }
}

#[cfg(test)]
impl From<Router> for Routers {
    fn from(router: Router) -> Self {
        Self { plain: router.clone(), logged: router }
    }
}

fn logged(router: Router<Api>, api: &Api) -> Router<Api> {
    let ids = RequestIds { started: api.engine.clock().now().millis(), next: AtomicU64::new(1) };
    router.layer(from_fn_with_state(RequestLog { api: api.clone(), ids: Arc::new(ids) }, log))
}

/// Logs the route and not the path, which may hold a token.
async fn log(State(log): State<RequestLog>, request: Request, next: Next) -> Response {
    let clock = log.api.engine.clock();
    let (begun, method) = (clock.monotonic(), request.method().clone());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let client = request.extensions().get::<RequestOrigin>().map(|origin| origin.client.to_string());
    let id = request.headers().get(REQUEST_ID).filter(|id| is_id(id)).cloned();
    let id = id.or_else(|| log.ids.next());
    let mut response = next.run(request).await;
    tracing::debug!(
        target: TARGET,
        requestId = id.as_ref().and_then(|id| id.to_str().ok()),
        client,
        %method,
        route = route.as_ref().map(MatchedPath::as_str),
        status = response.status().as_u16(),
        took_ms = clock.monotonic().saturating_sub(begun).as_secs_f64() * 1000.0,
        "request"
    );
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

impl RequestIds {
    fn next(&self) -> Option<HeaderValue> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        HeaderValue::try_from(format!("{:x}-{number:x}", self.started)).ok()
    }
}

fn is_id(value: &HeaderValue) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    (1..=MAX_ID_BYTES).contains(&value.len()) && value.as_bytes().iter().all(is_sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_short_and_plain() {
        for good in ["a", "6f1c1a5e-8f0b-4c1e-9c44-0a3f9d1b2c3d", "trace_1.2"] {
            assert!(is_id(&HeaderValue::from_static(good)), "{good}");
        }
        let long = "a".repeat(MAX_ID_BYTES + 1);
        for bad in ["", "a b", "a\"b", "id=1", &long] {
            assert!(!is_id(&HeaderValue::try_from(bad).unwrap()), "{bad}");
        }
    }
}
