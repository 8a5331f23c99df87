//! Shows and rotates signing secrets.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, ReadField};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::Parsed;
use aldaba_api::{RotateSecret, Secret, SigningSecret, SigningSecretView};
use aldaba_engine::KeyRotation;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::time::Duration;

/// In the document.
pub(crate) type SecretOut = SigningSecret;
pub(crate) type RotateIn = RotateSecret;

const DEFAULT_GRACE_SECONDS: u64 = 24 * 3600;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/secret", Access::ReadSecrets, show)
            .named("v1.endpoint.get-secret", "Shows the endpoint's signing secret, or its public key")
            .answers::<SecretOut>(StatusCode::OK),
        Route::post("/app/{app_id}/endpoint/{endpoint_id}/secret/rotate", Access::ManageSecrets, rotate)
            .keyed()
            .named(
                "v1.endpoint.rotate-secret",
                "Rotates the signing secret; the present one also signs for a while",
            )
            .may_take::<RotateIn>()
            .answers::<SecretOut>(StatusCode::OK)
            .may_conflict(),
    ]
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let key = api.engine.directory().shown_secret(&endpoint)?;
    Ok(json::answer(StatusCode::OK, &SigningSecretView { key }))
}

pub(crate) async fn rotate(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let once = pending.once(endpoint.org, &[endpoint.id.as_bytes()]);
    let Parsed { value, mut fields } = pending.read().await?.text().parse_or_none::<RotateSecret>()?;
    let key = fields.signing_key("key", value.key.as_ref().map(Secret::reveal));
    fields.finish()?;
    let grace = value.grace_period_seconds.map_or(DEFAULT_GRACE_SECONDS, u64::from);
    let rotation = KeyRotation { key, grace: Duration::from_secs(grace) };
    let key = api.directory(&caller).rotate_key(&endpoint, rotation, once).await?;
    Ok(json::answer(StatusCode::OK, &SigningSecretView { key }))
}
