//! Accepting an event: match it to its endpoints, one commit on disk, then the answer.

use crate::content::Contents;
use crate::directory::{Directory, Once};
use crate::dispatcher::{Event, Inbox, Offer};
use crate::{Clock, Entropy};
use aldaba_delivery::{MessageId, SkipReason, Timestamp};
use aldaba_store::{
    Accept, Accepted, Content, Done, Error, IdempotencyKey, NewDelivery, NewMessage, Seq, Store,
    Subscription, Tenant, Waiting, WhichApplication,
};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often matching is repeated when the configuration changes under it.
const MATCHINGS: usize = 16;

/// An event as its sender hands it in.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub event_type: Arc<str>,
    /// The exact bytes that go out.
    pub payload: Bytes,
    /// Sorted, without repeats.
    pub channels: Vec<String>,
    pub event_id: Option<String>,
    pub once: Once,
}

/// An event that is safe on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    New {
        message: MessageId,
        at: Timestamp,
    },
    /// A former request with the same idempotency key had sent this one.
    Before {
        message: MessageId,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("there is no such application")]
    NotFound,
    #[error("the application already has a message with this event id")]
    EventIdTaken(MessageId),
    #[error("the application's configuration keeps changing")]
    Unsettled,
    #[error(transparent)]
    Store(#[from] Error),
}

pub(crate) struct Intake {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) inbox: Inbox,
    pub(crate) contents: Contents,
    pub(crate) idempotency_kept: Duration,
}

impl Intake {
    pub(crate) async fn send(&self, which: &WhichApplication, event: NewEvent) -> Result<Sent, SendError> {
        let content =
            Arc::new(Content { event_type: event.event_type.clone(), payload: event.payload.clone() });
        for _ in 0..MATCHINGS {
            let tenant = self.directory.tenant(which).await?.ok_or(SendError::NotFound)?;
            let now = self.clock.now();
            let message = MessageId::new(now, self.entropy.bytes());
            let accept = self.accept(&tenant, message, &event, &content, now);
            match self.commit(accept, &content).await? {
                Accepted::New { .. } => return Ok(Sent::New { message, at: now }),
                Accepted::Repeated { message } => return Ok(Sent::Before { message }),
                Accepted::EventIdTaken { message } => return Err(SendError::EventIdTaken(message)),
                Accepted::Stale => self.directory.forget(which, &tenant),
            }
        }
        Err(SendError::Unsettled)
    }

    fn accept(
        &self,
        tenant: &Tenant,
        message: MessageId,
        event: &NewEvent,
        content: &Arc<Content>,
        now: Timestamp,
    ) -> Accept {
        let wanted = |endpoint: &&Subscription| wants(endpoint, &event.event_type, &event.channels);
        let delivery = |endpoint: &Subscription| NewDelivery {
            endpoint: endpoint.id,
            due_at: now,
            skipped: (endpoint.disabled && !endpoint.holds).then_some(SkipReason::EndpointDisabled),
        };
        Accept {
            app: tenant.application.id,
            version: tenant.version,
            message: NewMessage {
                id: message,
                content: content.clone(),
                channels: event.channels.clone(),
                event_id: event.event_id.clone(),
                created_at: now,
            },
            deliveries: tenant.endpoints.iter().filter(wanted).map(delivery).collect(),
            idempotency: event
                .once
                .map(|digest| IdempotencyKey { digest, expires_at: now + self.idempotency_kept }),
        }
    }

    /// Once the commit is on disk its deliveries go straight into their lanes, then the sender hears.
    async fn commit(&self, accept: Accept, content: &Arc<Content>) -> Result<Accepted, Error> {
        let (answer, answered) = oneshot::channel();
        let inbox = self.inbox.clone();
        let held = self.contents.hold(content);
        let (app, message, now) = (accept.app, accept.message.id, accept.message.created_at);
        let deliveries: Vec<_> = accept.deliveries.iter().map(|new| (new.endpoint, new.skipped)).collect();
        let done = Done::new(move |result: Result<Vec<Accepted>, Error>| {
            let result = result.map(|mut results| results.pop().unwrap_or(Accepted::Stale));
            if let Ok(Accepted::New { first }) = result
                && !deliveries.is_empty()
            {
                let numbered = deliveries.into_iter().zip(first.0..);
                let to_send = numbered.filter(|((_, skipped), _)| skipped.is_none());
                let offer = |((endpoint, _), seq)| Offer {
                    endpoint,
                    waiting: Waiting { seq: Seq(seq), message, due_at: now, attempts: 0, clock_start: now },
                    content: held.clone(),
                };
                inbox.send(Event::Accepted(app, to_send.map(offer).collect()));
            }
            let _ = answer.send(result);
        });
        self.store.accept(vec![accept], done);
        answered.await.map_err(|_| Error::Closed)?
    }
}

/// Whether an endpoint subscribes to such a message. One without channels takes every message; one
/// with channels takes only messages that share at least one.
fn wants(endpoint: &Subscription, event_type: &str, channels: &[String]) -> bool {
    let listed = |list: &[String], item: &str| list.iter().any(|listed| listed == item);
    (endpoint.event_types.is_empty() || listed(&endpoint.event_types, event_type))
        && (endpoint.channels.is_empty() || channels.iter().any(|c| listed(&endpoint.channels, c)))
}
