//! Makes one change: commits it, invalidates caches and lanes, then reports the result.

use super::invalidation::Invalidation;
use super::{ChangeError, Directory, FilterReservation, IdempotencyDigest};
use crate::scheduling::SchedulingQuestion;
use aldaba_delivery::Timestamp;
use aldaba_store::{AuditAction, AuditEntry, Change, Changed, Done, Error, IdempotencyKey, Replay};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The result of a change that was not refused.
pub(super) enum ChangeOutcome {
    /// The change was made.
    Done,
    /// An earlier request with the same key created this resource.
    RepeatOf([u8; 20]),
    Resumed {
        failing_since: Option<Timestamp>,
        recovery: Option<Replay>,
    },
    Unchanged,
}

impl Directory {
    pub(super) fn idempotency(&self, once: IdempotencyDigest) -> Option<IdempotencyKey> {
        once.map(|digest| IdempotencyKey { digest, expires_at: self.clock.now() + self.idempotency_kept })
    }

    pub(super) async fn change(&self, change: Change) -> Result<ChangeOutcome, ChangeError> {
        let action = change.audit_action();
        self.change_as(action, change).await
    }

    /// Makes a change with its own audit action.
    pub(super) async fn change_as(
        &self,
        action: AuditAction,
        change: Change,
    ) -> Result<ChangeOutcome, ChangeError> {
        self.change_with(1, action, change, None).await
    }

    /// Makes a change of several resources.
    pub(super) async fn change_about(
        &self,
        count: u32,
        action: AuditAction,
        change: Change,
    ) -> Result<ChangeOutcome, ChangeError> {
        self.change_with(count, action, change, None).await
    }

    /// Makes a change that reserves filter cost. Other filter changes of the application wait until it is on
    /// disk.
    pub(super) async fn change_with(
        &self,
        count: u32,
        action: AuditAction,
        change: Change,
        filter_budgets: Option<FilterReservation>,
    ) -> Result<ChangeOutcome, ChangeError> {
        let entry = self.entries.entry_about(&self.actor, action, count);
        self.commit(entry, change, filter_budgets).await
    }

    /// Makes a change with its row of the audit log.
    pub(super) async fn commit(
        &self,
        entry: Arc<AuditEntry>,
        change: Change,
        filter_budgets: Option<FilterReservation>,
    ) -> Result<ChangeOutcome, ChangeError> {
        let (answer, answered) = oneshot::channel();
        let invalidation = Invalidation::of(&change, &self.core);
        let affects_lanes = invalidation.affects_lanes();
        let done = Done::new(move |result: Result<Changed, Error>| {
            if let (Some(filter_budgets), Ok(changed)) = (filter_budgets, &result) {
                filter_budgets.settle(matches!(changed, Changed::Done { .. }));
            }
            if let Ok(changed) = &result {
                invalidation.apply(changed);
            }
            let _ = answer.send(result);
        });
        self.store.change(change, Some(entry), done);
        let changed = answered.await.map_err(|_| Error::Closed)??;
        if affects_lanes {
            self.wait_for_lanes().await;
        }
        match changed {
            Changed::Done { .. } => Ok(ChangeOutcome::Done),
            Changed::Repeated { resource } => Ok(ChangeOutcome::RepeatOf(resource)),
            Changed::UidTaken => Err(ChangeError::UidTaken),
            Changed::NotFound => Err(ChangeError::NotFound),
            Changed::Stale => Err(ChangeError::Unsettled),
            Changed::TooMany => Err(ChangeError::TooMany),
            Changed::TooManyAddresses => Err(ChangeError::TooManyAddresses),
            Changed::NoSuchPolicy => Err(ChangeError::UnknownPolicy(String::new())),
            Changed::NoSuchProfile => Err(ChangeError::UnknownProfile(String::new())),
            Changed::TurnedOff => Err(ChangeError::TurnedOff),
            Changed::InUse { endpoint } => Err(ChangeError::InUse(endpoint)),
            Changed::NotOrderable(obstacle) => Err(ChangeError::NotOrderable(obstacle)),
            Changed::Resumed { failing_since, recovery } => {
                Ok(ChangeOutcome::Resumed { failing_since, recovery: recovery.map(|replay| *replay) })
            }
            Changed::Sequenced(_) | Changed::Unchanged => Ok(ChangeOutcome::Unchanged),
        }
    }

    /// Waits until the lanes have applied the change, so that no later request contradicts it.
    async fn wait_for_lanes(&self) {
        // After the scheduler has stopped there is no reply, and nothing is sent either.
        let _ = self.inbox.ask(SchedulingQuestion::Barrier).await;
    }
}
