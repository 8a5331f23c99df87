//! One attempt, and how attempts are shown.

use crate::api::message::MessageOut;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::WithContent;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_delivery::{AttemptId, EndpointId, MessageId, Timestamp, split_timeout};
use aldaba_store::{Attempt, Trigger};
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    const ONE: &str = "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}";
    const HEADERS: &str = "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}/headers";
    const CONTENT: &str = "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}/content";
    vec![
        Route::get(ONE, Access::Read, show)
            .named("v1.message-attempt.get", "Shows an attempt")
            .expanded_statuses()
            .answers::<AttemptOut<'_>>(StatusCode::OK),
        Route::get(HEADERS, Access::ReadSecrets, headers)
            .named(
                "v1.message-attempt.get-headers",
                "Shows the headers of an attempt, recomputed from its endpoint's present configuration",
            )
            .answers::<AttemptHeadersOut>(StatusCode::OK),
        Route::delete(CONTENT, Access::Erase, expunge)
            .named("v1.message-attempt.expunge-content", "Deletes the response to an attempt for good")
            .answers_nothing(),
    ]
}

/// Statuses as the API names them. An attempt is a success or a failure; a message that waits for its next attempt is
/// being sent.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) status: u8,
    pub(crate) status_text: &'static str,
}

impl Route {
    /// For lists of attempts, whose clients send it unasked.
    pub(crate) fn expanded_statuses(self) -> Self {
        let about = "Has no effect: an attempt is a success or a failure, and never canceled";
        self.query("expanded_statuses", Form::Boolean, about)
    }
}

impl Status {
    pub(crate) const SUCCESS: Self = Self { status: 0, status_text: "success" };
    pub(crate) const PENDING: Self = Self { status: 1, status_text: "pending" };
    pub(crate) const FAIL: Self = Self { status: 2, status_text: "fail" };
    pub(crate) const SENDING: Self = Self { status: 3, status_text: "sending" };
    pub(crate) const CANCELED: Self = Self { status: 4, status_text: "canceled" };
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptOut<'a> {
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
    /// Why it failed, in words; null for a success. Every timeout reads `Request timeout`.
    error: Option<&'a str>,
    /// Which part of the request took too long, where the error is a timeout.
    error_detail: Option<&'a str>,
    /// 0: it was its turn; 1: made by hand, or the first that a replay has made.
    trigger_type: u8,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    timestamp: Timestamp,
    /// Where it was asked for, without its payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<MessageOut<'a>>,
}

pub(crate) fn render<'a>(attempt: &'a Attempt, url: &'a str, content: WithContent) -> AttemptOut<'a> {
    render_with(attempt, url, content, None)
}

pub(crate) fn render_with<'a>(
    attempt: &'a Attempt,
    url: &'a str,
    content: WithContent,
    msg: Option<MessageOut<'a>>,
) -> AttemptOut<'a> {
    let (error, error_detail) = split_timeout(&attempt.error);
    AttemptOut {
        id: attempt.id,
        msg_id: attempt.message,
        endpoint_id: attempt.endpoint,
        url,
        response: if content.0 { response(attempt) } else { "{}".into() },
        response_status_code: attempt.status_code.unwrap_or(0),
        response_duration_ms: millis(attempt.duration),
        status: if attempt.success { Status::SUCCESS } else { Status::FAIL },
        error: (!attempt.error.is_empty()).then_some(error),
        error_detail,
        trigger_type: match attempt.trigger {
            Trigger::Scheduled => 0,
            Trigger::Manual | Trigger::Replay => 1,
        },
        timestamp: attempt.started_at,
        msg,
    }
}

/// The response as text: binary as base64, and without a response the reason.
fn response(attempt: &Attempt) -> Cow<'_, str> {
    if attempt.status_code.is_none() && attempt.response.is_empty() {
        return attempt.error.as_str().into();
    }
    match std::str::from_utf8(&attempt.response) {
        Ok(text) => text.into(),
        // The kept part may end inside a character; that does not make it binary.
        Err(error) if error.error_len().is_none() => String::from_utf8_lossy(&attempt.response),
        Err(_) => BASE64_STANDARD.encode(&attempt.response).into(),
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, message, attempt)): Ids<(String, String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let (_, attempt) = app.attempt(&message, &attempt).await?;
    let endpoint = app.endpoint_of(&attempt).await?;
    let url = endpoint.as_ref().map_or("", |endpoint| endpoint.config.url.as_str());
    Ok(json::answer(StatusCode::OK, &render(&attempt, url, WithContent(true))))
}

/// Headers are not kept with an attempt.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AttemptHeadersOut {
    /// As they follow from the attempt, its message and how its endpoint is set up now. Where that was changed since,
    /// or its secret rotated, they may differ from what was sent; the signature of a deleted payload is not known.
    sent_headers: BTreeMap<String, String>,
    /// Always null: they are not kept.
    response_headers: Option<Vec<Vec<String>>>,
    /// The names of headers whose values are not shown.
    sensitive: Vec<String>,
}

async fn headers(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, message, attempt)): Ids<(String, String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let (message, attempt) = app.attempt(&message, &attempt).await?;
    let endpoint = app.endpoint_of(&attempt).await?.ok_or(Missing::AttemptEndpoint)?;
    let sent = api.engine.sent_headers(&endpoint, &message, &attempt).await?;
    let out = AttemptHeadersOut {
        sent_headers: sent.shown.into_iter().collect(),
        response_headers: None,
        sensitive: sent.sensitive,
    };
    Ok(json::answer(StatusCode::OK, &out))
}

async fn expunge(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, message, attempt)): Ids<(String, String, String)>,
) -> Result<StatusCode, Error> {
    let (message, attempt) = api.ask(&caller).application(&app).await?.attempt(&message, &attempt).await?;
    api.engine.expunge_attempt(caller.actor(), message.app, (message.id, attempt.id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
