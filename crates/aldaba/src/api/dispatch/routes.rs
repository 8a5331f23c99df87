//! Sends to URLs that are no endpoints.

use crate::api::endpoint::body;
use crate::api::endpoint::headers;
use crate::api::endpoint::secret::SecretOut;
use crate::api::message::PAGE_BYTES;
use crate::api::message::body::{DEEPEST, too_deep};
use crate::api::request::body::{Pending, Received};
use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Fields, Moment, ReadField, Text};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::read::{ApiRequest, Parsed};
use aldaba_api::value::{Shows, WriteFields};
use aldaba_api::{
    Dispatch as Shown, DispatchRecord, DispatchRecordView, DispatchView, NewDispatch as Body, Secret,
    SigningSecretView,
};
use aldaba_delivery::{AppId, MessageId, OrgId, Timestamp, split_timeout};
use aldaba_engine::wire::{BasicCredentials, TargetUrl};
use aldaba_engine::{NewDispatch, NewEvent, Policies, SendReceipt};
use aldaba_store::{DeliveryState, Dispatch, DispatchKind, DispatchState, DispatchesQuery};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;

const PATH: &str = "/app/{app_id}/dispatch";
/// The event type of a dispatch without one.
const EVENT_TYPE: &str = "dispatch";
pub(crate) const STATES: &[&str] = &["pending", "success", "failed"];

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post(PATH, Access::Send, create)
            .keyed()
            .named("v1.dispatch.create", "Sends a payload to a URL that is not an endpoint")
            .takes::<Body>()
            .answers::<Shown>(StatusCode::ACCEPTED)
            .may_conflict(),
        Route::get(PATH, Access::Read, list)
            .named("v1.dispatch.list", "Lists the dispatched messages, newest first")
            .query("status", Form::OneOf(STATES), "Only those that have come so far")
            .time_limited()
            .lists::<Shown>(),
        Route::get("/app/{app_id}/dispatch/secret", Access::ReadSecrets, secret)
            .named(
                "v1.dispatch.get-secret",
                "Shows the key that signs dispatched messages without their own secret",
            )
            .answers::<SecretOut>(StatusCode::OK),
        Route::get("/app/{app_id}/dispatch/{msg_id}", Access::Read, show)
            .named("v1.dispatch.get", "Shows a dispatched message with its status")
            .answers::<Shown>(StatusCode::OK),
    ]
}

/// What became of something that was sent to a URL.
pub(crate) fn record<'a>(
    api: &Api,
    org: OrgId,
    dispatch: &'a Dispatch,
) -> impl Shows<DispatchRecord> + WriteFields + use<'a> {
    let Dispatch { delivery, message, url, policy } = dispatch;
    let payload = match message.expunged {
        true => r#"{"expired": true}"#,
        false => std::str::from_utf8(&message.content.payload).unwrap_or("null"),
    };
    let (status, completed_at, ended) = match delivery.status.state {
        DeliveryState::Waiting { .. } => ("pending", None, None),
        DeliveryState::Delivered { at } => ("success", Some(at), None),
        DeliveryState::Dead { at, reason } => ("failed", Some(at), Some(reason.text())),
        DeliveryState::Skipped { at, .. } => ("failed", Some(at), None),
    };
    let last = delivery.last.as_ref();
    let error = last.map(|last| split_timeout(&last.error).0).filter(|error| !error.is_empty());
    DispatchRecordView {
        url,
        payload: json::raw(payload),
        status,
        attempts: delivery.status.attempts,
        max_attempts: api.engine.policies().of(org, policy).limit.attempts,
        last_status_code: last.and_then(|last| last.status_code),
        // A delivery that ended without an attempt has no error of an attempt.
        last_error: error.or_else(|| ended.filter(|_| last.is_none())),
        last_attempt_at: last.map(|last| Moment(last.started_at)),
        created_at: Moment(message.created_at),
        completed_at: completed_at.map(Moment),
    }
}

/// The record of a message that was just accepted.
pub(crate) fn new_record<'a>(
    url: &'a str,
    payload: &'a str,
    max_attempts: Option<u32>,
    at: Timestamp,
) -> impl Shows<DispatchRecord> + WriteFields + use<'a> {
    DispatchRecordView {
        url,
        payload: json::raw(payload),
        status: "pending",
        attempts: 0_u32,
        max_attempts,
        last_status_code: None::<u16>,
        last_error: None::<&str>,
        last_attempt_at: None::<Moment>,
        created_at: Moment(at),
        completed_at: None::<Moment>,
    }
}

fn render<'a>(api: &Api, org: OrgId, dispatch: &'a Dispatch) -> impl Shows<Shown> + use<'a> {
    let message = &dispatch.message;
    DispatchView {
        id: Text(message.id),
        endpoint_id: Text(dispatch.delivery.status.endpoint),
        event_id: message.content.event_id.as_deref(),
        event_type: &*message.content.event_type,
        deliver_at: message.deliver_at.map(Moment),
        record: record(api, org, dispatch),
    }
}

fn read(
    api: &Api,
    org: OrgId,
    body: &Received,
    once: aldaba_engine::IdempotencyDigest,
) -> Result<(NewDispatch, String), Error> {
    let Parsed { value, mut fields } = body.text().parse::<Body>(false)?;
    check_payload(api, &mut fields, "payload", value.payload.text())?;
    let url = fields.is_fine("url").then_some(value.url);
    let target = body::target(api, &mut fields, "url", url);
    let policy = value.policy.unwrap_or_else(|| Policies::DEFAULT.to_owned());
    if fields.is_fine("policy") {
        body::check_policy(api, org, &mut fields, &policy);
    }
    if let Some(profile) = &value.profile {
        body::check_profile(api, org, &mut fields, profile);
    }
    let headers = headers::checked(&mut fields, "headers", value.headers.into_iter().collect());
    let key = fields.signing_key("secret", value.secret.as_ref().map(Secret::reveal));
    fields.finish_in_order(Body::KNOWN)?;
    let (url, credentials) = parts(target)?;
    let payload = value.payload.text().to_owned();
    let event = NewEvent {
        event_id: value.event_id.map(Into::into),
        deliver_at: json::given_moment(value.deliver_at.as_ref()),
        tags: value.tags.unwrap_or_default(),
        once,
        ..NewEvent::new(value.event_type.as_deref().unwrap_or(EVENT_TYPE), Bytes::from(payload.clone()))
    };
    Ok((
        NewDispatch { url, credentials, policy, profile: value.profile, key, headers, job: None, event },
        payload,
    ))
}

/// Checks the size and the depth of a payload.
pub(crate) fn check_payload(api: &Api, fields: &mut Fields, name: &str, payload: &str) -> Result<(), Error> {
    let most = api.limits.payload;
    if payload.len() > most {
        return Err(Error::payload_too_large(payload.len(), most));
    }
    if too_deep(payload.as_bytes()) {
        fields.problem(name, format!("is nested more than {DEEPEST} levels deep"));
    }
    Ok(())
}

/// The URL, and the credentials that were in it.
pub(crate) fn parts(target: Option<TargetUrl>) -> Result<(String, Option<(String, String)>), Error> {
    let target = target.ok_or_else(Error::server)?;
    let credentials = target.credentials.map(|BasicCredentials { user, password }| (user, password));
    Ok((target.url.into(), credentials))
}

async fn create(
    State(api): State<Api>,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    // An unknown application comes before a bad body.
    let application = api.ask(&caller).application(&key).await?;
    let (once, trace) = (pending.once(caller.org(), &[]), pending.trace());
    let body = pending.read().await?;
    let (mut dispatch, payload) = read(&api, caller.org(), &body, once)?;
    dispatch.event.trace = trace.event();
    let (sent, endpoint_id) = api.engine.dispatch(&application.by_id(), dispatch.clone()).await?;
    trace.sent(&sent);
    if let SendReceipt::Repeated { message } = sent
        && let Some(before) = application.find_dispatch(message).await?
    {
        return Ok(json::answer(StatusCode::ACCEPTED, &render(&api, caller.org(), &before)));
    }
    let (id, at) = sent_at(&sent);
    let most = api.engine.policies().of(caller.org(), &dispatch.policy).limit.attempts;
    let deliver_at = match sent {
        SendReceipt::New { deliver_at, .. } => deliver_at,
        SendReceipt::Repeated { .. } => dispatch.event.deliver_at,
    };
    let out = DispatchView {
        id: Text(id),
        endpoint_id: Text(endpoint_id),
        event_id: dispatch.event.event_id.as_deref(),
        event_type: &*dispatch.event.event_type,
        deliver_at: deliver_at.map(Moment),
        record: new_record(&dispatch.url, &payload, most, at),
    };
    Ok(json::sized_answer(StatusCode::ACCEPTED, &out, 512 + payload.len()))
}

/// The accepted message, and when it was accepted.
pub(crate) fn sent_at(sent: &SendReceipt) -> (MessageId, Timestamp) {
    match sent {
        SendReceipt::New { message, at, .. } => (*message, *at),
        // The message is no longer kept; its key is.
        SendReceipt::Repeated { message } => (*message, message.created_at()),
    }
}

async fn show(
    State(api): State<Api>,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let found = api.ask(&caller).application(&app).await?.dispatch(&key).await?;
    Ok(json::answer(StatusCode::OK, &render(&api, caller.org(), &found)))
}

async fn list(
    State(api): State<Api>,
    mut query: PageQuery<MessageId>,
    caller: Caller,
    Ids(app): Ids<String>,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let dispatches = selection(&api, application.id, &mut query, DispatchKind::ByAddress);
    let _turn = api.page_permits.next().await?;
    let found = application.dispatches(dispatches).await?;
    let listed = query.list_walked(found.items, found.stopped, |dispatch| dispatch.message.id);
    Ok(listed.render(|dispatch| render(&api, caller.org(), dispatch)))
}

/// Which dispatches a list has.
pub(crate) fn selection(
    api: &Api,
    app: AppId,
    query: &mut PageQuery<MessageId>,
    how: DispatchKind,
) -> DispatchesQuery {
    let state = query.query.text("status").map(|status| match status {
        "pending" => DispatchState::Pending,
        "success" => DispatchState::Delivered,
        _ => DispatchState::Failed,
    });
    let part = query.part(query.query.within(), api.engine.clock().now());
    DispatchesQuery { app, how, job: None, state, part, bytes: PAGE_BYTES }
}

async fn secret(State(api): State<Api>, caller: Caller, Ids(app): Ids<String>) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let key = api.engine.dispatch_key(application.id).secret_text().to_string();
    Ok(json::answer(StatusCode::OK, &SigningSecretView { key }))
}
