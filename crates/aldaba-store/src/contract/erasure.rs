//! Erasures: everything of one application is removed for good.
//!
//! An erasure deletes its application in its first commit, so that nothing is accepted or sent any more. Once nothing of it
//! waits, steps remove its rows, a slice of the writer each. What a step has removed is in its commit, with the counts. So an
//! erasure that a crash has cut off goes on where it was.

use crate::operations::erasure;
use crate::{Order, Page, ReplayEnd, RequestDigest};
use aldaba_delivery::{AppId, AuditId, ErasureId, MessageId, OrgId, SourceId, Timestamp};
use std::ops::AddAssign;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    pub id: ErasureId,
    pub org: OrgId,
    pub app: AppId,
    pub state: ErasureState,
    pub removed: ErasedCounts,
    /// The oldest message that there was at the start; `None`: there was none.
    pub first: Option<MessageId>,
    /// The last message that was removed.
    pub reached: Option<MessageId>,
    /// The last row of the audit log whose values were removed.
    pub audited: Option<AuditId>,
    /// The row of the audit log about its start.
    pub entry: AuditId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Erasure {
    /// How many erasures of one organization may be running.
    pub const MAX_RUNNING: usize = 20;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErasureState {
    Running,
    Finished,
}

impl ErasureState {
    pub fn end(self) -> ReplayEnd {
        match self {
            Self::Running => ReplayEnd::NotYet,
            Self::Finished => ReplayEnd::Well,
        }
    }
}

/// What was removed, or what there is to remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedCounts {
    pub messages: u64,
    pub deliveries: u64,
    pub attempts: u64,
    pub endpoints: u64,
    /// Rows of everything else: keys, counters, replays, mails, alerts and the like.
    pub others: u64,
    /// Rows of the audit log that were left without their values.
    pub audit: u64,
}

impl AddAssign for ErasedCounts {
    fn add_assign(&mut self, more: Self) {
        self.messages += more.messages;
        self.deliveries += more.deliveries;
        self.attempts += more.attempts;
        self.endpoints += more.endpoints;
        self.others += more.others;
        self.audit += more.audit;
    }
}

/// One step of an erasure.
#[derive(Clone, Copy, Debug)]
pub struct ErasureStep {
    pub id: ErasureId,
    /// The row of the audit log that the last step writes.
    pub entry: AuditId,
    pub now: Timestamp,
}

/// What a step has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureStepped {
    /// As it is now; `None`: there is no such erasure.
    pub erasure: Option<Erasure>,
    /// A delivery still waits, or is in flight: nothing of its message was removed.
    pub waits: bool,
    /// How long the writer was busy with it.
    pub took: Duration,
}

/// How much there is of an application, as far as the read got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasureCount {
    pub counts: ErasedCounts,
    /// How many rows were looked at.
    pub rows: usize,
    /// Where to go on; `None`: that is all.
    pub next: Option<MessageId>,
}

/// An application that can be erased: one that is there, or was deleted and still has rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erasable {
    pub app: AppId,
    /// The source that owns it, which goes with it.
    pub source: Option<SourceId>,
    pub is_deleted: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct ErasuresQuery {
    pub org: OrgId,
    pub ended: Option<ReplayEnd>,
    pub page: Page<ErasureId>,
    pub order: Order,
}

contract! {
    pub trait Erasures {
        writes {
            /// An erasure that is not running is left as it is. Everything else that waits to be written goes first.
            step_erasure(step: ErasureStep) -> ErasureStepped = StepErasure(step);
        }
        reads {
            read erasure(org: OrgId, id: ErasureId) -> Option<Erasure> = |reading| erasure::find(reading, org, id);
            /// The erasure that a request with this key has started.
            read erasure_of_request(org: OrgId, digest: RequestDigest) -> Option<Erasure>
                = |reading| erasure::of_request(reading, org, &digest);
            read erasures(query: ErasuresQuery) -> Vec<Erasure> = |reading| erasure::list(reading, query);

            /// Those of all organizations, in the order they were made.
            background_read running_erasures() -> Vec<Erasure> = |reading| erasure::running(reading);

            /// An application of an organization, a deleted one too.
            read erasable(org: OrgId, app: AppId) -> Option<Erasable> = |reading| erasure::erasable(reading, org, app);

            /// How much there is of an application: looks at `look` rows from `after` on, or at fewer where that takes long.
            count count_erasure(app: AppId, after: Option<MessageId>, look: usize) -> ErasureCount
                = |reading, slice| erasure::count_rows(reading, slice, app, after, look);
        }
    }
}
