use super::body::{self, MessageIn};
use super::headers::ShownHeaders;
use crate::api::application::target::Inline;
use crate::api::endpoint::some_items;
use crate::api::request::body::Pending;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{self, Moment, Text};
use crate::api::request::query::WithContent;
use crate::api::response::error::Problem;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::questions::ApplicationQuestions;
use crate::token::Caller;
use aldaba_api::value::{Shows, WriteFields};
use aldaba_api::{Message as Shown, MessageView, NewMessage};
use aldaba_delivery::{MessageId, Timestamp};
use aldaba_engine::{NewEvent, SendReceipt};
use aldaba_store::{Message, MessageFilter, MessagesQuery, Payloads, TimeRange};
use axum::extract::State;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/app/{app_id}/msg", Access::Read, list)
            .named("v1.message.list", "Lists the application's messages, newest first")
            .filtered_by_message()
            .time_limited()
            .with_content("Whether payloads are shown; yes, if not given")
            .lists::<Shown>(),
        Route::post("/app/{app_id}/msg", Access::Send, create)
            .keyed()
            .named("v1.message.create", "Accepts a message and sends it to all matching endpoints")
            .with_content("Whether the answer shows the payload; yes, if not given")
            .takes::<NewMessage>()
            .answers::<Shown>(StatusCode::ACCEPTED)
            .may_conflict(),
        Route::get("/app/{app_id}/msg/{msg_id}", Access::Read, show)
            .named("v1.message.get", "Shows a message")
            .with_content("Whether the payload is shown; yes, if not given")
            .answers::<Shown>(StatusCode::OK),
    ]
}

/// Payload bytes after which a page ends early. A page of the largest messages would otherwise take a quarter of a
/// gigabyte.
pub(crate) const PAGE_BYTES: usize = 8 << 20;

/// A payload as callers see it: clients expect an object.
fn shown(payload: &[u8]) -> Cow<'_, RawValue> {
    let text = std::str::from_utf8(payload);
    let object = text.ok().filter(|text| text.trim_start().starts_with('{'));
    if let Some(object) = object.and_then(|text| serde_json::from_str(text).ok()) {
        return Cow::Borrowed(object);
    }
    let wrapped = match text {
        Ok(text) => to_raw_value(&json!({"raw": text})),
        Err(_) => to_raw_value(&json!({"base64": STANDARD.encode(payload)})),
    };
    wrapped.map_or(Cow::Borrowed(json::empty()), Cow::Owned)
}

/// Shown instead of a deleted payload.
const EXPIRED: &str = r#"{"expired": true}"#;

pub(crate) fn render(message: &Message, content: WithContent) -> impl Shows<Shown> + WriteFields + use<'_> {
    let payload = match (content.0, message.expunged) {
        (false, _) => Cow::Borrowed(json::empty()),
        (true, true) => Cow::Borrowed(json::raw(EXPIRED)),
        (true, false) => shown(&message.content.payload),
    };
    MessageView {
        id: Text(message.id),
        event_id: message.content.event_id.as_deref(),
        event_type: &*message.content.event_type,
        payload,
        version: message.content.version.as_deref(),
        channels: some_items(&message.channels),
        tags: some_items(&message.tags),
        headers: ShownHeaders(&message.headers),
        timestamp: Moment(message.created_at),
        deliver_at: message.deliver_at.map(Moment),
    }
}

pub(crate) async fn create(
    State(api): State<Api>,
    content: WithContent,
    caller: Caller,
    Ids(key): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    ids::name(&key).map_err(|message| Problem::value(&["path", "app_id_or_uid"], message))?;
    let which = api.ask(&caller).application_ref(key).await?;
    let (once, trace) = (pending.once(caller.org(), &[]), pending.trace());
    let body = pending.read().await?;
    let parsed = MessageIn::parse(body.text(), api.limits.payload);
    let parsed = parsed.and_then(|input| Ok((body::inline(body.text(), &input)?, input)));
    let (inline, input) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // An unknown application is reported before an invalid body, unless the body creates it. A valid request
            // needs no second lookup.
            if !body::has_application(&body.bytes) {
                api.ask(&caller).application(&which.key).await?;
            }
            return Err(error);
        }
    };
    let event = NewEvent {
        event_type: (&*input.event_type).into(),
        payload: match &input.raw_payload {
            Some(raw) => Bytes::copy_from_slice(raw.as_bytes()),
            None => body.keep(input.payload.get().as_bytes()),
        },
        version: input.version.as_deref().map(Into::into),
        channels: input.channels.clone(),
        tags: input.tags.clone(),
        headers: input.headers.clone(),
        event_id: input.event_id.as_deref().map(Into::into),
        deliver_at: input.deliver_at,
        payload_kept: input.payload_kept,
        direct: None,
        source: None,
        only_for: None,
        once,
        trace: trace.event(),
    };
    let inline = match inline {
        None => None,
        inline => match Inline::find(&api, &caller, &which.key, inline).await? {
            Inline::New(new) => Some(new.into_new()),
            Inline::Existing(_) => None,
        },
    };
    let answer = |id, timestamp, deliver_at: Option<Timestamp>| {
        let payload = match &input.raw_payload {
            _ if !content.0 => Cow::Borrowed(json::empty()),
            Some(raw) => shown(raw.as_bytes()),
            None => Cow::Borrowed(input.payload),
        };
        let size = 256 + payload.get().len();
        let out = MessageView {
            id: Text(id),
            event_id: input.event_id.as_deref(),
            event_type: &*input.event_type,
            payload,
            version: input.version.as_deref(),
            channels: some_items(&input.channels),
            tags: some_items(&input.tags),
            headers: ShownHeaders(&input.headers),
            timestamp: Moment(timestamp),
            deliver_at: deliver_at.map(Moment),
        };
        json::sized_answer(StatusCode::ACCEPTED, &out, size)
    };
    let sent = match inline {
        None => api.engine.send(&which, event).await?,
        // Boxed: otherwise every message would carry the memory that few need.
        Some(new) => Box::pin(api.engine.send_with_application(caller.actor(), new, event)).await?,
    };
    trace.sent(&sent);
    match sent {
        SendReceipt::New { message, at, deliver_at } => Ok(answer(message, at, deliver_at)),
        SendReceipt::Repeated { message } => {
            let application = api.ask(&caller).application(&which.key).await?;
            match application.find_message(&message.to_string()).await? {
                Some(message) => Ok(json::answer(StatusCode::ACCEPTED, &render(&message, content))),
                // Delivered and no longer kept; its key is. The request has its fields.
                None => Ok(answer(message, message.created_at(), input.deliver_at)),
            }
        }
    }
}

pub(crate) async fn show(
    State(api): State<Api>,
    content: WithContent,
    caller: Caller,
    Ids((app, key)): Ids<(String, String)>,
) -> Result<Response, Error> {
    let message = api.ask(&caller).application(&app).await?.message(&key).await?;
    Ok(json::answer(StatusCode::OK, &render(&message, content)))
}

pub(crate) async fn list(
    State(api): State<Api>,
    content: WithContent,
    mut query: PageQuery<MessageId>,
    caller: Caller,
    Ids(app): Ids<String>,
) -> Result<Response, Error> {
    let (filter, within) = (query.query.message_filter(), query.query.within());
    let application = api.ask(&caller).application(&app).await?;
    page(&api, &application, filter, within, &mut query, content).await
}

/// A page of messages, for the list and for the search.
pub(crate) async fn page(
    api: &Api,
    app: &ApplicationQuestions<'_>,
    filter: MessageFilter,
    within: TimeRange,
    query: &mut PageQuery<MessageId>,
    content: WithContent,
) -> Result<Response, Error> {
    let part = query.part(within, api.engine.clock().now());
    let messages = MessagesQuery { app: app.id, filter, part, payloads: payloads(content) };
    let _turn = api.page_permits.next_if(content.0).await?;
    let found = app.messages(messages).await?;
    let listed = query.list_walked(found.items, found.stopped, |message| message.id);
    Ok(listed.render(|message| render(message, content)))
}

pub(crate) fn payloads(content: WithContent) -> Payloads {
    if content.0 { Payloads::UpTo(PAGE_BYTES) } else { Payloads::Without }
}
