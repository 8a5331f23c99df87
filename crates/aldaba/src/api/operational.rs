//! Operational webhooks: endpoints of the organization itself, which receive events about its endpoints and messages.
//! They belong to an application that the management organization has for it.

use crate::api::endpoint::headers;
use crate::api::endpoint::secret::{self, RotateIn, SecretOut};
use crate::api::endpoint::{self, EndpointIn, EndpointOut, EndpointUpdateIn};
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::response::page::{Listed, PageQuery};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::{EndpointHeaders, SetHeaders};
use aldaba_delivery::EndpointId;
use aldaba_engine::{ChangeError, NewApplication, management};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

const ALL: &str = "/operational-webhook/endpoint";
const ONE: &str = "/operational-webhook/endpoint/{endpoint_id}";
const SECRET: &str = "/operational-webhook/endpoint/{endpoint_id}/secret";
const ROTATE: &str = "/operational-webhook/endpoint/{endpoint_id}/secret/rotate";
const HEADERS: &str = "/operational-webhook/endpoint/{endpoint_id}/headers";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get(ALL, Access::ReadOrganization, list)
            .named("v1.operational-webhook.endpoint.list", "Lists the endpoints for operational webhooks")
            .ordered()
            .lists::<EndpointOut>(),
        Route::post(ALL, Access::Administer, create)
            .keyed()
            .named("v1.operational-webhook.endpoint.create", "Creates an endpoint for operational webhooks")
            .takes::<EndpointIn>()
            .answers::<EndpointOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get(ONE, Access::ReadOrganization, show)
            .named("v1.operational-webhook.endpoint.get", "Shows an endpoint for operational webhooks")
            .answers::<EndpointOut>(StatusCode::OK),
        Route::put(ONE, Access::Administer, put)
            .keyed()
            .named(
                "v1.operational-webhook.endpoint.update",
                "Replaces the configuration of an endpoint, or creates it",
            )
            .takes::<EndpointUpdateIn>()
            .answers::<EndpointOut>(StatusCode::OK)
            .answers::<EndpointOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::delete(ONE, Access::Administer, delete)
            .named("v1.operational-webhook.endpoint.delete", "Deletes an endpoint for operational webhooks")
            .answers_nothing(),
        Route::get(SECRET, Access::Administer, show_secret)
            .named(
                "v1.operational-webhook.endpoint.get-secret",
                "Shows its signing secret, or its public key",
            )
            .answers::<SecretOut>(StatusCode::OK),
        Route::post(ROTATE, Access::Administer, rotate)
            .keyed()
            .named("v1.operational-webhook.endpoint.rotate-secret", "Rotates its signing secret")
            .may_take::<RotateIn>()
            .answers::<SecretOut>(StatusCode::OK)
            .may_conflict(),
        Route::get(HEADERS, Access::Administer, show_headers)
            .named(
                "v1.operational-webhook.endpoint.get-headers",
                "Shows the headers that are sent with every request",
            )
            .answers::<EndpointHeaders>(StatusCode::OK),
        Route::put(HEADERS, Access::Administer, put_headers)
            .named(
                "v1.operational-webhook.endpoint.update-headers",
                "Replaces the headers that are sent with every request",
            )
            .takes::<SetHeaders>()
            .answers_nothing()
            .may_conflict(),
    ]
}

/// The path to an endpoint in the management organization.
fn path(caller: &Caller, endpoint: String) -> Ids<(String, String)> {
    Ids((caller.org().to_string(), endpoint))
}

/// Creates the application with the first endpoint.
async fn ensure_application(api: &Api, caller: &Caller) -> Result<(), Error> {
    let org = caller.org();
    let caller_there = caller.at_management();
    if api.ask(&caller_there).find_application(&org.to_string()).await?.is_some() {
        return Ok(());
    }
    let new = NewApplication {
        org: management(),
        uid: Some(org.to_string()),
        name: format!("Operational webhooks of {org}"),
        throttle_rate: None,
        metadata: "{}".into(),
    };
    match api.directory(caller).create_application(new, None).await {
        // Another request was first.
        Ok(_) | Err(ChangeError::UidTaken) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn list(
    State(api): State<Api>,
    query: PageQuery<EndpointId>,
    caller: Caller,
) -> Result<Response, Error> {
    let (key, caller) = (caller.org().to_string(), caller.at_management());
    if api.ask(&caller).find_application(&key).await?.is_none() {
        return Ok(Listed::<()>::nothing().render(|()| ()));
    }
    endpoint::list(State(api), query, caller, Ids(key)).await
}

async fn create(State(api): State<Api>, caller: Caller, pending: Pending) -> Result<Response, Error> {
    ensure_application(&api, &caller).await?;
    endpoint::create(State(api), caller.at_management(), Ids(caller.org().to_string()), pending).await
}

async fn show(State(api): State<Api>, caller: Caller, Ids(endpoint): Ids<String>) -> Result<Response, Error> {
    endpoint::show(State(api), caller.at_management(), path(&caller, endpoint)).await
}

async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids(endpoint): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    ensure_application(&api, &caller).await?;
    endpoint::put(State(api), caller.at_management(), path(&caller, endpoint), pending).await
}

async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Ids(endpoint): Ids<String>,
) -> Result<StatusCode, Error> {
    endpoint::delete(State(api), caller.at_management(), path(&caller, endpoint)).await
}

async fn show_secret(
    State(api): State<Api>,
    caller: Caller,
    Ids(endpoint): Ids<String>,
) -> Result<Response, Error> {
    secret::show(State(api), caller.at_management(), path(&caller, endpoint)).await
}

async fn rotate(
    State(api): State<Api>,
    caller: Caller,
    Ids(endpoint): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    secret::rotate(State(api), caller.at_management(), path(&caller, endpoint), pending).await
}

async fn show_headers(
    State(api): State<Api>,
    caller: Caller,
    Ids(endpoint): Ids<String>,
) -> Result<Response, Error> {
    headers::show(State(api), caller.at_management(), path(&caller, endpoint)).await
}

async fn put_headers(
    State(api): State<Api>,
    caller: Caller,
    Ids(endpoint): Ids<String>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    headers::replace(State(api), caller.at_management(), path(&caller, endpoint), pending).await
}
