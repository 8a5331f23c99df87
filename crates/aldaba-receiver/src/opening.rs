//! From a request to a claimed event.

use crate::begun::{Begun, Task};
use crate::{Answer, Claim, Event, Ledger, LedgerError, Receiver};
use aldaba_signature::inbound::{Arrival, Inspected};
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::time::Duration;

/// How long a ledger may take besides the wait timeout. After that it counts as unavailable.
pub(crate) const LEDGER_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of opening a request.
#[derive(Debug)]
pub enum Opening<L: Ledger> {
    /// There is nothing to handle; this is the answer.
    Answered(Answer),
    /// The event is new. The caller must end it.
    Begun(Begun<L>),
}

impl<L: Ledger> Receiver<L> {
    /// Checks the signature, then claims the event in the ledger. While another copy of the event is being handled, this
    /// waits up to the wait timeout.
    ///
    /// Pass the exact bytes of the body: any change, such as parsing and serializing it, breaks the signature.
    pub async fn open(&self, method: &Method, headers: &HeaderMap, body: Bytes) -> Opening<L> {
        match self.try_open(method, headers, body).await {
            Ok(begun) => Opening::Begun(begun),
            Err(answer) => {
                self.count(answer.outcome());
                Opening::Answered(answer)
            }
        }
    }

    async fn try_open(&self, method: &Method, headers: &HeaderMap, body: Bytes) -> Result<Begun<L>, Answer> {
        self.check_method(method)?;
        self.check_length(body.len() as u64)?;
        let event = self.inspect(headers, body)?;
        match self.claim(&event).await {
            Ok(Claim::New(work)) => Ok(Begun::new(Task::begin(self.clone(), event), work)),
            Ok(Claim::Duplicate) => Err(Answer::duplicate()),
            Ok(Claim::InProgress) => Err(Answer::in_progress()),
            Ok(Claim::OtherBody) => {
                tracing::error!(
                    event_id = event.id,
                    event_type = event.event_type,
                    "refused an event whose id is known with another body: the sender reuses ids, or somebody who has its \
                     secret changes events"
                );
                Err(Answer::other_body())
            }
            Err(error) => {
                tracing::error!(event_id = event.id, %error, "refused an event because the ledger failed");
                Err(Answer::unavailable())
            }
        }
    }

    pub(crate) fn check_method(&self, method: &Method) -> Result<(), Answer> {
        if *method == Method::POST { Ok(()) } else { Err(Answer::method_not_allowed()) }
    }

    pub(crate) fn check_length(&self, bytes: u64) -> Result<(), Answer> {
        let limit = self.0.options.max_body;
        if bytes > limit as u64 { Err(Answer::too_large(limit)) } else { Ok(()) }
    }

    fn inspect(&self, headers: &HeaderMap, body: Bytes) -> Result<Event, Answer> {
        let now = self.0.options.clock.seconds();
        match self.0.inspector.open(headers, &body, now) {
            Ok(Arrival::Challenge(challenge)) => Err(Answer::challenge(challenge)),
            Ok(Arrival::Event(Inspected { id, event_type })) => {
                Ok(Event::new(id, event_type.unwrap_or_default(), body, headers.clone()))
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "refused a request");
                Err(Answer::refused(refusal.is_unauthorized(), refusal.to_string()))
            }
        }
    }

    async fn claim(&self, event: &Event) -> Result<Claim<L::Work>, LedgerError> {
        let wait_timeout = self.0.options.wait_timeout;
        match tokio::time::timeout(
            wait_timeout.saturating_add(LEDGER_TIMEOUT),
            self.0.ledger.claim(event, wait_timeout),
        )
        .await
        {
            Ok(claim) => claim,
            Err(_) => Err(LedgerError::Unavailable("no answer in time".into())),
        }
    }
}
