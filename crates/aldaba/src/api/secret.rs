//! Signing secrets: shown, rotated, and the public halves for whoever verifies.

use super::auth::Access;
use super::body::Pending;
use super::endpoint::find;
use super::ids::Ids;
use super::json::{self, Fields};
use super::routes::Route;
use super::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::AppId;
use aldaba_engine::Rotation;
use aldaba_signature::SigningKey;
use aldaba_store::{Order, Page};
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::StatusCode;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

const DEFAULT_GRACE: u64 = 24 * 3600;
const LONGEST_GRACE: u64 = 7 * 24 * 3600;
/// Endpoints that are read at a time.
const SLICE: usize = 100;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/secret", Access::ReadSecrets, show)
            .named("v1.endpoint.get-secret", "Shows the endpoint's signing secret, or its public key")
            .answers::<SecretOut>(StatusCode::OK),
        Route::post("/app/{app_id}/endpoint/{endpoint_id}/secret/rotate", Access::ManageSecrets, rotate)
            .named(
                "v1.endpoint.rotate-secret",
                "Signs with another key; the present one signs beside it for a while",
            )
            .takes::<RotateIn>()
            .answers::<SecretOut>(StatusCode::OK)
            .may_conflict(),
        Route::get("/app/{app_id}/jwks.json", Access::Open, public_keys)
            .named(
                "v1.application.jwks",
                "Lists the public Ed25519 keys that sign for the application's endpoints",
            )
            .answers::<KeySet>(StatusCode::OK),
    ]
}

#[derive(Serialize, ToSchema)]
pub(super) struct SecretOut {
    /// `whsec_…`, or for an asymmetric one its public key `whpk_…`.
    pub(super) key: String,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
pub(super) struct RotateIn {
    /// `whsec_…` or `whsk_…`; one of the same kind is made, if not given.
    key: Option<String>,
    /// For how long the present key still signs beside the new one; a day, if not given.
    #[schema(maximum = 604800)]
    grace_period_seconds: Option<u32>,
}

/// RFC 7517.
#[derive(Serialize, ToSchema)]
struct KeySet {
    keys: Vec<PublicKey>,
}

/// RFC 8037.
#[derive(Serialize, ToSchema)]
struct PublicKey {
    kty: &'static str,
    crv: &'static str,
    alg: &'static str,
    #[serde(rename = "use")]
    purpose: &'static str,
    /// The beginning of the key's SHA-256.
    kid: String,
    x: String,
    /// The endpoints whose requests it signs.
    endpoints: Vec<String>,
}

pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let key = api.engine.directory().shown_secret(&endpoint)?;
    Ok(json::answer(StatusCode::OK, &SecretOut { key }))
}

pub(super) async fn rotate(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let once = pending.once;
    let mut fields = Fields::parse(&pending.read().await?.bytes)?;
    let key = fields.signing_key("key");
    let grace = fields.number("gracePeriodSeconds", 0, LONGEST_GRACE).unwrap_or(DEFAULT_GRACE);
    fields.finish()?;
    let rotation = Rotation { key, grace: Duration::from_secs(grace) };
    let key = api.directory(&caller).rotate_key(&endpoint, rotation, once).await?;
    Ok(json::answer(StatusCode::OK, &SecretOut { key }))
}

/// Public, as keys for verifying are; an application is named by its id alone here, because names are an
/// organization's.
async fn public_keys(State(api): State<Api>, Ids(app): Ids<String>) -> Result<Response, Error> {
    let missing = || Error::not_found("There is no such application");
    let app: AppId = app.parse().map_err(|_| missing())?;
    let mut found: BTreeMap<[u8; 32], Vec<String>> = BTreeMap::new();
    let mut page = Page { after: None, limit: SLICE };
    loop {
        let endpoints = api.engine.store().endpoints(app, page, Order::Ascending).await?;
        for endpoint in &endpoints {
            for key in api.engine.directory().public_keys(endpoint)? {
                found.entry(key).or_default().push(endpoint.id.to_string());
            }
        }
        match endpoints.last() {
            Some(last) if endpoints.len() == SLICE => page.after = Some(last.id),
            _ => break,
        }
    }
    let key = |(key, endpoints): ([u8; 32], Vec<String>)| PublicKey {
        kty: "OKP",
        crv: "Ed25519",
        alg: "EdDSA",
        purpose: "sig",
        kid: BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(key)[..12]),
        x: BASE64_URL_SAFE_NO_PAD.encode(key),
        endpoints,
    };
    Ok(json::answer(StatusCode::OK, &KeySet { keys: found.into_iter().map(key).collect() }))
}

impl Fields {
    pub(super) fn signing_key(&mut self, name: &str) -> Option<SigningKey> {
        let text = self.string(name)?;
        SigningKey::parse(&text).map_err(|error| self.problem(name, error.to_string())).ok()
    }
}
