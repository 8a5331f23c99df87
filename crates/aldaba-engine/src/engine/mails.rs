//! What the links in mails do, and mails of others than attempts.

use super::Engine;
use crate::mailing::{MailLink, MailLinkError, MailLinkKind, MailScope};
use aldaba_store::{Done, Error, MailChange, MailChanged, MailSubscription, NewMail};
use tokio::sync::oneshot;

impl Engine {
    /// Whether a mail server is configured. Without one nothing is queued.
    pub fn sends_mails(&self) -> bool {
        self.0.mail_queue.delay.is_some()
    }

    /// Queues mails that belong to no other write.
    pub async fn queue_mails(&self, mails: Vec<NewMail>) -> Result<(), Error> {
        if !self.sends_mails() || mails.is_empty() {
            return Ok(());
        }
        self.change_mails(MailChange::Queue(mails)).await?;
        self.0.mail_queue.pending.notify_one();
        Ok(())
    }

    /// Reads the token of a link in a mail.
    pub fn mail_link(&self, token: &str, kind: MailLinkKind) -> Result<MailLink, MailLinkError> {
        let link = MailLink::open(self.vault(), token, self.0.clock.now())?;
        if link.kind == kind { Ok(link) } else { Err(MailLinkError::Unknown) }
    }

    /// Whether the address of a link gets the mails that the link is about.
    pub async fn gets_mails(&self, link: &MailLink) -> Result<bool, Error> {
        self.0.store.is_subscribed(subscription(link)).await
    }

    /// Sends, or sends no more, to the address of a link what the link is about.
    pub async fn subscribe_to_mails(&self, link: &MailLink, wanted: bool) -> Result<(), Error> {
        let (subscription, at) = (subscription(link), self.0.clock.now());
        let change = match wanted {
            true => MailChange::Subscribe { subscription },
            false => MailChange::Unsubscribe { subscription, at },
        };
        self.change_mails(change).await.map(drop)
    }

    /// Confirms the address of a link. `false`: nobody gives it any more.
    pub async fn confirm_mail_address(&self, link: &MailLink) -> Result<bool, Error> {
        let MailScope::Application(app) = link.scope else { return Ok(false) };
        let (address, at) = (link.address.clone(), self.0.clock.now());
        self.change_mails(MailChange::Confirm { app, address: address.clone(), at }).await?;
        self.0.mail_queue.pending.notify_one();
        Ok(self.0.store.is_mail_address_confirmed(app, address).await? == Some(true))
    }

    async fn change_mails(&self, change: MailChange) -> Result<MailChanged, Error> {
        let (answer, answered) = oneshot::channel();
        let done = Done::new(move |result| drop(answer.send(result)));
        self.0.store.change_mails(change, done);
        answered.await.map_err(|_| Error::Closed)?
    }
}

fn subscription(link: &MailLink) -> MailSubscription {
    MailSubscription { subject: link.subject(), address: link.address.clone() }
}
