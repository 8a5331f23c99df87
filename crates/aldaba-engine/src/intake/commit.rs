//! The accept commit. Once it is on disk, the lanes get the deliveries, and then the sender gets the result, if it still waits:
//! after the commit timeout it has often given up, and learns nothing more.

use super::{Intake, NewEvent, SendError, SendReceipt};
use crate::Engine;
use crate::delivering::BudgetedContent;
use crate::scheduling::{QueuedDelivery, SchedulingEvent};
use aldaba_delivery::{AppId, MessageId, Timestamp};
use aldaba_store::{
    Accept, Accepted, Done, Error, InlineApplication, NewDelivery, PendingDelivery, Quota, QuotaOf, Seq,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

impl Intake {
    /// Submits a batch and waits for its results. The deliveries go to their lanes when the commit is on disk, whether or not
    /// the sender still waits.
    pub(super) async fn commit(
        &self,
        batch: Vec<Accept>,
        commit_timeout: Option<Duration>,
    ) -> Result<Vec<Accepted>, SendError> {
        let (answer, answered) = oneshot::channel();
        let (inbox, directory) = (self.inbox.clone(), self.directory.clone());
        let notices: Vec<_> = batch.iter().map(|accept| self.notice(accept)).collect();
        let done = Done::new(move |result: Result<Vec<Accepted>, Error>| {
            if let Ok(accepted) = &result {
                for (notice, accepted) in notices.into_iter().zip(accepted) {
                    let Accepted::New { first } = accepted else { continue };
                    if let Some(new) = &notice.created {
                        directory.listeners.put(&new.application);
                    }
                    if notice.sequencing_needed {
                        inbox.send(SchedulingEvent::SequencingNeeded);
                    }
                    if !notice.deliveries.is_empty() {
                        inbox.send(notice.event(*first));
                    }
                }
            }
            let _ = answer.send(result);
        });
        self.store.accept(batch, done);
        Ok(within(commit_timeout, answered).await?.map_err(|_| Error::Closed)??)
    }

    /// Refuses an event, unless its idempotency key was accepted before: then the answer is that message, whatever has
    /// changed since.
    pub(super) async fn refuse(
        &self,
        app: AppId,
        event: &NewEvent,
        refusal: SendError,
        commit_timeout: Option<Duration>,
    ) -> Result<SendReceipt, SendError> {
        let Some(digest) = event.once else { return Err(refusal) };
        let (answer, answered) = oneshot::channel();
        self.store.find_accepted(app, digest, Done::new(move |found| drop(answer.send(found))));
        match within(commit_timeout, answered).await?.map_err(|_| Error::Closed)?? {
            Some(message) => Ok(SendReceipt::Repeated { message }),
            None => Err(refusal),
        }
    }

    /// The result of an event. `None`: the application has changed meanwhile.
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

    fn notice(&self, accept: &Accept) -> AcceptNotice {
        let now = accept.message.created_at;
        let due_at = accept.message.deliver_at.unwrap_or(now);
        AcceptNotice {
            app: accept.app,
            message: accept.message.id,
            due_at,
            // A payload that is due later is read again: the memory is for what is sent now.
            content: if due_at > now { None } else { self.contents.hold(&accept.message.content) },
            deliveries: accept.deliveries.iter().map(|new| (*new, accept.is_sequenced_later(new))).collect(),
            sequencing_needed: accept.deliveries.iter().any(|new| accept.is_sequenced_later(new)),
            created: accept.creates.clone(),
        }
    }

    fn over_quota(&self, whose: QuotaOf, now: Timestamp) -> SendError {
        let most = match whose {
            QuotaOf::Organization => self.quotas.organization,
            QuotaOf::Application => self.quotas.application,
        };
        let (at, until) = (now, Quota::next_day(now));
        SendError::OverQuota { whose, most: most.unwrap_or_default(), at, until }
    }
}

/// What the dispatcher is told of a message that is on disk.
struct AcceptNotice {
    app: AppId,
    message: MessageId,
    due_at: Timestamp,
    content: Option<Arc<BudgetedContent>>,
    /// Each with whether it gets its sequence number later. Lanes get those too: a lane that has not read yet that its
    /// endpoint is ordered must know everything that is pending.
    deliveries: Vec<(NewDelivery, bool)>,
    /// Some of them get their sequence numbers later.
    sequencing_needed: bool,
    /// The application that was created with the message.
    created: Option<Box<InlineApplication>>,
}

impl AcceptNotice {
    fn event(self, first: Seq) -> SchedulingEvent {
        let Self { app, message, due_at, content, deliveries, .. } = self;
        let to_send = deliveries.into_iter().zip(first.0..).filter(|((new, _), _)| new.skipped.is_none());
        let queued = |((new, later), seq): ((NewDelivery, bool), i64)| QueuedDelivery {
            endpoint: new.endpoint,
            pending: PendingDelivery {
                seq: Seq(seq),
                message,
                due_at,
                attempts: 0,
                clock_start: due_at,
                replayed: false,
                sequence: (!later).then_some(Seq(seq)),
            },
            content: content.clone(),
        };
        SchedulingEvent::Accepted(app, to_send.map(queued).collect())
    }
}

/// The address's policy was deleted a moment ago; the store does not repeat its name.
fn unknown_policy(event: &NewEvent) -> SendError {
    let named = event.direct.as_ref().map(|direct| direct.address.config.policy.clone());
    SendError::UnknownPolicy(named.unwrap_or_default())
}

fn unknown_profile(event: &NewEvent) -> SendError {
    let named = event.direct.as_ref().and_then(|direct| direct.address.config.profile.clone());
    SendError::UnknownProfile(named.unwrap_or_default())
}

impl Engine {
    /// Waits for work of the store within [`Options::commit_timeout`](crate::Options::commit_timeout). Work that has been
    /// submitted goes on after the timeout.
    pub async fn within_commit_timeout<T>(&self, work: impl Future<Output = T>) -> Result<T, SendError> {
        within(self.commit_timeout(), work).await
    }
}

/// [`SendError::Late`]: the timeout has passed. `None`: no timeout.
pub(crate) async fn within<T>(
    commit_timeout: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, SendError> {
    match commit_timeout {
        Some(commit_timeout) => tokio::time::timeout(commit_timeout, work).await.map_err(|_| SendError::Late),
        None => Ok(work.await),
    }
}
