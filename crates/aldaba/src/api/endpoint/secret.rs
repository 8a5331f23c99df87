//! Shows and rotates signing secrets.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Fields};
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_engine::KeyRotation;
use aldaba_signature::SigningKey;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

const DEFAULT_GRACE_SECONDS: u64 = 24 * 3600;
const MAX_GRACE_SECONDS: u64 = 7 * 24 * 3600;

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

#[derive(Serialize, ToSchema)]
pub(crate) struct SecretOut {
    /// `whsec_…`, or for an asymmetric one its public key `whpk_…`.
    pub(crate) key: String,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
pub(crate) struct RotateIn {
    /// `whsec_…` or `whsk_…`; one of the same kind is made, if not given.
    key: Option<String>,
    /// For how long the present key still signs beside the new one; a day, if not given.
    #[schema(maximum = 604800)]
    grace_period_seconds: Option<u32>,
}

example!(RotateIn, {"gracePeriodSeconds": 3600});

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let key = api.engine.directory().shown_secret(&endpoint)?;
    Ok(json::answer(StatusCode::OK, &SecretOut { key }))
}

pub(crate) async fn rotate(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let once = pending.once(endpoint.org, &[endpoint.id.as_bytes()]);
    let mut fields = Fields::parse_or_none(&pending.read().await?.bytes)?;
    fields.refuse_others(&["key", "gracePeriodSeconds"]);
    let key = fields.signing_key("key");
    let grace = fields.number("gracePeriodSeconds", 0, MAX_GRACE_SECONDS).unwrap_or(DEFAULT_GRACE_SECONDS);
    fields.finish()?;
    let rotation = KeyRotation { key, grace: Duration::from_secs(grace) };
    let key = api.directory(&caller).rotate_key(&endpoint, rotation, once).await?;
    Ok(json::answer(StatusCode::OK, &SecretOut { key }))
}

impl Fields {
    pub(crate) fn signing_key(&mut self, name: &str) -> Option<SigningKey> {
        let text = self.string(name)?;
        SigningKey::parse(&text).map_err(|error| self.problem(name, error.to_string())).ok()
    }
}
