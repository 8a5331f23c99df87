//! Wire profiles: what endpoints can name.

use super::auth::Organization;
use super::body::Pending;
use super::ids::Ids;
use super::json;
use super::policy::organization;
use super::{Api, Error, error::Problem};
use crate::token::Caller;
use aldaba_delivery::BUILTIN_PROFILES;
use aldaba_engine::{ChangeError, Profile, ProfileError};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

/// Profiles of its own that an organization can have. All of them are in memory, and on one page.
const MOST: usize = 100;

fn render(profile: &Profile) -> Value {
    let mut shown = profile.to_json();
    shown["builtIn"] = is_built_in(profile.name()).into();
    shown
}

fn is_built_in(name: &str) -> bool {
    BUILTIN_PROFILES.contains(&name)
}

fn missing() -> Error {
    Error::not_found("There is no such wire profile; GET /api/v1/profile lists them")
}

fn read(body: &[u8], name: Option<&str>) -> Result<Profile, Error> {
    let mut json: Value = serde_json::from_slice(body)
        .map_err(|error| Error::from(Problem::decode(&["body"], error.to_string())))?;
    if let Some(fields) = json.as_object_mut() {
        // A profile that was shown can be sent back as it is.
        fields.remove("builtIn");
        match (name, fields.get("name")) {
            (Some(name), None) => drop(fields.insert("name".into(), name.into())),
            (Some(name), Some(given)) if given != name => {
                let message = "must be the name in the path, or be left out: a profile keeps its name";
                return Err(Problem::value(&["body", "name"], message).into());
            }
            _ => {}
        }
    }
    let problem = |error: &ProfileError| {
        let place: Vec<_> = ["body"].into_iter().chain(error.field.iter().map(String::as_str)).collect();
        Problem::value(&place, error.why.clone())
    };
    Profile::from_json(&json).map_err(|errors| Error::problems(errors.iter().map(problem).collect()))
}

/// The built-in ones belong to nobody.
fn not_built_in(name: &str) -> Result<(), Error> {
    if !is_built_in(name) {
        return Ok(());
    }
    let detail = format!("`{name}` is built in and cannot be changed; make one of another name like it");
    Err(Error::conflict(detail))
}

pub(super) async fn create(
    State(api): State<Api>,
    Organization(org): Organization,
    body: Pending,
) -> Result<Response, Error> {
    let profile = read(&body.read().await?.bytes, None)?;
    not_built_in(profile.name())?;
    if api.engine.profiles().of_organization(org).len() >= MOST + BUILTIN_PROFILES.len() {
        let detail = format!("The organization has {MOST} wire profiles of its own, as many as it may have");
        return Err(Error::conflict(detail));
    }
    match api.engine.directory().create_profile(org, &profile).await {
        Ok(()) => Ok(json::answer(StatusCode::CREATED, &render(&profile))),
        Err(ChangeError::UidTaken) => {
            let detail = format!("There is a wire profile `{}` already; PUT replaces it", profile.name());
            Err(Error::conflict(detail))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn replace(
    State(api): State<Api>,
    Organization(org): Organization,
    Ids(name): Ids<String>,
    body: Pending,
) -> Result<Response, Error> {
    not_built_in(&name)?;
    let profile = read(&body.read().await?.bytes, Some(&name))?;
    match api.engine.directory().replace_profile(org, &profile).await {
        Ok(()) => Ok(json::answer(StatusCode::OK, &render(&profile))),
        Err(ChangeError::NotFound) => Err(missing()),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn delete(
    State(api): State<Api>,
    Organization(org): Organization,
    Ids(name): Ids<String>,
) -> Result<StatusCode, Error> {
    not_built_in(&name)?;
    match api.engine.directory().delete_profile(org, name).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(ChangeError::NotFound) => Err(missing()),
        Err(ChangeError::InUse) => {
            let detail = "Endpoints use this wire profile; give them another one first";
            Err(Error::conflict(detail))
        }
        Err(error) => Err(error.into()),
    }
}

/// All of them fit on one page.
pub(super) async fn list(State(api): State<Api>, caller: Caller) -> Response {
    let profiles = api.engine.profiles().of_organization(organization(caller));
    let data: Vec<_> = profiles.iter().map(|profile| render(profile)).collect();
    json::answer(StatusCode::OK, &json!({ "data": data, "iterator": null, "done": true }))
}

pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<Response, Error> {
    let profile = api.engine.profiles().get(organization(caller), &name).ok_or_else(missing)?;
    Ok(json::answer(StatusCode::OK, &render(&profile)))
}
