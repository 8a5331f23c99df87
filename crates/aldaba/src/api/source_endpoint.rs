//! The endpoints of a source: those of the application that it owns, under the names that clients of sources have.

use super::auth::Access;
use super::body::Pending;
use super::endpoint::{self, EndpointOut};
use super::endpoint_in::{EndpointIn, EndpointUpdate};
use super::headers::{self, HeadersIn, HeadersOut};
use super::ids::Ids;
use super::page::PageQuery;
use super::routes::Route;
use super::secret::{self, RotateIn, SecretOut};
use super::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::EndpointId;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

const ALL: &str = "/ingest/source/{source_id}/endpoint";
const ONE: &str = "/ingest/source/{source_id}/endpoint/{endpoint_id}";
const SECRET: &str = "/ingest/source/{source_id}/endpoint/{endpoint_id}/secret";
const ROTATE: &str = "/ingest/source/{source_id}/endpoint/{endpoint_id}/secret/rotate";
const HEADERS: &str = "/ingest/source/{source_id}/endpoint/{endpoint_id}/headers";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(ALL, Access::ReadOrganization, list)
            .named("v1.ingest.endpoint.list", "Lists the endpoints that a source forwards to")
            .ordered()
            .lists::<EndpointOut<'_>>(),
        Route::post(ALL, Access::Administer, create)
            .named("v1.ingest.endpoint.create", "Makes an endpoint that a source forwards to")
            .takes::<EndpointIn>()
            .answers::<EndpointOut<'_>>(StatusCode::CREATED)
            .may_conflict(),
        Route::get(ONE, Access::ReadOrganization, show)
            .named("v1.ingest.endpoint.get", "Shows an endpoint of a source")
            .answers::<EndpointOut<'_>>(StatusCode::OK),
        Route::put(ONE, Access::Administer, put)
            .named("v1.ingest.endpoint.upsert", "Puts another configuration in its place, or makes it")
            .takes::<EndpointUpdate>()
            .answers::<EndpointOut<'_>>(StatusCode::OK)
            .answers::<EndpointOut<'_>>(StatusCode::CREATED)
            .may_conflict(),
        Route::delete(ONE, Access::Administer, delete)
            .named("v1.ingest.endpoint.delete", "Removes an endpoint of a source")
            .answers_nothing(),
        Route::get(SECRET, Access::Administer, show_secret)
            .named("v1.ingest.endpoint.get-secret", "Shows its signing secret, or its public key")
            .answers::<SecretOut>(StatusCode::OK),
        Route::post(ROTATE, Access::Administer, rotate)
            .named("v1.ingest.endpoint.rotate-secret", "Signs with another key")
            .takes::<RotateIn>()
            .answers::<SecretOut>(StatusCode::OK)
            .may_conflict(),
        Route::get(HEADERS, Access::Administer, show_headers)
            .named("v1.ingest.endpoint.get-headers", "Shows the headers that are sent with every request")
            .answers::<HeadersOut<'_>>(StatusCode::OK),
        Route::put(HEADERS, Access::Administer, put_headers)
            .named("v1.ingest.endpoint.set-headers", "Sends these headers and no others")
            .takes::<HeadersIn>()
            .answers_nothing()
            .may_conflict(),
    ]
}

/// What the application of a source is called.
async fn app(api: &Api, caller: &Caller, source: String) -> Result<String, Error> {
    Ok(api.source(caller, source).await?.app.to_string())
}

async fn list(
    State(api): State<Api>,
    query: PageQuery<EndpointId>,
    caller: Caller,
    Ids(source): Ids<String>,
) -> Result<Response, Error> {
    let app = app(&api, &caller, source).await?;
    endpoint::list(State(api), query, caller, Ids(app)).await
}

async fn create(
    State(api): State<Api>,
    caller: Caller,
    Ids(source): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let app = app(&api, &caller, source).await?;
    endpoint::create(State(api), caller, Ids(app), pending).await
}

async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids((source, key)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = app(&api, &caller, source).await?;
    endpoint::show(State(api), caller, Ids((app, key))).await
}

async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids((source, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let app = app(&api, &caller, source).await?;
    endpoint::put(State(api), caller, Ids((app, key)), pending).await
}

async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Ids((source, key)): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let app = app(&api, &caller, source).await?;
    endpoint::delete(State(api), caller, Ids((app, key))).await
}

async fn show_secret(
    State(api): State<Api>,
    caller: Caller,
    Ids((source, key)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = app(&api, &caller, source).await?;
    secret::show(State(api), caller, Ids((app, key))).await
}

async fn rotate(
    State(api): State<Api>,
    caller: Caller,
    Ids((source, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let app = app(&api, &caller, source).await?;
    secret::rotate(State(api), caller, Ids((app, key)), pending).await
}

async fn show_headers(
    State(api): State<Api>,
    caller: Caller,
    Ids((source, key)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = app(&api, &caller, source).await?;
    headers::show(State(api), caller, Ids((app, key))).await
}

async fn put_headers(
    State(api): State<Api>,
    caller: Caller,
    Ids((source, key)): Ids<(String, String)>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    let app = app(&api, &caller, source).await?;
    headers::replace(State(api), caller, Ids((app, key)), pending).await
}
