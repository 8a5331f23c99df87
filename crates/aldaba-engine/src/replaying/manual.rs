//! A manual attempt: one attempt of a delivery that a person asks for. Success settles the delivery; a failure changes
//! nothing but the history.
//!
//! The caller waits for the attempt, so nothing has to be promised before it is made. A pending delivery is reserved
//! meanwhile: no other attempt of it can start.

mod permits;

use crate::configuration::IdempotencyDigest;
use crate::delivering::{AttemptRequest, Sender, Target};
use crate::scheduling::{Inbox, LaneClass, SchedulingCommand, SchedulingEvent};
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

/// How long until a result that the store could not write is submitted again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResendError {
    #[error("an attempt of this delivery is in flight")]
    InFlight,
    #[error("the endpoint gets its messages in order, and this one waits for an earlier one")]
    InOrder,
    #[error("the endpoint is disabled")]
    Disabled,
    #[error("the endpoint was deleted")]
    NoEndpoint,
    #[error("the payload was removed")]
    NoPayload,
    #[error("the message has headers of its own, which are for another address")]
    ForAnother,
    #[error("too many manual attempts are in flight")]
    TooMany,
    #[error("nothing is sent now: the server is stopping, or cannot write results")]
    Paused,
    #[error(transparent)]
    Store(#[from] Error),
}

/// The answer to a request to reserve a delivery.
pub(crate) enum Reservation {
    /// The delivery, if it was pending.
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

/// The manual attempt that a person asks for.
#[derive(Clone, Debug)]
pub struct NewResend {
    pub endpoint: Endpoint,
    pub message: Message,
    /// The attempt's row in the audit log.
    pub audit: Arc<AuditEntry>,
    pub once: IdempotencyDigest,
}

/// A manual attempt that is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManualAttempt {
    Made(Box<Attempt>),
    /// An earlier request with the same key made this attempt. Nothing was sent.
    Repeated(AttemptId),
}

impl ManualAttempt {
    /// Whether this request made the attempt, and it succeeded.
    pub fn is_delivered(&self) -> bool {
        matches!(self, Self::Made(attempt) if attempt.success)
    }
}

impl Resender {
    /// Lets no more attempts begin, and resolves when none is in flight.
    pub(crate) async fn ended(&self) {
        self.permits.close().await;
    }

    /// Makes the attempt. It is on disk when this returns.
    pub(crate) async fn resend(self, asked: NewResend) -> Result<ManualAttempt, ResendError> {
        let which = (asked.endpoint.id, asked.message.id);
        let permit = match self.permits.take(asked.endpoint.app, which) {
            Ok(permit) => permit,
            Err(refused) => {
                let before = self.made_before(&asked).await?;
                return before.map(ManualAttempt::Repeated).ok_or(refused);
            }
        };
        // A task of its own: the caller may disconnect, and a reserved delivery must be released.
        let (answer, answered) = oneshot::channel();
        tokio::spawn(async move {
            let made = self.run(&asked).await;
            drop(permit);
            let _ = answer.send(made);
        });
        answered.await.map_err(|_| Error::Closed)?
    }

    /// The attempt that an earlier request with the same key made. For the holder of the permit `None` is reliable:
    /// requests with the same key are for the same delivery. An attempt that was sent but not recorded may be repeated, as
    /// after every crash.
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
        let pending = round.as_ref().and_then(DeliveryStatus::waiting);
        if !endpoint.config.ordering.allows_manual_attempt(pending.is_some()) {
            return Err(ResendError::InOrder);
        }
        let target = Arc::new(self.target(endpoint));
        let reserved = match self.reserve(endpoint, pending).await? {
            Reservation::Granted(reserved) => reserved,
            Reservation::InFlight => return Err(ResendError::InFlight),
            Reservation::Paused => return Err(ResendError::Paused),
        };
        let attempts = round.as_ref().map_or(0, |round| round.attempts);
        let now = self.clock.now();
        let not_pending = PendingDelivery {
            seq: Seq(0),
            message,
            due_at: now,
            attempts,
            clock_start: now,
            replayed: false,
            sequence: None,
        };
        let request = AttemptRequest {
            endpoint: endpoint.id,
            target,
            pending: reserved.unwrap_or(not_pending),
            content: None,
            lane_class: LaneClass::Responsive,
        };
        // A panic is a bug, and must not leave a delivery in flight for ever.
        let attempt = AssertUnwindSafe(self.attempt(asked, request, reserved)).catch_unwind();
        let made = attempt.await.unwrap_or_else(|_| {
            tracing::error!(endpoint = %endpoint.id, %message, "a bug: a manual attempt panicked");
            Err(Error::Failed("a manual attempt panicked".into()).into())
        });
        if let Some(reserved) = reserved {
            self.inbox.send(reservation_end(endpoint.id, reserved, &made));
        }
        Ok(ManualAttempt::Made(made?.attempt))
    }

    async fn attempt(
        &self,
        asked: &NewResend,
        mut request: AttemptRequest,
        reserved: Option<PendingDelivery>,
    ) -> Result<MadeAttempt, ResendError> {
        let content = self.sender.load(&request).await?.ok_or(ResendError::NoPayload)?;
        // Changes since the first reads count. A reserved delivery cannot change any more, but it may have changed before
        // it was reserved.
        if let Some(reserved) = reserved {
            let round = self.round(request.endpoint, reserved.message).await?;
            let now = round.as_ref().and_then(DeliveryStatus::waiting);
            if !now.is_some_and(|now| is_same(now, reserved)) {
                return Err(ResendError::InFlight);
            }
        }
        let endpoint = self.endpoint(request.endpoint).await?;
        if !endpoint.config.ordering.allows_manual_attempt(reserved.is_some()) {
            return Err(ResendError::InOrder);
        }
        request.target = Arc::new(self.target(&endpoint));
        if content.is_deleted() {
            return Err(ResendError::NoPayload);
        }
        let result = self.sender.request(&request, content).await;
        let class = Class::of(&request.target.policy, &result.response.outcome);
        let delivered = class.verdict == Verdict::Delivered;
        let attempt = result.into_attempt(Trigger::Manual, delivered, &*self.sender.entropy);
        let at = self.clock.now();
        let made = attempt.clone().of((request.pending.seq, request.endpoint, request.pending.message));
        match reserved {
            Some(pending) => {
                let transition = Transition::after_manual_attempt(class.verdict, pending.due_at);
                self.record(asked, &request, (pending, transition), attempt, at).await?;
            }
            None => self.record_manual(asked, &request, attempt, at).await?,
        }
        Ok(MadeAttempt { attempt: Box::new(made), still_pending: reserved.is_some() && !delivered })
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
        let (id, app) = (endpoint.id, endpoint.app);
        let reservation = self.inbox.ask(|answer| SchedulingCommand::Reserve(id, app, read, answer));
        reservation.await.ok_or(Error::Closed)
    }

    /// Records the attempt of a pending delivery, which stays pending unless the attempt succeeded.
    async fn record(
        &self,
        asked: &NewResend,
        request: &AttemptRequest,
        (pending, transition): (PendingDelivery, Transition),
        attempt: NewAttempt,
        at: Timestamp,
    ) -> Result<(), ResendError> {
        let record = Record {
            seq: pending.seq,
            org: Some(request.target.org),
            app: request.target.app,
            endpoint: request.endpoint,
            message: pending.message,
            clock_start: pending.clock_start,
            attempts_before: pending.attempts,
            attempt: Some(attempt),
            transition,
            at,
            health: None,
            gates: Vec::new(),
            notices: Vec::new(),
            mails: Vec::new(),
            audit: Some(asked.audit.clone()),
            idempotency: self.key(asked, at),
        };
        let mut recorded = until_written(|done| self.store.record(vec![record.clone()], done)).await?;
        match recorded.pop() {
            Some(Recorded::Applied) => Ok(()),
            Some(Recorded::Refused(why)) => Err(Error::Refused(why).into()),
            Some(Recorded::Fenced) | None => {
                tracing::warn!(endpoint = %record.endpoint, message_id = %record.message, "a late record was refused");
                Err(ResendError::InFlight)
            }
        }
    }

    /// Records the attempt of a delivery that is settled, or of a message that was never sent to the endpoint.
    async fn record_manual(
        &self,
        asked: &NewResend,
        request: &AttemptRequest,
        attempt: NewAttempt,
        at: Timestamp,
    ) -> Result<(), Error> {
        let (endpoint, message) = (request.endpoint, request.pending.message);
        let (audit, idempotency) = (Some(asked.audit.clone()), self.key(asked, at));
        let org = request.target.org;
        let record = ManualRecord { org, endpoint, message, attempt, at, audit, idempotency };
        until_written(|done| self.store.record_manual(record.clone(), done)).await
    }

    fn key(&self, asked: &NewResend, at: Timestamp) -> Option<IdempotencyKey> {
        asked.once.map(|digest| IdempotencyKey { digest, expires_at: at + self.idempotency_kept })
    }
}

/// An attempt that is on disk.
struct MadeAttempt {
    attempt: Box<Attempt>,
    /// The reserved delivery is pending as before.
    still_pending: bool,
}

/// What the lane is told of a delivery that was reserved.
fn reservation_end(
    endpoint: EndpointId,
    reserved: PendingDelivery,
    made: &Result<MadeAttempt, ResendError>,
) -> SchedulingEvent {
    match made {
        Ok(MadeAttempt { still_pending: true, .. }) => {
            SchedulingEvent::ReservationReturned(endpoint, reserved)
        }
        // Without a result the lane must ask the store: the delivery may have been read before it ended.
        other => SchedulingEvent::ReservationsEnded(vec![(endpoint, reserved.seq, other.is_ok())]),
    }
}

/// Submits a result until the store can write it: nothing else knows of it.
async fn until_written<T: Send + 'static>(write: impl Fn(Done<T>)) -> Result<T, Error> {
    loop {
        let (answer, answered) = oneshot::channel();
        write(Done::new(move |result| drop(answer.send(result))));
        match answered.await.map_err(|_| Error::Closed)? {
            Err(error @ (Error::Full | Error::Unavailable(_))) => {
                tracing::warn!(%error, "cannot record a manual attempt; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
            }
            result => return result,
        }
    }
}

/// Whether the delivery is pending as it was. The lane may know the start of its stop-date clock better than the store.
fn is_same(now: PendingDelivery, reserved: PendingDelivery) -> bool {
    (now.seq, now.attempts, now.due_at) == (reserved.seq, reserved.attempts, reserved.due_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_without_a_result_does_not_return_to_its_lane_as_it_was_read() {
        let (endpoint, now) = (EndpointId::from_bytes([1; 20]), Timestamp::from_millis(0));
        let message = MessageId::from_bytes([2; 20]);
        let reserved = PendingDelivery {
            seq: Seq(7),
            message,
            due_at: now,
            attempts: 1,
            clock_start: now,
            replayed: false,
            sequence: Some(Seq(7)),
        };
        let told = |made| reservation_end(endpoint, reserved, &made);
        let ended = |event| match event {
            SchedulingEvent::ReservationsEnded(rows) => rows[..] == [(endpoint, Seq(7), true)],
            _ => panic!("it waits on"),
        };
        // It may have ended since it was read: the lane must ask the store.
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
            MadeAttempt { attempt: Box::new(attempt.of((Seq(7), endpoint, message))), still_pending: waits }
        };
        assert!(ended(told(Ok(made(true, false)))));
        let again = told(Ok(made(false, true)));
        assert!(matches!(again, SchedulingEvent::ReservationReturned(_, waiting) if waiting == reserved));
    }
}
