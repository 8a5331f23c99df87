//! Requests of other senders to the URL of a source. The signature is verified first, and nothing of a refused
//! request is stored.

use crate::api::limits::memory_budget::Holder;
use crate::api::limits::rates;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::response::code::Code;
use crate::api::{Api, Error};
use aldaba_api::value::Shows;
use aldaba_api::{TakenIn, TakenInView};
use aldaba_engine::{
    InboundError, InboundEvent, InspectedRequest, LoadedSource, ReceiveError, Reception, SendError,
};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, StatusCode};
use std::sync::Arc;

pub(crate) const PATH: &str = "/in/{token}";
/// The retry delay for senders if nothing else is known.
const RETRY_AFTER_SECONDS: u32 = 5;
/// A response may contain a sender's text of any type: no browser may render it as a page of this server.
const CONTENT_POLICY: &str = "sandbox; default-src 'none'";

pub(crate) fn route() -> MethodRouter<Api> {
    any(receive)
}

async fn receive(State(api): State<Api>, Ids(token): Ids<String>, request: Request) -> Response {
    let mut response = find_and_respond(&api, &token, request).await;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY));
    response
}

async fn find_and_respond(api: &Api, token: &str, request: Request) -> Response {
    let source = match api.engine.source_cache().find(token).await {
        Ok(Some(source)) => source,
        Ok(None) => return Error::not_found("There is no such source").into_response(),
        Err(error) => return refusal(error.into()),
    };
    match answer(api, &source, request).await {
        Ok(response) => response,
        Err(error) => {
            let (status, said) = error.summary();
            api.engine.source_counters().refuse(source.id, api.engine.clock().now(), status, said);
            refusal(error)
        }
    }
}

/// A refusal caused by the server says when to retry; and no token would help.
fn refusal(error: Error) -> Response {
    let error = if error.summary().0 >= 500 { error.or_retry_after(RETRY_AFTER_SECONDS) } else { error };
    let mut response = error.into_response();
    response.headers_mut().remove(WWW_AUTHENTICATE);
    response
}

async fn answer(api: &Api, source: &Arc<LoadedSource>, request: Request) -> Result<Response, Error> {
    let now = || api.engine.clock().now();
    let (method, query) = (request.method(), request.uri().query());
    if let Some(challenge) = source.challenge(method, query) {
        // A challenge does not identify its sender.
        rates::admit_stranger(api, source.id)?;
        if challenge.status >= 400 {
            let detail = "`hub.verify_token` is not the `verifyToken` of this source";
            return Err(Error::new(StatusCode::FORBIDDEN, Code::NotVerified, detail));
        }
        api.engine.source_counters().count(source.id, now(), |counts| counts.challenges += 1);
        return Ok(text(challenge.status, challenge.content_type, challenge.body));
    }
    if method != Method::POST {
        return Err(Error::method_not_allowed(method, source.methods()));
    }
    if !source.verifies() {
        rates::admit_sender(api, source.id)?;
    }
    let headers = request.headers().clone();
    let pending = Pending::at_source(request, api, Holder::at_source(source.org, source.app));
    let trace = pending.trace();
    let body = match pending.read().await {
        Ok(body) => body,
        // The sender is unknown.
        Err(error) if source.verifies() => {
            rates::admit_stranger(api, source.id)?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let opened = api.engine.inspect(source, &headers, &body.bytes).await;
    // Only now is the sender verified, and others must not use up its rate.
    match &opened {
        _ if !source.verifies() => {}
        Err(error) if !error.is_from_sender() => rates::admit_stranger(api, source.id)?,
        _ => rates::admit_sender(api, source.id)?,
    }
    let event = match opened? {
        InspectedRequest::Challenge(challenge) => {
            api.engine.source_counters().count(source.id, now(), |counts| counts.challenges += 1);
            return Ok(text(challenge.status, challenge.content_type, challenge.body));
        }
        InspectedRequest::Ignored => {
            api.engine.source_counters().count(source.id, now(), |counts| counts.ignored += 1);
            return Ok(received(source, &said(None, true)));
        }
        InspectedRequest::Event(event) => event,
    };
    let (bytes, room) = (body.keep_all(), body.into_memory());
    let event = InboundEvent { trace: trace.event(), ..event };
    let reception = api.engine.receive(source, event, bytes, room).await?;
    match reception {
        Reception::New(message) => trace.begins(message),
        Reception::Duplicate(message) | Reception::Reopened(message) => trace.concerns(message),
    }
    Ok(received(source, &said(Some(&reception), false)))
}

fn said(reception: Option<&Reception>, is_ignored: bool) -> impl Shows<TakenIn> + use<> {
    let duplicate = matches!(reception, Some(Reception::Duplicate(_)));
    let reopened = matches!(reception, Some(Reception::Reopened(_)));
    let shown = |is_so: bool| is_so.then_some(true);
    TakenInView {
        received: true,
        duplicate: shown(duplicate),
        reopened: shown(reopened),
        ignored: shown(is_ignored),
    }
}

/// The source's own response, if it has one. A repeat gets it too: otherwise the sender would repeat it for ever.
fn received(source: &LoadedSource, said: &impl Shows<TakenIn>) -> Response {
    match source.answer() {
        Some(own) => text(own.status, &own.content_type, own.body.clone()),
        None => json::answer(StatusCode::OK, said),
    }
}

fn text(status: u16, content_type: &str, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = (status, body).into_response();
    if let Ok(content_type) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    response
}

impl From<InboundError> for Error {
    fn from(error: InboundError) -> Self {
        let (status, code) = match &error {
            error if error.is_unauthorized() => (StatusCode::UNAUTHORIZED, Code::NotVerified),
            InboundError::HeadersTooLarge => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Code::HeadersTooLarge)
            }
            InboundError::Busy => (StatusCode::SERVICE_UNAVAILABLE, Code::Busy),
            _ => (StatusCode::BAD_REQUEST, Code::NoEvent),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<ReceiveError> for Error {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::OtherBody(message) => Self::conflict(format!(
                "A former event has this id and another body: it is the message {message}. Nothing was stored; each event must \
                 have an id of its own"
            )),
            ReceiveError::Send(SendError::Late) => {
                let detail = "The store takes long. The event may be stored yet; send it again, and it is told from a repeat";
                Self::later(StatusCode::SERVICE_UNAVAILABLE, Code::Late, detail, RETRY_AFTER_SECONDS)
            }
            ReceiveError::Send(error) => error.into(),
        }
    }
}
