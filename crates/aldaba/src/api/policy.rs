//! Policies: what endpoints can name, and what each would do.

use super::auth::Organization;
use super::body::Pending;
use super::ids::Ids;
use super::json;
use super::named::{self, Kind, organization};
use super::query::Query;
use super::{Api, Error, error::Problem};
use crate::token::Caller;
use aldaba_delivery::policy::{BUILTIN_NAMES, Chances, Preview};
use aldaba_delivery::{Ending, Policy, PolicyError, parse_span, write_span};
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

const KIND: Kind =
    Kind { word: "policy", plural: "policies", list: "/policy", built_in: &BUILTIN_NAMES, most: 500 };

fn render(policy: &Policy) -> Value {
    KIND.render(policy.to_json(), &policy.name)
}

fn find(api: &Api, caller: Caller, name: &str) -> Result<Policy, Error> {
    api.engine.policies().get(organization(caller), name).ok_or_else(|| KIND.missing())
}

fn read(body: &[u8], name: Option<&str>) -> Result<Policy, Error> {
    let problem = |error: &PolicyError| {
        let place: Vec<_> = ["body"].into_iter().chain(error.field.split('.')).collect();
        Problem::value(&place, error.why.clone())
    };
    Policy::from_json(&KIND.read(body, name)?)
        .map_err(|errors| Error::problems(errors.iter().map(problem).collect()))
}

pub(super) async fn create(
    State(api): State<Api>,
    Organization(org): Organization,
    body: Pending,
) -> Result<Response, Error> {
    let policy = read(&body.read().await?.bytes, None)?;
    KIND.not_built_in(&policy.name)?;
    KIND.has_room(api.engine.policies().of_organization(org).len())?;
    let made = api.engine.directory().create_policy(org, policy.clone()).await;
    made.map_err(|error| KIND.refusal(error, &policy.name))?;
    Ok(json::answer(StatusCode::CREATED, &render(&policy)))
}

pub(super) async fn replace(
    State(api): State<Api>,
    Organization(org): Organization,
    Ids(name): Ids<String>,
    body: Pending,
) -> Result<Response, Error> {
    KIND.not_built_in(&name)?;
    let policy = read(&body.read().await?.bytes, Some(&name))?;
    let replaced = api.engine.directory().replace_policy(org, policy.clone()).await;
    replaced.map_err(|error| KIND.refusal(error, &name))?;
    Ok(json::answer(StatusCode::OK, &render(&policy)))
}

pub(super) async fn delete(
    State(api): State<Api>,
    Organization(org): Organization,
    Ids(name): Ids<String>,
) -> Result<StatusCode, Error> {
    KIND.not_built_in(&name)?;
    let deleted = api.engine.directory().delete_policy(org, name.clone()).await;
    deleted.map_err(|error| KIND.refusal(error, &name))?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn list(State(api): State<Api>, caller: Caller) -> Response {
    let policies = api.engine.policies().of_organization(organization(caller));
    named::page(&policies.iter().map(render).collect::<Vec<_>>())
}

pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<Response, Error> {
    Ok(json::answer(StatusCode::OK, &render(&find(&api, caller, &name)?)))
}

/// What a preview is asked for.
pub(super) struct Asked {
    outage: Option<Duration>,
    seed: u64,
}

impl FromRequestParts<Api> for Asked {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Error> {
        let query = Query::of(parts);
        let outage = match query.get("outage") {
            None => None,
            Some(text) => Some(parse_span(&text).ok_or_else(|| {
                let expected = "expected a span such as 500ms, 90s, 15m, 2h or 7d";
                Problem::value(&["query", "outage"], format!("{expected}; it is {text}"))
            })?),
        };
        let seed = match query.get("seed") {
            None => 0,
            Some(text) => text.parse().map_err(|_| {
                Problem::value(&["query", "seed"], format!("expected a whole number; it is {text}"))
            })?,
        };
        Ok(Self { outage, seed })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Planned {
    attempt: usize,
    /// Seconds from the first.
    at: f64,
    /// The same in words.
    after: String,
}

pub(super) async fn preview(
    asked: Asked,
    State(api): State<Api>,
    caller: Caller,
    Ids(name): Ids<String>,
) -> Result<Response, Error> {
    let policy = find(&api, caller, &name)?;
    let mut chances = Chances::seeded(asked.seed);
    let preview = Preview::of(&policy, asked.outage, || chances.draw());
    let planned = |(number, at): (usize, &Duration)| Planned {
        attempt: number + 1,
        at: at.as_secs_f64(),
        after: write_span(*at),
    };
    let reason = match preview.ending {
        Ending::Delivered => None,
        Ending::Dead(reason) => Some(reason.name()),
    };
    let body = json!({
        "policy": policy.name,
        "outage": asked.outage.map(write_span),
        "seed": asked.seed,
        "attempts": preview.attempts.iter().enumerate().map(planned).collect::<Vec<_>>(),
        "arrivesAt": preview.arrival().map(|at| at.as_secs_f64()),
        "delivered": reason.is_none(),
        "reason": reason,
    });
    Ok(json::answer(StatusCode::OK, &body))
}
