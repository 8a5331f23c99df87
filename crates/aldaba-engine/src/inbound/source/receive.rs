//! An event of a source is taken in: in one commit with its deliveries, or not at all.

use super::{Door, DoorError, InboundEvent, Looking, Opened, Tally};
use crate::intake::{FromSource, NewEvent, SendError, Sent};
use crate::{Doors, Engine};
use aldaba_delivery::MessageId;
use aldaba_store::{ApplicationRef, Error};
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
const LOOKED_AT_ONCE: usize = 16 << 10;

/// What the engine has for its sources.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    pub(crate) doors: Doors,
    pub(crate) tally: Tally,
    pub(crate) looking: Looking,
}

impl Engine {
    /// Sources by their tokens.
    pub fn doors(&self) -> &Doors {
        &self.sources().doors
    }

    /// What happened at the doors lately.
    pub fn tally(&self) -> &Tally {
        &self.sources().tally
    }

    /// What a request turns out to be; found out aside where that may take long.
    pub async fn look(
        &self,
        door: &Arc<Door>,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Opened, DoorError> {
        let now = self.clock().wall().millis().div_euclid(1000);
        if body.len() <= LOOKED_AT_ONCE {
            return door.open(headers, body, now);
        }
        let (door, headers, body) = (door.clone(), headers.clone(), body.clone());
        let (looking, whose) = (&self.sources().looking, (door.org, door.id));
        looking.run(whose, move || door.open(&headers, &body, now)).await.unwrap_or(Err(DoorError::Busy))
    }

    /// Takes an event in, whatever becomes of its sender. When this returns [`Reception::New`], it is on disk and will be
    /// delivered. The store may take longer than a sender waits; then that hears [`SendError::Late`], while the event goes
    /// on its way and keeps its `room`.
    pub async fn receive(
        &self,
        door: &Arc<Door>,
        event: InboundEvent,
        body: Bytes,
        room: impl Send + 'static,
    ) -> Result<Reception, ReceiveError> {
        let (engine, door) = (self.clone(), door.clone());
        let receiving = tokio::spawn(async move {
            let reception = engine.take_in(&door, event, body).await;
            engine.tally().count(door.id, engine.clock().now(), |counts| match &reception {
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

    async fn take_in(
        &self,
        door: &Door,
        event: InboundEvent,
        body: Bytes,
    ) -> Result<Reception, ReceiveError> {
        let InboundEvent { id, event_type, headers } = event;
        let sealed_headers = self.vault().seal_forwarded(door.app, &headers, &*self.intake().entropy);
        let new = NewEvent {
            event_id: id.as_deref().map(Into::into),
            source: Some(FromSource { sealed_headers, event_id_kept: door.duplicate_window() }),
            ..NewEvent::new(&event_type, body)
        };
        let which = ApplicationRef { org: door.org, key: door.app.to_string() };
        // Whoever waits for it does so no longer than it wants; an event that comes late is counted all the same.
        match self.intake().send(&which, new.clone(), None).await {
            Ok(Sent::New { message, .. }) => Ok(Reception::New(message)),
            // It has no key: only the very same message, handed in twice, is answered so.
            Ok(Sent::Before { message }) => Ok(Reception::Duplicate(message)),
            Err(SendError::EventIdTaken(message)) => self.repeated(door, &which, message, &new).await,
            // The schema may be younger than the event that this repeats.
            Err(error @ SendError::Unfit(_)) => match self.former(door, id).await? {
                Some(message) => self.repeated(door, &which, message, &new).await,
                None => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// The message that a sender's id stands for, as long as it is kept.
    async fn former(&self, door: &Door, id: Option<String>) -> Result<Option<MessageId>, ReceiveError> {
        let Some(id) = id else { return Ok(None) };
        let found = self.store().source_event(door.app, id.clone()).await.map_err(SendError::Store)?;
        Ok(found
            .map(|event| event.message)
            .filter(|message| message.content.event_id.as_deref() == Some(&*id))
            .map(|message| message.id))
    }

    /// What is no longer kept cannot be compared, and counts as the same.
    async fn repeated(
        &self,
        door: &Door,
        which: &ApplicationRef,
        first: MessageId,
        event: &NewEvent,
    ) -> Result<Reception, ReceiveError> {
        if !door.takes_other_body() {
            self.compare(door, first, &event.payload).await?;
        }
        let reopened = self.intake().reopen(which, first, event).await?;
        Ok(if reopened { Reception::Reopened(first) } else { Reception::Duplicate(first) })
    }

    async fn compare(&self, door: &Door, first: MessageId, body: &Bytes) -> Result<(), ReceiveError> {
        let same = self.store().has_payload(door.app, first, body.clone()).await;
        match same.map_err(SendError::Store)? {
            Some(false) => {
                if let Some(times) = self.tally().conflict(door.id, self.clock().now()) {
                    tracing::warn!(source = %door.id, %first, times, "the id of a former event came with another body");
                }
                Err(ReceiveError::OtherBody(first))
            }
            Some(true) | None => Ok(()),
        }
    }
}
