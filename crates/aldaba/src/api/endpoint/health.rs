//! The health of an endpoint: as part of it, its changes, and its resumption.

use super::{find, rendered};
use crate::api::replay;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Fields};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::Timestamp;
use aldaba_store::{Endpoint, HealthChange, HealthChangeNumber, LastError, Order, Page};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/health", Access::Read, changes)
            .named("v1.endpoint.health", "Lists how the endpoint's condition has changed, newest first")
            .ordered()
            .lists::<ChangeOut<'_>>(),
        Route::post("/app/{app_id}/endpoint/{endpoint_id}/resume", Access::Manage, resume)
            .keyed()
            .named("v1.endpoint.resume", "Makes the endpoint active again and lets go what is held for it")
            .may_take::<ResumeIn>()
            .answers::<ResumedOut>(StatusCode::OK)
            .may_conflict(),
    ]
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct ResumeIn {
    /// Also send again what has died in the outage.
    recover: Option<bool>,
}

example!(ResumeIn, {"recover": true});

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HealthOut<'a> {
    status: &'static str,
    text: &'static str,
    failure_count: u32,
    /// When the status last changed, but for *degraded*.
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    since: Timestamp,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    failing_since: Option<Timestamp>,
    last_error: Option<LastErrorOut<'a>>,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_probe_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastErrorOut<'a> {
    text: &'a str,
    status_code: Option<u16>,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

pub(crate) fn render(endpoint: &Endpoint) -> HealthOut<'_> {
    let (state, off) = (endpoint.state(), endpoint.config.disabled);
    let health = state.health();
    HealthOut {
        status: state.condition().name(),
        text: state.text(),
        failure_count: health.failure_count,
        since: health.changed_at.unwrap_or(endpoint.created_at),
        failing_since: health.failing_since,
        last_error: endpoint.last_error.as_ref().map(render_error),
        next_probe_at: health.next_probe_at.filter(|_| !off),
    }
}

fn render_error(last: &LastError) -> LastErrorOut<'_> {
    LastErrorOut { text: &last.text, status_code: last.status_code, at: last.at }
}

/// How a change is named in a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(i64);

impl FromStr for Number {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Serialize, ToSchema)]
struct ChangeOut<'a> {
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    from: &'static str,
    to: &'static str,
    reason: &'static str,
    detail: Option<&'a str>,
}

fn render_change(change: &HealthChange) -> ChangeOut<'_> {
    ChangeOut {
        at: change.at,
        from: change.was.name(),
        to: change.became.name(),
        reason: change.cause.name(),
        detail: (!change.detail.is_empty()).then_some(&change.detail),
    }
}

/// The changes of an endpoint's status, newest first.
pub(crate) async fn changes(
    State(api): State<Api>,
    query: PageQuery<Number>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
) -> Result<Response, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let (Page { after, limit }, order) = query.ask(query.order.unwrap_or(Order::Descending));
    let page = Page { after: after.map(|Number(number)| HealthChangeNumber(number)), limit };
    let found = api.engine.store().health_changes(endpoint.id, page, order).await?;
    Ok(query.list(found, false, |change| Number(change.number.0)).render(render_change))
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ResumedOut {
    /// `false`: the endpoint was active already.
    changed: bool,
    /// Since when it had been failing, as far as that is known.
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    failing_since: Option<Timestamp>,
    /// The replay of what died in the outage, where it was asked for and anything did.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<replay::TaskOut>,
    #[schema(value_type = crate::api::endpoint::EndpointOut)]
    endpoint: Value,
}

/// Makes an endpoint active again and lets go what is held for it.
pub(crate) async fn resume(
    State(api): State<Api>,
    caller: Caller,
    Ids(keys): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let endpoint = find(&api, &caller, keys).await?;
    let once = pending.once(endpoint.org, &[endpoint.id.as_bytes()]);
    let mut fields = Fields::parse_or_none(&pending.read().await?.bytes)?;
    fields.refuse_others(&["recover"]);
    let recover = fields.boolean_or("recover", false);
    fields.finish()?;
    let directory = api.directory(&caller);
    let outage = match recover {
        true => directory.resume_and_recover(&endpoint, replay::RATE, once).await?,
        false => directory.resume_endpoint(&endpoint).await?,
    };
    let endpoint = api.endpoint(endpoint.app, endpoint.id.to_string()).await?;
    let resumed = ResumedOut {
        changed: outage.is_some(),
        failing_since: outage.as_ref().and_then(|outage| outage.failing_since),
        task: outage.and_then(|outage| outage.recovery).as_ref().map(replay::render),
        endpoint: rendered(&endpoint),
    };
    Ok(json::answer(StatusCode::OK, &resumed))
}
