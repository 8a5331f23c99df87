//! One event: matched, and committed or refused.

use super::accept::{can_wait, takes};
use super::{Intake, MAX_MATCH_ROUNDS, NewEvent, SendError, SendReceipt};
use crate::configuration::CheckError;
use aldaba_store::{Accept, Accepted, ApplicationRef};
use std::time::Duration;

impl Intake {
    pub(super) async fn send_checked(
        &self,
        which: &ApplicationRef,
        event: &NewEvent,
        unfit: Option<CheckError>,
        commit_timeout: Option<Duration>,
    ) -> Result<SendReceipt, SendError> {
        let content = event.content();
        // What is old is kept until the next is read: that has the most of it in common.
        let mut old = None;
        for _ in 0..MAX_MATCH_ROUNDS {
            let tenant = self.directory.tenant(which).await?.ok_or(SendError::NotFound)?;
            takes(&tenant, event)?;
            drop(old.take());
            let now = self.clock.now();
            if let Some(unfit) = unfit {
                let accept = self.unmatched(&tenant, event, &content, now);
                return self.refuse(accept, SendError::Unfit(unfit), commit_timeout).await;
            }
            let accept = self.matched(&tenant, event, &content, now, self.quotas).await;
            if let Err(refusal) = can_wait(&accept) {
                return self.refuse(accept, refusal, commit_timeout).await;
            }
            let new = SendReceipt::new(&accept.message);
            let accepted = self.commit(accept, commit_timeout).await?;
            if let Some(result) = self.result(event, new, &accepted, now) {
                return result;
            }
            self.directory.forget(which, &tenant);
            old = Some(tenant);
        }
        Err(SendError::Unsettled)
    }

    /// Whoever asks again under a key that was accepted hears of that, whatever has changed since. The store
    /// looks at the key first, and then finds that no application has this version.
    async fn refuse(
        &self,
        accept: Accept,
        refusal: SendError,
        commit_timeout: Option<Duration>,
    ) -> Result<SendReceipt, SendError> {
        if accept.idempotency.is_none() {
            return Err(refusal);
        }
        match self.commit(Accept { version: u64::MAX, ..accept }, commit_timeout).await? {
            Accepted::Repeated { message } => Ok(SendReceipt::Repeated { message }),
            _ => Err(refusal),
        }
    }
}
