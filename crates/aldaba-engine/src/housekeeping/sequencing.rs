//! Gives deliveries of ordered endpoints their sequence numbers when the `deliverAt` of their messages has come.
//!
//! Until then such a delivery is outside of the order, and its lane does not know of it. It gets a number behind all others in
//! one commit, and its lane is told as of a new delivery. After a crash before the commit this task finds it again; after the
//! commit a sweep finds it.

use crate::Clock;
use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::{Inbox, SchedulingEvent};
use aldaba_delivery::Timestamp;
use aldaba_store::{Change, Changed, Done, Error, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Deliveries that get their numbers in one commit.
const SLICE: usize = 100;
/// How long until a failed read or write is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct Sequencer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) inbox: Inbox,
    /// Notified by the dispatcher when there may be more of them, or earlier ones.
    pub(crate) sequencing_needed: Arc<Notify>,
    /// The longest sleep, so that a changed clock is noticed.
    pub(crate) max_sleep: Duration,
}

impl Task for Sequencer {
    const NAME: &'static str = "places";

    async fn run(&mut self) -> StoreClosed {
        loop {
            let next = match self.run_once().await {
                Ok(next) => next,
                Err(Error::Closed) => return StoreClosed,
                Err(error) => {
                    tracing::debug!(%error, "messages for later wait for the store to take their places");
                    tokio::time::sleep(RETRY_DELAY).await;
                    continue;
                }
            };
            self.wait(next).await;
        }
    }
}

impl Sequencer {
    /// Gives all due deliveries their numbers. Returns when the next is due.
    pub(crate) async fn run_once(&self) -> Result<Option<Timestamp>, Error> {
        loop {
            let (next, now) = (self.store.next_sequencing_at().await?, self.clock.now());
            if next.is_none_or(|at| at > now) {
                return Ok(next);
            }
            self.take(now).await?;
        }
    }

    /// Lanes are told in the order of the commits.
    async fn take(&self, now: Timestamp) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let inbox = self.inbox.clone();
        let done = Done::new(move |result: Result<Changed, Error>| {
            let told = result.map(|changed| {
                if let Changed::Sequenced(placed) = changed {
                    inbox.send(SchedulingEvent::Sequenced(placed));
                }
            });
            drop(answer.send(told));
        });
        self.store.change(Change::SequenceDue { now, limit: SLICE }, None, done);
        answered.await.map_err(|_| Error::Closed)?
    }

    /// Waits until that moment, or until there may be an earlier one.
    async fn wait(&self, next: Option<Timestamp>) {
        let Some(next) = next else {
            return self.sequencing_needed.notified().await;
        };
        loop {
            let left = next.since(self.clock.now());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                () = self.sequencing_needed.notified() => return,
                () = tokio::time::sleep(left.min(self.max_sleep)) => {}
            }
        }
    }
}
