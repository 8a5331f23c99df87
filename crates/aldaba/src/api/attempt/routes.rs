//! One attempt, and how attempts are shown.

use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment, Text};
use crate::api::request::query::WithContent;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::questions::Missing;
use crate::token::Caller;
use aldaba_api::value::{Shows, WriteFields};
use aldaba_api::{
    Attempt as Shown, AttemptHeaders, AttemptHeadersView, AttemptView, Message, StatusView, StatusWords,
};
use aldaba_delivery::split_timeout;
use aldaba_store::{Attempt, Trigger};
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) fn routes() -> Vec<Route> {
    const ONE: &str = "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}";
    const HEADERS: &str = "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}/headers";
    const CONTENT: &str = "/app/{app_id}/msg/{msg_id}/attempt/{attempt_id}/content";
    vec![
        Route::get(ONE, Access::Read, show)
            .named("v1.message-attempt.get", "Shows an attempt")
            .expanded_statuses()
            .answers::<Shown>(StatusCode::OK),
        Route::get(HEADERS, Access::ReadSecrets, headers)
            .named(
                "v1.message-attempt.get-headers",
                "Shows the headers of an attempt, recomputed from its endpoint's present configuration",
            )
            .answers::<AttemptHeaders>(StatusCode::OK),
        Route::delete(CONTENT, Access::Erase, expunge)
            .named("v1.message-attempt.expunge-content", "Deletes the response to an attempt for good")
            .answers_nothing(),
    ]
}

/// Statuses as the API names them. An attempt is a success or a failure; a message that waits for its next attempt is
/// being sent.
#[derive(Clone, Copy)]
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
    /// In an answer.
    pub(crate) fn shown(self) -> impl Shows<StatusWords> + WriteFields {
        StatusView { status: self.status, status_text: self.status_text }
    }

    pub(crate) const SUCCESS: Self = Self { status: 0, status_text: "success" };
    pub(crate) const PENDING: Self = Self { status: 1, status_text: "pending" };
    pub(crate) const FAIL: Self = Self { status: 2, status_text: "fail" };
    pub(crate) const SENDING: Self = Self { status: 3, status_text: "sending" };
    pub(crate) const CANCELED: Self = Self { status: 4, status_text: "canceled" };
}

pub(crate) fn render<'a>(
    attempt: &'a Attempt,
    url: &'a str,
    content: WithContent,
) -> impl Shows<Shown> + use<'a> {
    render_with(attempt, url, content, None::<Message>)
}

pub(crate) fn render_with<'a, M: Shows<Message>>(
    attempt: &'a Attempt,
    url: &'a str,
    content: WithContent,
    msg: Option<M>,
) -> impl Shows<Shown> + use<'a, M> {
    let (error, error_detail) = split_timeout(&attempt.error);
    let trigger_type = match attempt.trigger {
        Trigger::Scheduled => 0_u8,
        Trigger::Manual | Trigger::Replay => 1,
    };
    AttemptView {
        status: if attempt.success { Status::SUCCESS } else { Status::FAIL }.shown(),
        id: Text(attempt.id),
        msg_id: Text(attempt.message),
        endpoint_id: Text(attempt.endpoint),
        url,
        response: if content.0 { response(attempt) } else { "{}".into() },
        response_status_code: attempt.status_code.unwrap_or(0),
        response_duration_ms: millis(attempt.duration),
        error: (!attempt.error.is_empty()).then_some(error),
        error_detail,
        trigger_type,
        timestamp: Moment(attempt.started_at),
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

async fn headers(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, message, attempt)): Ids<(String, String, String)>,
) -> Result<Response, Error> {
    let app = api.ask(&caller).application(&app).await?;
    let (message, attempt) = app.attempt(&message, &attempt).await?;
    let endpoint = app.endpoint_of(&attempt).await?.ok_or(Missing::AttemptEndpoint)?;
    let sent = api.engine.sent_headers(&endpoint, &message, &attempt).await?;
    let out = AttemptHeadersView {
        sent_headers: sent.shown.into_iter().collect::<BTreeMap<_, _>>(),
        response_headers: None::<Value>,
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
