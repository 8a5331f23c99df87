//! What every answer has: a strict content policy, and no trace of it in caches, frames and referrers.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, Entry, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode};

/// No inline script and no inline style: a text of others that became markup could do nothing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
];

/// Adds what every answer of the dashboard has. A stricter content policy of its own stays.
pub(super) fn secured(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

pub(super) fn html(status: StatusCode, page: String) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
}

/// To another page of the dashboard, as a GET.
pub(super) fn see_other(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    // A path of ours; one that a header cannot hold leads to the first page.
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static(super::ROOT));
    response.headers_mut().insert(LOCATION, location);
    response
}

pub(super) fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Has browsers send the cookies of this answer over HTTPS alone.
pub(super) fn keep_cookies_to_https(response: &mut Response) {
    if let Entry::Occupied(mut cookies) = response.headers_mut().entry(SET_COOKIE) {
        for cookie in cookies.iter_mut() {
            if let Ok(secure) = HeaderValue::from_bytes(&[cookie.as_bytes(), b"; Secure"].concat()) {
                *cookie = secure;
            }
        }
    }
}

/// Bytes of others, to be saved: nothing of them runs in a browser.
pub(super) fn download(bytes: bytes::Bytes, file: &str) -> Response {
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (http::header::CONTENT_DISPOSITION, format!("attachment; filename=\"{file}\"")),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox; frame-ancestors 'none'".to_owned()),
    ];
    (headers, Body::from(bytes)).into_response()
}
