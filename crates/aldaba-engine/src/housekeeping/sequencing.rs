//! Gives deliveries of ordered endpoints their places, when the `deliverAt` of their messages has come.
//!
//! Until then such a delivery is outside of the order: its lane does not know of it. Then it gets a number behind all
//! that are in the order, in one commit, and its lane hears of it as of one that was just accepted. A crash before the
//! commit leaves it outside, and this task finds it again; after the commit a sweep finds it, as everything that is due.

use crate::Clock;
use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::{Event, Inbox};
use aldaba_delivery::Timestamp;
use aldaba_store::{Change, Changed, Done, Error, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Deliveries that take their places in one commit.
const SLICE: usize = 100;
/// How long until a read or a write that failed is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct Sequencer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) inbox: Inbox,
    /// Told by the dispatcher when there may be more of them, or earlier ones.
    pub(crate) for_later: Arc<Notify>,
    /// The longest sleep, so that a clock that was set is noticed.
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
    /// All that are due take their places. Returns when the next is due.
    pub(crate) async fn run_once(&self) -> Result<Option<Timestamp>, Error> {
        loop {
            let (next, now) = (self.store.next_sequencing_at().await?, self.clock.now());
            if next.is_none_or(|at| at > now) {
                return Ok(next);
            }
            self.take(now).await?;
        }
    }

    /// The lanes hear of it in the order of the commits, as of everything else.
    async fn take(&self, now: Timestamp) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let inbox = self.inbox.clone();
        let done = Done::new(move |result: Result<Changed, Error>| {
            let told = result.map(|changed| {
                if let Changed::Sequenced(placed) = changed {
                    inbox.send(Event::Sequenced(placed));
                }
            });
            drop(answer.send(told));
        });
        self.store.change(Change::SequenceDue { now, limit: SLICE }, None, done);
        answered.await.map_err(|_| Error::Closed)?
    }

    /// Until that moment by the clock, or until there may be an earlier one.
    async fn wait(&self, next: Option<Timestamp>) {
        let Some(next) = next else {
            return self.for_later.notified().await;
        };
        loop {
            let left = next.since(self.clock.now());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                () = self.for_later.notified() => return,
                () = tokio::time::sleep(left.min(self.max_sleep)) => {}
            }
        }
    }
}
