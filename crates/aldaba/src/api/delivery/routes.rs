//! Deliveries: what waits, what has ended and how, and the dead letter.

use super::query::{STATES, filter, phase};
use crate::api::attempt;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, Moment, Text};
use crate::api::request::query::WithContent;
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::{
    ApplicationQuestions, AttemptFields, AttemptSelection, AttemptsOf, AttemptsPage, Cursor,
    DeliveryQuestions, DeliverySelection, ExplainedDelivery,
};
use crate::token::Caller;
use aldaba_api::value::{Shows, WriteFields};
use aldaba_api::{Attempt, Delivery, DeliveryView as Shown, Retries, RetriesView};
use aldaba_delivery::{AttemptId, Reason, Timestamp, split_timeout};
use aldaba_store::{DeliveryPosition, DeliveryState, DeliveryView, ListRange, Order, Page, Phase};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        filtered(Route::get("/app/{app_id}/delivery", Access::Read, list))
            .named(
                "v1.delivery.list",
                "Lists deliveries: pending ones by their next attempt, others newest first",
            )
            .query("state", Form::OneOf(STATES), "Only those in this state")
            .lists::<Delivery>(),
        Route::get("/app/{app_id}/delivery/{delivery_id}", Access::Read, show)
            .named("v1.delivery.get", "Shows a delivery with its newest attempts")
            .with_content("Whether response bodies are shown; yes, if not given")
            .answers::<Delivery>(StatusCode::OK),
        Route::get("/app/{app_id}/delivery/{delivery_id}/attempt", Access::Read, attempts)
            .named("v1.delivery.list-attempts", "Lists the attempts of a delivery, newest first")
            .with_content("Whether response bodies are shown; yes, if not given")
            .lists::<Attempt>(),
        filtered(Route::get("/dead-letter", Access::ReadOrganization, dead_letter))
            .named("v1.delivery.dead-letter", "Lists the dead letter of all applications, or of one")
            .query("app", Form::Text, "Only those of this application")
            .lists::<Delivery>()
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

/// What is shown of a delivery's retries where something else is listed.
pub(crate) fn retries(
    view: Option<&DeliveryView>,
    next_attempt: Option<Timestamp>,
) -> impl Shows<Retries> + WriteFields + use<> {
    let (status, last) = (view.map(|view| &view.status), view.and_then(|view| view.last.as_ref()));
    let is_retried = status.is_some_and(|status| status.attempts > 0);
    RetriesView {
        retry_count: status.map(|status| status.retries),
        next_retry_at: next_attempt.filter(|_| is_retried).map(Moment),
        status_code: last.and_then(|last| last.status_code),
        response_duration_ms: last.map(|last| attempt::millis(last.duration)),
        reason_text: status.and_then(|status| status.state.reason()).map(|reason| reason.text()),
    }
}

fn render(
    api: &Api,
    explained: &ExplainedDelivery,
    attempts: Option<Vec<impl Shows<Attempt>>>,
) -> impl Shows<Delivery> {
    let ExplainedDelivery { view, why, stop_date } = explained;
    let (status, last) = (&view.status, view.last.as_ref());
    let (error, error_detail) = match last.map(|last| split_timeout(&last.error)) {
        Some((error, detail)) => (Some(error), detail),
        None => (None, None),
    };
    Shown {
        id: Text(api.delivery_ids.id(status.seq)),
        app_id: Text(view.app),
        endpoint_id: Text(status.endpoint),
        msg_id: Text(status.message),
        event_type: view.event_type.as_deref(),
        state: match status.state {
            DeliveryState::Waiting { .. } => "pending",
            DeliveryState::Delivered { .. } => "delivered",
            DeliveryState::Dead { .. } => "dead",
            DeliveryState::Skipped { .. } => "skipped",
        },
        reason: why.reason(),
        reason_text: status.state.reason().map(|reason| reason.text()),
        explanation: why.explanation(),
        attempt_count: status.attempts,
        retry_count: status.retries,
        next_attempt: why.next_attempt.map(Moment),
        next_retry_at: why.next_attempt.filter(|_| status.attempts > 0).map(Moment),
        stop_date: stop_date.map(Moment),
        last_attempt_at: last.map(|last| Moment(last.started_at)),
        status_code: last.and_then(|last| last.status_code),
        response_duration_ms: last.map(|last| attempt::millis(last.duration)),
        error: error.filter(|error| !error.is_empty()),
        error_detail,
        created_at: Moment(view.created_at),
        settled_at: status.state.settled_at().map(Moment),
        discarded: status.state.reason().is_some() && !view.in_dead_letter,
        attempts,
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
    Ok(listed.render(|(_, explained)| render(api, explained, None::<Vec<Attempt>>)))
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
        render(&api, explained, Some(rendered.collect()))
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
