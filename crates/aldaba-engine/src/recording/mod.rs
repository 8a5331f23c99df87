//! From the end of an attempt to its record, in three steps:
//!
//! 1. [decide]: outcome → class → transition, in the attempt's own task.
//! 2. [plan]: merges the decision into the endpoint's health and the gates, and adds the [notices] and the [mails]; in the
//!    dispatcher's task, which owns both.
//! 3. [`Recorder::submit`]: one durable write. The lane is told when it is on disk.

mod decide;
mod mails;
mod notices;
mod plan;

pub(crate) use decide::{DecidedAttempt, RequestResult};
pub(crate) use mails::{MailSubject, expired_mails};
pub(crate) use notices::expired_notice;
pub(crate) use plan::ended_unsent;

use crate::housekeeping::OperationalListeners;
use crate::mailing::MailQueue;
use crate::scheduling::{Inbox, SchedulingEvent};
use aldaba_store::{Done, Error, PendingDelivery, Record, Recorded, Store};
use std::sync::Arc;

/// Plans the records of attempts and submits them to the store.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inbox: Inbox,
    pub(crate) listeners: OperationalListeners,
    pub(crate) mail_queue: MailQueue,
}

/// A record, and whether the store has written it.
pub(crate) struct RecordResult {
    pub(crate) record: Record,
    /// How the delivery is pending afterwards, if it is.
    pub(crate) next: Option<PendingDelivery>,
    pub(crate) result: Result<Recorded, Error>,
}

impl Recorder {
    /// Submits a record to the store. `next`: how the delivery is pending afterwards, if it is.
    pub(crate) fn submit(&self, record: Record, next: Option<PendingDelivery>) {
        let inbox = self.inbox.clone();
        let copy = record.clone();
        let notices_pending = (!record.notices.is_empty()).then(|| self.listeners.notices_pending.clone());
        let mails_pending = (!record.mails.is_empty()).then(|| self.mail_queue.pending.clone());
        let done = Done::new(move |result: Result<Vec<Recorded>, Error>| {
            if let Some(mails_pending) = mails_pending {
                mails_pending.notify_one();
            }
            if let Some(notices_pending) = notices_pending {
                notices_pending.notify_one();
            }
            let result = result.map(|mut results| results.pop().unwrap_or(Recorded::Fenced));
            inbox.send(SchedulingEvent::Recorded(Box::new(RecordResult { record: copy, next, result })));
        });
        self.store.record(vec![record], done);
    }
}
