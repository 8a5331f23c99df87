//! An event as its sender submits it, and what the sender is told of it.

use crate::EventTrace;
use crate::configuration::{CheckError, IdempotencyDigest};
use aldaba_delivery::filter::FilterInput;
use aldaba_delivery::{EndpointId, MessageId, SourceId, Timestamp};
use aldaba_store::{Content, Endpoint, Error, NewMessage, QuotaOf};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// An event as its sender submits it.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub event_type: Arc<str>,
    /// The exact bytes that go out.
    pub payload: Bytes,
    /// The version of the payload's schema, if the sender names one.
    pub version: Option<Arc<str>>,
    /// Sorted, without repeats.
    pub channels: Vec<String>,
    /// Sorted, without repeats.
    pub tags: Vec<String>,
    /// By name, in lower case. Only filters use them; they are not sent.
    pub headers: Vec<(String, String)>,
    pub event_id: Option<Arc<str>>,
    /// Nothing is sent before this moment. A moment in the past means now.
    pub deliver_at: Option<Timestamp>,
    /// How long its payload is kept after it was accepted. The payload of a pending delivery is kept longer. `None`: as long
    /// as the message.
    pub payload_kept: Option<Duration>,
    /// The only endpoint that it is for, if that matches.
    pub only_for: Option<EndpointId>,
    pub once: IdempotencyDigest,
    /// The address that it is dispatched to, instead of endpoints.
    pub direct: Option<Direct>,
    /// Set if it came in through a source.
    pub source: Option<FromSource>,
    pub trace: EventTrace,
}

/// What comes with an event of a source.
#[derive(Clone, Debug)]
pub struct FromSource {
    /// Headers that are sent as they came.
    pub(crate) sealed_headers: Bytes,
    /// How long its id is remembered at least.
    pub(crate) event_id_kept: Duration,
}

/// The address of a dispatched event.
#[derive(Clone, Debug)]
pub struct Direct {
    pub(crate) address: Box<Endpoint>,
    /// The job whose end it reports.
    pub(crate) job: Option<String>,
    pub(crate) sealed_headers: Option<Bytes>,
}

impl NewEvent {
    /// An event with a type and a payload only.
    pub fn new(event_type: &str, payload: Bytes) -> Self {
        Self {
            event_type: event_type.into(),
            payload,
            version: None,
            channels: Vec::new(),
            tags: Vec::new(),
            headers: Vec::new(),
            event_id: None,
            deliver_at: None,
            payload_kept: None,
            only_for: None,
            once: None,
            direct: None,
            source: None,
            trace: EventTrace::default(),
        }
    }

    pub(super) fn content(&self) -> Arc<Content> {
        Arc::new(Content {
            event_type: self.event_type.clone(),
            event_id: self.event_id.clone(),
            payload: self.payload.clone(),
            version: self.version.clone(),
            sealed_headers: match (&self.direct, &self.source) {
                (Some(direct), _) => direct.sealed_headers.clone(),
                (None, Some(source)) => Some(source.sealed_headers.clone()),
                (None, None) => None,
            },
        })
    }

    /// The input of filters.
    pub(super) fn facts(&self) -> FilterInput<'_> {
        FilterInput {
            event_type: &self.event_type,
            channels: &self.channels,
            tags: &self.tags,
            headers: &self.headers,
            payload: &self.payload,
        }
    }
}

/// An event that is safe on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendReceipt {
    New {
        message: MessageId,
        at: Timestamp,
        /// Nothing goes out before this moment.
        deliver_at: Option<Timestamp>,
    },
    /// An earlier request with the same idempotency key sent this message.
    Repeated { message: MessageId },
}

impl SendReceipt {
    /// The receipt of a message once it is on disk.
    pub(super) fn new(message: &NewMessage) -> Self {
        Self::New { message: message.id, at: message.created_at, deliver_at: message.deliver_at }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("there is no such application")]
    NotFound,
    #[error("the application already has a message with this event id")]
    EventIdTaken(MessageId),
    #[error("the moment of delivery is more than 366 days ahead")]
    TooFarAhead,
    #[error("the payload does not fit its event type")]
    Unfit(CheckError),
    /// The address names a policy that does not exist.
    #[error("there is no policy `{0}`")]
    UnknownPolicy(String),
    #[error("there is no profile `{0}`")]
    UnknownProfile(String),
    #[error("the application's configuration keeps changing")]
    Unsettled,
    /// Today's quota is used up.
    #[error("{most} messages were sent today")]
    OverQuota {
        whose: QuotaOf,
        most: u64,
        at: Timestamp,
        /// When the day is over.
        until: Timestamp,
    },
    /// The application accepts only events of its source.
    #[error("the application belongs to the source {0}, and takes only what comes in through that")]
    OfSource(SourceId),
    /// The commit timeout has passed. The event was not refused, and may yet be accepted.
    #[error("the store takes long; what was handed in may be stored yet")]
    Late,
    #[error(transparent)]
    Store(#[from] Error),
}
