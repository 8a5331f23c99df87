//! The retry policies of an organization, and previews of them.

use super::{Kind, read};
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::Query;
use crate::api::response::error::Problem;
use crate::api::response::page::Listed;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_api::{
    NewPolicy, PlannedAttemptView, Policy as PolicyOut, PolicyState, PolicyUpdate, Previewed, PreviewedView,
};
use aldaba_delivery::policy::{BUILTIN_NAMES, Preview, SeededChances};
use aldaba_delivery::{Ending, Policy, PolicyError, format_duration, parse_duration};
use aldaba_engine::ChangeError;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::time::Duration;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/policy", Access::Read, list)
            .named("v1.policy.list", "Lists policies, the built-in ones first")
            .lists_all::<PolicyOut>(),
        Route::post("/policy", Access::Administer, create)
            .named("v1.policy.create", "Creates a policy")
            .takes::<NewPolicy>()
            .answers::<PolicyOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::get("/policy/{policy_name}", Access::Read, show)
            .named("v1.policy.get", "Shows a policy")
            .answers::<PolicyOut>(StatusCode::OK),
        Route::put("/policy/{policy_name}", Access::Administer, put)
            .named("v1.policy.update", "Replaces a policy, or creates it")
            .takes::<PolicyUpdate>()
            .answers::<PolicyOut>(StatusCode::OK)
            .answers::<PolicyOut>(StatusCode::CREATED)
            .may_conflict(),
        Route::delete("/policy/{policy_name}", Access::Administer, delete)
            .named("v1.policy.delete", "Deletes a policy that no endpoint uses")
            .answers_nothing()
            .may_conflict(),
        Route::get("/policy/{policy_name}/preview", Access::Read, preview)
            .named("v1.policy.preview", "Shows when a policy would make each attempt during an outage")
            .query(
                "outage",
                Form::Text,
                "How long the receiver is down, such as `90s` or `2h`; for ever, if not given",
            )
            .query("seed", Form::Integer { least: 0, most: i64::MAX }, "Of the chances in it")
            .answers::<Previewed>(StatusCode::OK),
    ]
}

const KIND: Kind =
    Kind { word: "policy", plural: "policies", missing: Missing::Policy, built_in: &BUILTIN_NAMES, max: 500 };

fn render(policy: &Policy) -> PolicyOut {
    let state = PolicyState { name: policy.name.clone(), built_in: KIND.is_built_in(&policy.name) };
    PolicyOut::of(policy.to_body(), state)
}

/// The location of a field such as `limit.attempts` in a body.
fn problem(error: PolicyError) -> Problem {
    let place: Vec<_> = ["body"].into_iter().chain(error.field.split('.')).collect();
    Problem::value(&place, error.why)
}

fn checked(body: NewPolicy) -> Result<Policy, Error> {
    let policy = Policy::from_body(body).map_err(problem)?;
    policy.check_given().map_err(problem)?;
    Ok(policy)
}

pub(crate) async fn create(State(api): State<Api>, caller: Caller, body: Pending) -> Result<Response, Error> {
    let org = caller.org();
    let policy = checked(read(&body.read().await?)?)?;
    KIND.not_built_in(&policy.name)?;
    KIND.check_count(api.ask(&caller).policies().len())?;
    let made = api.directory(&caller).create_policy(org, policy.clone()).await;
    made.map_err(|error| KIND.refusal(error, &policy.name))?;
    Ok(json::answer(StatusCode::CREATED, &render(&policy)))
}

/// Replaces a policy, or creates it.
pub(crate) async fn put(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
    body: Pending,
) -> Result<Response, Error> {
    let org = caller.org();
    KIND.not_built_in(&name)?;
    let update: PolicyUpdate = KIND.read_named(&body.read().await?, &name)?;
    let policy = checked(NewPolicy { name: name.clone(), ..update.into() })?;
    let directory = api.directory(&caller);
    if api.ask(&caller).policy(&name).is_err() {
        KIND.check_count(api.ask(&caller).policies().len())?;
        match directory.create_policy(org, policy.clone()).await {
            // Another request has just created it.
            Err(ChangeError::UidTaken) => {}
            made => {
                made.map_err(|error| KIND.refusal(error, &name))?;
                return Ok(json::answer(StatusCode::CREATED, &render(&policy)));
            }
        }
    }
    let replaced = directory.replace_policy(org, policy.clone()).await;
    replaced.map_err(|error| KIND.refusal(error, &name))?;
    Ok(json::answer(StatusCode::OK, &render(&policy)))
}

pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<StatusCode, Error> {
    let org = caller.org();
    KIND.not_built_in(&name)?;
    let deleted = api.directory(&caller).delete_policy(org, name.clone()).await;
    deleted.map_err(|error| KIND.refusal(error, &name))?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn list(State(api): State<Api>, caller: Caller) -> Response {
    Listed::all(api.ask(&caller).policies()).render(render)
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<Response, Error> {
    Ok(json::answer(StatusCode::OK, &render(&api.ask(&caller).policy(&name)?)))
}

/// The length of the outage that a preview plays.
fn outage(query: &Query) -> Result<Option<Duration>, Error> {
    let Some(text) = query.text("outage") else { return Ok(None) };
    parse_duration(text).map(Some).ok_or_else(|| {
        let expected = "expected a duration such as 500ms, 90s, 15m, 2h or 7d";
        Problem::value(&["query", "outage"], format!("{expected}; it is {text}")).into()
    })
}

pub(crate) async fn preview(
    query: Query,
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<Response, Error> {
    let outage = outage(&query)?;
    let policy = api.ask(&caller).policy(&name)?;
    let seed = query.number("seed").and_then(|seed| u64::try_from(seed).ok()).unwrap_or(0);
    let mut chances = SeededChances::seeded(seed);
    let preview = Preview::of(&policy, outage, || chances.draw());
    let planned = |(number, at): (usize, &Duration)| PlannedAttemptView {
        attempt: u32::try_from(number).map_or(u32::MAX, |number| number + 1),
        at: at.as_secs_f64(),
        after: format_duration(*at),
    };
    let reason = match preview.ending {
        Ending::Delivered => None,
        Ending::Dead(reason) => Some(reason.name()),
    };
    let body = PreviewedView {
        policy: &policy.name,
        outage: outage.map(format_duration),
        seed,
        attempts: preview.attempts.iter().enumerate().map(planned).collect::<Vec<_>>(),
        arrives_at: preview.arrival().map(|at| at.as_secs_f64()),
        delivered: reason.is_none(),
        reason,
    };
    Ok(json::answer(StatusCode::OK, &body))
}
