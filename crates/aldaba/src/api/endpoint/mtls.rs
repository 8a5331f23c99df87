//! The client certificate that an endpoint's receiver is shown.

use super::find;
use crate::api::request::body::{BodyText, Pending};
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_engine::wire::Identity;
use aldaba_store::Endpoint;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/mtls", Access::Read, show)
            .named("v1.endpoint.get-mtls", "Tells which client certificate the endpoint's receiver is shown")
            .answers::<CertificateOut>(StatusCode::OK),
        Route::put("/app/{app_id}/endpoint/{endpoint_id}/mtls", Access::ManageSecrets, set)
            .named("v1.endpoint.update-mtls", "Sets the client certificate and its private key")
            .takes::<IdentityIn>()
            .answers_nothing()
            .may_conflict(),
        Route::delete("/app/{app_id}/endpoint/{endpoint_id}/mtls", Access::ManageSecrets, unset)
            .named("v1.endpoint.delete-mtls", "Takes the client certificate away")
            .answers_nothing()
            .may_conflict(),
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/mtls-config", Access::Read, status)
            .named("v1.endpoint.mtls-config", "Tells whether there is a client certificate")
            .answers::<MtlsOut>(StatusCode::OK),
    ]
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct IdentityIn {
    /// Certificate chain and private key, as PEM.
    identity: String,
}

example!(IdentityIn, {"identity": include_str!("mtls_example.pem")});

/// What may be told of a certificate.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CertificateOut {
    certificate_sha256: String,
}

#[derive(Serialize, ToSchema)]
struct MtlsOut {
    enabled: bool,
    config: Option<CertificateOut>,
}

/// Its private key never leaves the server.
fn render(identity: &Identity) -> CertificateOut {
    CertificateOut { certificate_sha256: identity.certificate_fingerprint() }
}

fn read(endpoint: &Endpoint, body: BodyText<'_>) -> Result<Arc<Identity>, Error> {
    let mut fields = body.fields()?;
    fields.refuse_others(&["identity"]);
    let identity = fields.required_string("identity").and_then(|pem| {
        Identity::parse(&pem).map_err(|error| fields.problem("identity", error.to_string())).ok()
    });
    if !endpoint.config.url.starts_with("https://") {
        fields.problem("identity", "needs an https:// URL: without TLS nobody asks for a certificate");
    }
    fields.finish()?;
    identity.map(Arc::new).ok_or_else(Error::server)
}

pub(crate) async fn set(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let identity = read(&endpoint, pending.read().await?.text())?;
    api.directory(&caller).set_identity(&endpoint, Some(identity)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Taking away what is not there is no failure.
pub(crate) async fn unset(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    api.directory(&caller).set_identity(&endpoint, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    match api.engine.directory().identity(&endpoint)? {
        Some(identity) => Ok(json::answer(StatusCode::OK, &render(&identity))),
        None => Err(Error::not_found("The endpoint has no client certificate")),
    }
}

/// The same without a 404 where there is none.
pub(crate) async fn status(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let identity = api.engine.directory().identity(&endpoint)?;
    let status = MtlsOut { enabled: identity.is_some(), config: identity.as_deref().map(render) };
    Ok(json::answer(StatusCode::OK, &status))
}
