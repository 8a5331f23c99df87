//! The commit: what is written, the lanes hear of, and then the sender.

use super::{Intake, NewEvent, SendError, SendReceipt};
use crate::commit_timeout::within;
use crate::delivering::BudgetedContent;
use crate::scheduling::{Event, QueuedDelivery};
use aldaba_delivery::{AppId, MessageId, Timestamp};
use aldaba_store::{Accept, Accepted, Done, Error, InlineApplication, NewDelivery, PendingDelivery, Seq};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

impl Intake {
    pub(super) async fn commit(
        &self,
        accept: Accept,
        commit_timeout: Option<Duration>,
    ) -> Result<Accepted, SendError> {
        let mut accepted = self.commit_all(vec![accept], commit_timeout).await?;
        Ok(accepted.pop().unwrap_or(Accepted::Stale))
    }

    /// Once the commit is on disk its deliveries go straight into their lanes, then the sender hears, if that still waits.
    pub(super) async fn commit_all(
        &self,
        batch: Vec<Accept>,
        commit_timeout: Option<Duration>,
    ) -> Result<Vec<Accepted>, SendError> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let (answer, answered) = oneshot::channel();
        let (inbox, directory) = (self.inbox.clone(), self.directory.clone());
        let news: Vec<_> = batch.iter().map(|accept| self.news(accept)).collect();
        let done = Done::new(move |result: Result<Vec<Accepted>, Error>| {
            if let Ok(accepted) = &result {
                for (news, accepted) in news.into_iter().zip(accepted) {
                    let Accepted::New { first } = accepted else { continue };
                    if let Some(new) = &news.made {
                        directory.listeners.put(&new.application);
                    }
                    if news.for_later {
                        inbox.send(Event::SequencingNeeded);
                    }
                    if !news.deliveries.is_empty() {
                        inbox.send(news.event(*first));
                    }
                }
            }
            let _ = answer.send(result);
        });
        self.store.accept(batch, done);
        Ok(within(commit_timeout, answered).await?.map_err(|_| Error::Closed)??)
    }

    /// What the sender of an event hears; `None`: the application has changed meanwhile.
    pub(super) fn result(
        &self,
        event: &NewEvent,
        new: SendReceipt,
        accepted: &Accepted,
        now: Timestamp,
    ) -> Option<Result<SendReceipt, SendError>> {
        Some(match accepted {
            Accepted::New { .. } => Ok(new),
            Accepted::Repeated { message } => Ok(SendReceipt::Repeated { message: *message }),
            Accepted::EventIdTaken { message } => Err(SendError::EventIdTaken(*message)),
            Accepted::OverQuota(whose) => Err(self.over_quota(*whose, now)),
            Accepted::Refused(why) => Err(Error::Refused(why.clone()).into()),
            Accepted::NoSuchPolicy => Err(unknown_policy(event)),
            Accepted::NoSuchProfile => Err(unknown_profile(event)),
            Accepted::Stale => return None,
        })
    }

    fn news(&self, accept: &Accept) -> AcceptNotice {
        let now = accept.message.created_at;
        let due_at = accept.message.deliver_at.unwrap_or(now);
        AcceptNotice {
            app: accept.app,
            message: accept.message.id,
            due_at,
            // What waits for long is read again at its turn: the memory is for what goes out now.
            held: if due_at > now { None } else { self.contents.hold(&accept.message.content) },
            deliveries: accept.deliveries.iter().map(|new| (*new, accept.is_sequenced_later(new))).collect(),
            for_later: accept.deliveries.iter().any(|new| accept.is_sequenced_later(new)),
            made: accept.creates.clone(),
        }
    }
}

/// What the lanes hear of a message that is on disk.
struct AcceptNotice {
    app: AppId,
    message: MessageId,
    due_at: Timestamp,
    held: Option<Arc<BudgetedContent>>,
    /// Each with whether it takes its place in the order of its endpoint later. Lanes hear of it all the same: one that has
    /// not read yet that its endpoint is ordered must know all that waits.
    deliveries: Vec<(NewDelivery, bool)>,
    /// Some of them take their places in the order of their endpoints later.
    for_later: bool,
    /// The application that was made with it.
    made: Option<Box<InlineApplication>>,
}

impl AcceptNotice {
    fn event(self, first: Seq) -> Event {
        let Self { app, message, due_at, held, deliveries, .. } = self;
        let to_send = deliveries.into_iter().zip(first.0..).filter(|((new, _), _)| new.skipped.is_none());
        let offer = |((new, later), seq): ((NewDelivery, bool), i64)| QueuedDelivery {
            endpoint: new.endpoint,
            waiting: PendingDelivery {
                seq: Seq(seq),
                message,
                due_at,
                attempts: 0,
                clock_start: due_at,
                replayed: false,
                sequence: (!later).then_some(Seq(seq)),
            },
            content: held.clone(),
        };
        Event::Accepted(app, to_send.map(offer).collect())
    }
}

/// What the address names was there a moment ago; the store does not say its name again.
fn unknown_policy(event: &NewEvent) -> SendError {
    let named = event.direct.as_ref().map(|direct| direct.address.config.policy.clone());
    SendError::UnknownPolicy(named.unwrap_or_default())
}

fn unknown_profile(event: &NewEvent) -> SendError {
    let named = event.direct.as_ref().and_then(|direct| direct.address.config.profile.clone());
    SendError::UnknownProfile(named.unwrap_or_default())
}
