//! The first event of an application that is created with it.

use super::accept::check_delay;
use super::{Intake, IntakeItem, NewEvent, SendError, SendOptions, SendReceipt};
use crate::NewApplication;
use aldaba_store::{Accept, Accepted, Actor, ApplicationRef, Change, InlineApplication, Tenant};
use std::time::Duration;

impl Intake {
    /// Creates the application and stores the event in one commit: a refused event creates no application. If another
    /// request has created an application with the same uid meanwhile, the event is for that one.
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
        let mut item = [IntakeItem::new(&event)];
        self.check(&which, &mut item).await;
        if let Some(refusal) = item[0].refusal.take() {
            return Err(refusal);
        }
        let now = self.clock.now();
        // It has no endpoints yet, so there is nothing to match.
        let tenant = Tenant::new(application.clone(), 1, Vec::new());
        let accept = self.unmatched(&tenant, &event, &item[0].content, now);
        check_delay(&accept)?;
        let action =
            Change::CreateApplication { application: application.clone(), idempotency: None }.audit_action();
        let audit = self.directory.entries.entry(actor, action);
        let accept = Accept {
            quota: self.quotas.of(application.org),
            creates: Some(Box::new(InlineApplication { application, audit })),
            ..accept
        };
        let (receipt, message) = (SendReceipt::new(&accept.message), accept.message.id);
        let from = self.tracer.commit_begins();
        self.tracer.joins(message, &event.trace);
        let accepted = self.commit(vec![accept], commit_timeout).await?.pop().unwrap_or(Accepted::Stale);
        if let Accepted::New { .. } = accepted {
            self.tracer.committed(from, message, &event.trace);
        }
        if let Some(result) = self.result(&event, receipt, &accepted, now) {
            return result;
        }
        self.settle(&which, &mut item, SendOptions { quotas: self.quotas, commit_timeout }).await?;
        let [item] = item;
        item.into_result()
    }
}
