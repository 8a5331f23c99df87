//! The lines of an export. Their form is documented in docs/export.md; a change that breaks a reader raises [`VERSION`].

use crate::api::attempt;
use crate::api::request::json::{self, Moment, Text};
use crate::api::request::query::WithContent;
use crate::questions::DeliveryIds;
use aldaba_delivery::{AppId, Timestamp};
use aldaba_engine::EndpointHeaders;
use aldaba_store::{Attempt, DeliveryState, DeliveryStatus, MASK, Message, Source, TimeRange};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

pub(super) const FORMAT: &str = "aldaba-export";
pub(super) const VERSION: u32 = 1;

/// Whether secrets are part of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    Shown,
    Masked,
}

/// Adds a line: the type, and then the members of `body`, which is an object that is not empty.
pub(super) fn push(into: &mut Vec<u8>, kind: &str, body: &impl Serialize) -> io::Result<()> {
    let begin = into.len();
    into.extend_from_slice(b"{\"type\":\"");
    into.extend_from_slice(kind.as_bytes());
    into.extend_from_slice(b"\",");
    let members = into.len();
    serde_json::to_writer(&mut *into, body).inspect_err(|_| into.truncate(begin))?;
    // The first brace of the body is that of the line already.
    into.remove(members);
    into.push(b'\n');
    Ok(())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    format: &'static str,
    version: u32,
    app_id: Text<AppId>,
    exported_at: Moment,
    secrets: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Moment>,
}

impl Header {
    pub(super) fn new(app: AppId, at: Timestamp, secrets: Secrets, within: TimeRange) -> Self {
        Self {
            format: FORMAT,
            version: VERSION,
            app_id: Text(app),
            exported_at: Moment(at),
            secrets: secrets == Secrets::Shown,
            after: within.after.map(Moment),
            before: within.before.map(Moment),
        }
    }
}

/// An endpoint as the API shows it, with its headers, and its secret where that is asked for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointLine<'a> {
    #[serde(flatten)]
    pub(super) endpoint: serde_json::Map<String, serde_json::Value>,
    pub(super) headers: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
}

/// The values of headers, or what stands for them. The API shows no value of a sensitive one either.
pub(super) fn header_values(headers: &EndpointHeaders, secrets: Secrets) -> BTreeMap<&str, &str> {
    let shown =
        headers.shown().map(|(name, value)| (name, if secrets == Secrets::Shown { value } else { MASK }));
    shown.chain(headers.sensitive().map(|name| (name, MASK))).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceLine<'a> {
    id: String,
    uid: Option<&'a str>,
    name: &'a str,
    source_type: &'a str,
    metadata: &'a RawValue,
    settings: &'a RawValue,
    created_at: Moment,
    updated_at: Moment,
}

impl<'a> From<&'a Source> for SourceLine<'a> {
    fn from(source: &'a Source) -> Self {
        let config = &source.config;
        Self {
            id: source.id.to_string(),
            uid: config.uid.as_deref(),
            name: &config.name,
            source_type: &config.kind,
            metadata: json::raw(&config.metadata),
            settings: json::raw(&config.settings),
            created_at: Moment(source.created_at),
            updated_at: Moment(source.updated_at),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageLine<'a> {
    id: Text<aldaba_delivery::MessageId>,
    event_type: &'a str,
    event_id: Option<&'a str>,
    version: Option<&'a str>,
    channels: &'a [String],
    tags: &'a [String],
    headers: BTreeMap<&'a str, &'a str>,
    timestamp: Moment,
    deliver_at: Option<Moment>,
    /// The exact bytes, or their base64; null where they were deleted.
    payload: Option<Cow<'a, str>>,
    encoding: Option<&'static str>,
}

impl<'a> From<&'a Message> for MessageLine<'a> {
    fn from(message: &'a Message) -> Self {
        let content = &message.content;
        let (payload, encoding) = match (message.expunged, std::str::from_utf8(&content.payload)) {
            (true, _) => (None, None),
            (false, Ok(text)) => (Some(Cow::Borrowed(text)), Some("utf-8")),
            (false, Err(_)) => (Some(BASE64_STANDARD.encode(&content.payload).into()), Some("base64")),
        };
        Self {
            id: Text(message.id),
            event_type: &content.event_type,
            event_id: content.event_id.as_deref(),
            version: content.version.as_deref(),
            channels: &message.channels,
            tags: &message.tags,
            headers: message.headers.iter().map(|(name, value)| (&**name, &**value)).collect(),
            timestamp: Moment(message.created_at),
            deliver_at: message.deliver_at.map(Moment),
            payload,
            encoding,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveryLine {
    id: String,
    msg_id: Text<aldaba_delivery::MessageId>,
    endpoint_id: Text<aldaba_delivery::EndpointId>,
    state: &'static str,
    reason: Option<&'static str>,
    attempt_count: u32,
    retry_count: u32,
    replayed: bool,
    next_attempt: Option<Moment>,
    settled_at: Option<Moment>,
}

impl DeliveryLine {
    pub(super) fn new(ids: &DeliveryIds, delivery: &DeliveryStatus) -> Self {
        let (state, reason, next_attempt) = match delivery.state {
            DeliveryState::Waiting { due_at } => ("pending", None, Some(Moment(due_at))),
            DeliveryState::Delivered { .. } => ("delivered", None, None),
            DeliveryState::Dead { reason, .. } => ("dead", Some(reason.name()), None),
            DeliveryState::Skipped { .. } => ("skipped", Some("endpoint_disabled"), None),
        };
        Self {
            id: ids.id(delivery.seq).to_string(),
            msg_id: Text(delivery.message),
            endpoint_id: Text(delivery.endpoint),
            state,
            reason,
            attempt_count: delivery.attempts,
            retry_count: delivery.retries,
            replayed: delivery.replayed,
            next_attempt,
            settled_at: delivery.state.settled_at().map(Moment),
        }
    }
}

/// As the API shows an attempt.
pub(super) fn push_attempt(into: &mut Vec<u8>, attempt: &Attempt, url: &str) -> io::Result<()> {
    push(into, "attempt", &attempt::render(attempt, url, WithContent(true)))
}

/// How many lines there were of each type, and that these are all.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    pub(super) endpoints: u64,
    pub(super) event_types: u64,
    pub(super) messages: u64,
    pub(super) deliveries: u64,
    pub(super) attempts: u64,
}

#[derive(Serialize)]
pub(super) struct SummaryLine {
    pub(super) counts: Summary,
    pub(super) complete: bool,
}
