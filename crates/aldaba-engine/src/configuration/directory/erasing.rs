//! Starts the erasure of an application, and notes an export of one.

use super::change::ChangeOutcome;
use super::{ChangeError, Directory, IdempotencyDigest};
use aldaba_delivery::{AppId, ErasureId, OrgId};
use aldaba_store::{AuditAction, Change, Erasable, ErasedCounts, Erasure, ErasureState};

impl Directory {
    /// Deletes an application and starts to remove everything that is stored of it. When this returns, nothing is accepted or
    /// sent for it any more. An application that is being erased already returns that erasure, and so does a repeat.
    pub async fn erase_application(
        &self,
        org: OrgId,
        erasable: &Erasable,
        once: IdempotencyDigest,
    ) -> Result<Erasure, ChangeError> {
        let (now, app) = (self.clock.now(), erasable.app);
        let action = AuditAction::new("application.erase", &app).of_app(app);
        let entry = self.entries.entry(&self.actor, action);
        let erasure = Erasure {
            id: ErasureId::new(now, self.entropy.bytes()),
            org,
            app,
            state: ErasureState::Running,
            removed: ErasedCounts::default(),
            first: None,
            reached: None,
            audited: None,
            entry: entry.id,
            created_at: now,
            updated_at: now,
        };
        let change = Change::StartErasure {
            erasure: Box::new(erasure.clone()),
            source: erasable.source,
            idempotency: self.idempotency(once),
        };
        match self.commit(entry, change, None).await {
            Ok(ChangeOutcome::RepeatOf(bytes)) => {
                let id = ErasureId::from_bytes(bytes);
                let before = self.store.erasure(org, id).await?;
                before.ok_or_else(|| ChangeError::MadeAndGone(id.to_string()))
            }
            Ok(_) => Ok(erasure),
            Err(ChangeError::TooMany) => Err(ChangeError::TooManyErasures),
            Err(error) => Err(error),
        }
    }

    /// Writes to the audit log that the actor exports an application.
    pub async fn note_export(&self, app: AppId) -> Result<(), ChangeError> {
        self.change(Change::NoteExport { app }).await.map(drop)
    }
}
