//! What the writer is asked to do, what comes of it, and who waits for it.

use super::{Removal, Removed};
use crate::{
    Accept, Accepted, AuditEntry, Change, Changed, Done, ErasureStep, ErasureStepped, Error, MailChange,
    MailChanged, ManualRecord, PendingDelivery, Record, Recorded, ReopenEvent, ReplayStep, ReplayStepped,
    RequestDigest, Seq, SumUp,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, Timestamp};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Declares the operations: of each what it takes, and what comes of it.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($($taken:ty),+) -> $outcome:ty;)+) => {
        /// One call: all of it is in one commit.
        #[derive(Debug)]
        pub enum Op {
            $($(#[$doc])* $name($($taken),+),)+
        }

        /// What became of one [`Op`], of the same name.
        #[derive(Debug, PartialEq, Eq)]
        pub enum OpOutcome {
            $($name($outcome),)+
        }

        /// Who waits for an [`OpOutcome`], of the same name.
        #[derive(Debug)]
        pub enum Reply {
            $($name(Done<$outcome>),)+
        }

        impl Reply {
            fn answer(self, result: Result<OpOutcome, Error>) {
                match (self, result) {
                    $((Self::$name(done), Ok(OpOutcome::$name(outcome))) => done.call(Ok(outcome)),
                    (Self::$name(done), Err(error)) => done.call(Err(error)),)+
                    (reply, Ok(outcome)) => unreachable!("{outcome:?} is no answer for {reply:?}"),
                }
            }
        }
    };
}

operations! {
    Accept(Vec<Accept>) -> Vec<Accepted>;
    FindAccepted(AppId, RequestDigest) -> Option<MessageId>;
    Reopen(ReopenEvent) -> Vec<(EndpointId, PendingDelivery)>;
    Record(Vec<Record>) -> Vec<Recorded>;
    RecordManual(Box<ManualRecord>) -> ();
    CountDuplicate(OrgId, Timestamp) -> ();
    Change(Box<Change>, Option<Arc<AuditEntry>>) -> Changed;
    StepReplay(ReplayStep) -> ReplayStepped;
    StepErasure(ErasureStep) -> ErasureStepped;
    SettleSetting(&'static str, Vec<u8>) -> Vec<u8>;
    Discard(AppId, Vec<Seq>, Option<Arc<AuditEntry>>) -> usize;
    SumUp(SumUp) -> usize;
    Remove(Removal) -> Removed;
    ChangeMails(Box<MailChange>) -> MailChanged;
}

/// In the order of their turns. A result comes first: until it is written its delivery is neither settled nor due again, and
/// nothing is gained by accepting more than can be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Result,
    Accept,
    Command,
    /// Slices of work that nobody waits for: one in a commit.
    Bulk,
}

impl Class {
    pub const ALL: [Self; 4] = [Self::Result, Self::Accept, Self::Command, Self::Bulk];

    /// Whether there are more of them where messages have more deliveries.
    pub fn is_of_messages(self) -> bool {
        matches!(self, Self::Result | Self::Accept)
    }
}

impl Op {
    pub fn class(&self) -> Class {
        match self {
            Self::Record(_) | Self::RecordManual(_) | Self::CountDuplicate(..) => Class::Result,
            // A sender waits for it, as for an event that is new.
            Self::Accept(_) | Self::FindAccepted(..) | Self::Reopen(_) => Class::Accept,
            Self::Change(..) | Self::SettleSetting(..) | Self::Discard(..) | Self::ChangeMails(_) => {
                Class::Command
            }
            Self::StepReplay(_) | Self::StepErasure(_) | Self::SumUp(_) | Self::Remove(_) => Class::Bulk,
        }
    }

    /// Whether it makes work that needs room on the disk later: what it opens makes results.
    pub fn makes_deliveries(&self) -> bool {
        matches!(self, Self::Accept(_) | Self::Reopen(_) | Self::StepReplay(_))
    }

    /// Whether what it deletes must not stay in free pages of the database.
    pub fn overwrites_deleted(&self) -> bool {
        match self {
            Self::StepErasure(_) => true,
            Self::Change(change, _) => matches!(
                **change,
                Change::ExpungeMessage { .. }
                    | Change::ExpungeAttempt { .. }
                    | Change::StartErasure { .. }
                    | Change::DeleteApplication { .. }
                    | Change::DeleteSource { .. }
            ),
            _ => false,
        }
    }

    /// Whether it changes something that people look at, and no counter says whose that is.
    pub fn changes_uncounted(&self) -> bool {
        match self {
            Self::Change(change, _) => !matches!(**change, Change::PutSetting { .. }),
            Self::StepReplay(_) | Self::StepErasure(_) | Self::Discard(..) => true,
            _ => false,
        }
    }

    /// How much work it is. An event that goes to many endpoints is as many operations.
    pub fn operations(&self) -> usize {
        match self {
            Self::Accept(batch) => {
                batch.iter().map(|accept| accept.deliveries.len().max(1)).sum::<usize>().max(1)
            }
            Self::Reopen(reopen) => reopen.wanting.len().max(1),
            Self::Record(batch) => batch.len().max(1),
            Self::Discard(_, deliveries, _) => deliveries.len().max(1),
            Self::Change(change, _) => match &**change {
                Change::EndPortalTokens { cuts, .. } => cuts.len().max(1),
                Change::Reschedule { deliveries } => deliveries.len().max(1),
                Change::WriteAlerts { fired, resolved, .. } => (fired.len() + resolved.len()).max(1),
                Change::DateCertificates { dates } => dates.len().max(1),
                Change::WritePendingAlerts { pending, over, .. } => (pending.len() + over.len()).max(1),
                Change::SettleEndpointAlerts { endpoints, .. } => endpoints.len().max(1),
                Change::SequenceDue { limit, .. } => (*limit).max(1),
                _ => 1,
            },
            Self::ChangeMails(change) => change.mails().max(1),
            Self::FindAccepted(..)
            | Self::RecordManual(_)
            | Self::CountDuplicate(..)
            | Self::SettleSetting(..) => 1,
            // However many rows it is about: its time bounds it.
            Self::StepReplay(_) | Self::StepErasure(_) | Self::SumUp(_) | Self::Remove(_) => 1,
        }
    }

    /// How many messages it accepts, looks up or opens again.
    pub fn messages(&self) -> usize {
        match self {
            Self::Accept(batch) => batch.len().max(1),
            Self::FindAccepted(..) | Self::Reopen(_) => 1,
            _ => 0,
        }
    }

    /// The bytes that it keeps in memory, as far as a caller decides how many they are.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Accept(batch) => {
                batch.iter().map(|a| a.message.content.bytes() + size_of_val(&a.deliveries[..])).sum()
            }
            Self::Record(batch) => {
                batch.iter().filter_map(|record| record.attempt.as_ref()).map(|a| a.response.len()).sum()
            }
            Self::RecordManual(resent) => resent.attempt.response.len(),
            Self::Change(change, _) => match &**change {
                Change::ReplaceSecrets { was, sealed, .. } => was.len() + sealed.len(),
                Change::WriteEventTypes(change) => change.bytes(),
                Change::PutSetting { value, .. } => value.len(),
                Change::Reschedule { deliveries } => size_of_val(&deliveries[..]),
                Change::DateCertificates { dates } => dates.iter().map(|date| date.of.len()).sum(),
                _ => 0,
            },
            Self::Reopen(reopen) => size_of_val(&reopen.wanting[..]),
            Self::FindAccepted(..)
            | Self::CountDuplicate(..)
            | Self::StepReplay(_)
            | Self::StepErasure(_) => 0,
            Self::SettleSetting(_, value) => value.len(),
            Self::Discard(_, deliveries, _) => size_of_val(&deliveries[..]),
            Self::SumUp(step) => size_of_val(&step.endpoints[..]),
            Self::Remove(removal) => size_of_val(&removal.items[..]),
            Self::ChangeMails(change) => change.bytes(),
        }
    }
}

impl Reply {
    /// Tells the one who waits. A panic there is theirs: the writer goes on for the others.
    pub fn call(self, result: Result<OpOutcome, Error>) {
        if catch_unwind(AssertUnwindSafe(|| self.answer(result))).is_err() {
            tracing::error!("what was to be done after a write panicked; the write itself is not affected");
        }
    }
}
