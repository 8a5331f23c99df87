//! Pages of any origin may use the API: access needs a token that the page has, never a cookie that the browser adds.

use axum::response::{IntoResponse, Response};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};

const API_PATH: &str = "/api/";
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS";
/// Seconds for which a browser may remember the permission.
const MAX_AGE: &str = "600";

/// Whether a page of another origin requests something of the API.
pub(super) fn concerns<B>(request: &Request<B>) -> bool {
    request.headers().contains_key(ORIGIN) && request.uri().path().starts_with(API_PATH)
}

/// The response to a preflight request.
pub(super) fn leave<B>(request: &Request<B>) -> Option<Response> {
    let asks = request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && concerns(request);
    asks.then(|| {
        let mut response = StatusCode::OK.into_response();
        let headers = response.headers_mut();
        allow(headers);
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
        headers.insert(VARY, HeaderValue::from_static("access-control-request-headers"));
        if let Some(wanted) = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        response
    })
}

/// The page may read the response.
pub(super) fn allow(headers: &mut HeaderMap) {
    let all = HeaderValue::from_static("*");
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, all.clone());
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, all);
}
