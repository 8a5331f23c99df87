use super::auth::Access;
use super::ids::Ids;
use super::json;
use super::page::{Listed, PageQuery};
use super::query::WithContent;
use super::routes::Route;
use super::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{AttemptId, EndpointId, MessageId, Timestamp};
use aldaba_store::{Attempt, AttemptScope, AttemptsQuery, Order, Page, Trigger};
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

pub(super) fn routes() -> Vec<Route> {
    let content = "Whether response bodies are shown; yes, if not given";
    vec![
        Route::get("/app/{app_id}/attempt/endpoint/{endpoint_id}", Access::Read, of_endpoint)
            .named("v1.message-attempt.list-by-endpoint", "Lists the attempts at an endpoint, newest first")
            .with_content(content)
            .lists::<AttemptOut<'_>>(),
        Route::get("/app/{app_id}/attempt/msg/{msg_id}", Access::Read, of_message)
            .named("v1.message-attempt.list-by-msg", "Lists the attempts for a message, newest first")
            .with_content(content)
            .lists::<AttemptOut<'_>>(),
    ]
}

/// Part of the API, not served yet.
const FILTERS: [&str; 8] =
    ["status", "status_code_class", "channel", "event_types", "tag", "before", "after", "endpoint_id"];

/// Statuses as they travel: 0 success, 1 pending, 2 fail. (3, sending, is not used.)
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) status: u8,
    pub(super) status_text: &'static str,
}

impl Status {
    pub(super) const SUCCESS: Self = Self { status: 0, status_text: "success" };
    pub(super) const PENDING: Self = Self { status: 1, status_text: "pending" };
    pub(super) const FAIL: Self = Self { status: 2, status_text: "fail" };
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttemptOut<'a> {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: AttemptId,
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    msg_id: MessageId,
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    endpoint_id: EndpointId,
    url: &'a str,
    response: Cow<'a, str>,
    response_status_code: u16,
    response_duration_ms: u64,
    #[serde(flatten)]
    status: Status,
    /// Why it failed, in words; null for a success.
    error: Option<&'a str>,
    trigger_type: u8,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    timestamp: Timestamp,
}

pub(super) fn render<'a>(attempt: &'a Attempt, url: &'a str, content: WithContent) -> AttemptOut<'a> {
    AttemptOut {
        id: attempt.id,
        msg_id: attempt.message,
        endpoint_id: attempt.endpoint,
        url,
        response: if content.0 { response(attempt) } else { "{}".into() },
        response_status_code: attempt.status_code.unwrap_or(0),
        response_duration_ms: millis(attempt.duration),
        status: if attempt.success { Status::SUCCESS } else { Status::FAIL },
        error: (!attempt.error.is_empty()).then_some(&attempt.error),
        trigger_type: match attempt.trigger {
            Trigger::Scheduled => 0,
            Trigger::Manual => 1,
        },
        timestamp: attempt.started_at,
    }
}

/// What came back as text: bytes that are none as base64, and where nothing came, why.
fn response(attempt: &Attempt) -> Cow<'_, str> {
    if attempt.status_code.is_none() {
        return attempt.error.as_str().into();
    }
    match std::str::from_utf8(&attempt.response) {
        Ok(text) => text.into(),
        // The kept part may end inside a character; that does not make it binary.
        Err(error) if error.error_len().is_none() => String::from_utf8_lossy(&attempt.response),
        Err(_) => BASE64_STANDARD.encode(&attempt.response).into(),
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The newest attempts, newest first.
pub(super) async fn newest(api: &Api, scope: AttemptScope, limit: usize) -> Result<Vec<Attempt>, Error> {
    let page = Page { after: None, limit };
    Ok(api.engine.store().attempts(AttemptsQuery { scope, page, order: Order::Descending }).await?)
}

pub(super) async fn read(
    api: &Api,
    scope: AttemptScope,
    query: &PageQuery<AttemptId>,
) -> Result<Listed<Attempt>, Error> {
    let (page, order) = query.ask(Order::Descending);
    let found = api.engine.store().attempts(AttemptsQuery { scope, page, order }).await?;
    Ok(query.list(found, false, |attempt| attempt.id))
}

pub(super) async fn of_endpoint(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, endpoint)): Ids<(String, String)>,
) -> Result<Response, Error> {
    query.query.not_yet(&FILTERS)?;
    let application = api.application(&caller, app).await?;
    let endpoint = api.endpoint(application.id, endpoint).await?;
    let attempts = read(&api, AttemptScope::Endpoint(endpoint.id), &query).await?;
    Ok(attempts.render(|attempt| render(attempt, &endpoint.config.url, content)))
}

pub(super) async fn of_message(
    State(api): State<Api>,
    content: WithContent,
    query: PageQuery<AttemptId>,
    caller: Caller,
    Ids((app, message)): Ids<(String, String)>,
) -> Result<Response, Error> {
    query.query.not_yet(&FILTERS)?;
    let application = api.application(&caller, app).await?;
    let message = api.message(application.id, message).await?;
    let attempts = read(&api, AttemptScope::Message(message.id), &query).await?;
    // Those of deleted endpoints too: what happened stays visible.
    let ids = attempts.items.iter().map(|attempt| attempt.endpoint);
    let mut ids: Vec<_> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let endpoints = api.engine.store().lane_endpoints(ids).await?;
    let urls: BTreeMap<_, _> =
        endpoints.iter().map(|endpoint| (endpoint.id, endpoint.config.url.as_str())).collect();
    let url = |id| urls.get(&id).copied().unwrap_or_default();
    Ok(attempts.render(|attempt| render(attempt, url(attempt.endpoint), content)))
}
