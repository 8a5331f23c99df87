//! An event of a source is taken in: in one commit with its deliveries, or not at all.

use super::{InboundError, InboundEvent, InspectedRequest, InspectionQueue, LoadedSource, SourceCounters};
use crate::intake::{FromSource, NewEvent, SendError, Sent};
use crate::{Engine, SourceCache};
use aldaba_delivery::MessageId;
use aldaba_store::{Error, WhichApplication};
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// It is on disk, and will be delivered.
    New(MessageId),
    /// It came before.
    Duplicate(MessageId),
    /// It came before and could not be forwarded then; it is forwarded again.
    Reopened(MessageId),
}

/// Why an event was not taken. Nothing was stored, unless it is [`SendError::Late`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// A former event of this id has another body.
    #[error("a former event has this id and another body")]
    OtherBody(MessageId),
    #[error(transparent)]
    Send(#[from] SendError),
}

/// Bytes of a body that are looked at on the thread that has them; more would make others wait.
const MAX_INLINE_INSPECTION_BYTES: usize = 16 << 10;

/// What the engine has for its sources.
#[derive(Clone, Debug)]
pub(crate) struct SourceServices {
    pub(crate) source_cache: SourceCache,
    pub(crate) counters: SourceCounters,
    pub(crate) inspections: InspectionQueue,
}

impl Engine {
    /// Sources by their tokens.
    pub fn source_cache(&self) -> &SourceCache {
        &self.sources().source_cache
    }

    /// What happened at the doors lately.
    pub fn source_counters(&self) -> &SourceCounters {
        &self.sources().counters
    }

    /// What a request turns out to be; found out aside where that may take long.
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

    /// Takes an event in, whatever becomes of its sender. When this returns [`Reception::New`], it is on disk and will be
    /// delivered. The store may take longer than a sender waits; then that hears [`SendError::Late`], while the event goes
    /// on its way and keeps its `room`.
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
            engine.source_counters().count(source.id, engine.clock().now(), |counts| match &reception {
                Ok(Reception::New(_)) => counts.received += 1,
                Ok(Reception::Duplicate(_)) => counts.duplicates += 1,
                Ok(Reception::Reopened(_)) => counts.reopened += 1,
                Err(_) => {}
            });
            drop(room);
            reception
        });
        match self.in_time(receiving).await? {
            Ok(reception) => reception,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Nothing runs any more.
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
        let InboundEvent { id, event_type, headers } = event;
        let sealed_headers = self.vault().seal_forwarded(source.app, &headers, &*self.intake().entropy);
        let new = NewEvent {
            event_id: id.as_deref().map(Into::into),
            source: Some(FromSource { sealed_headers, event_id_kept: source.duplicate_window() }),
            ..NewEvent::new(&event_type, body)
        };
        let which = WhichApplication { org: source.org, key: source.app.to_string() };
        // Whoever waits for it does so no longer than it wants; an event that comes late is counted all the same.
        match self.intake().send(&which, new.clone(), None).await {
            Ok(Sent::New { message, .. }) => Ok(Reception::New(message)),
            // It has no key: only the very same message, handed in twice, is answered so.
            Ok(Sent::Before { message }) => Ok(Reception::Duplicate(message)),
            Err(SendError::EventIdTaken(message)) => self.accept_repeat(source, &which, message, &new).await,
            // The schema may be younger than the event that this repeats.
            Err(error @ SendError::Unfit(_)) => match self.find_event(source, id).await? {
                Some(message) => self.accept_repeat(source, &which, message, &new).await,
                None => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// The message that a sender's id stands for, as long as it is kept.
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

    /// What is no longer kept cannot be compared, and counts as the same.
    async fn accept_repeat(
        &self,
        source: &LoadedSource,
        which: &WhichApplication,
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
                    tracing::warn!(source = %source.id, %first, times, "the id of a former event came with another body");
                }
                Err(ReceiveError::OtherBody(first))
            }
            Some(true) | None => Ok(()),
        }
    }
}
