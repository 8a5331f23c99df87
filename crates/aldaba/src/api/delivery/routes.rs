//! Deliveries: what waits, what has ended and how, and the dead letter.

use super::query::{STATES, filter, phase};
use crate::api::attempt;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json;
use crate::api::request::query::WithContent;
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::{
    ApplicationQuestions, AttemptFields, AttemptSelection, AttemptsOf, AttemptsPage, Cursor, DeliveryId,
    DeliveryQuestions, DeliverySelection, ExplainedDelivery,
};
use crate::token::Caller;
use aldaba_delivery::{AppId, AttemptId, EndpointId, MessageId, Reason, Timestamp, split_timeout};
use aldaba_store::{DeliveryPosition, DeliveryState, DeliveryView, ListRange, Order, Page, Phase};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        filtered(Route::get("/app/{app_id}/delivery", Access::Read, list))
            .named(
                "v1.delivery.list",
                "Lists deliveries: pending ones by their next attempt, others newest first",
            )
            .query("state", Form::OneOf(STATES), "Only those in this state")
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
            .named("v1.delivery.dead-letter", "Lists the dead letter of all applications, or of one")
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
        .query("eventType", Form::CheckedText(ids::name), "Only those of this event type")
        .query("reason", Form::OneOf(&REASONS), "Only those that ended for this reason")
        .query("before", Form::Moment, "Only those of messages accepted before")
        .query("after", Form::Moment, "Only those of messages accepted after")
}

/// Attempts that are shown with their delivery; the others are on pages of their own.
const MAX_ATTEMPTS_SHOWN: usize = 50;

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

fn render<'a>(api: &Api, explained: &'a ExplainedDelivery) -> DeliveryOut<'a> {
    let ExplainedDelivery { view, why, stop_date } = explained;
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

pub(crate) async fn list(
    State(api): State<Api>,
    query: PageQuery<Cursor>,
    caller: Caller,
    Ids(app): Ids<String>,
) -> Result<Response, Error> {
    let phase = query.query.text("state").and_then(phase).unwrap_or(Phase::Any);
    let app = api.ask(&caller).application(&app).await?;
    pages(&api, &query, DeliveryQuestions::Application(app), phase).await
}

/// The dead letter of all applications, or of one.
pub(crate) async fn dead_letter(
    State(api): State<Api>,
    query: PageQuery<Cursor>,
    caller: Caller,
) -> Result<Response, Error> {
    let questions = api.ask(&caller);
    let scope = match query.query.text("app") {
        Some(app) => DeliveryQuestions::Application(questions.application(app).await?),
        None => DeliveryQuestions::DeadLetter(questions),
    };
    pages(&api, &query, scope, Phase::Dead).await
}

async fn pages(
    api: &Api,
    query: &PageQuery<Cursor>,
    scope: DeliveryQuestions<'_>,
    phase: Phase,
) -> Result<Response, Error> {
    // Pending deliveries in the order of their next attempts; all others with the newest first.
    let order = if phase == Phase::Pending { Order::Ascending } else { Order::Descending };
    let (page, order) = query.ask(query.order.unwrap_or(order));
    let filter = filter(&query.query, &scope).await?;
    let from = page.after.map(|cursor| api.delivery_ids.position(cursor));
    if from.is_some_and(|position| !scope.has(phase, position)) {
        let message = "belongs to a list of another `state`; leave it out to start from the beginning";
        return Err(Problem::value(&["query", "iterator"], message).into());
    }
    let selection = DeliverySelection { phase, filter, from, order, limit: page.limit };
    let found = scope.deliveries(selection).await?;
    let (positions, views): (Vec<DeliveryPosition>, Vec<_>) = found.found.into_iter().unzip();
    let items: Vec<_> = positions.into_iter().zip(scope.explain(views).await?).collect();
    let stopped = found.stopped.map(|position| api.delivery_ids.cursor(position));
    let listed = query.list_walked(items, stopped, |(position, _)| api.delivery_ids.cursor(*position));
    Ok(listed.render(|(_, explained)| render(api, explained)))
}

pub(crate) async fn show(
    State(api): State<Api>,
    content: WithContent,
    caller: Caller,
    Ids((app, id)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let view = app.delivery(api.delivery_ids.read(&id)?).await?;
    let newest = ListRange::page(Page { after: None, limit: MAX_ATTEMPTS_SHOWN }, Order::Descending);
    let attempts = attempts_of(&app, &view, newest).await?;
    let explained = DeliveryQuestions::Application(app).explain(vec![view]).await?;
    let rendered = explained.first().map(|explained| {
        let rendered = attempts.list.items.iter();
        let rendered = rendered.map(|attempt| attempt::render(attempt, attempts.url(attempt), content));
        DeliveryOut { attempts: Some(rendered.collect()), ..render(&api, explained) }
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
    let app = api.ask(&caller).application(&app).await?;
    let view = app.delivery(api.delivery_ids.read(&id)?).await?;
    let (page, order) = query.ask(Order::Descending);
    let AttemptsPage { list, urls, .. } = attempts_of(&app, &view, ListRange::page(page, order)).await?;
    let listed = query.list_walked(list.items, list.stopped, |attempt| attempt.id);
    let url = urls.get(&view.status.endpoint).map_or("", String::as_str);
    Ok(listed.render(|attempt| attempt::render(attempt, url, content)))
}

async fn attempts_of(
    app: &ApplicationQuestions<'_>,
    view: &DeliveryView,
    part: ListRange<AttemptId>,
) -> Result<AttemptsPage, Error> {
    let fields = AttemptFields { responses: true, messages: false };
    let of = AttemptsOf::Delivery(&view.status);
    Ok(app.attempts(of, AttemptSelection::default(), part, fields).await?)
}
