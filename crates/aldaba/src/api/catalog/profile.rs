//! The wire profiles of an organization.

use super::Kind;
use crate::api::catalog;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::variant::Variant;
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_delivery::BUILTIN_PROFILES;
use aldaba_engine::{ChangeError, Profile, ProfileError};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/profile", Access::Read, list)
            .named("v1.profile.list", "Lists wire profiles, the built-in ones first")
            .lists_all::<ProfileOut>(),
        Route::post("/profile", Access::Administer, create)
            .named("v1.profile.create", "Creates a wire profile")
            .takes::<ProfileIn>()
            .answers::<ProfileOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get("/profile/{profile_name}", Access::Read, show)
            .named("v1.profile.get", "Shows a wire profile")
            .answers::<ProfileOut>(StatusCode::OK),
        Route::put("/profile/{profile_name}", Access::Administer, put)
            .named("v1.profile.update", "Replaces a wire profile, or creates it")
            .takes::<ProfileUpdate>()
            .answers::<ProfileOut>(StatusCode::OK)
            .answers::<ProfileOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::delete("/profile/{profile_name}", Access::Administer, delete)
            .named("v1.profile.delete", "Deletes a wire profile that no endpoint uses")
            .answers_nothing()
            .may_conflict(),
    ]
}

/// A wire profile: which headers go out, and how they are signed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct ProfileIn {
    #[schema(min_length = 1, max_length = 256)]
    name: String,
    /// Names and templates.
    #[schema(value_type = Option<Object>)]
    headers: Value,
    #[schema(value_type = Option<Object>)]
    signature: Value,
}

/// The same, under the name in the path.
struct ProfileUpdate;

impl ToSchema for ProfileUpdate {}

impl PartialSchema for ProfileUpdate {
    fn schema() -> RefOr<Schema> {
        let about = "A wire profile as it is to be; its name is the one in the path.";
        Variant::of::<ProfileIn>(about).optional("name").into()
    }
}

example!(ProfileUpdate, {
    "headers": {"X-Acme-Event": "{type}", "X-Acme-Signature": "sha256={signature}"},
    "signature": {"scheme": "hex", "hash": "sha256"},
});

example!(ProfileIn, {
    "name": "acme",
    "headers": {"X-Acme-Delivery": "{id}", "X-Acme-Signature": "sha512={signature}"},
    "signature": {"scheme": "hex", "hash": "sha512"},
});

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct ProfileOut {
    name: String,
    built_in: bool,
    #[schema(value_type = Object)]
    headers: Value,
    #[schema(value_type = Option<Object>)]
    signature: Value,
}

const KIND: Kind = Kind {
    word: "wire profile",
    plural: "wire profiles",
    missing: Missing::Profile,
    built_in: &BUILTIN_PROFILES,
    max: 100,
};

fn render(profile: &Profile) -> Value {
    KIND.render(profile.to_json(), profile.name())
}

fn read(body: &[u8], name: Option<&str>) -> Result<Profile, Error> {
    let problem = |error: &ProfileError| {
        let place: Vec<_> = ["body"].into_iter().chain(error.field.iter().map(String::as_str)).collect();
        Problem::value(&place, error.why.clone())
    };
    Profile::from_json(&KIND.read(body, name)?)
        .map_err(|errors| Error::problems(errors.iter().map(problem).collect()))
}

pub(crate) async fn create(State(api): State<Api>, caller: Caller, body: Pending) -> Result<Response, Error> {
    let org = caller.org();
    let profile = read(&body.read().await?.bytes, None)?;
    KIND.not_built_in(profile.name())?;
    KIND.check_count(api.ask(&caller).profiles().len())?;
    let made = api.directory(&caller).create_profile(org, &profile).await;
    made.map_err(|error| KIND.refusal(error, profile.name()))?;
    Ok(json::answer(StatusCode::CREATED, &render(&profile)))
}

/// Replaces a wire profile, or creates it.
pub(crate) async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
    body: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    KIND.not_built_in(&name)?;
    let profile = read(&body.read().await?.bytes, Some(&name))?;
    let directory = api.directory(&caller);
    if api.ask(&caller).profile(&name).is_err() {
        KIND.check_count(api.ask(&caller).profiles().len())?;
        match directory.create_profile(org, &profile).await {
            // Another request has just created it.
            Err(ChangeError::UidTaken) => {}
            made => {
                made.map_err(|error| KIND.refusal(error, &name))?;
                return Ok(json::answer(StatusCode::CREATED, &render(&profile)));
            }
        }
    }
    let replaced = directory.replace_profile(org, &profile).await;
    replaced.map_err(|error| KIND.refusal(error, &name))?;
    Ok(json::answer(StatusCode::OK, &render(&profile)))
}

pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<StatusCode, Error> {
    let org = caller.org();
    KIND.not_built_in(&name)?;
    let deleted = api.directory(&caller).delete_profile(org, name.clone()).await;
    deleted.map_err(|error| KIND.refusal(error, &name))?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn list(State(api): State<Api>, caller: Caller) -> Response {
    let profiles = api.ask(&caller).profiles();
    catalog::page(&profiles.iter().map(|profile| render(profile)).collect::<Vec<_>>())
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<Response, Error> {
    let profile = api.ask(&caller).profile(&name)?;
    Ok(json::answer(StatusCode::OK, &render(&profile)))
}
