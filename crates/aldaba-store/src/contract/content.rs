use crate::Subscription;
use aldaba_delivery::filter::FilterInput;
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use bytes::Bytes;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// What goes out: shared by all the deliveries of a message while it is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub event_type: Arc<str>,
    /// The sender's own name for the event, unique within the application.
    pub event_id: Option<Arc<str>>,
    /// The exact bytes received.
    pub payload: Bytes,
    /// Which version of its type's form the payload has, where its sender said so.
    pub version: Option<Arc<str>>,
    /// Headers that go out with this message alone, encrypted. The store never looks inside.
    pub sealed_headers: Option<Bytes>,
}

impl Content {
    pub fn new(event_type: &str, payload: impl Into<Bytes>) -> Self {
        Self {
            event_type: event_type.into(),
            event_id: None,
            payload: payload.into(),
            version: None,
            sealed_headers: None,
        }
    }

    /// What it takes of the memory, as far as its sender decides: limits of bytes are about this.
    pub fn bytes(&self) -> usize {
        self.payload.len() + self.sealed_headers.as_ref().map_or(0, Bytes::len)
    }
}

/// An event on its way into the store.
#[derive(Clone, Debug)]
pub struct NewMessage {
    pub id: MessageId,
    pub content: Arc<Content>,
    /// Sorted, without repeats; empty: none were given.
    pub channels: Vec<String>,
    /// Sorted, without repeats. They say nothing about who gets it.
    pub tags: Vec<String>,
    /// By name, in lower case. They are for filters; they do not go out.
    pub headers: Vec<(String, String)>,
    /// Its event id is not forgotten before this moment, though the message may be gone.
    pub event_id_until: Option<Timestamp>,
    pub created_at: Timestamp,
    /// Nothing of it goes out before this moment; `None`: at once.
    pub deliver_at: Option<Timestamp>,
    /// Its payload is removed after this moment, once nothing of it waits; `None`: it is kept as long as the message.
    pub payload_until: Option<Timestamp>,
    /// The one endpoint that it is for, whatever else subscribes to such messages.
    pub only_for: Option<EndpointId>,
    /// The job whose end it tells of.
    pub job: Option<String>,
}

impl NewMessage {
    pub const MAX_CHANNELS: usize = 10;
    pub const MAX_TAGS: usize = 10;
    /// How long a sender may have a payload kept.
    pub const PAYLOAD_RETENTION: RangeInclusive<Duration> =
        Duration::from_secs(3600)..=Duration::from_secs(90 * 24 * 3600);
}

/// An accepted event as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub app: AppId,
    /// With an empty payload where that was expunged.
    pub content: Content,
    /// The payload was deleted; nothing of it can be sent any more.
    pub expunged: bool,
    pub channels: Vec<String>,
    pub tags: Vec<String>,
    pub headers: Vec<(String, String)>,
    pub created_at: Timestamp,
    pub deliver_at: Option<Timestamp>,
    /// As in [`NewMessage`].
    pub payload_until: Option<Timestamp>,
    pub only_for: Option<EndpointId>,
    pub job: Option<String>,
}

impl Message {
    /// Whether it is for an endpoint, as far as its sender has said so.
    pub fn is_for(&self, endpoint: &Subscription) -> bool {
        self.only_for.map_or(!endpoint.direct, |only| only == endpoint.id)
    }
}

impl Message {
    /// What filters look at.
    pub fn facts(&self) -> FilterInput<'_> {
        FilterInput {
            event_type: &self.content.event_type,
            channels: &self.channels,
            tags: &self.tags,
            headers: &self.headers,
            payload: &self.content.payload,
        }
    }
}
