//! From a request to the moment at which its handler may work.

use crate::begun::{Begun, Task};
use crate::{Answer, Claim, Event, Ledger, LedgerError, Receiver};
use aldaba_signature::inbound::{Arrival, Inspected};
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::time::Duration;

/// What a ledger may take beside the patience. Past it, it counts as not available.
pub(crate) const LEDGER_TIME: Duration = Duration::from_secs(10);

/// What came of a request.
#[derive(Debug)]
pub enum Opening<L: Ledger> {
    /// There is nothing to handle: this is the answer.
    Answered(Answer),
    /// The event is new, and the caller's until it is ended.
    Begun(Begun<L>),
}

impl<L: Ledger> Receiver<L> {
    /// Checks the signature before anything else is looked at, then asks the ledger whether the event is new. Waits while
    /// somebody else is at the same event, as long as the patience lasts.
    ///
    /// The body is taken as it came: any change to it, such as parsing and writing it again, breaks the signature.
    pub async fn open(&self, method: &Method, headers: &HeaderMap, body: Bytes) -> Opening<L> {
        match self.try_open(method, headers, body).await {
            Ok(begun) => Opening::Begun(begun),
            Err(answer) => {
                self.0.counters.event(answer.outcome());
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
                    "an event came with an id that is known with another body; it was refused: the sender uses an id twice, \
                     or somebody who has its secret changes events"
                );
                Err(Answer::other_body())
            }
            Err(error) => {
                tracing::error!(event_id = event.id, %error, "an event was refused because the ledger did not answer");
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
                tracing::debug!(%refusal, "a request was refused");
                Err(Answer::refused(refusal.is_unauthorized(), refusal.to_string()))
            }
        }
    }

    async fn claim(&self, event: &Event) -> Result<Claim<L::Work>, LedgerError> {
        let patience = self.0.options.patience;
        match tokio::time::timeout(patience.saturating_add(LEDGER_TIME), self.0.ledger.claim(event, patience))
            .await
        {
            Ok(claim) => claim,
            Err(_) => Err(LedgerError::Unavailable("it did not answer in time".into())),
        }
    }
}
