//! What happened, in one order over all lives of the server.

mod inbound;

pub use inbound::{Heard, InboundRequest, Said, SourceAction, SourceCommit};

use aldaba_delivery::{
    AppId, EndpointId, FailureKind, GateKey, Health, MessageId, Ordering, OrgId, Timestamp, Transition,
};
use aldaba_store::{DeliveryStatus, NewAttempt, Recorded, RemovedCounts, Seq, Trigger};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

/// The position of something in the one order of everything.
pub type Step = u64;

#[derive(Clone, Debug, Default)]
pub struct Log {
    steps: Step,
    pub requests: Vec<Request>,
    pub records: Vec<RecordCommit>,
    pub accepts: Vec<AcceptCommit>,
    pub refusals: Vec<Refusal>,
    pub deletions: Vec<Deletion>,
    pub orderings: Vec<OrderingCommit>,
    /// When deliveries whose messages were for later took their places at ordered endpoints.
    pub places: BTreeMap<Seq, PlaceCommit>,
    pub removals: Vec<RemovalCommit>,
    /// What retention has removed, commit by commit.
    pub removed: Vec<(Timestamp, RemovedCounts)>,
    /// The highest number that a delivery or a place was given.
    pub last_seq: i64,
    /// How often somebody has heard of a commit before others had heard of an earlier one, of other applications.
    pub overtakings: u64,
    /// Reads and writes that the database has refused.
    pub failures: Vec<String>,
    /// When rounds of a delivery began that were opened by a replay, or by a sender's repeat.
    pub rounds: BTreeMap<Seq, Step>,
    /// Endpoints that a sender's repeat has opened an event for, each with whether all that it was for before were deleted.
    pub passed_on: BTreeMap<(MessageId, EndpointId), bool>,
    pub operator_changes: Vec<OperatorChange>,
    pub gate_releases: Vec<GateRelease>,
    pub resends: Vec<Resend>,
    /// Messages whose payloads are deleted, and when that was answered.
    pub expunged: Vec<(MessageId, Step)>,
    /// What was sent to sources.
    pub inbound: Vec<InboundRequest>,
    pub sources: Vec<SourceCommit>,
    pub lives: Vec<Life>,
    /// One line for everything that happened, if wanted.
    pub trace: Option<Vec<String>>,
}

/// One request as the receiver's side saw it.
#[derive(Clone, Debug)]
pub struct Request {
    pub step: Step,
    pub at: Timestamp,
    pub life: usize,
    /// The endpoint's number in the scenario.
    pub door: usize,
    pub message: MessageId,
    pub signed: bool,
    pub body: Bytes,
    /// What came in with it through a source, unchanged.
    pub label: Option<String>,
    /// `None`: it was on the wire when the process died.
    pub end: Option<RequestEnd>,
}

#[derive(Clone, Copy, Debug)]
pub struct RequestEnd {
    pub step: Step,
    pub at: Timestamp,
    pub fate: Fate,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Answered { status: u16, retry_after: Option<Duration> },
    Failed(FailureKind),
    Panicked,
}

/// A result that reached the disk, or was fenced.
#[derive(Clone, Debug)]
pub struct RecordCommit {
    pub step: Step,
    pub at: Timestamp,
    pub life: usize,
    pub seq: Seq,
    pub endpoint: EndpointId,
    pub decided_at: Timestamp,
    pub attempt: Option<NewAttempt>,
    pub transition: Transition,
    /// What it was to make of the endpoint's health.
    pub health: Option<Health>,
    pub gates: Vec<Hold>,
    pub result: Recorded,
}

/// A gate that was written as held.
#[derive(Clone, Debug)]
pub struct Hold {
    pub key: GateKey,
    pub until: Timestamp,
    /// The failure that each lane counts its own policy's longest hold from.
    pub failed_at: Timestamp,
}

/// An event that reached the disk.
#[derive(Clone, Debug)]
pub struct AcceptCommit {
    pub step: Step,
    pub at: Timestamp,
    pub org: OrgId,
    pub app: AppId,
    pub message: MessageId,
    pub created_at: Timestamp,
    /// The endpoints that subscribed to it at that moment.
    pub wanted: Vec<EndpointId>,
    /// Those of them that were off at that moment, and skip.
    pub skipped: Vec<EndpointId>,
    /// The days and owners whose quotas it counts for.
    pub counted: Vec<(i64, [u8; 20])>,
}

/// The store told the engine that results could not be written.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub step: Step,
    pub at: Timestamp,
    pub life: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Deletion {
    pub at: Timestamp,
    pub endpoint: EndpointId,
}

/// An endpoint was given an ordering.
#[derive(Clone, Copy, Debug)]
pub struct OrderingCommit {
    pub step: Step,
    pub at: Timestamp,
    pub endpoint: EndpointId,
    pub ordering: Ordering,
    /// It was made with it.
    pub first: bool,
}

/// A delivery of an ordered endpoint took its place.
#[derive(Clone, Copy, Debug)]
pub struct PlaceCommit {
    pub step: Step,
    /// The last number that was given before.
    pub after: Seq,
}

/// A settled delivery that was removed.
#[derive(Clone, Debug)]
pub struct RemovalCommit {
    pub at: Timestamp,
    pub decided_at: Timestamp,
    /// As it was.
    pub delivery: DeliveryStatus,
    /// How many delivered ones of its application were newer, by the policy of their endpoints.
    pub newer: BTreeMap<String, usize>,
}

/// An operator changed the health of an endpoint.
#[derive(Clone, Debug)]
pub struct OperatorChange {
    pub step: Step,
    pub at: Timestamp,
    pub life: usize,
    pub endpoint: EndpointId,
    /// It is turned off now.
    pub off: bool,
    pub health: Health,
}

/// An operator opened gates.
#[derive(Clone, Debug)]
pub struct GateRelease {
    pub step: Step,
    pub at: Timestamp,
    pub gates: Vec<GateKey>,
}

/// Somebody asked for a manual attempt.
#[derive(Clone, Debug)]
pub struct Resend {
    pub life: usize,
    pub door: usize,
    pub endpoint: EndpointId,
    pub message: MessageId,
    pub asked: Step,
    /// When it was answered, and whether an attempt was made. `None`: the process died before.
    pub answered: Option<(Step, bool)>,
}

#[derive(Clone, Debug)]
pub struct Life {
    pub began: Timestamp,
    pub ended: Timestamp,
    pub last_step: Step,
    pub end: LifeEnd,
    /// The health of every endpoint as it was on disk at the end.
    pub health: BTreeMap<EndpointId, Health>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeEnd {
    /// The store was not ready, so that the server gave up starting.
    NotStarted,
    Killed,
    /// Stopped with so many deliveries still in flight.
    Stopped {
        left: usize,
    },
    /// The end of the run.
    Settled,
    /// The end of the run, with deliveries that should have settled.
    TimedOut,
}

impl Log {
    pub fn step(&mut self) -> Step {
        self.steps += 1;
        self.steps
    }

    pub fn note(&mut self, at: Timestamp, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{} {}", at.millis(), line()));
        }
    }
}

impl RecordCommit {
    pub fn is_manual(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.trigger == Trigger::Manual)
    }
}

impl Resend {
    /// Whether a request may be the one.
    pub fn may_be(&self, request: &Request) -> bool {
        let in_time = self.answered.is_none_or(|(answered, _)| request.step < answered);
        (request.life, request.door, request.message) == (self.life, self.door, self.message)
            && request.step > self.asked
            && in_time
    }
}

impl Request {
    /// What the receiver asked for, if it answered.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.end.map(|end| end.fate) {
            Some(Fate::Answered { retry_after, .. }) => retry_after,
            _ => None,
        }
    }
}

impl LifeEnd {
    /// Whether requests may have been cut off by it.
    pub fn cuts(self) -> bool {
        match self {
            Self::Killed | Self::TimedOut => true,
            Self::Stopped { left } => left > 0,
            Self::NotStarted | Self::Settled => false,
        }
    }
}
