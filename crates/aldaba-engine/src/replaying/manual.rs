//! One attempt by hand. Success settles its delivery; failure changes nothing but the history.
//!
//! The caller waits for the attempt, so nothing has to be promised before it is made. A delivery that waits is
//! taken out of its lane meanwhile: no other attempt of it can be under way.

mod permits;

use crate::configuration::IdempotencyDigest;
use crate::delivering::Target;
use crate::delivering::{AttemptRequest, Sender};
use crate::scheduling::LaneClass;
use crate::scheduling::{Event, Inbox};
use crate::{Clock, Policies, Profiles, Vault};
use aldaba_delivery::{AttemptId, Class, EndpointId, MessageId, Timestamp, Transition, Verdict};
use aldaba_store::{
    Attempt, AuditEntry, DeliveryStatus, Done, Endpoint, Error, IdempotencyKey, ManualRecord, Message,
    NewAttempt, PendingDelivery, Record, Recorded, Seq, Store, Trigger,
};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

pub(crate) use permits::ManualPermits;

/// How long until a result that the store had no room for is handed in again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResendError {
    #[error("an attempt of this delivery is being made")]
    InFlight,
    #[error("the endpoint gets its messages in order, and this one waits for its turn")]
    InOrder,
    #[error("the endpoint is disabled")]
    Disabled,
    #[error("the endpoint is gone")]
    NoEndpoint,
    #[error("the payload is gone")]
    NoPayload,
    #[error("the message has headers of its own, which are for another address")]
    ForAnother,
    #[error("as many attempts are made by hand as can be")]
    TooMany,
    #[error("nothing is sent now: the server is stopping, or cannot write results")]
    Paused,
    #[error(transparent)]
    Store(#[from] Error),
}

/// Whether a delivery may be attempted by hand.
pub(crate) enum Reservation {
    Granted(Option<PendingDelivery>),
    InFlight,
    Paused,
}

#[derive(Clone)]
pub(crate) struct Resender {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sender: Sender,
    pub(crate) inbox: Inbox,
    pub(crate) policies: Policies,
    pub(crate) profiles: Profiles,
    pub(crate) vault: Vault,
    pub(crate) permits: ManualPermits,
    pub(crate) idempotency_kept: Duration,
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub struct NewResend {
    pub endpoint: Endpoint,
    pub message: Message,
    /// The attempt's row in the audit log.
    pub audit: Arc<AuditEntry>,
    pub once: IdempotencyDigest,
}

/// An attempt by hand that is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManualAttempt {
    Made(Box<Attempt>),
    /// A former request with the same key had made this one; nothing was sent.
    Repeated(AttemptId),
}

impl ManualAttempt {
    /// Whether the receiver took it just now.
    pub fn is_delivered(&self) -> bool {
        matches!(self, Self::Made(attempt) if attempt.success)
    }
}

impl Resender {
    /// Resolves when none is under way, and lets no more begin.
    pub(crate) async fn ended(&self) {
        self.permits.close().await;
    }

    /// Makes the attempt; it is on disk when this returns.
    pub(crate) async fn resend(self, asked: NewResend) -> Result<ManualAttempt, ResendError> {
        let which = (asked.endpoint.id, asked.message.id);
        let permit = match self.permits.take(asked.endpoint.app, which) {
            Ok(permit) => permit,
            Err(refused) => {
                let before = self.made_before(&asked).await?;
                return before.map(ManualAttempt::Repeated).ok_or(refused);
            }
        };
        // Somebody else must end it: the caller may go away, and what was claimed is in flight.
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let made = self.run(&asked).await;
            drop(permit);
            let _ = answer.send(made);
        });
        answered.await.map_err(|_| Error::Closed)?
    }

    /// The attempt that a key stands for, if it is on disk. Whoever has the delivery's permit can rely on a no:
    /// requests with the same key are for the same delivery. One that was sent but not recorded may be
    /// repeated, as after every crash.
    async fn made_before(&self, asked: &NewResend) -> Result<Option<AttemptId>, Error> {
        match asked.once {
            Some(digest) => self.store.attempt_of_key(asked.endpoint.app, digest).await,
            None => Ok(None),
        }
    }

    async fn run(&self, asked: &NewResend) -> Result<ManualAttempt, ResendError> {
        let (endpoint, message) = (&asked.endpoint, asked.message.id);
        if let Some(before) = self.made_before(asked).await? {
            return Ok(ManualAttempt::Repeated(before));
        }
        let has_headers = asked.message.content.sealed_headers.is_some();
        if endpoint.direct && has_headers && asked.message.only_for != Some(endpoint.id) {
            return Err(ResendError::ForAnother);
        }
        let round = self.round(endpoint.id, message).await?;
        let waits = round.as_ref().and_then(waiting);
        if !endpoint.config.ordering.allows_manual_attempt(waits.is_some()) {
            return Err(ResendError::InOrder);
        }
        let target = Arc::new(self.target(endpoint));
        let claimed = match self.reserve(endpoint, waits).await? {
            Reservation::Granted(claimed) => claimed,
            Reservation::InFlight => return Err(ResendError::InFlight),
            Reservation::Paused => return Err(ResendError::Paused),
        };
        let attempts = round.as_ref().map_or(0, |round| round.attempts);
        let now = self.clock.now();
        let nobody = PendingDelivery {
            seq: Seq(0),
            message,
            due_at: now,
            attempts,
            clock_start: now,
            replayed: false,
            sequence: None,
        };
        let start = AttemptRequest {
            endpoint: endpoint.id,
            target,
            waiting: claimed.unwrap_or(nobody),
            content: None,
            lane_class: LaneClass::Responsive,
        };
        // A panic is a bug of ours, and must not leave a delivery in flight for ever.
        let attempt = AssertUnwindSafe(self.attempt(asked, start, claimed)).catch_unwind();
        let made = attempt.await.unwrap_or_else(|_| {
            tracing::error!(endpoint = %endpoint.id, %message, "a bug: an attempt by hand panicked");
            Err(Error::Failed("an attempt by hand panicked".into()).into())
        });
        if let Some(claimed) = claimed {
            self.inbox.send(landing(endpoint.id, claimed, &made));
        }
        Ok(ManualAttempt::Made(made?.attempt))
    }

    async fn attempt(
        &self,
        asked: &NewResend,
        mut start: AttemptRequest,
        claimed: Option<PendingDelivery>,
    ) -> Result<Made, ResendError> {
        let held = self.sender.load(&start).await?.ok_or(ResendError::NoPayload)?;
        // That took time, and what was changed meanwhile counts. In flight the delivery itself cannot
        // change any more, but it may have changed before.
        if let Some(claimed) = claimed {
            let round = self.round(start.endpoint, claimed.message).await?;
            if !round.as_ref().and_then(waiting).is_some_and(|now| is_same(now, claimed)) {
                return Err(ResendError::InFlight);
            }
        }
        let endpoint = self.endpoint(start.endpoint).await?;
        if !endpoint.config.ordering.allows_manual_attempt(claimed.is_some()) {
            return Err(ResendError::InOrder);
        }
        start.target = Arc::new(self.target(&endpoint));
        if held.is_deleted() {
            return Err(ResendError::NoPayload);
        }
        let sent = self.sender.send_by_hand(&start, held).await;
        let class = Class::of(&start.target.policy, &sent.response.outcome);
        let delivered = class.verdict == Verdict::Delivered;
        let attempt = sent.noted(Trigger::Manual, delivered, &*self.sender.entropy);
        let at = self.clock.now();
        let made = attempt.clone().of((start.waiting.seq, start.endpoint, start.waiting.message));
        match claimed {
            Some(waiting) => {
                let transition = Transition::after_manual_attempt(class.verdict, waiting.due_at);
                self.record(asked, &start, (waiting, transition), attempt, at).await?;
            }
            None => self.note(asked, &start, attempt, at).await?,
        }
        Ok(Made { attempt: Box::new(made), waits: claimed.is_some() && !delivered })
    }

    /// The newest round of a message with an endpoint.
    async fn round(&self, endpoint: EndpointId, message: MessageId) -> Result<Option<DeliveryStatus>, Error> {
        let rounds = self.store.deliveries(message).await?;
        Ok(rounds.into_iter().rfind(|round| round.endpoint == endpoint))
    }

    async fn endpoint(&self, id: EndpointId) -> Result<Endpoint, ResendError> {
        let found = self.store.lane_endpoints(vec![id]).await?.pop();
        let endpoint = found.filter(|endpoint| !endpoint.deleted).ok_or(ResendError::NoEndpoint)?;
        if endpoint.config.disabled { Err(ResendError::Disabled) } else { Ok(endpoint) }
    }

    pub(crate) fn target(&self, endpoint: &Endpoint) -> Target {
        Target::new(endpoint, &self.policies, &self.profiles, &self.vault)
    }

    async fn reserve(
        &self,
        endpoint: &Endpoint,
        read: Option<PendingDelivery>,
    ) -> Result<Reservation, Error> {
        let claim = self.inbox.ask(|answer| Event::Reserve(endpoint.id, endpoint.app, read, answer));
        claim.await.ok_or(Error::Closed)
    }

    /// The delivery waited, and waits on as it did unless the attempt was a success.
    async fn record(
        &self,
        asked: &NewResend,
        start: &AttemptRequest,
        (waiting, transition): (PendingDelivery, Transition),
        attempt: NewAttempt,
        at: Timestamp,
    ) -> Result<(), ResendError> {
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
            notices: Vec::new(),
            audit: Some(asked.audit.clone()),
            idempotency: self.key(asked, at),
        };
        let mut recorded = until_room(|done| self.store.record(vec![record.clone()], done)).await?;
        match recorded.pop() {
            Some(Recorded::Applied) => Ok(()),
            Some(Recorded::Refused(why)) => Err(Error::Refused(why).into()),
            Some(Recorded::Fenced) | None => {
                tracing::warn!(endpoint = %record.endpoint, message_id = %record.message, "a late record was refused");
                Err(ResendError::InFlight)
            }
        }
    }

    /// The delivery was settled, or there was none.
    async fn note(
        &self,
        asked: &NewResend,
        start: &AttemptRequest,
        attempt: NewAttempt,
        at: Timestamp,
    ) -> Result<(), Error> {
        let (endpoint, message) = (start.endpoint, start.waiting.message);
        let (audit, idempotency) = (Some(asked.audit.clone()), self.key(asked, at));
        let resent = ManualRecord { endpoint, message, attempt, at, audit, idempotency };
        until_room(|done| self.store.record_manual(resent.clone(), done)).await
    }

    fn key(&self, asked: &NewResend, at: Timestamp) -> Option<IdempotencyKey> {
        asked.once.map(|digest| IdempotencyKey { digest, expires_at: at + self.idempotency_kept })
    }
}

/// An attempt that is on disk.
struct Made {
    attempt: Box<Attempt>,
    /// What was claimed waits as it did.
    waits: bool,
}

/// What its lane is told of a delivery that was claimed.
fn landing(endpoint: EndpointId, claimed: PendingDelivery, made: &Result<Made, ResendError>) -> Event {
    match made {
        Ok(Made { waits: true, .. }) => Event::ReservationReturned(endpoint, claimed),
        // Without a result the store must say whether it waits at all: what was claimed may have been read
        // before it ended.
        other => Event::ReservationsEnded(vec![(endpoint, claimed.seq, other.is_ok())]),
    }
}

/// Hands a result in until the store has room for it: nobody else knows of it.
async fn until_room<T: Send + 'static>(write: impl Fn(Done<T>)) -> Result<T, Error> {
    loop {
        let (answer, answered) = oneshot::channel();
        write(Done::new(move |result| drop(answer.send(result))));
        match answered.await.map_err(|_| Error::Closed)? {
            Err(error @ (Error::Full | Error::Unavailable(_))) => {
                tracing::warn!(%error, "the result of an attempt by hand cannot be stored; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
            }
            result => return result,
        }
    }
}

/// Whether it still waits as it did. When its clock started a lane may know better than the store.
fn is_same(now: PendingDelivery, claimed: PendingDelivery) -> bool {
    (now.seq, now.attempts, now.due_at) == (claimed.seq, claimed.attempts, claimed.due_at)
}

fn waiting(round: &DeliveryStatus) -> Option<PendingDelivery> {
    round.waiting()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_without_a_result_does_not_go_back_to_its_lane_as_it_was_read() {
        let (endpoint, now) = (EndpointId::from_bytes([1; 20]), Timestamp::from_millis(0));
        let message = MessageId::from_bytes([2; 20]);
        let claimed = PendingDelivery {
            seq: Seq(7),
            message,
            due_at: now,
            attempts: 1,
            clock_start: now,
            replayed: false,
            sequence: Some(Seq(7)),
        };
        let told = |made| landing(endpoint, claimed, &made);
        let ended = |event| match event {
            Event::ReservationsEnded(rows) => rows[..] == [(endpoint, Seq(7), true)],
            _ => panic!("it waits on"),
        };
        // It may have ended since it was read: the store must say.
        for error in [ResendError::Store(Error::Timeout), ResendError::InFlight, ResendError::NoPayload] {
            assert!(!ended(told(Err(error))));
        }
        let made = |success, waits| {
            let attempt = NewAttempt {
                id: AttemptId::from_bytes([3; 20]),
                started_at: now,
                duration: Duration::ZERO,
                status_code: None,
                failure: None,
                error: String::new(),
                response: bytes::Bytes::new(),
                trigger: Trigger::Manual,
                success,
                event_type: "a".into(),
            };
            Made { attempt: Box::new(attempt.of((Seq(7), endpoint, message))), waits }
        };
        assert!(ended(told(Ok(made(true, false)))));
        let again = told(Ok(made(false, true)));
        assert!(matches!(again, Event::ReservationReturned(_, waiting) if waiting == claimed));
    }
}
