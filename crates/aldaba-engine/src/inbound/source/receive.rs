//! Accepts inbound events: the message and its deliveries in one commit, or nothing.

use super::{InboundError, InboundEvent, InspectedRequest, InspectionQueue, LoadedSource, SourceCounters};
use crate::intake::{FromSource, NewEvent, SendError, SendReceipt};
use crate::{Engine, SourceCache};
use aldaba_delivery::MessageId;
use aldaba_store::{ApplicationRef, Done, Error};
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;

/// The result of receiving an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It is on disk and will be delivered.
    New(MessageId),
    /// It was received before.
    Duplicate(MessageId),
    /// It was received before and its deliveries failed; they are sent again.
    Reopened(MessageId),
}

/// Why an event was not accepted. Nothing was stored, except with [`SendError::Late`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// An earlier event has this id and another body.
    #[error("an earlier event has this id and another body")]
    OtherBody(MessageId),
    #[error(transparent)]
    Send(#[from] SendError),
}

/// Bodies up to this size are inspected on the calling thread.
const MAX_INLINE_INSPECTION_BYTES: usize = 16 << 10;

/// The parts of the engine for sources.
#[derive(Clone, Debug)]
pub(crate) struct SourceServices {
    pub(crate) source_cache: SourceCache,
    pub(crate) counters: SourceCounters,
    pub(crate) inspections: InspectionQueue,
}

impl Engine {
    /// The cache of sources.
    pub fn source_cache(&self) -> &SourceCache {
        &self.sources().source_cache
    }

    /// Recent counters and refusals of sources.
    pub fn source_counters(&self) -> &SourceCounters {
        &self.sources().counters
    }

    /// Inspects a request, on the blocking pool if it is large.
    pub async fn inspect(
        &self,
        source: &Arc<LoadedSource>,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<InspectedRequest, InboundError> {
        let now = self.clock().wall().millis().div_euclid(1000);
        if body.len() <= MAX_INLINE_INSPECTION_BYTES {
            return source.inspect(headers, body, now);
        }
        let (source, headers, body) = (source.clone(), headers.clone(), body.clone());
        let (inspections, key) = (&self.sources().inspections, (source.org, source.id));
        inspections
            .run(key, move || source.inspect(&headers, &body, now))
            .await
            .unwrap_or(Err(InboundError::Busy))
    }

    /// Accepts an event, even if the sender disconnects. With [`Reception::New`] it is on disk and will be
    /// delivered. If the store takes too long, the caller gets [`SendError::Late`] while the event is still
    /// being stored and keeps its `room`.
    pub async fn receive(
        &self,
        source: &Arc<LoadedSource>,
        event: InboundEvent,
        body: Bytes,
        room: impl Send + 'static,
    ) -> Result<Reception, ReceiveError> {
        let (engine, source) = (self.clone(), source.clone());
        let receiving = tokio::spawn(async move {
            let reception = engine.accept_event(&source, event, body).await;
            if let Ok(Reception::Duplicate(_) | Reception::Reopened(_)) = &reception {
                let counted = Done::new(|_: Result<(), Error>| {});
                engine.store().count_duplicate(source.org, engine.clock().now(), counted);
            }
            engine.source_counters().count(source.id, engine.clock().now(), |counts| match &reception {
                Ok(Reception::New(_)) => counts.received += 1,
                Ok(Reception::Duplicate(_)) => counts.duplicates += 1,
                Ok(Reception::Reopened(_)) => counts.reopened += 1,
                Err(_) => {}
            });
            drop(room);
            reception
        });
        match self.within_commit_timeout(receiving).await? {
            Ok(reception) => reception,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime has stopped.
                Err(_) => Err(SendError::Store(Error::Closed).into()),
            },
        }
    }

    async fn accept_event(
        &self,
        source: &LoadedSource,
        event: InboundEvent,
        body: Bytes,
    ) -> Result<Reception, ReceiveError> {
        let InboundEvent { id, event_type, headers, trace } = event;
        let sealed_headers = self.vault().seal_forwarded(source.app, &headers, &*self.intake().entropy);
        let new = NewEvent {
            event_id: id.as_deref().map(Into::into),
            source: Some(FromSource { sealed_headers, event_id_kept: source.duplicate_window() }),
            trace,
            ..NewEvent::new(&event_type, body)
        };
        let which = ApplicationRef { org: source.org, key: source.app.to_string() };
        // The caller has its own timeout; a late event is counted all the same.
        match self.intake().send(&which, new.clone(), None).await {
            Ok(SendReceipt::New { message, .. }) => Ok(Reception::New(message)),
            // Without an idempotency key this means that the same message was handed in twice.
            Ok(SendReceipt::Repeated { message }) => Ok(Reception::Duplicate(message)),
            Err(SendError::EventIdTaken(message)) => self.accept_repeat(source, &which, message, &new).await,
            // The schema may be newer than the event that this one repeats.
            Err(error @ SendError::Unfit(_)) => match self.find_event(source, id).await? {
                Some(message) => self.accept_repeat(source, &which, message, &new).await,
                None => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// The message with a sender's event id, while it is kept.
    async fn find_event(
        &self,
        source: &LoadedSource,
        id: Option<String>,
    ) -> Result<Option<MessageId>, ReceiveError> {
        let Some(id) = id else { return Ok(None) };
        let found = self.store().source_event(source.app, id.clone()).await.map_err(SendError::Store)?;
        Ok(found
            .map(|event| event.message)
            .filter(|message| message.content.event_id.as_deref() == Some(&*id))
            .map(|message| message.id))
    }

    /// Handles a repeated event. A payload that is no longer kept counts as equal.
    async fn accept_repeat(
        &self,
        source: &LoadedSource,
        which: &ApplicationRef,
        first: MessageId,
        event: &NewEvent,
    ) -> Result<Reception, ReceiveError> {
        if !source.allows_other_body() {
            self.compare(source, first, &event.payload).await?;
        }
        let reopened = self.intake().reopen(which, first, event).await?;
        Ok(if reopened { Reception::Reopened(first) } else { Reception::Duplicate(first) })
    }

    async fn compare(
        &self,
        source: &LoadedSource,
        first: MessageId,
        body: &Bytes,
    ) -> Result<(), ReceiveError> {
        let same = self.store().has_payload(source.app, first, body.clone()).await;
        match same.map_err(SendError::Store)? {
            Some(false) => {
                if let Some(times) = self.source_counters().conflict(source.id, self.clock().now()) {
                    tracing::warn!(source = %source.id, %first, times, "an event id was repeated with another body");
                }
                Err(ReceiveError::OtherBody(first))
            }
            Some(true) | None => Ok(()),
        }
    }
}
