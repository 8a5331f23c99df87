//! An event as its sender hands it in.

use crate::configuration::IdempotencyDigest;
use aldaba_delivery::filter::FilterInput;
use aldaba_delivery::{EndpointId, Timestamp};
use aldaba_store::{Content, Endpoint};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// An event as its sender hands it in.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub event_type: Arc<str>,
    /// The exact bytes that go out.
    pub payload: Bytes,
    /// Of the payload's form, where the sender says so.
    pub version: Option<Arc<str>>,
    /// Sorted, without repeats.
    pub channels: Vec<String>,
    /// Sorted, without repeats.
    pub tags: Vec<String>,
    /// By name, in lower case. They are for filters; they do not go out.
    pub headers: Vec<(String, String)>,
    pub event_id: Option<Arc<str>>,
    /// Nothing goes out before this moment; one that is over means at once.
    pub deliver_at: Option<Timestamp>,
    /// How long its payload is kept, from its acceptance on; a payload that something waits for is kept longer. `None`:
    /// as long as the message.
    pub payload_kept: Option<Duration>,
    /// The one endpoint that it is for, if that wants it; others do not get it.
    pub only_for: Option<EndpointId>,
    pub once: IdempotencyDigest,
    /// It is dispatched to an address, and is for no endpoint.
    pub direct: Option<Direct>,
    /// It came in through a source.
    pub source: Option<FromSource>,
}

/// What an event has that came in through a source.
#[derive(Clone, Debug)]
pub struct FromSource {
    /// Headers that go out as they came.
    pub(crate) sealed_headers: Bytes,
    /// How long its id is remembered at least.
    pub(crate) event_id_kept: Duration,
}

/// Where an event goes that is for no endpoint, and what goes with it.
#[derive(Clone, Debug)]
pub struct Direct {
    pub(crate) address: Box<Endpoint>,
    /// The job whose end it tells of.
    pub(crate) job: Option<String>,
    pub(crate) sealed_headers: Option<Bytes>,
}

impl NewEvent {
    /// One with nothing but a type and a payload.
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

    /// What filters look at.
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
