//! The API's document and the page that shows it. Everything comes out of the binary: it works where nothing
//! else can be reached.

use super::Api;
use super::error::Error;
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use http::HeaderName;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use serde_json::Value;
use std::sync::Arc;
use utoipa_swagger_ui::Config;

const INDEX: &str = "index.html";
/// The page's own, before it gets ours.
const TITLE: &str = "<title>Swagger UI</title>";
const DOCUMENT: &str = "/api/v1/openapi.json";
/// The page styles itself with inline style attributes, and shows pictures from `data:`.
const POLICY: &str =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";

pub(super) fn router(document: &Value) -> Router<Api> {
    let json = Bytes::from(document.to_string());
    let page = Arc::new(Config::from(DOCUMENT).validator_url("none").try_it_out_enabled(true));
    let index = page.clone();
    Router::new()
        .route(DOCUMENT, get(async move || ([(CONTENT_TYPE, "application/json")], json)))
        .route("/", get(async || Redirect::temporary("/docs")))
        // Its files are named relative to it.
        .route("/docs", get(async || Redirect::temporary("/docs/index.html")))
        .route("/docs/{*file}", get(async move |Path(file): Path<String>| serve(&file, index)))
}

fn serve(file: &str, page: Arc<Config<'static>>) -> Response {
    match utoipa_swagger_ui::serve(file, page) {
        Ok(Some(mut found)) => {
            if file == INDEX {
                let page = String::from_utf8_lossy(&found.bytes).replace(TITLE, "<title>Aldaba API</title>");
                found.bytes = page.into_bytes().into();
            }
            let headers: [(HeaderName, &str); 4] = [
                (CONTENT_TYPE, &found.content_type),
                (CONTENT_SECURITY_POLICY, POLICY),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (CACHE_CONTROL, "max-age=3600"),
            ];
            (headers, found.bytes.into_owned()).into_response()
        }
        Ok(None) => Error::not_found("The documentation has no such file").into_response(),
        Err(error) => {
            tracing::error!(%error, "a file of the documentation page cannot be made");
            Error::server().into_response()
        }
    }
}
