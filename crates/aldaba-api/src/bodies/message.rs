//! Messages: what happened, and goes to every endpoint that wants it.

#[cfg(feature = "server")]
use crate::names::{channel, tag};
#[cfg(feature = "server")]
use crate::read::{any_object, moment, name, names, number, part, strings, text, uid, version};
use crate::{Json, NewApplication, Timestamp, request};
use std::collections::BTreeMap;

request! {
    /// A message to send: an event.
    NewMessage "MessageIn" = {"eventType": "invoice.paid", "payload": {"invoice": 42}, "channels": ["billing"]} {
        /// What happened, such as `invoice.paid`.
        required event_type: String = name();
        /// What is sent, byte by byte as it stands here.
        required payload / data: Json = any_object();
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
