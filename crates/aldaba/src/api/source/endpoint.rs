//! The endpoints of a source: those of its application, under the paths that clients of sources use.

use crate::api::endpoint::headers;
use crate::api::endpoint::secret::{self, RotateIn, SecretOut};
use crate::api::endpoint::{self, EndpointIn, EndpointOut, EndpointUpdateIn};
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::{EndpointHeaders, SetHeaders};
use aldaba_delivery::EndpointId;
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;

const ALL: &str = "/ingest/source/{source_id}/endpoint";
const ONE: &str = "/ingest/source/{source_id}/endpoint/{endpoint_id}";
const SECRET: &str = "/ingest/source/{source_id}/endpoint/{endpoint_id}/secret";
const ROTATE: &str = "/ingest/source/{source_id}/endpoint/{endpoint_id}/secret/rotate";
const HEADERS: &str = "/ingest/source/{source_id}/endpoint/{endpoint_id}/headers";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get(ALL, Access::ReadOrganization, list)
            .named("v1.ingest.endpoint.list", "Lists the endpoints that a source forwards to")
            .ordered()
            .lists::<EndpointOut>(),
        Route::post(ALL, Access::Administer, create)
            .keyed()
            .named("v1.ingest.endpoint.create", "Creates an endpoint that a source forwards to")
            .takes::<EndpointIn>()
            .answers::<EndpointOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get(ONE, Access::ReadOrganization, show)
            .named("v1.ingest.endpoint.get", "Shows an endpoint of a source")
            .answers::<EndpointOut>(StatusCode::OK),
        Route::put(ONE, Access::Administer, put)
            .keyed()
            .named("v1.ingest.endpoint.upsert", "Replaces the configuration of an endpoint, or creates it")
            .takes::<EndpointUpdateIn>()
            .answers::<EndpointOut>(StatusCode::OK)
            .answers::<EndpointOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::delete(ONE, Access::Administer, delete)
            .named("v1.ingest.endpoint.delete", "Deletes an endpoint of a source")
            .answers_nothing(),
        Route::get(SECRET, Access::Administer, show_secret)
            .named("v1.ingest.endpoint.get-secret", "Shows its signing secret, or its public key")
            .answers::<SecretOut>(StatusCode::OK),
        Route::post(ROTATE, Access::Administer, rotate)
            .keyed()
            .named("v1.ingest.endpoint.rotate-secret", "Rotates its signing secret")
            .may_take::<RotateIn>()
            .answers::<SecretOut>(StatusCode::OK)
            .may_conflict(),
        Route::get(HEADERS, Access::Administer, show_headers)
            .named("v1.ingest.endpoint.get-headers", "Shows the headers that are sent with every request")
            .answers::<EndpointHeaders>(StatusCode::OK),
        Route::put(HEADERS, Access::Administer, put_headers)
            .named("v1.ingest.endpoint.set-headers", "Replaces the headers that are sent with every request")
            .takes::<SetHeaders>()
            .answers_nothing()
            .may_conflict(),
    ]
}

/// The id of the application of a source.
async fn app(api: &Api, caller: &Caller, source: String) -> Result<String, Error> {
    Ok(api.ask(caller).source(&source).await?.app.to_string())
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

/// An endpoint of a source, as the handlers of endpoints take it.
struct At(State<Api>, Caller, Ids<(String, String)>);

impl FromRequestParts<Api> for At {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Error> {
        let caller = Caller::from_request_parts(parts, api).await?;
        let Ids((source, key)) = Ids::from_request_parts(parts, api).await?;
        let app = app(api, &caller, source).await?;
        Ok(Self(State(api.clone()), caller, Ids((app, key))))
    }
}

async fn show(At(api, caller, ids): At) -> Result<Response, Error> {
    endpoint::show(api, caller, ids).await
}

async fn put(At(api, caller, ids): At, pending: Pending) -> Result<Response, Error> {
    endpoint::put(api, caller, ids, pending).await
}

async fn delete(At(api, caller, ids): At) -> Result<StatusCode, Error> {
    endpoint::delete(api, caller, ids).await
}

async fn show_secret(At(api, caller, ids): At) -> Result<Response, Error> {
    secret::show(api, caller, ids).await
}

async fn rotate(At(api, caller, ids): At, pending: Pending) -> Result<Response, Error> {
    secret::rotate(api, caller, ids, pending).await
}

async fn show_headers(At(api, caller, ids): At) -> Result<Response, Error> {
    headers::show(api, caller, ids).await
}

async fn put_headers(At(api, caller, ids): At, pending: Pending) -> Result<StatusCode, Error> {
    headers::replace(api, caller, ids, pending).await
}
