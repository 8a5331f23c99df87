//! Lists and counts of attempts.

use crate::api::attempt;
use crate::api::request::history_query::{MAX_ROWS_WALKED, STATUSES};
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::{Query, WithContent};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error, message};
use crate::questions::{ApplicationQuestions, AttemptFields, AttemptSelection, AttemptsOf, AttemptsPage};
use crate::token::Caller;
use aldaba_api::{Attempt, AttemptCount, AttemptCountView};
use aldaba_delivery::AttemptId;
use aldaba_store::{BoundedCount, ListRange, Page};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

const CLASSES: [i64; 6] = [0, 100, 200, 300, 400, 500];
/// Attempts that are counted at most.
const MAX_COUNTED: usize = 10_000;

pub(crate) fn routes() -> Vec<Route> {
    let by_endpoint = "Only those at this endpoint, by its id or uid";
    vec![
        listing(Route::get("/app/{app_id}/attempt/endpoint/{endpoint_id}", Access::Read, of_endpoint))
            .named("v1.message-attempt.list-by-endpoint", "Lists the attempts at an endpoint, newest first"),
        listing(Route::get("/app/{app_id}/attempt/msg/{msg_id}", Access::Read, of_message))
            .named("v1.message-attempt.list-by-msg", "Lists the attempts for a message, newest first")
            .query("endpoint_id", Form::Text, by_endpoint),
        listing(Route::get("/app/{app_id}/msg/{msg_id}/attempt", Access::Read, of_message))
            .named("v1.message-attempt.list", "The same, for older clients")
            .query("endpoint_id", Form::Text, by_endpoint),
        listing(Route::get(
            "/app/{app_id}/msg/{msg_id}/endpoint/{endpoint_id}/attempt",
            Access::Read,
            of_both,
        ))
        .named(
            "v1.message-attempt.list-by-msg-and-endpoint",
            "Lists the attempts for a message at an endpoint, for older clients",
        ),
        filtered(Route::get("/app/{app_id}/attempt/endpoint/{endpoint_id}/count", Access::Read, count))
            .named("v1.message-attempt.count-by-endpoint", "Counts the attempts at an endpoint, up to 10,000")
            .answers::<AttemptCount>(StatusCode::OK),
    ]
}

fn filtered(route: Route) -> Route {
    route
        .query("status", Form::OneNumberOf(&STATUSES), "0 success or 2 fail; an attempt is nothing else")
        .query("status_code_class", Form::OneNumberOf(&CLASSES), "The class of the answer; 0 for none")
        .filtered_by_message()
        .time_limited()
}

fn listing(route: Route) -> Route {
    filtered(route)
        .with_content("Whether response bodies are shown; yes, if not given")
        .query("with_msg", Form::Boolean, "Whether messages are shown, without payloads; no, if not given")
        .expanded_statuses()
        .lists::<Attempt>()
}

/// Which attempts a query asks for. `None`: attempts with a status that no attempt has.
fn selection(query: &Query) -> Option<AttemptSelection> {
    let status = query.number("status");
    matches!(status, None | Some(0 | 2)).then(|| AttemptSelection {
        success: status.map(|status| status == 0),
        status_class: query.number("status_code_class").and_then(|class| u16::try_from(class).ok()),
        message: query.message_filter(),
    })
}

async fn of_endpoint(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let endpoint = app.endpoint(&endpoint).await?;
    list(&api, &app, AttemptsOf::Endpoint(&endpoint), query, content).await
}

async fn of_message(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, message)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let message = app.message(&message).await?;
    let endpoint = match query.query.text("endpoint_id") {
        Some(key) => Some(app.endpoint(key).await?.id),
        None => None,
    };
    list(&api, &app, AttemptsOf::Message(&message, endpoint), query, content).await
}

async fn of_both(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, message, endpoint)): Ids<(String, String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let message = app.message(&message).await?;
    let endpoint = app.endpoint(&endpoint).await?.id;
    list(&api, &app, AttemptsOf::Message(&message, Some(endpoint)), query, content).await
}

async fn list(
    api: &Api,
    app: &ApplicationQuestions<'_>,
    of: AttemptsOf<'_>,
    mut query: PageQuery<AttemptId>,
    content: WithContent,
) -> Result<Response, Error> {
    let part = query.part(query.query.within(), api.engine.clock().now());
    let fields = AttemptFields { responses: content.0, messages: query.query.boolean("with_msg", false) };
    let _turn = api.page_permits.next_if(content.0).await?;
    let found = match selection(&query.query) {
        None => AttemptsPage::default(),
        Some(selection) => app.attempts(of, selection, part, fields).await?,
    };
    let AttemptsPage { list, urls, messages } = found;
    let attempts = query.list_walked(list.items, list.stopped, |attempt| attempt.id);
    Ok(attempts.render(|attempt| {
        let url = urls.get(&attempt.endpoint).map_or("", String::as_str);
        let message = messages.get(&attempt.message);
        let message = message.map(|message| message::render(message, WithContent(false)));
        attempt::render_with(attempt, url, content, message)
    }))
}

async fn count(
    State(api): State<Api>,
    mut query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let endpoint = app.endpoint(&endpoint).await?;
    let part = query.part(query.query.within(), api.engine.clock().now());
    let part = ListRange {
        page: Page { after: None, limit: MAX_COUNTED },
        walk: MAX_COUNTED.max(MAX_ROWS_WALKED),
        ..part
    };
    let counted = match selection(&query.query) {
        None => BoundedCount::default(),
        Some(selection) => app.count_attempts(&endpoint, selection, part).await?,
    };
    let out = AttemptCountView { count: counted.counted, approximated: counted.more };
    Ok(json::answer(StatusCode::OK, &out))
}
