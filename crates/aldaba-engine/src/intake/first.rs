//! The first event of an application that is made with it.

use super::accept::can_wait;
use super::{Intake, NewEvent, SendError, SendReceipt};
use crate::NewApplication;
use aldaba_store::{Accept, Actor, ApplicationRef, Change, InlineApplication, Tenant};
use std::time::Duration;

impl Intake {
    /// One commit makes the application and stores the event: where the event is refused, no application is made. Where
    /// another request has made one of the same uid meanwhile, the event is for that one.
    pub(crate) async fn send_with_application(
        &self,
        actor: &Actor,
        new: NewApplication,
        event: NewEvent,
        commit_timeout: Option<Duration>,
    ) -> Result<SendReceipt, SendError> {
        let application = self.directory.new_application(new);
        let key = application.uid.clone().unwrap_or_else(|| application.id.to_string());
        let which = ApplicationRef { org: application.org, key };
        let unfit = self.check(&which, std::slice::from_ref(&event)).await.pop().flatten();
        if let Some(unfit) = unfit {
            return Err(SendError::Unfit(unfit));
        }
        let now = self.clock.now();
        // It has no endpoints yet, and so there is nobody to match.
        let tenant = Tenant::new(application.clone(), 1, Vec::new());
        let accept = self.unmatched(&tenant, &event, &event.content(), now);
        can_wait(&accept)?;
        let action =
            Change::CreateApplication { application: application.clone(), idempotency: None }.audit_action();
        let audit = self.directory.entries.entry(actor, action);
        let accept = Accept {
            quota: self.quotas.of(application.org),
            creates: Some(Box::new(InlineApplication { application, audit })),
            ..accept
        };
        let sent = SendReceipt::new(&accept.message);
        let accepted = self.commit(accept, commit_timeout).await?;
        match self.result(&event, sent, &accepted, now) {
            Some(result) => result,
            None => self.send_checked(&which, &event, None, commit_timeout).await,
        }
    }
}
