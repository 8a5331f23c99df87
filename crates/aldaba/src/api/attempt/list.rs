//! Lists of attempts, and how many there are.

use super::AttemptOut;
use crate::api::attempt;
use crate::api::request::history_query::{STATUSES, WALK};
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::{Query, WithContent};
use crate::api::response::page::{Listed, PageQuery};
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error, message};
use crate::token::Caller;
use aldaba_delivery::{AppId, AttemptId, EndpointId, MessageId};
use aldaba_store::{Attempt, AttemptFilter, AttemptScope, AttemptsQuery, ListPage, ListRange, Page};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

const CLASSES: [i64; 6] = [0, 100, 200, 300, 400, 500];
/// How many attempts are counted at most.
const MOST_COUNTED: usize = 10_000;

pub(crate) fn routes() -> Vec<Route> {
    let by_endpoint = "Only those at this endpoint, by its id or uid";
    vec![
        listing(Route::get("/app/{app_id}/attempt/endpoint/{endpoint_id}", Access::Read, of_endpoint))
            .named("v1.message-attempt.list-by-endpoint", "Lists the attempts at an endpoint, newest first"),
        listing(Route::get("/app/{app_id}/attempt/msg/{msg_id}", Access::Read, of_message))
            .named("v1.message-attempt.list-by-msg", "Lists the attempts for a message, newest first")
            .query("endpoint_id", Form::Text, by_endpoint),
        listing(Route::get("/app/{app_id}/msg/{msg_id}/attempt", Access::Read, of_message))
            .named("v1.message-attempt.list", "The same, as older clients ask for it")
            .query("endpoint_id", Form::Text, by_endpoint),
        listing(Route::get(
            "/app/{app_id}/msg/{msg_id}/endpoint/{endpoint_id}/attempt",
            Access::Read,
            of_both,
        ))
        .named(
            "v1.message-attempt.list-by-msg-and-endpoint",
            "Lists the attempts for a message at an endpoint, as older clients ask for it",
        ),
        filtered(Route::get("/app/{app_id}/attempt/endpoint/{endpoint_id}/count", Access::Read, count))
            .named("v1.message-attempt.count-by-endpoint", "Counts the attempts at an endpoint, up to 10,000")
            .answers::<AttemptCountOut>(StatusCode::OK),
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
        .lists::<AttemptOut<'_>>()
}

/// What is asked of attempts. `None`: for a status that an attempt never has.
fn filter(query: &Query, app: AppId) -> Result<Option<AttemptFilter>, Error> {
    let status = query.one_of("status", &STATUSES)?;
    let class = query.one_of("status_code_class", &CLASSES)?;
    let message = query.message_filter()?;
    let filter = AttemptFilter {
        success: status.map(|status| status == 0),
        status_class: class.and_then(|class| u16::try_from(class).ok()),
        endpoint: None,
        message: (!message.wants_all()).then_some((app, message)),
    };
    Ok(matches!(status, None | Some(0 | 2)).then_some(filter))
}

/// Checks what is asked before anything is looked for.
fn check(query: &PageQuery<AttemptId>) -> Result<bool, Error> {
    filter(&query.query, AppId::from_bytes([0; 20]))?;
    query.query.within()?;
    query.query.boolean("with_msg", false)
}

async fn of_endpoint(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    check(&query)?;
    let app = api.application(&caller, app).await?.id;
    let endpoint = api.endpoint(app, endpoint).await?;
    list(&api, app, AttemptScope::Endpoint(endpoint.id), None, query, content).await
}

async fn of_message(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, message)): Ids<(String, String)>,
) -> Result<Response, Error> {
    check(&query)?;
    let app = api.application(&caller, app).await?.id;
    let message = api.message(app, message).await?;
    let endpoint = match query.query.get("endpoint_id") {
        Some(key) => Some(api.endpoint(app, key.into_owned()).await?.id),
        None => None,
    };
    list(&api, app, AttemptScope::Message(message.id), endpoint, query, content).await
}

async fn of_both(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, message, endpoint)): Ids<(String, String, String)>,
) -> Result<Response, Error> {
    check(&query)?;
    let app = api.application(&caller, app).await?.id;
    let message = api.message(app, message).await?;
    let endpoint = api.endpoint(app, endpoint).await?;
    list(&api, app, AttemptScope::Message(message.id), Some(endpoint.id), query, content).await
}

async fn list(
    api: &Api,
    app: AppId,
    scope: AttemptScope,
    endpoint: Option<EndpointId>,
    mut query: PageQuery<AttemptId>,
    content: WithContent,
) -> Result<Response, Error> {
    let with_message = query.query.boolean("with_msg", false)?;
    let part = query.part(query.query.within()?, api.engine.clock().now());
    let _turn = api.turns.next_if(content.0).await?;
    let found = match filter(&query.query, app)? {
        None => ListPage::default(),
        Some(filter) => {
            let filter = AttemptFilter { endpoint, ..filter };
            api.engine.store().attempts(AttemptsQuery { scope, filter, part, responses: content.0 }).await?
        }
    };
    let attempts = query.list_walked(found.items, found.stopped, |attempt| attempt.id);
    let urls = urls(api, &attempts).await?;
    let messages = if with_message { messages(api, app, &attempts).await? } else { BTreeMap::new() };
    Ok(attempts.render(|made| {
        let url = urls.get(&made.endpoint).map_or("", String::as_str);
        let message = messages.get(&made.message);
        let message = message.map(|message| message::render(message, WithContent(false)));
        attempt::render_with(made, url, content, message)
    }))
}

/// Those of deleted endpoints too: what happened stays visible.
async fn urls(api: &Api, attempts: &Listed<Attempt>) -> Result<BTreeMap<EndpointId, String>, Error> {
    let mut ids: Vec<_> = attempts.items.iter().map(|attempt| attempt.endpoint).collect();
    ids.sort_unstable();
    ids.dedup();
    let endpoints = api.engine.store().lane_endpoints(ids).await?;
    Ok(endpoints.into_iter().map(|endpoint| (endpoint.id, endpoint.config.url)).collect())
}

async fn messages(
    api: &Api,
    app: AppId,
    attempts: &Listed<Attempt>,
) -> Result<BTreeMap<MessageId, aldaba_store::Message>, Error> {
    let mut ids: Vec<_> = attempts.items.iter().map(|attempt| attempt.message).collect();
    ids.sort_unstable();
    ids.dedup();
    let messages = api.engine.store().bare_messages(app, ids).await?;
    Ok(messages.into_iter().map(|message| (message.id, message)).collect())
}

#[derive(Serialize, ToSchema)]
struct AttemptCountOut {
    count: u64,
    /// Counting was given up; there are at least so many.
    approximated: bool,
}

async fn count(
    State(api): State<Api>,
    mut query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    check(&query)?;
    let app = api.application(&caller, app).await?.id;
    let endpoint = api.endpoint(app, endpoint).await?;
    // All of them, whatever page somebody asks for.
    query.beside = None;
    let part = query.part(query.query.within()?, api.engine.clock().now());
    let part =
        ListRange { page: Page { after: None, limit: MOST_COUNTED }, walk: MOST_COUNTED.max(WALK), ..part };
    let counted = match filter(&query.query, app)? {
        None => aldaba_store::BoundedCount::default(),
        Some(filter) => {
            let scope = AttemptScope::Endpoint(endpoint.id);
            let ask = AttemptsQuery { scope, filter, part, responses: false };
            api.engine.store().count_attempts(ask).await?
        }
    };
    let out = AttemptCountOut { count: counted.counted, approximated: counted.more };
    Ok(json::answer(StatusCode::OK, &out))
}
