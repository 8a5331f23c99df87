//! The API's document and the page that shows it. Both come from the binary, so they work without access to other
//! hosts.

use super::{guides, openapi};
use crate::api::Api;
use crate::api::response::error::Error;
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use bytes::Bytes;
use http::HeaderName;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use std::sync::Arc;
use tokio::sync::OnceCell;
use utoipa_swagger_ui::Config;

const INDEX: &str = "index.html";
/// The page's own title, which ours replaces.
const TITLE: &str = "<title>Swagger UI</title>";
const DOCUMENT: &str = "/api/v1/openapi.json";
/// The page styles itself with inline style attributes, and shows pictures from `data:`.
const POLICY: &str =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'";

pub(crate) fn router() -> Router<Api> {
    let document = Arc::<OnceCell<Bytes>>::default();
    let page = Arc::new(Config::from(DOCUMENT).validator_url("none").try_it_out_enabled(true));
    let index = page.clone();
    Router::new()
        .route(DOCUMENT, get(async move || show(&document).await))
        .route("/", get(async || Redirect::temporary("/dashboard")))
        // Its files are relative to it.
        .route("/docs", get(async || Redirect::temporary("/docs/index.html")))
        .route("/docs/{*file}", get(async move |Path(file): Path<String>| serve(&file, index)))
        .route("/docs/guides", get(async || guides::list()))
        .route("/docs/guides/{*name}", get(async |Path(name): Path<String>| guides::show(&name)))
}

/// Most servers never serve the document, and making it takes ten times its size: the first request makes it, off the
/// API's threads, and it is kept as bytes.
async fn show(document: &OnceCell<Bytes>) -> Response {
    let make = async || {
        let made = || Bytes::from(openapi::document(&crate::api::routes()).to_string());
        tokio::task::spawn_blocking(made).await
    };
    match document.get_or_try_init(make).await {
        Ok(json) => ([(CONTENT_TYPE, "application/json")], json.clone()).into_response(),
        Err(error) => {
            tracing::error!(%error, "the API's document cannot be made");
            Error::server().into_response()
        }
    }
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
