//! The two writes of the hot path: an event comes in, a result is recorded.

use crate::operations::attempt;
use crate::{
    Application, Attempt, AuditEntry, DispatchKind, Endpoint, Error, GateRecord, NewMail, NewMessage, Notice,
    Seq, Trigger,
};
use aldaba_delivery::{
    AppId, AttemptId, EndpointId, FailureKind, Health, MessageId, OrgId, SkipReason, Timestamp, Transition,
};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What to do once the fate of a write is known.
pub struct Done<T>(Box<dyn FnOnce(Result<T, Error>) + Send>);

impl<T> Done<T> {
    pub fn new(then: impl FnOnce(Result<T, Error>) + Send + 'static) -> Self {
        Self(Box::new(then))
    }

    pub fn call(self, result: Result<T, Error>) {
        (self.0)(result);
    }
}

impl<T> fmt::Debug for Done<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Done")
    }
}

contract! {
    /// Takes events in.
    pub trait Accepts {
        writes {
            /// One commit for the whole batch, one result for each event, in order. [`Error::Busy`] at once
            /// when too many operations or bytes are waiting, or it would have to wait too long.
            accept(batch: Vec<Accept>) -> Vec<Accepted> = Accept(batch);

            /// The message that was accepted with an idempotency key. It is looked up in the order of the writes: an accept
            /// that was submitted before is found. [`Error::Busy`] as for [`Self::accept`].
            find_accepted(app: AppId, digest: RequestDigest) -> Option<MessageId> = FindAccepted(app, digest);
        }
    }
}

/// One event, matched to its endpoints.
#[derive(Clone, Debug)]
pub struct Accept {
    pub app: AppId,
    pub org: OrgId,
    /// The version of the application's configuration that the endpoints were matched by.
    pub version: u64,
    pub message: NewMessage,
    pub deliveries: Vec<NewDelivery>,
    pub idempotency: Option<IdempotencyKey>,
    /// `None`: it counts for nobody.
    pub quota: Option<Quota>,
    /// The address that it is dispatched to. It is made where it is not there; its id says all that it is.
    pub direct: Option<Box<Endpoint>>,
    /// Its application, where that is made with it: in the same commit, or not at all. [`Accepted::Stale`]: another one
    /// has its uid.
    pub creates: Option<Box<InlineApplication>>,
}

/// An application that is made with its first message.
#[derive(Clone, Debug)]
pub struct InlineApplication {
    pub application: Application,
    pub audit: Arc<AuditEntry>,
}

impl Accept {
    /// Whether a delivery is to take its place in the order of its endpoint later, when it is due.
    pub fn is_sequenced_later(&self, delivery: &NewDelivery) -> bool {
        delivery.ordered && self.message.deliver_at.is_some()
    }

    /// Whether it came in through a source.
    pub fn is_of_source(&self) -> bool {
        self.message.event_id_until.is_some()
    }

    pub fn dispatched(&self) -> Option<DispatchKind> {
        let how = if self.message.job.is_some() { DispatchKind::AsJob } else { DispatchKind::ByAddress };
        self.direct.as_ref().map(|_| how)
    }
}

/// How many messages may be sent on a day. Those that are accepted are counted in the same commit, so that no
/// crash forgets one or counts one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub org: OrgId,
    /// All applications of the organization together; `None`: any number.
    pub organization: Option<u64>,
    pub application: Option<u64>,
}

/// Whose quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaOf {
    Organization,
    Application,
}

impl Quota {
    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// Days since 1970, UTC.
    pub fn day_of(at: Timestamp) -> i64 {
        let day = i64::try_from(Self::DAY.as_millis()).unwrap_or(i64::MAX);
        at.millis().div_euclid(day)
    }

    /// When the day of this moment is over.
    pub fn next_day(at: Timestamp) -> Timestamp {
        let day = i64::try_from(Self::DAY.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis((Self::day_of(at) + 1).saturating_mul(day))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    pub endpoint: EndpointId,
    pub due_at: Timestamp,
    /// The endpoint is an ordered one.
    pub ordered: bool,
    /// It is settled from the beginning: nothing is to be sent.
    pub skipped: Option<SkipReason>,
}

/// A request that must have its effect once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub digest: RequestDigest,
    pub expires_at: Timestamp,
}

/// Identifies a request and its repeats. Rows are kept under the current digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDigest {
    pub current: [u8; 16],
    /// The digest that servers made before keys were freed of their credentials. Rows with it are honoured until they
    /// expire, 30 days at most (`idempotency_hours`). Remove the field in the first release that comes 30 days later.
    pub former: Option<[u8; 16]>,
}

impl RequestDigest {
    /// Those under which a row may be kept, the current one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8; 16]> {
        std::iter::once(&self.current).chain(&self.former)
    }
}

impl From<[u8; 16]> for RequestDigest {
    fn from(current: [u8; 16]) -> Self {
        Self { current, former: None }
    }
}

/// What became of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Stored. Its deliveries got the numbers from `first` on, in their order.
    New { first: Seq },
    /// The idempotency key was used before: nothing was stored, this is the first one's message.
    Repeated { message: MessageId },
    /// The application already has a message with this event id; nothing was stored.
    EventIdTaken { message: MessageId },
    /// The application has changed or is gone: match again. Nothing was stored.
    Stale,
    /// As many messages as may be were sent today. Nothing was stored.
    OverQuota(QuotaOf),
    /// The address names a policy that is not there. Nothing was stored.
    NoSuchPolicy,
    /// The address names a wire profile that is not there. Nothing was stored.
    NoSuchProfile,
    /// The database refuses a value of it. Nothing of it was stored; its neighbours are not concerned.
    Refused(String),
}

contract! {
    /// Records what happened to deliveries.
    pub trait Records {
        writes {
            /// One commit for the whole batch: attempt rows, transitions, health, gates and counters. Never
            /// refused as busy: the number of results is bounded by the requests in flight.
            record(batch: Vec<Record>) -> Vec<Recorded> = Record(batch);

            /// An attempt that was made by hand for a delivery that does not wait, or for a message that the endpoint
            /// was never sent. It is kept in the history, and a success settles the delivery.
            record_manual(resent: ManualRecord) -> () = RecordManual(Box::new(resent));
        }
        reads {
            /// The attempt by hand that was recorded with this key.
            read attempt_of_key(app: AppId, digest: RequestDigest) -> Option<AttemptId>
                = |reading| attempt::of_key(reading, app, &digest);
        }
    }
}

#[derive(Clone, Debug)]
pub struct ManualRecord {
    pub org: OrgId,
    pub endpoint: EndpointId,
    pub message: MessageId,
    pub attempt: NewAttempt,
    pub at: Timestamp,
    /// For the audit log, where somebody has asked for it.
    pub audit: Option<Arc<AuditEntry>>,
    /// Kept with the attempt, or not at all.
    pub idempotency: Option<IdempotencyKey>,
}

/// One result, with everything that it changes.
#[derive(Clone, Debug)]
pub struct Record {
    pub seq: Seq,
    /// For the counters. `None`: that of its endpoint is read.
    pub org: Option<OrgId>,
    pub app: AppId,
    pub endpoint: EndpointId,
    pub message: MessageId,
    /// When the delivery might first go out: the later of its creation, its `deliverAt`, its release and its replay.
    pub clock_start: Timestamp,
    /// The fence: the delivery must still be waiting with this many attempts, or nothing is written.
    pub attempts_before: u32,
    /// Absent when the delivery ends without one: overdue, cancelled.
    pub attempt: Option<NewAttempt>,
    pub transition: Transition,
    /// When it was decided.
    pub at: Timestamp,
    /// The endpoint's health, where it changed. If a hand has changed it since (its epoch is no longer the
    /// same), only what the receiver asked for (`quiet_until`) is added.
    pub health: Option<Health>,
    /// Gates that changed; a clear gate is removed.
    pub gates: Vec<GateRecord>,
    pub notices: Vec<Notice>,
    /// Told by mail, if the new health that they are about is written.
    pub mails: Vec<NewMail>,
    /// For the audit log, where somebody has asked for it. Records that share an entry leave one row, with how
    /// many of them were applied.
    pub audit: Option<Arc<AuditEntry>>,
    /// Of a request for this attempt; kept if the record is applied.
    pub idempotency: Option<IdempotencyKey>,
}

impl Record {
    /// Whether it uses up one of the attempts that the policy allows: one by hand does not.
    pub fn counts(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.trigger.counts())
    }

    /// Whether it is of an attempt by hand. One that fails leaves the delivery as it is, its due time too, whatever
    /// `transition` says: that may be older than a correction of due times.
    pub fn is_manual(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.trigger == Trigger::Manual)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAttempt {
    pub id: AttemptId,
    pub started_at: Timestamp,
    pub duration: Duration,
    pub status_code: Option<u16>,
    /// How it failed, when no answer came.
    pub failure: Option<FailureKind>,
    /// The text of a failure; empty for a success.
    pub error: String,
    /// What is kept of the response body.
    pub response: Bytes,
    pub trigger: Trigger,
    /// Whether the attempt was a success under the policy.
    pub success: bool,
    /// What it was about; for the counters.
    pub event_type: Arc<str>,
}

impl NewAttempt {
    /// As it is read back.
    pub fn of(self, (seq, endpoint, message): (Seq, EndpointId, MessageId)) -> Attempt {
        Attempt {
            id: self.id,
            seq,
            message,
            endpoint,
            started_at: self.started_at,
            duration: self.duration,
            status_code: self.status_code,
            failure: self.failure,
            error: self.error,
            response: self.response,
            trigger: self.trigger,
            success: self.success,
        }
    }

    /// It has failed, and nobody has asked for it: it says something of the endpoint's health.
    pub fn is_own_failure(&self) -> bool {
        !self.success && self.trigger != Trigger::Manual
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    Applied,
    /// The delivery is no longer what the record was made for. Nothing was written.
    Fenced,
    /// The database refuses a value of it. Nothing of it was written; its neighbours are not concerned.
    Refused(String),
}
