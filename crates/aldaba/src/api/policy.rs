//! Policies: what endpoints can name, and what each would do.

use super::auth::Organization;
use super::body::Pending;
use super::ids::Ids;
use super::json;
use super::query::Query;
use super::{Api, Error, error::Problem};
use crate::token::Caller;
use aldaba_delivery::policy::{BUILTIN_NAMES, Chances, Preview};
use aldaba_delivery::{Ending, OrgId, Policy, PolicyError, parse_span, write_span};
use aldaba_engine::ChangeError;
use axum::extract::{FromRequestParts, State};
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Policies that an organization can choose from. All of them are in memory, and on one page.
const MOST: usize = 500;

fn render(policy: &Policy) -> Value {
    let mut shown = policy.to_json();
    shown["builtIn"] = BUILTIN_NAMES.contains(&policy.name.as_str()).into();
    shown
}

fn missing() -> Error {
    Error::not_found("There is no such policy; GET /api/v1/policy lists them")
}

fn find(api: &Api, caller: Caller, name: &str) -> Result<Policy, Error> {
    api.engine.policies().get(organization(caller), name).ok_or_else(missing)
}

/// Whoever speaks for an application may look at what belongs to its organization.
pub(super) fn organization(caller: Caller) -> OrgId {
    match caller {
        Caller::Organization(org) | Caller::Application { org, .. } => org,
    }
}

fn read(body: &[u8], name: Option<&str>) -> Result<Policy, Error> {
    let mut json: Value = serde_json::from_slice(body)
        .map_err(|error| Error::from(Problem::decode(&["body"], error.to_string())))?;
    if let (Some(name), Some(fields)) = (name, json.as_object_mut()) {
        // A policy that was shown can be sent back as it is.
        fields.remove("builtIn");
        match fields.get("name") {
            None => drop(fields.insert("name".into(), name.into())),
            Some(given) if given == name => {}
            Some(_) => {
                let message = "must be the name in the path, or be left out: a policy keeps its name";
                return Err(Problem::value(&["body", "name"], message).into());
            }
        }
    }
    let problem = |error: &PolicyError| {
        let mut place = vec!["body"];
        place.extend(error.field.split('.'));
        Problem::value(&place, error.why.clone())
    };
    Policy::from_json(&json).map_err(|errors| Error::problems(errors.iter().map(problem).collect()))
}

/// The built-in ones belong to nobody.
fn not_built_in(name: &str) -> Result<(), Error> {
    if !BUILTIN_NAMES.contains(&name) {
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
    let policy = read(&body.read().await?.bytes, None)?;
    not_built_in(&policy.name)?;
    if api.engine.policies().of_organization(org).len() >= MOST {
        let detail = format!("The organization has {MOST} policies, as many as it may have");
        return Err(Error::conflict(detail));
    }
    match api.engine.directory().create_policy(org, policy.clone()).await {
        Ok(()) => Ok(json::answer(StatusCode::CREATED, &render(&policy))),
        Err(ChangeError::UidTaken) => {
            let detail = format!("There is a policy `{}` already; PUT replaces it", policy.name);
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
    let policy = read(&body.read().await?.bytes, Some(&name))?;
    match api.engine.directory().replace_policy(org, policy.clone()).await {
        Ok(()) => Ok(json::answer(StatusCode::OK, &render(&policy))),
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
    match api.engine.directory().delete_policy(org, name).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(ChangeError::NotFound) => Err(missing()),
        Err(ChangeError::InUse) => {
            let detail = "Endpoints use this policy; give them another one first";
            Err(Error::conflict(detail))
        }
        Err(error) => Err(error.into()),
    }
}

/// All of them fit on one page.
pub(super) async fn list(State(api): State<Api>, caller: Caller) -> Response {
    let policies = api.engine.policies().of_organization(organization(caller));
    let data: Vec<_> = policies.iter().map(render).collect();
    json::answer(StatusCode::OK, &json!({ "data": data, "iterator": null, "done": true }))
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
