//! The retry policies of an organization, and previews of them.

use super::Kind;
use crate::api::catalog;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::Query;
use crate::api::request::variant::{Described, Variant};
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route, example};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_api::{PlannedAttemptView, Previewed, PreviewedView};
use aldaba_delivery::policy::{BUILTIN_NAMES, Preview, SeededChances};
use aldaba_delivery::{Ending, Policy, PolicyError, format_duration, parse_duration};
use aldaba_engine::ChangeError;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::Value;
use std::time::Duration;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/policy", Access::Read, list)
            .named("v1.policy.list", "Lists policies, the built-in ones first")
            .lists_all::<PolicyOut>(),
        Route::post("/policy", Access::Administer, create)
            .named("v1.policy.create", "Creates a policy")
            .takes::<PolicyIn>()
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
            .answers::<Described<Previewed>>(StatusCode::OK),
    ]
}

/// A policy: when to try again, what counts as success, when to stop. Spans are written as `500ms`, `5s`, `15m`, `2h` or
/// `7d`; what is left out is as in `standard`. All fields: [policies](/docs/guides/policies).
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct PolicyIn {
    #[schema(min_length = 1, max_length = 256)]
    name: String,
    /// When to try again: `{"type": "exponential", "base", "factor", "cap"}` or `{"type": "list", "delays"}`.
    #[schema(value_type = Object)]
    schedule: Value,
    /// How far delays are spread: `{"type": "none"}`, `"full"`, `"addUpTo"` with `most`, `"addPercent"` or
    /// `"aroundPercent"` with `percent`.
    #[schema(value_type = Option<Object>)]
    jitter: Value,
    /// `attempts`, `stopAfter`.
    #[schema(value_type = Option<Object>)]
    limit: Value,
    /// `connect`, `answer`, `total`.
    #[schema(value_type = Option<Object>)]
    timeouts: Value,
    /// Statuses that are a success.
    success: Option<Vec<String>>,
    /// `{"type": "fail"}`, `{"type": "follow", "hops": 5}` or `{"type": "success"}`.
    #[schema(value_type = Option<Object>)]
    redirects: Value,
    /// Statuses that no retry mends.
    rejects: Option<Vec<String>>,
    /// What is not HTTP ends the delivery at once.
    malformed_rejects: Option<bool>,
    /// A 410 turns the endpoint off.
    gone_disables: Option<bool>,
    /// Which answers may ask for a delay: `statuses`, `use` (`lengthen` or `replace`), `shortest`, `longest`; null: none.
    #[schema(value_type = Option<Object>)]
    retry_after: Value,
    /// Whether the host waits while it looks down: `{"type": "apart"}`, `"hostFailures"` with `inARow`, `first` and
    /// `longest`, or `"delayOver"` with `threshold` and `longest`.
    #[schema(value_type = Option<Object>)]
    gate: Value,
    /// When the endpoint counts as failed: `{"type": "never"}`, `"whenExhausted"`, or `"withoutSuccessFor"` with `span`.
    #[schema(value_type = Option<Object>)]
    endpoint_fails: Value,
    /// How a failed endpoint is tried: `firstGap`, `longestGap`; null: it waits for its owner.
    #[schema(value_type = Option<Object>)]
    probe: Value,
    /// How long deliveries are kept: `delivered` with `for` and `newest`, `dead` with `for`.
    #[schema(value_type = Option<Object>)]
    retention: Value,
}

/// The same, under the name in the path.
struct PolicyUpdate;

impl ToSchema for PolicyUpdate {}

impl PartialSchema for PolicyUpdate {
    fn schema() -> RefOr<Schema> {
        Variant::of::<PolicyIn>("A policy as it is to be; its name is the one in the path.")
            .optional("name")
            .into()
    }
}

example!(PolicyUpdate, {"schedule": {"type": "exponential", "base": "1s", "factor": 2, "cap": "1h"}, "limit": {"attempts": 8}});

example!(PolicyIn, {
    "name": "patient",
    "schedule": {"type": "list", "delays": ["10s", "5m", "1h", "1h"]},
    "limit": {"attempts": 5, "stopAfter": "1d"},
});

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct PolicyOut {
    #[schema(min_length = 1, max_length = 256)]
    name: String,
    /// When to try again: `{"type": "exponential", "base", "factor", "cap"}` or `{"type": "list", "delays"}`.
    #[schema(value_type = Object)]
    schedule: Value,
    /// How far delays are spread: `{"type": "none"}`, `"full"`, `"addUpTo"` with `most`, `"addPercent"` or
    /// `"aroundPercent"` with `percent`.
    #[schema(value_type = Object)]
    jitter: Value,
    /// `attempts`, `stopAfter`.
    #[schema(value_type = Object)]
    limit: Value,
    /// `connect`, `answer`, `total`.
    #[schema(value_type = Object)]
    timeouts: Value,
    /// Statuses that are a success.
    success: Vec<String>,
    /// `{"type": "fail"}`, `{"type": "follow", "hops": 5}` or `{"type": "success"}`.
    #[schema(value_type = Object)]
    redirects: Value,
    /// Statuses that no retry mends.
    rejects: Vec<String>,
    /// What is not HTTP ends the delivery at once.
    malformed_rejects: bool,
    /// A 410 turns the endpoint off.
    gone_disables: bool,
    /// Which answers may ask for a delay: `statuses`, `use` (`lengthen` or `replace`), `shortest`, `longest`; null: none.
    #[schema(value_type = Object)]
    retry_after: Value,
    /// Whether the host waits while it looks down: `{"type": "apart"}`, `"hostFailures"` with `inARow`, `first` and
    /// `longest`, or `"delayOver"` with `threshold` and `longest`.
    #[schema(value_type = Object)]
    gate: Value,
    /// When the endpoint counts as failed: `{"type": "never"}`, `"whenExhausted"`, or `"withoutSuccessFor"` with `span`.
    #[schema(value_type = Object)]
    endpoint_fails: Value,
    /// How a failed endpoint is tried: `firstGap`, `longestGap`; null: it waits for its owner.
    #[schema(value_type = Option<Object>)]
    probe: Value,
    /// How long deliveries are kept: `delivered` with `for` and `newest`, `dead` with `for`.
    #[schema(value_type = Object)]
    retention: Value,
    built_in: bool,
}

const KIND: Kind =
    Kind { word: "policy", plural: "policies", missing: Missing::Policy, built_in: &BUILTIN_NAMES, max: 500 };

fn render(policy: &Policy) -> Value {
    KIND.render(policy.to_json(), &policy.name)
}

/// The location of a field such as `schedule.delays[1]` in a body.
fn place(field: &str) -> Vec<&str> {
    let parts = field.split('.').flat_map(|part| {
        let (name, index) = part.split_at(part.find('[').unwrap_or(part.len()));
        [name, index]
    });
    ["body"].into_iter().chain(parts.filter(|part| !part.is_empty())).collect()
}

fn read(body: &[u8], name: Option<&str>) -> Result<Policy, Error> {
    let problem = |error: &PolicyError| Problem::value(&place(&error.field), error.why.clone());
    Policy::from_request_json(&KIND.read(body, name)?)
        .map_err(|errors| Error::problems(errors.iter().map(problem).collect()))
}

pub(crate) async fn create(State(api): State<Api>, caller: Caller, body: Pending) -> Result<Response, Error> {
    let org = caller.org();
    let policy = read(&body.read().await?.bytes, None)?;
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
    let policy = read(&body.read().await?.bytes, Some(&name))?;
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
    let policies = api.ask(&caller).policies();
    catalog::page(&policies.iter().map(render).collect::<Vec<_>>())
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
