//! Sends to URLs that are no endpoints.

use crate::api::endpoint::body;
use crate::api::endpoint::headers;
use crate::api::endpoint::secret::SecretOut;
use crate::api::message::PAGE_BYTES;
use crate::api::message::body::{DEEPEST, MAX_TAGS, too_deep};
use crate::api::request::body::{Pending, Received};
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, Fields, ReadField};
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, Timestamp, split_timeout};
use aldaba_engine::wire::{BasicCredentials, TargetUrl};
use aldaba_engine::{NewDispatch, NewEvent, SendReceipt};
use aldaba_store::{DeliveryState, Dispatch, DispatchKind, DispatchState, DispatchesQuery};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use utoipa::ToSchema;

const PATH: &str = "/app/{app_id}/dispatch";
/// The event type of a dispatch without one.
const EVENT_TYPE: &str = "dispatch";
const FIELDS: &[&str] = &[
    "url",
    "payload",
    "eventType",
    "policy",
    "profile",
    "headers",
    "secret",
    "eventId",
    "deliverAt",
    "tags",
];
pub(crate) const STATES: &[&str] = &["pending", "success", "failed"];

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post(PATH, Access::Send, create)
            .keyed()
            .named("v1.dispatch.create", "Sends a payload to a URL that is not an endpoint")
            .takes::<DispatchIn>()
            .answers::<DispatchOut<'_>>(StatusCode::ACCEPTED)
            .may_conflict(),
        Route::get(PATH, Access::Read, list)
            .named("v1.dispatch.list", "Lists the dispatched messages, newest first")
            .query("status", Form::OneOf(STATES), "Only those that have come so far")
            .time_limited()
            .lists::<DispatchOut<'_>>(),
        Route::get("/app/{app_id}/dispatch/secret", Access::ReadSecrets, secret)
            .named(
                "v1.dispatch.get-secret",
                "Shows the key that signs dispatched messages without their own secret",
            )
            .answers::<SecretOut>(StatusCode::OK),
        Route::get("/app/{app_id}/dispatch/{msg_id}", Access::Read, show)
            .named("v1.dispatch.get", "Shows a dispatched message with its status")
            .answers::<DispatchOut<'_>>(StatusCode::OK),
    ]
}

/// Something to send, and where to.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct DispatchIn {
    /// Absolute, http or https; user and password in it become basic authentication.
    #[schema(format = "uri", max_length = 8192)]
    url: String,
    /// What is sent, byte by byte as it stands here. Any JSON.
    #[schema(value_type = Value)]
    payload: (),
    /// `dispatch`, if not given.
    #[schema(min_length = 1, max_length = 256, pattern = "^[a-zA-Z0-9\\-_.]+$")]
    event_type: Option<String>,
    /// Of retries; `standard`, if not given.
    policy: Option<String>,
    /// Wire profile; the server's default, if not given.
    profile: Option<String>,
    /// Sent with this request and no other.
    headers: Option<BTreeMap<String, String>>,
    /// `whsec_…` or `whsk_…`; the application's key for what it dispatches, if not given.
    secret: Option<String>,
    /// Your own name for it, unique among the application's messages.
    #[schema(min_length = 1, max_length = 256, pattern = "^(?!msg_)[a-zA-Z0-9\\-_.]+$")]
    event_id: Option<String>,
    /// Nothing goes out before this moment.
    #[schema(value_type = Option<String>, format = DateTime)]
    deliver_at: Option<String>,
    #[schema(min_items = 1, max_items = 10)]
    tags: Option<Vec<String>>,
}

example!(DispatchIn, {"url": "https://example.com/hooks", "eventType": "report.ready", "payload": {"report": 7}, "policy": "quick"});

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DispatchOut<'a> {
    /// The message's.
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: MessageId,
    /// Of the URL, policy and profile: where its attempts, deliveries and replays are found.
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    endpoint_id: EndpointId,
    event_id: Option<&'a str>,
    event_type: &'a str,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    deliver_at: Option<Timestamp>,
    #[serde(flatten)]
    record: Record<'a>,
}

/// What became of something that was sent to a URL.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record<'a> {
    pub(crate) url: &'a str,
    #[schema(value_type = Value)]
    pub(crate) payload: &'a RawValue,
    /// `pending` until it was delivered (`success`) or the last attempt has failed (`failed`).
    #[schema(pattern = "^(pending|success|failed)$")]
    pub(crate) status: &'static str,
    /// That the policy counts: those made by hand are not among them.
    pub(crate) attempts: u32,
    /// Null where the policy counts time and not attempts.
    pub(crate) max_attempts: Option<u32>,
    pub(crate) last_status_code: Option<u16>,
    pub(crate) last_error: Option<&'a str>,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) last_attempt_at: Option<Timestamp>,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// When it was delivered or given up; null while an attempt is to come.
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) completed_at: Option<Timestamp>,
}

impl<'a> Record<'a> {
    pub(crate) fn of(api: &Api, org: OrgId, dispatch: &'a Dispatch) -> Self {
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
        Self {
            url,
            payload: json::raw(payload),
            status,
            attempts: delivery.status.attempts,
            max_attempts: api.engine.policies().of(org, policy).limit.attempts,
            last_status_code: last.and_then(|last| last.status_code),
            // A delivery that ended without an attempt has no error of an attempt.
            last_error: error.or_else(|| ended.filter(|_| last.is_none())),
            last_attempt_at: last.map(|last| last.started_at),
            created_at: message.created_at,
            completed_at,
        }
    }

    /// A message that was just accepted.
    pub(crate) fn new(url: &'a str, payload: &'a str, max_attempts: Option<u32>, at: Timestamp) -> Self {
        Self {
            url,
            payload: json::raw(payload),
            status: "pending",
            attempts: 0,
            max_attempts,
            last_status_code: None,
            last_error: None,
            last_attempt_at: None,
            created_at: at,
            completed_at: None,
        }
    }
}

fn render<'a>(api: &Api, org: OrgId, dispatch: &'a Dispatch) -> DispatchOut<'a> {
    let message = &dispatch.message;
    DispatchOut {
        id: message.id,
        endpoint_id: dispatch.delivery.status.endpoint,
        event_id: message.content.event_id.as_deref(),
        event_type: &message.content.event_type,
        deliver_at: message.deliver_at,
        record: Record::of(api, org, dispatch),
    }
}

/// The field whose exact text is sent.
#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(default, borrow)]
    payload: Option<&'a RawValue>,
}

fn read(
    api: &Api,
    org: OrgId,
    body: &Received,
    once: aldaba_engine::IdempotencyDigest,
) -> Result<(NewDispatch, String), Error> {
    let mut fields = body.text().fields()?;
    fields.refuse_others(FIELDS);
    let payload = match serde_json::from_slice::<Payload<'_>>(&body.bytes) {
        Ok(Payload { payload }) => payload.map_or("null", RawValue::get),
        Err(error) => return Err(Problem::decode(&["body", "payload"], error.to_string()).into()),
    };
    if !fields.has("payload") {
        fields.problem("payload", "this field is required");
    }
    check_payload(api, &mut fields, "payload", payload)?;
    let url = fields.required_string("url");
    let target = body::target(api, &mut fields, "url", url);
    let event_type = fields.string("eventType").unwrap_or_else(|| EVENT_TYPE.to_owned());
    let event_type = fields.checked("eventType", Some(event_type), |name| ids::name(name));
    let policy = body::policy(api, org, &mut fields);
    let profile = body::profile(api, org, &mut fields);
    let headers = headers::read(&mut fields, "headers");
    let secret = fields.string("secret");
    let key = fields.signing_key("secret", secret.as_deref());
    let event_id = fields.string("eventId");
    let event_id = fields.checked("eventId", event_id, |id| ids::uid(id, "msg_"));
    let deliver_at = fields.moment("deliverAt");
    let tags = fields.set("tags", MAX_TAGS, ids::tag);
    fields.finish()?;
    let (url, credentials) = parts(target)?;
    let event = NewEvent {
        event_id: event_id.map(Into::into),
        deliver_at,
        tags,
        once,
        ..NewEvent::new(&event_type.unwrap_or_default(), body.keep(payload.as_bytes()))
    };
    let payload = payload.to_owned();
    Ok((NewDispatch { url, credentials, policy, profile, key, headers, job: None, event }, payload))
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
    let (once, trace) = (pending.once(caller.org(), &[]), pending.trace().shared());
    let body = pending.read().await?;
    let (mut dispatch, payload) = read(&api, caller.org(), &body, once)?;
    dispatch.event.trace = trace;
    let (sent, endpoint_id) = api.engine.dispatch(&application.by_id(), dispatch.clone()).await?;
    if let SendReceipt::Repeated { message } = sent
        && let Some(before) = application.find_dispatch(message).await?
    {
        return Ok(json::answer(StatusCode::ACCEPTED, &render(&api, caller.org(), &before)));
    }
    let (id, at) = sent_at(&sent);
    let most = api.engine.policies().of(caller.org(), &dispatch.policy).limit.attempts;
    let out = DispatchOut {
        id,
        endpoint_id,
        event_id: dispatch.event.event_id.as_deref(),
        event_type: &dispatch.event.event_type,
        deliver_at: match sent {
            SendReceipt::New { deliver_at, .. } => deliver_at,
            SendReceipt::Repeated { .. } => dispatch.event.deliver_at,
        },
        record: Record::new(&dispatch.url, &payload, most, at),
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
    Ok(json::answer(StatusCode::OK, &SecretOut { key }))
}
