//! Headers that the endpoint adds to every request.

use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Fields};
use crate::api::response::error::Problem;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::{FieldKind, NamesField, Parsed, names};
use aldaba_api::{
    EndpointHeaders as Shown, EndpointHeadersView, HeadersPatch, MAX_HEADER_CHANGES, SetHeaders,
};
use aldaba_engine::{EndpointHeaders, HeaderProblem};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::collections::BTreeMap;

const PATH: &str = "/app/{app_id}/endpoint/{endpoint_id}/headers";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get(PATH, Access::ReadSecrets, show)
            .named("v1.endpoint.get-headers", "Shows the headers that are sent with every request")
            .answers::<Shown>(StatusCode::OK),
        Route::put(PATH, Access::Manage, replace)
            .named("v1.endpoint.update-headers", "Replaces the headers that are sent with every request")
            .takes::<SetHeaders>()
            .answers_nothing()
            .may_conflict(),
        Route::patch(PATH, Access::Manage, patch)
            .named("v1.endpoint.patch-headers", "Changes some of the headers; null removes one")
            .takes::<HeadersPatch>()
            .answers_nothing()
            .may_conflict(),
    ]
}

/// The headers of a body.
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
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let headers = api.engine.directory().headers(&endpoint)?;
    let out = EndpointHeadersView {
        headers: headers.shown().collect::<BTreeMap<_, _>>(),
        sensitive: headers.sensitive().collect::<Vec<_>>(),
    };
    Ok(json::answer(StatusCode::OK, &out))
}

pub(crate) async fn replace(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<StatusCode, Error> {
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let mut fields = pending.read().await?.text().fields()?;
    let hidden = HIDDEN.read(&mut fields, "sensitive").unwrap_or_default();
    let Parsed { value: SetHeaders { headers: given }, mut fields } = Parsed::of(fields, false);
    let is_given = |name: &String| given.keys().any(|given| given.eq_ignore_ascii_case(name));
    // A client that sends back what it has read does not mean to lose hidden headers.
    if let Some(lost) = hidden.iter().find(|name| !is_given(name)) {
        let message =
            format!("the value of `{lost}` is not shown: give it in `headers`, or change some with PATCH");
        fields.problem("sensitive", message);
    }
    let headers = checked(&mut fields, "headers", given.into_iter().collect());
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
    let endpoint = api.ask(&caller).endpoint(&keys).await?;
    let HeadersPatch { headers, delete_headers } = pending.read().await?.text().parse(false)?.finish()?;
    let removed = delete_headers.unwrap_or_default().into_iter().map(|name| (name, None));
    let changes: Vec<_> = headers.into_iter().chain(removed).collect();
    let set =
        api.directory(&caller).set_headers(&endpoint, |headers| headers.patched(changes.clone())).await?;
    set.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The names of headers whose values an answer does not show.
const HIDDEN: NamesField = names(MAX_HEADER_CHANGES, |_| Ok(())).or_empty();
