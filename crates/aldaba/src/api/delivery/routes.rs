//! Deliveries: what waits, what has ended and how, and the dead letter.

use super::explain::{self, Known, Why};
use super::id::{Cursor, DeliveryId};
use super::query::{Owner, WALK, Written, phase};
use crate::api::attempt;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::WithContent;
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{AppId, AttemptId, Delivery, EndpointId, MessageId, Reason, Timestamp, split_timeout};
use aldaba_engine::WaitReasons;
use aldaba_store::{
    AttemptScope, DeliveriesQuery, DeliveryList, DeliveryPosition, DeliveryState, DeliveryView, DueQuery,
    Endpoint, Order, Phase, Seq,
};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        filtered(Route::get("/app/{app_id}/delivery", Access::Read, list))
            .named("v1.delivery.list", "Lists deliveries: what waits first, of everything else the newest")
            .query(
                "state",
                Form::OneOf(&["pending", "history", "delivered", "dead"]),
                "Only those in this state",
            )
            .lists::<DeliveryOut<'_>>(),
        Route::get("/app/{app_id}/delivery/{delivery_id}", Access::Read, show)
            .named("v1.delivery.get", "Shows a delivery with its newest attempts")
            .with_content("Whether response bodies are shown; yes, if not given")
            .answers::<DeliveryOut<'_>>(StatusCode::OK),
        Route::get("/app/{app_id}/delivery/{delivery_id}/attempt", Access::Read, attempts)
            .named("v1.delivery.list-attempts", "Lists the attempts of a delivery, newest first")
            .with_content("Whether response bodies are shown; yes, if not given")
            .lists::<attempt::AttemptOut<'_>>(),
        filtered(Route::get("/dead-letter", Access::ReadOrganization, dead_letter))
            .named(
                "v1.delivery.dead-letter",
                "Lists what ended without success, of all applications or of one",
            )
            .query("app", Form::Text, "Only those of this application")
            .lists::<DeliveryOut<'_>>()
            .or_error(StatusCode::NOT_FOUND),
    ]
}

/// Why a delivery can be dead.
const REASONS: [&str; Reason::ALL.len()] = {
    let mut names = [""; Reason::ALL.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = Reason::ALL[place].name();
        place += 1;
    }
    names
};

fn filtered(route: Route) -> Route {
    route
        .ordered()
        .query("endpoint", Form::Text, "Only those to this endpoint")
        .query("eventType", Form::Text, "Only those of this event type")
        .query("reason", Form::OneOf(&REASONS), "Only those that ended for this reason")
        .query("before", Form::Moment, "Only those of messages accepted before")
        .query("after", Form::Moment, "Only those of messages accepted after")
}

/// How many attempts are shown with their delivery; the others are on pages of their own.
const ATTEMPTS: usize = 50;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DeliveryOut<'a> {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: DeliveryId,
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    app_id: AppId,
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    endpoint_id: EndpointId,
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    msg_id: MessageId,
    event_type: Option<&'a str>,
    state: &'static str,
    /// Why it is where it is. While it waits: `scheduled`, `due`, `in_flight`, `retry`, `throttled`,
    /// `application_throttled`, `in_order`, `host_busy`, `host_held`, `receiver_busy`, `paused`, `endpoint_failed`,
    /// `endpoint_blocked`, `endpoint_gone`, `endpoint_disabled` or `endpoint_deleted`. Of a dead one: `exhausted`, `rejected`, `stop_date`,
    /// `endpoint_gone`, `target_forbidden`, `cancelled`, `expired` or `payload_deleted`. Else `delivered`, or
    /// `endpoint_disabled` where it was not sent.
    reason: &'static str,
    /// The final reason for people; null unless it is dead.
    reason_text: Option<&'static str>,
    explanation: &'a str,
    attempt_count: u32,
    /// Retries that were planned: 1 after the first failure.
    retry_count: u32,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt: Option<Timestamp>,
    /// The same, once there has been an attempt.
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_retry_at: Option<Timestamp>,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    stop_date: Option<Timestamp>,
    // Of the newest attempt.
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    last_attempt_at: Option<Timestamp>,
    status_code: Option<u16>,
    response_duration_ms: Option<u64>,
    /// As of its attempt: every timeout reads `Request timeout`.
    error: Option<&'a str>,
    error_detail: Option<&'a str>,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    settled_at: Option<Timestamp>,
    /// It is dead, and was taken out of the dead letter; or its endpoint was deleted before it ended.
    discarded: bool,
    /// The newest ones, only where one delivery is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<Vec<attempt::AttemptOut<'a>>>,
}

/// What is shown of a delivery's retries where something else is listed.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetriesOut {
    /// Retries that were planned: 1 after the first failure. Null where there is no delivery, here and below.
    retry_count: Option<u32>,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_retry_at: Option<Timestamp>,
    /// Of the newest attempt.
    status_code: Option<u16>,
    response_duration_ms: Option<u64>,
    /// The final reason for people; null unless it is dead.
    reason_text: Option<&'static str>,
}

impl RetriesOut {
    pub(crate) fn of(view: &DeliveryView, next_attempt: Option<Timestamp>) -> Self {
        let (status, last) = (&view.status, view.last.as_ref());
        Self {
            retry_count: Some(status.retries),
            next_retry_at: next_attempt.filter(|_| status.attempts > 0),
            status_code: last.and_then(|last| last.status_code),
            response_duration_ms: last.map(|last| attempt::millis(last.duration)),
            reason_text: status.state.reason().map(|reason| reason.text()),
        }
    }
}

/// A delivery with what is told about it.
pub(crate) struct Told {
    view: DeliveryView,
    why: Why,
    stop_date: Option<Timestamp>,
}

impl Told {
    fn render(&self, api: &Api) -> DeliveryOut<'_> {
        let Self { view, why, stop_date } = self;
        let (status, last) = (&view.status, view.last.as_ref());
        let (error, error_detail) = match last.map(|last| split_timeout(&last.error)) {
            Some((error, detail)) => (Some(error), detail),
            None => (None, None),
        };
        DeliveryOut {
            id: api.delivery_ids.id(status.seq),
            app_id: view.app,
            endpoint_id: status.endpoint,
            msg_id: status.message,
            event_type: view.event_type.as_deref(),
            state: match status.state {
                DeliveryState::Waiting { .. } => "pending",
                DeliveryState::Delivered { .. } => "delivered",
                DeliveryState::Dead { .. } => "dead",
                DeliveryState::Skipped { .. } => "skipped",
            },
            reason: why.reason,
            reason_text: status.state.reason().map(|reason| reason.text()),
            explanation: &why.explanation,
            attempt_count: status.attempts,
            retry_count: status.retries,
            next_attempt: why.next_attempt,
            next_retry_at: why.next_attempt.filter(|_| status.attempts > 0),
            stop_date: *stop_date,
            last_attempt_at: last.map(|last| last.started_at),
            status_code: last.and_then(|last| last.status_code),
            response_duration_ms: last.map(|last| attempt::millis(last.duration)),
            error: error.filter(|error| !error.is_empty()),
            error_detail,
            created_at: view.created_at,
            settled_at: status.state.settled_at(),
            discarded: status.state.reason().is_some() && !view.in_dead_letter,
            attempts: None,
        }
    }
}

/// Tells about deliveries whose endpoints are known.
pub(crate) async fn explained(
    api: &Api,
    views: &[DeliveryView],
    endpoints: &BTreeMap<EndpointId, Endpoint>,
) -> Vec<(Why, Option<Timestamp>)> {
    let asked: Vec<_> = views
        .iter()
        .filter(|view| matches!(view.status.state, DeliveryState::Waiting { .. }))
        .filter_map(|view| Some((endpoints.get(&view.status.endpoint)?, view.status.seq)))
        .collect();
    let wait_reasons = if asked.is_empty() { Vec::new() } else { api.engine.wait_reasons(&asked).await };
    let wait_reasons: BTreeMap<Seq, WaitReasons> =
        asked.iter().map(|(_, seq)| *seq).zip(wait_reasons).collect();
    let mut heads = BTreeMap::new();
    for (endpoint, _) in asked.iter().filter(|(endpoint, _)| endpoint.config.ordering.is_fifo()) {
        let first = DueQuery { endpoint: endpoint.id, ordered: true, after: None, limit: 1 };
        // What cannot be read now is told without it.
        let first = api.engine.store().due(first).await.unwrap_or_default();
        heads.extend(first.first().map(|head| (endpoint.id, *head)));
    }
    let now = api.engine.clock().now();
    let tell = |view: &DeliveryView| {
        let status = &view.status;
        let Some(endpoint) = endpoints.get(&status.endpoint) else {
            return (explain::without_endpoint(), None);
        };
        let policy = api.engine.policies().of(endpoint.org, &endpoint.config.policy);
        let known = Known {
            delivery: status,
            endpoint,
            policy: &policy,
            wait_reasons: wait_reasons.get(&status.seq).copied().unwrap_or_default(),
            ahead: heads.get(&endpoint.id).copied().filter(|head| head.seq != status.seq),
            delivered_by: view.delivered_by,
            error: view.last.as_ref().map(|last| last.error.as_str()).filter(|error| !error.is_empty()),
        };
        let delivery = Delivery { attempts: status.attempts, clock_start: status.clock_start };
        let why = explain::delivery(&known, now);
        (why, endpoint.state().stop_rule(policy).stop_at(&delivery))
    };
    views.iter().map(tell).collect()
}

async fn tell(api: &Api, views: Vec<DeliveryView>) -> Result<Vec<Told>, Error> {
    let mut ids: Vec<_> = views.iter().map(|view| view.status.endpoint).collect();
    ids.sort_unstable();
    ids.dedup();
    let endpoints = api.engine.store().lane_endpoints(ids).await?;
    let endpoints = endpoints.into_iter().map(|endpoint| (endpoint.id, endpoint)).collect();
    let told = explained(api, &views, &endpoints).await;
    Ok(views.into_iter().zip(told).map(|(view, (why, stop_date))| Told { view, why, stop_date }).collect())
}

pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<Cursor>,
    caller: Caller,
    Ids(app): Ids<String>,
) -> Result<Response, Error> {
    let phase = phase(query.query.get("state").as_deref(), &["query", "state"])?;
    let app = api.application(&caller, app).await?.id;
    pages(&api, &query, DeliveryList::Of(app, phase), Owner::Application(app)).await
}

/// The dead letter of all applications, or of one.
pub(crate) async fn dead_letter(
    State(api): State<Api>,
    query: PageQuery<Cursor>,
    caller: Caller,
) -> Result<Response, Error> {
    let org = caller.org();
    let (list, owner) = match query.query.get("app") {
        Some(app) => {
            let app = api.application(&caller, app.into_owned()).await?.id;
            (DeliveryList::Of(app, Phase::Dead), Owner::Application(app))
        }
        None => (DeliveryList::DeadLetter(org), Owner::Organization(org)),
    };
    pages(&api, &query, list, owner).await
}

async fn pages(
    api: &Api,
    query: &PageQuery<Cursor>,
    list: DeliveryList,
    owner: Owner,
) -> Result<Response, Error> {
    // What goes out next comes first; of everything else the newest.
    let order = match list {
        DeliveryList::Of(_, Phase::Pending) => Order::Ascending,
        _ => Order::Descending,
    };
    let (page, order) = query.ask(query.order.unwrap_or(order));
    let filter = Written::in_query(&query.query).read(api, owner, "query").await?;
    let from = page.after.map(|cursor| api.delivery_ids.place(cursor));
    if from.is_some_and(|place| !list.has(place)) {
        let message = "belongs to a list of another `state`; leave it out to start from the beginning";
        return Err(Problem::value(&["query", "iterator"], message).into());
    }
    let ask = DeliveriesQuery { list, filter, from, order, limit: page.limit, walk: WALK };
    let found = api.engine.store().delivery_list(ask).await?;
    let (places, views): (Vec<DeliveryPosition>, Vec<_>) = found.found.into_iter().unzip();
    let items: Vec<_> = places.into_iter().zip(tell(api, views).await?).collect();
    let stopped = found.stopped.map(|place| api.delivery_ids.cursor(place));
    let listed = query.list_walked(items, stopped, |(place, _)| api.delivery_ids.cursor(*place));
    Ok(listed.render(|(_, told)| told.render(api)))
}

/// One delivery of an application; another's is not there, as far as the caller can tell.
pub(crate) async fn find(api: &Api, app: AppId, id: &str) -> Result<DeliveryView, Error> {
    let seq = api.delivery_ids.read(id)?;
    let found = api.engine.store().delivery_views(app, vec![seq]).await?.pop();
    found.ok_or_else(|| {
        Error::not_found(
            "The application has no such delivery; GET /api/v1/app/{app_id}/delivery lists those that it has",
        )
    })
}

pub(crate) async fn show(
    State(api): State<Api>,
    content: WithContent,
    caller: Caller,
    Ids((app, id)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.application(&caller, app).await?.id;
    let view = find(&api, app, &id).await?;
    let scope = AttemptScope::Delivery(view.status.message, view.status.seq);
    let attempts = attempt::newest(&api, scope, ATTEMPTS).await?;
    let endpoint = api.engine.store().lane_endpoints(vec![view.status.endpoint]).await?.pop();
    let url = endpoint.as_ref().map_or("", |endpoint| endpoint.config.url.as_str());
    let told = tell(&api, vec![view]).await?;
    let rendered = told.first().map(|told| DeliveryOut {
        attempts: Some(attempts.iter().map(|attempt| attempt::render(attempt, url, content)).collect()),
        ..told.render(&api)
    });
    Ok(json::answer(StatusCode::OK, &rendered))
}

pub(crate) async fn attempts(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, id)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.application(&caller, app).await?.id;
    let status = find(&api, app, &id).await?.status;
    let scope = AttemptScope::Delivery(status.message, status.seq);
    let attempts = attempt::read(&api, scope, &query).await?;
    let endpoint = api.engine.store().lane_endpoints(vec![status.endpoint]).await?.pop();
    let url = endpoint.as_ref().map_or("", |endpoint| endpoint.config.url.as_str());
    Ok(attempts.render(|attempt| attempt::render(attempt, url, content)))
}
