//! One change: it goes to the store, its news to the memory, and then whoever made it hears.

use super::news::News;
use super::{ChangeError, Directory, Once, loads};
use crate::scheduling::Event;
use aldaba_delivery::Timestamp;
use aldaba_store::{AuditAction, Change, Changed, Done, Error, IdempotencyKey, Replay};
use tokio::sync::oneshot;

/// What came of a change that was not refused.
pub(super) enum Repeat {
    /// It was made.
    No,
    /// A request with the same key had made this before.
    Of([u8; 20]),
    Resumed {
        failing_since: Option<Timestamp>,
        recovery: Option<Replay>,
    },
    Unchanged,
}

impl Directory {
    pub(super) fn idempotency(&self, once: Once) -> Option<IdempotencyKey> {
        once.map(|digest| IdempotencyKey { digest, expires_at: self.clock.now() + self.idempotency_kept })
    }

    pub(super) async fn change(&self, change: Change) -> Result<Repeat, ChangeError> {
        let action = change.audit_action();
        self.change_as(action, change).await
    }

    /// The same, where the audit log should say more than the change itself can.
    pub(super) async fn change_as(&self, action: AuditAction, change: Change) -> Result<Repeat, ChangeError> {
        self.change_with(1, action, change, None).await
    }

    /// The same for one that is about several things at once.
    pub(super) async fn change_about(
        &self,
        count: u32,
        action: AuditAction,
        change: Change,
    ) -> Result<Repeat, ChangeError> {
        self.change_with(count, action, change, None).await
    }

    /// The same, with what it means for the filters of an application. Others who change those wait until it is on disk.
    pub(super) async fn change_with(
        &self,
        count: u32,
        action: AuditAction,
        change: Change,
        loads: Option<loads::Change>,
    ) -> Result<Repeat, ChangeError> {
        let entry = self.entries.entry_about(&self.actor, action, count);
        let (answer, answered) = oneshot::channel();
        let news = News::of(&change, &self.core);
        let concerns_lanes = news.concerns_lanes();
        let done = Done::new(move |result: Result<Changed, Error>| {
            if let (Some(loads), Ok(changed)) = (loads, &result) {
                loads.settle(matches!(changed, Changed::Done { .. }));
            }
            if let Ok(changed) = &result {
                news.take_effect(changed);
            }
            let _ = answer.send(result);
        });
        self.store.change(change, Some(entry), done);
        let changed = answered.await.map_err(|_| Error::Closed)??;
        if concerns_lanes {
            self.lanes_have_heard().await;
        }
        match changed {
            Changed::Done { .. } => Ok(Repeat::No),
            Changed::Repeated { resource } => Ok(Repeat::Of(resource)),
            Changed::UidTaken => Err(ChangeError::UidTaken),
            Changed::NotFound => Err(ChangeError::NotFound),
            Changed::Stale => Err(ChangeError::Unsettled),
            Changed::TooMany => Err(ChangeError::TooMany),
            Changed::NoSuchPolicy => Err(ChangeError::UnknownPolicy(String::new())),
            Changed::NoSuchProfile => Err(ChangeError::UnknownProfile(String::new())),
            Changed::InUse { endpoint } => Err(ChangeError::InUse(endpoint)),
            Changed::NotOrderable(obstacle) => Err(ChangeError::NotOrderable(obstacle)),
            Changed::Resumed { failing_since, recovery } => {
                Ok(Repeat::Resumed { failing_since, recovery: recovery.map(|replay| *replay) })
            }
            Changed::Sequenced(_) | Changed::Unchanged => Ok(Repeat::Unchanged),
        }
    }

    /// A change is answered once it holds: no request leaves any more that goes against it.
    async fn lanes_have_heard(&self) {
        // Nobody answers after the lanes have stopped; nothing is sent then either.
        let _ = self.inbox.ask(Event::Heard).await;
    }
}
