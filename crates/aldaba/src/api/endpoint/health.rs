//! The health of an endpoint, its changes, and resuming.

use super::render as render_endpoint;
use crate::api::replay;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment};
use crate::api::response::conflict::Subject;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{
    EndpointHealth, EndpointHealthView, HealthChange as Shown, HealthChangeView, LastError, LastErrorView,
    Resume, Resumed, ResumedView,
};
use aldaba_store::{Endpoint, HealthChange, HealthChangeNumber, LastError as StoredError, Order, Page};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/endpoint/{endpoint_id}/health", Access::Read, changes)
            .named("v1.endpoint.health", "Lists the changes of an endpoint's health, newest first")
            .ordered()
            .lists::<Shown>(),
        Route::post("/app/{app_id}/endpoint/{endpoint_id}/resume", Access::Manage, resume)
            .keyed()
            .named("v1.endpoint.resume", "Sets the endpoint active again and releases its held deliveries")
            .may_take::<Resume>()
            .answers::<Resumed>(StatusCode::OK)
            .may_conflict(),
    ]
}

pub(crate) fn render(endpoint: &Endpoint) -> EndpointHealth {
    let (state, off) = (endpoint.state(), endpoint.config.disabled);
    let health = state.health();
    let state = EndpointHealthView {
        status: state.condition().name().into(),
        text: state.text().to_owned(),
        failure_count: health.failure_count,
        since: json::moment(health.changed_at.unwrap_or(endpoint.created_at)),
        failing_since: health.failing_since.map(json::moment),
        last_error: endpoint.last_error.as_ref().map(render_error),
        next_probe_at: health.next_probe_at.filter(|_| !off).map(json::moment),
    };
    state.into()
}

fn render_error(last: &StoredError) -> LastError {
    LastErrorView { text: last.text.clone(), status_code: last.status_code, at: json::moment(last.at) }.into()
}

/// The position of a change in its list.
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

fn render_change(change: &HealthChange) -> impl Shows<Shown> {
    HealthChangeView {
        at: Moment(change.at),
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
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let endpoint = app.endpoint(&endpoint).await?;
    let (Page { after, limit }, order) = query.ask(query.order.unwrap_or(Order::Descending));
    let page = Page { after: after.map(|Number(number)| HealthChangeNumber(number)), limit };
    let found = app.health_changes(&endpoint, page, order).await?;
    Ok(query.list(found, false, |change| Number(change.number.0)).render(render_change))
}

/// Sets an endpoint active again, which releases its held deliveries.
pub(crate) async fn resume(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
    pending: Pending,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let endpoint = app.endpoint(&endpoint).await?;
    let once = pending.once(endpoint.org, &[endpoint.id.as_bytes()]);
    pending.trace().concerns_endpoint(endpoint.app, endpoint.id);
    let Resume { recover } = pending.read().await?.text().parse_or_none()?.finish()?;
    let recover = recover.unwrap_or_default();
    let directory = api.directory(&caller);
    let resumed = match recover {
        true => directory.resume_and_recover(&endpoint, replay::DEFAULT_RATE, once).await,
        false => directory.resume_endpoint(&endpoint).await,
    };
    let outage = match resumed {
        Ok(outage) => outage,
        Err(error) => return Err(api.refusal(&caller, error, Subject::from(&endpoint), None).await),
    };
    let endpoint = app.endpoint(&endpoint.id.to_string()).await?;
    let resumed = ResumedView {
        changed: outage.is_some(),
        failing_since: outage.as_ref().and_then(|outage| outage.failing_since).map(Moment),
        task: outage.and_then(|outage| outage.recovery).as_ref().map(replay::render),
        endpoint: render_endpoint(&api, &endpoint),
    };
    Ok(json::answer(StatusCode::OK, &resumed))
}
