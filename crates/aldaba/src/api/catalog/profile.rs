//! The wire profiles of an organization.

use super::{Kind, read};
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::response::error::Problem;
use crate::api::response::page::Listed;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_api::{NewProfile, Profile as ProfileOut, ProfileState, ProfileUpdate};
use aldaba_delivery::BUILTIN_PROFILES;
use aldaba_engine::{ChangeError, Profile, ProfileError};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::sync::Arc;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/profile", Access::Read, list)
            .named("v1.profile.list", "Lists wire profiles, the built-in ones first")
            .lists_all::<ProfileOut>(),
        Route::post("/profile", Access::Administer, create)
            .named("v1.profile.create", "Creates a wire profile")
            .takes::<NewProfile>()
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

const KIND: Kind = Kind {
    word: "wire profile",
    plural: "wire profiles",
    missing: Missing::Profile,
    built_in: &BUILTIN_PROFILES,
    max: 100,
};

fn render(profile: &Arc<Profile>) -> ProfileOut {
    let name = profile.name().to_owned();
    let state = ProfileState { built_in: KIND.is_built_in(&name), name };
    ProfileOut::of(profile.to_body(), state)
}

fn checked(body: NewProfile) -> Result<Arc<Profile>, Error> {
    let problem = |error: ProfileError| {
        let place: Vec<_> = ["body"].into_iter().chain(error.field.iter().map(String::as_str)).collect();
        Problem::value(&place, error.why)
    };
    let profile = Profile::from_body(body);
    profile.map(Arc::new).map_err(|errors| Error::problems(errors.into_iter().map(problem).collect()))
}

pub(crate) async fn create(State(api): State<Api>, caller: Caller, body: Pending) -> Result<Response, Error> {
    let org = caller.org();
    let profile = checked(read(&body.read().await?)?)?;
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
    let update: ProfileUpdate = KIND.read_named(&body.read().await?, &name)?;
    let profile = checked(NewProfile { name: name.clone(), ..update.into() })?;
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
    Listed::all(api.ask(&caller).profiles()).render(render)
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<Response, Error> {
    let profile = api.ask(&caller).profile(&name)?;
    Ok(json::answer(StatusCode::OK, &render(&profile)))
}
