//! The client certificate for requests to an endpoint.

use crate::api::request::body::{BodyText, Pending};
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::Parsed;
use aldaba_api::value::Shows;
use aldaba_api::{Certificate, CertificateView, Identity as IdentityBody, MutualTls, MutualTlsView};
use aldaba_engine::wire::Identity;
use aldaba_store::Endpoint;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::sync::Arc;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/mtls", Access::Read, show)
            .named("v1.endpoint.get-mtls", "Shows the client certificate of an endpoint")
            .answers::<Certificate>(StatusCode::OK),
        Route::put("/app/{app_id}/endpoint/{endpoint_id}/mtls", Access::ManageSecrets, set)
            .named("v1.endpoint.update-mtls", "Sets the client certificate and its private key")
            .takes::<IdentityBody>()
            .answers_nothing()
            .may_conflict(),
        Route::delete("/app/{app_id}/endpoint/{endpoint_id}/mtls", Access::ManageSecrets, unset)
            .named("v1.endpoint.delete-mtls", "Deletes the client certificate")
            .answers_nothing()
            .may_conflict(),
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/mtls-config", Access::Read, status)
            .named("v1.endpoint.mtls-config", "Shows whether there is a client certificate")
            .answers::<MutualTls>(StatusCode::OK),
    ]
}

/// The private key never leaves the server.
fn render(identity: &Identity) -> impl Shows<Certificate> {
    CertificateView {
        certificate_sha256: identity.certificate_fingerprint(),
        expires_at: identity.expires_at().map(Moment),
    }
}

fn read(endpoint: &Endpoint, body: BodyText<'_>) -> Result<Arc<Identity>, Error> {
    let Parsed { value, mut fields } = body.parse::<IdentityBody>(false)?;
    let pem = fields.is_fine("identity").then(|| value.identity.reveal());
    let identity = pem.and_then(|pem| {
        Identity::parse(pem).map_err(|error| fields.problem("identity", error.to_string())).ok()
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
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let identity = read(&endpoint, pending.read().await?.text())?;
    api.directory(&caller).set_identity(&endpoint, Some(identity)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removing a missing certificate succeeds.
pub(crate) async fn unset(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<StatusCode, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    api.directory(&caller).set_identity(&endpoint, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    match api.engine.directory().identity(&endpoint)? {
        Some(identity) => Ok(json::answer(StatusCode::OK, &render(&identity))),
        None => Err(Error::not_found("The endpoint has no client certificate")),
    }
}

/// Shows whether there is a certificate, without a 404.
pub(crate) async fn status(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let identity = api.engine.directory().identity(&endpoint)?;
    let status = MutualTlsView { enabled: identity.is_some(), config: identity.as_deref().map(render) };
    Ok(json::answer(StatusCode::OK, &status))
}
