//! Headers that an endpoint's owner wants with every request.

use super::find;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Fields};
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_engine::{EndpointHeaders, HeaderProblem};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

const PATH: &str = "/app/{app_id}/endpoint/{endpoint_id}/headers";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, Access::ReadSecrets, show)
            .named("v1.endpoint.get-headers", "Shows the headers that are sent with every request")
            .answers::<HeadersOut<'_>>(StatusCode::OK),
        Route::put(PATH, Access::Manage, replace)
            .named("v1.endpoint.update-headers", "Sends these headers and no others with every request")
            .takes::<HeadersIn>()
            .answers_nothing()
            .may_conflict(),
        Route::patch(PATH, Access::Manage, patch)
            .named("v1.endpoint.patch-headers", "Changes some of the headers; null takes one away")
            .takes::<HeadersPatch>()
            .answers_nothing()
            .may_conflict(),
    ]
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
pub(crate) struct HeadersIn {
    headers: BTreeMap<String, String>,
}

example!(HeadersIn, {"headers": {"X-Team": "billing"}});

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct HeadersPatch {
    headers: Option<BTreeMap<String, Option<String>>>,
    /// The names of headers to take away.
    delete_headers: Option<Vec<String>>,
}

example!(HeadersPatch, {"headers": {"X-Team": "support", "X-Region": "eu"}, "deleteHeaders": ["X-Former"]});

#[derive(Serialize, ToSchema)]
pub(crate) struct HeadersOut<'a> {
    headers: BTreeMap<&'a str, &'a str>,
    /// The names of those whose values are not shown.
    sensitive: Vec<&'a str>,
}

/// The headers of a new endpoint.
pub(crate) fn read(fields: &mut Fields, name: &str) -> EndpointHeaders {
    let given = fields.strings(name, EndpointHeaders::MAX_HEADERS);
    checked(fields, name, given)
}

/// The same, of values that have been read.
pub(crate) fn checked(fields: &mut Fields, name: &str, given: Vec<(String, String)>) -> EndpointHeaders {
    EndpointHeaders::new(given).unwrap_or_else(|problems| {
        for problem in &problems {
            fields.problem_at(&place(name, problem), &*problem.why);
        }
        EndpointHeaders::default()
    })
}

fn place<'a>(field: &'a str, problem: &'a HeaderProblem) -> Vec<&'a str> {
    [field, &problem.name].into_iter().filter(|part| !part.is_empty()).collect()
}

fn refused(problems: Vec<HeaderProblem>) -> Error {
    let problem = |problem: HeaderProblem| {
        let place: Vec<_> = ["body"].into_iter().chain(place("headers", &problem)).collect();
        Problem::value(&place, problem.why.clone())
    };
    Error::problems(problems.into_iter().map(problem).collect())
}

pub(crate) async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let headers = api.engine.directory().headers(&endpoint)?;
    let out = HeadersOut { headers: headers.shown().collect(), sensitive: headers.sensitive().collect() };
    Ok(json::answer(StatusCode::OK, &out))
}

pub(crate) async fn replace(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let mut fields = pending.read().await?.text().fields()?;
    fields.refuse_others(&["headers", "sensitive"]);
    fields.require("headers");
    let hidden = fields.set_or_empty("sensitive", MOST_CHANGED, |_| Ok(()));
    let given = fields.strings("headers", EndpointHeaders::MAX_HEADERS);
    let is_given = |name: &String| given.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    // Whoever sends back what they have read does not mean to lose what they cannot see.
    if let Some(lost) = hidden.iter().find(|name| !is_given(name)) {
        let message =
            format!("the value of `{lost}` is not shown: give it in `headers`, or change some with PATCH");
        fields.problem("sensitive", message);
    }
    let headers = checked(&mut fields, "headers", given);
    fields.finish()?;
    let set = api.directory(&caller).set_headers(&endpoint, |_| Ok(headers.clone())).await?;
    set.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn patch(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let mut fields = pending.read().await?.text().fields()?;
    fields.refuse_others(&["headers", "deleteHeaders"]);
    let mut changes: Vec<_> = fields.strings_or_nulls("headers", MOST_CHANGED);
    let removed = fields.set("deleteHeaders", MOST_CHANGED, |_| Ok(()));
    fields.finish()?;
    changes.extend(removed.into_iter().map(|name| (name, None)));
    let set =
        api.directory(&caller).set_headers(&endpoint, |headers| headers.patched(changes.clone())).await?;
    set.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Names in one request.
const MOST_CHANGED: usize = 250;
