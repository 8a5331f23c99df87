//! What the writer is asked to do, what comes of it, and who wants to know.

use crate::{
    Accept, Accepted, AuditEntry, Change, Changed, Done, Error, Record, Recorded, Removal, Removed,
    ReopenEvent, ReplayStep, ReplayStepped, Resent, Seq, SumUp, Waiting,
};
use aldaba_delivery::{AppId, EndpointId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// One call: all of it is in one commit.
#[derive(Debug)]
pub enum Op {
    Accept(Vec<Accept>),
    Reopen(ReopenEvent),
    Record(Vec<Record>),
    Resent(Box<Resent>),
    Change(Box<Change>, Option<Arc<AuditEntry>>),
    StepReplay(ReplayStep),
    SettleSetting { name: &'static str, value: Vec<u8> },
    Discard { app: AppId, deliveries: Vec<Seq>, audit: Option<Arc<AuditEntry>> },
    SumUp(SumUp),
    Remove(Removal),
}

/// What became of one [`Op`], of the same name.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Accept(Vec<Accepted>),
    Reopen(Vec<(EndpointId, Waiting)>),
    Record(Vec<Recorded>),
    Resent,
    Change(Changed),
    StepReplay(Box<ReplayStepped>),
    SettleSetting(Vec<u8>),
    Discard(usize),
    SumUp(usize),
    Remove(Removed),
}

/// Who waits for an [`Outcome`], of the same name.
#[derive(Debug)]
pub(super) enum Reply {
    Accept(Done<Vec<Accepted>>),
    Reopen(Done<Vec<(EndpointId, Waiting)>>),
    Record(Done<Vec<Recorded>>),
    Resent(Done<()>),
    Change(Done<Changed>),
    StepReplay(Done<ReplayStepped>),
    SettleSetting(Done<Vec<u8>>),
    Discard(Done<usize>),
    SumUp(Done<usize>),
    Remove(Done<Removed>),
}

/// In the order of their turns. A result comes first: until it is written its delivery is neither
/// settled nor due again, and nothing is gained by accepting more than can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Result,
    Accept,
    Command,
    /// Slices of work that nobody waits for: one in a commit.
    Bulk,
}

impl Class {
    pub(super) const ALL: [Self; 4] = [Self::Result, Self::Accept, Self::Command, Self::Bulk];

    /// Whether there are more of them where messages have more deliveries.
    pub(super) fn is_of_messages(self) -> bool {
        matches!(self, Self::Result | Self::Accept)
    }
}

impl Op {
    pub(super) fn class(&self) -> Class {
        match self {
            Self::Record(_) | Self::Resent(_) => Class::Result,
            // A sender waits for it, as for an event that is new.
            Self::Accept(_) | Self::Reopen(_) => Class::Accept,
            Self::Change(..) | Self::SettleSetting { .. } | Self::Discard { .. } => Class::Command,
            Self::StepReplay(_) | Self::SumUp(_) | Self::Remove(_) => Class::Bulk,
        }
    }

    /// How much work it is. An event that goes to many endpoints is as many operations.
    pub(super) fn operations(&self) -> usize {
        match self {
            Self::Accept(batch) => {
                batch.iter().map(|accept| accept.deliveries.len().max(1)).sum::<usize>().max(1)
            }
            Self::Reopen(reopen) => reopen.wanting.len().max(1),
            Self::Record(batch) => batch.len().max(1),
            Self::Discard { deliveries, .. } => deliveries.len().max(1),
            Self::Change(change, _) => match &**change {
                Change::EndPortalTokens { cuts, .. } => cuts.len().max(1),
                Change::Reschedule { deliveries } => deliveries.len().max(1),
                Change::TakePlaces { limit, .. } => (*limit).max(1),
                _ => 1,
            },
            Self::Resent(_) | Self::SettleSetting { .. } => 1,
            // However many rows it is about: its time bounds it.
            Self::StepReplay(_) | Self::SumUp(_) | Self::Remove(_) => 1,
        }
    }

    /// How many messages it accepts, or opens again.
    pub(super) fn messages(&self) -> usize {
        match self {
            Self::Accept(batch) => batch.len().max(1),
            Self::Reopen(_) => 1,
            _ => 0,
        }
    }

    /// The bytes that it keeps in memory, as far as a caller decides how many they are.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Accept(batch) => {
                batch.iter().map(|a| a.message.content.bytes() + size_of_val(&a.deliveries[..])).sum()
            }
            Self::Record(batch) => {
                batch.iter().filter_map(|record| record.attempt.as_ref()).map(|a| a.response.len()).sum()
            }
            Self::Resent(resent) => resent.attempt.response.len(),
            Self::Change(change, _) => match &**change {
                Change::ReplaceSecrets { was, sealed, .. } => was.len() + sealed.len(),
                Change::WriteEventTypes(change) => change.bytes(),
                Change::PutSetting { value, .. } => value.len(),
                Change::Reschedule { deliveries } => size_of_val(&deliveries[..]),
                _ => 0,
            },
            Self::Reopen(reopen) => size_of_val(&reopen.wanting[..]),
            Self::StepReplay(_) => 0,
            Self::SettleSetting { value, .. } => value.len(),
            Self::Discard { deliveries, .. } => size_of_val(&deliveries[..]),
            Self::SumUp(step) => size_of_val(&step.endpoints[..]),
            Self::Remove(removal) => size_of_val(&removal.items[..]),
        }
    }
}

impl Reply {
    /// Tells the one who waits. A panic of theirs is theirs: the writer goes on for the others.
    pub(super) fn call(self, result: Result<Outcome, Error>) {
        let told = catch_unwind(AssertUnwindSafe(|| match (self, result) {
            (Self::Accept(done), Ok(Outcome::Accept(outcome))) => done.call(Ok(outcome)),
            (Self::Reopen(done), Ok(Outcome::Reopen(outcome))) => done.call(Ok(outcome)),
            (Self::Record(done), Ok(Outcome::Record(outcome))) => done.call(Ok(outcome)),
            (Self::Resent(done), Ok(Outcome::Resent)) => done.call(Ok(())),
            (Self::Change(done), Ok(Outcome::Change(outcome))) => done.call(Ok(outcome)),
            (Self::StepReplay(done), Ok(Outcome::StepReplay(outcome))) => done.call(Ok(*outcome)),
            (Self::SettleSetting(done), Ok(Outcome::SettleSetting(outcome))) => done.call(Ok(outcome)),
            (Self::Discard(done), Ok(Outcome::Discard(outcome))) => done.call(Ok(outcome)),
            (Self::SumUp(done), Ok(Outcome::SumUp(outcome))) => done.call(Ok(outcome)),
            (Self::Remove(done), Ok(Outcome::Remove(outcome))) => done.call(Ok(outcome)),
            (Self::Accept(done), Err(error)) => done.call(Err(error)),
            (Self::Reopen(done), Err(error)) => done.call(Err(error)),
            (Self::Record(done), Err(error)) => done.call(Err(error)),
            (Self::Resent(done), Err(error)) => done.call(Err(error)),
            (Self::Change(done), Err(error)) => done.call(Err(error)),
            (Self::StepReplay(done), Err(error)) => done.call(Err(error)),
            (Self::SettleSetting(done), Err(error)) => done.call(Err(error)),
            (Self::Discard(done), Err(error)) => done.call(Err(error)),
            (Self::SumUp(done), Err(error)) => done.call(Err(error)),
            (Self::Remove(done), Err(error)) => done.call(Err(error)),
            (reply, Ok(outcome)) => unreachable!("{outcome:?} is no answer for {reply:?}"),
        }));
        if told.is_err() {
            tracing::error!("what was to be done after a write panicked; the write itself is not affected");
        }
    }
}
