//! Messages: what happened, and goes to every endpoint that wants it.

#[cfg(feature = "server")]
use super::MAX_EVENT_TYPES;
#[cfg(feature = "server")]
use crate::names::{channel, name as check_name, tag};
#[cfg(feature = "server")]
use crate::read::{
    any_object, moment, name, names, number, part, parts, strings, text, toggle, uid, version,
};
use crate::{Json, NewApplication, Timestamp, request, response};
use serde_json::Value;
use std::collections::BTreeMap;

request! {
    /// A message to send: an event.
    NewMessage "MessageIn" = {"eventType": "invoice.paid", "payload": {"invoice": 42}, "channels": ["billing"]} {
        /// What happened, such as `invoice.paid`.
        required event_type: String = name();
        /// What is sent, byte by byte as it stands here.
        required payload / nullable data: Json = any_object();
        /// Your own name for it, unique in the application.
        nullable event_id: String = uid("msg_");
        /// Of the payload's form.
        nullable version: String = version();
        /// Only endpoints with one of these channels, or with none, get it.
        nullable channels: Vec<String> = names(MAX_CHANNELS, channel);
        /// To find it by.
        nullable tags: Vec<String> = names(MAX_TAGS, tag);
        /// For the filters of endpoints to look at, by name in any case. They are not sent.
        map headers: BTreeMap<String, String> = strings(MAX_MESSAGE_HEADERS);
        /// Nothing goes out before this moment.
        nullable deliver_at: Timestamp = moment();
        /// Days after which the payload is removed, counted from when the message was accepted. The message itself stays, and
        /// a payload that a delivery waits for stays until that has ended.
        nullable payload_retention_period: u64 = number(1, MAX_RETENTION_HOURS / 24).wide();
        /// The same in hours. Only one of the two can be given; beside hours the default of 90 days counts as not given.
        nullable payload_retention_hours: u64 = number(1, MAX_RETENTION_HOURS).wide();
        /// Makes the application, if the one in the path is not there; its `uid` must be the name in the path.
        nullable application: NewApplication = part();
        /// How the request is made of the payload.
        nullable transformations_params: TransformationsParams = part();
    }
}

request! {
    /// How a request is made of a payload.
    TransformationsParams "TransformationsParams" = {"rawPayload": "text"} {
        /// Sent as it is in the place of the payload. It need not be JSON.
        nullable raw_payload: String = text();
    }
}

/// Channels of one message.
#[cfg(feature = "server")]
pub const MAX_CHANNELS: usize = 10;
/// Tags of one message.
#[cfg(feature = "server")]
pub const MAX_TAGS: usize = 10;
/// Headers of one message, for filters.
#[cfg(feature = "server")]
pub const MAX_MESSAGE_HEADERS: usize = 16;
/// How long a payload is kept at most.
#[cfg(feature = "server")]
pub const MAX_RETENTION_HOURS: u64 = 90 * 24;

impl NewMessage {
    /// Of an event type.
    pub fn new(event_type: impl Into<String>, payload: impl Into<Json>) -> Self {
        Self { event_type: event_type.into(), payload: payload.into(), ..Self::default() }
    }
}

request! {
    /// What kind of message.
    Precheck "MessagePrecheckIn" = {"eventType": "invoice.paid", "channels": ["billing"]} {
        /// Of this type.
        required event_type: String = name();
        /// With these channels.
        nullable channels: Vec<String> = names(MAX_CHANNELS, channel);
    }
}

impl Precheck {
    /// Of an event type.
    pub fn new(event_type: impl Into<String>) -> Self {
        Self { event_type: event_type.into(), ..Self::default() }
    }
}

request! {
    /// Messages to send together.
    NewBatch "MessageBatchIn" = {"messages": [
        {"eventType": "invoice.paid", "payload": {"invoice": 43}},
        {"eventType": "invoice.paid", "payload": {"invoice": 44}},
    ]} {
        /// Up to 1,000.
        required messages: Vec<NewMessage> = parts(MAX_BATCH);
    }
}

/// Messages of one batch.
#[cfg(feature = "server")]
pub const MAX_BATCH: usize = 1000;

response! {
    /// What became of messages that were sent together.
    Batch "MessageBatchOut" of BatchView {
        /// How many of them were accepted.
        required accepted: usize;
        /// One for each message, in their order.
        required results: Vec<BatchResult>;
    }
}

response! {
    /// What became of one of them.
    BatchResult "MessageBatchResult" of BatchResultView {
        /// What the answer to this message alone would have: 202 where it was accepted.
        required status: u16;
        /// Its id, where it was accepted.
        omitted id: String;
        /// What that answer would say, where it was not accepted.
        omitted error: Value = any_object();
        /// Seconds after which it is worth trying again.
        omitted retry_after: u32;
    }
}

request! {
    /// Which messages are looked for. Its names are those of the list's query string.
    MessageSearch "SearchIn" =
        {"event_types": ["invoice.paid"], "after": "2025-01-31T12:00:00Z", "limit": 10, "with_content": true}
    {
        /// Items of a page at most.
        nullable limit: u16 = number(1, MAX_PAGE as u64).wide();
        /// Where to go on.
        nullable iterator: String = text();
        /// With this channel.
        nullable channel: String = text().by(channel);
        /// With this tag.
        nullable tag: String = text().by(tag);
        /// Of one of these types.
        nullable event_types ["event_types"]: Vec<String> = names(MAX_EVENT_TYPES, check_name).or_empty().undescribed();
        /// Accepted before.
        nullable before: Timestamp = moment();
        /// Accepted after.
        nullable after: Timestamp = moment();
        /// Whether payloads are shown; no, if not given.
        given with_content ["with_content"]: bool = toggle();
    }
}

/// Items of one page.
#[cfg(feature = "server")]
pub const MAX_PAGE: usize = 250;

response! {
    ($)
    /// A message.
    Message "MessageOut" of MessageView {
        /// Such as `msg_…`.
        required id: String;
        /// Your own name for it.
        nullable event_id: String;
        /// What happened.
        required event_type: String;
        /// The bytes as they came in, not written anew: what callers see is what receivers get. Of a payload that was
        /// deleted nothing is left but `{"expired": true}`; one that is no JSON object is shown as `{"raw": "…"}` with its
        /// text, or as `{"base64": "…"}` where it is no text.
        required payload: Json = any_object();
        /// Of the payload's form.
        nullable version: String;
        /// Channels.
        nullable channels: Vec<String>;
        /// To find it by.
        nullable tags: Vec<String>;
        /// For filters; they are not sent.
        nullable headers: BTreeMap<String, String>;
        /// When it was accepted.
        required timestamp: Timestamp = moment();
        /// Null where the message goes out at once.
        nullable deliver_at: Timestamp = moment();
    }
    each message_fields;
}

response! {
    /// Whether such messages are wanted.
    Prechecked "MessagePrecheckOut" of PrecheckedView {
        /// An endpoint that is not turned off wants such messages, or has a filter that may.
        required active: bool;
    }
}

response! {
    /// What is sent, as a text.
    RawPayload "RawOut" of RawPayloadView {
        /// The text.
        required payload: String;
    }
}
