//! One attempt by hand. Success settles its delivery; failure changes nothing but the history.
//!
//! The caller waits for the attempt, so nothing has to be promised before it is made. A delivery that waits is
//! taken out of its lane meanwhile: no other attempt of it can be under way.

use crate::attempt::{Sender, Start};
use crate::dispatcher::{Event, Inbox};
use crate::lane::Standing;
use crate::recorder::Recorder;
use crate::target::Target;
use crate::{Clock, Policies, Profiles, Vault};
use aldaba_delivery::{Class, Ending, Timestamp, Transition, Verdict};
use aldaba_store::{
    DeliveryState, DeliveryStatus, Done, Endpoint, Error, Message, NewAttempt, Record, Resent, Seq, Store,
    Trigger, Waiting,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// How many may be under way at once.
const AT_ONCE: usize = 64;
/// How long until a result that the store had no room for is handed in again.
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResendError {
    #[error("an attempt of this delivery is being made")]
    InFlight,
    #[error("the endpoint gets its messages in order, and this one waits for its turn")]
    InOrder,
    #[error("the payload is gone")]
    NoPayload,
    #[error("as many attempts are made by hand as can be")]
    TooMany,
    #[error("nothing is sent now: the server is stopping, or cannot write results")]
    Paused,
    #[error(transparent)]
    Store(#[from] Error),
}

/// Whether a delivery may be attempted by hand.
pub(crate) enum Claim {
    Yes(Option<Waiting>),
    InFlight,
    Paused,
}

#[derive(Clone)]
pub(crate) struct Resender {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sender: Sender,
    pub(crate) recorder: Recorder,
    pub(crate) inbox: Inbox,
    pub(crate) policies: Policies,
    pub(crate) profiles: Profiles,
    pub(crate) vault: Vault,
    pub(crate) places: Arc<Semaphore>,
}

impl Resender {
    pub(crate) fn places() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(AT_ONCE))
    }

    /// Resolves when none is under way, and lets no more begin.
    pub(crate) async fn ended(&self) {
        let all = u32::try_from(AT_ONCE).unwrap_or(u32::MAX);
        if let Ok(permits) = self.places.acquire_many(all).await {
            permits.forget();
        }
    }

    /// Makes the attempt and records it. `true`: the receiver took it.
    pub(crate) async fn resend(self, endpoint: Endpoint, message: Message) -> Result<bool, ResendError> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| ResendError::TooMany)?;
        let round = self.round(&endpoint, &message).await?;
        let read = round.as_ref().and_then(waiting);
        if read.is_some() && endpoint.ordering.is_fifo() {
            return Err(ResendError::InOrder);
        }
        let now = self.clock.now();
        let claimed = match self.claim(&endpoint, read).await? {
            Claim::Yes(claimed) => claimed,
            Claim::InFlight => return Err(ResendError::InFlight),
            Claim::Paused => return Err(ResendError::Paused),
        };
        // In flight it cannot change any more; but it may have changed before.
        if let Some(claimed) = claimed
            && self.round(&endpoint, &message).await?.as_ref().and_then(waiting) != Some(claimed)
        {
            self.inbox.send(Event::Withdrawn(vec![(endpoint.id, claimed.seq, false)]));
            return Err(ResendError::InFlight);
        }
        let attempts = round.as_ref().map_or(0, |round| round.attempts);
        let nobody = Waiting { seq: Seq(0), message: message.id, due_at: now, attempts, clock_start: now };
        let start = Start {
            endpoint: endpoint.id,
            target: Arc::new(Target::new(&endpoint, &self.policies, &self.profiles, &self.vault)),
            waiting: claimed.unwrap_or(nobody),
            content: None,
            standing: Standing::Answers,
        };
        // From here on somebody else must end it: the caller may go away, and what was claimed is in flight.
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let made = self.attempt(start, claimed).await;
            drop(place);
            let _ = answer.send(made);
        });
        answered.await.map_err(|_| Error::Closed)?
    }

    /// The newest round of a message with an endpoint.
    async fn round(&self, endpoint: &Endpoint, message: &Message) -> Result<Option<DeliveryStatus>, Error> {
        let rounds = self.store.deliveries(message.id).await?;
        Ok(rounds.into_iter().rfind(|round| round.endpoint == endpoint.id))
    }

    async fn claim(&self, endpoint: &Endpoint, read: Option<Waiting>) -> Result<Claim, Error> {
        let (answer, answered) = oneshot::channel();
        self.inbox.send(Event::Claim(endpoint.id, endpoint.app, read, answer));
        answered.await.map_err(|_| Error::Closed)
    }

    async fn attempt(self, start: Start, claimed: Option<Waiting>) -> Result<bool, ResendError> {
        let sent = self.sender.send_by_hand(&start).await;
        let Some(sent) = sent else {
            self.put_back(&start, claimed);
            return Err(ResendError::NoPayload);
        };
        let class = Class::of(&start.target.policy, &sent.response.outcome);
        let success = class.verdict == Verdict::Delivered;
        let attempt = sent.noted(Trigger::Manual, success, &*self.sender.entropy);
        let at = self.clock.now();
        match claimed {
            Some(waiting) => self.record(&start, waiting, attempt, at),
            None => self.note(&start, attempt, at).await?,
        }
        Ok(success)
    }

    /// The delivery waited, and waits on as it did unless the attempt was a success.
    fn record(&self, start: &Start, waiting: Waiting, attempt: NewAttempt, at: Timestamp) {
        let (transition, again) = if attempt.success {
            (Transition::Settle(Ending::Delivered), None)
        } else {
            (Transition::Retry { due_at: waiting.due_at }, Some(waiting))
        };
        let record = Record {
            seq: waiting.seq,
            app: start.target.app,
            endpoint: start.endpoint,
            message: waiting.message,
            attempts_before: waiting.attempts,
            attempt: Some(attempt),
            transition,
            at,
            health: None,
            gates: Vec::new(),
        };
        self.recorder.submit(record, again);
    }

    /// The delivery was settled, or there was none.
    async fn note(&self, start: &Start, attempt: NewAttempt, at: Timestamp) -> Result<(), ResendError> {
        loop {
            let (answer, answered) = oneshot::channel();
            let done = Done::new(move |result: Result<(), Error>| drop(answer.send(result)));
            let (endpoint, message, attempt) = (start.endpoint, start.waiting.message, attempt.clone());
            self.store.resent(Resent { endpoint, message, attempt, at }, done);
            match answered.await.map_err(|_| Error::Closed)? {
                Ok(()) => return Ok(()),
                Err(Error::Full) => {
                    tracing::warn!(%message, "there is no room for the result of an attempt by hand; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn put_back(&self, start: &Start, claimed: Option<Waiting>) {
        if let Some(waiting) = claimed {
            self.inbox.send(Event::PutBack(start.endpoint, waiting));
        }
    }
}

fn waiting(round: &DeliveryStatus) -> Option<Waiting> {
    let DeliveryState::Waiting { due_at } = round.state else { return None };
    let DeliveryStatus { seq, message, attempts, clock_start, .. } = *round;
    Some(Waiting { seq, message, due_at, attempts, clock_start })
}
