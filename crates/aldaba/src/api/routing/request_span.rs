//! A span for each request that may change something. The router has this layer only where spans are exported, so that it
//! costs nothing elsewhere.

use crate::api::Api;
use crate::api::source::inbound_request;
use aldaba_engine::{RequestTrace, TraceContext};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::Method;

/// Adds the layer if spans are exported.
pub(crate) fn traced(router: Router<Api>, api: &Api) -> Router<Api> {
    if !api.engine.tracer().exports() {
        return router;
    }
    router.layer(from_fn_with_state(api.clone(), trace))
}

/// Handlers find the trace among the extensions of the request, and note there what the request was about.
async fn trace(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let (Some(method), Some(route)) = (changing(request.method()), route) else {
        return next.run(request).await;
    };
    let tracer = api.engine.tracer();
    // Who calls a source is a stranger, who must not decide what is traced here.
    let is_stranger = route.as_str() == inbound_request::PATH;
    let trace = tracer.request((!is_stranger).then(|| TraceContext::of(request.headers())).flatten());
    request.extensions_mut().insert::<RequestTrace>(trace.clone());
    let response = next.run(request).await;
    tracer.answered(&trace, method, route.as_str(), response.status().as_u16());
    response
}

/// The name of a method that may change something.
fn changing(method: &Method) -> Option<&'static str> {
    match *method {
        Method::POST => Some("POST"),
        Method::PUT => Some("PUT"),
        Method::PATCH => Some("PATCH"),
        Method::DELETE => Some("DELETE"),
        _ => None,
    }
}
