//! Corrects due times that a wrong clock has stored.
//!
//! A clock that goes back leaves deliveries behind that are due tomorrow, or in twenty years, and no sweep finds them before.
//! So the store is searched at the start, and whenever the clock has gone back. Only due times that a clock ahead can have
//! stored are corrected ([`Delivery::corrected`]): a retry under a policy with longer delays keeps its due time.

use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::{Inbox, SchedulingEvent};
use crate::{Clock, ClockTrust, Entropy, Policies};
use aldaba_delivery::{AppId, Delivery, EndpointId, StoredDue, Timestamp};
use aldaba_store::{Change, Changed, Done, Error, FutureDelivery, LanePosition, Rescheduled, Seq, Store};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Deliveries of one read, and of one write.
const PAGE: usize = 500;
/// How long until a failed read or write is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct DueTimes {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) trust: ClockTrust,
    pub(crate) policies: Policies,
    pub(crate) inbox: Inbox,
    /// Notified by the dispatcher.
    pub(crate) clock_went_back: Arc<Notify>,
    /// The clock has gone back since some due times were stored.
    pub(crate) clock_was_ahead: bool,
}

impl Task for DueTimes {
    const NAME: &'static str = "due-times";

    async fn run(&mut self) -> StoreClosed {
        loop {
            match self.run_once(self.clock.now()).await {
                Ok(0) => {}
                Ok(corrected) => {
                    tracing::warn!(corrected, "a wrong clock had stored due times that were too far ahead");
                }
                Err(Error::Closed) => return StoreClosed,
                Err(error) => {
                    tracing::debug!(%error, "cannot search for due times that are too far ahead; trying again");
                    tokio::time::sleep(RETRY_DELAY).await;
                    continue;
                }
            }
            self.clock_was_ahead = false;
            self.clock_went_back.notified().await;
            self.clock_was_ahead = true;
        }
    }
}

impl DueTimes {
    /// Walks all deliveries that are not due yet. Returns how many due times were corrected.
    pub(crate) async fn run_once(&self, now: Timestamp) -> Result<usize, Error> {
        let (mut corrected, mut after) = (0, LanePosition { due_at: now, seq: Seq(i64::MAX) });
        let trusted = self.trust.is_trusted();
        loop {
            let page = self.store.future_deliveries(after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(corrected) };
            after = last.waiting.position();
            let mut lanes = BTreeSet::new();
            let mut wrong = Vec::new();
            for row in &page {
                if let Some(right) = self.corrected(row, now, trusted) {
                    lanes.insert((row.endpoint, row.app));
                    wrong.push(right);
                }
            }
            if !wrong.is_empty() {
                corrected += wrong.len();
                self.write(wrong, lanes.into_iter().collect()).await?;
            }
        }
    }

    /// The corrected due time of a delivery. `None`: it is right.
    fn corrected(&self, row: &FutureDelivery, now: Timestamp, trusted: bool) -> Option<Rescheduled> {
        let FutureDelivery { waiting: was, endpoint, org, policy, deliver_at, tried_at, .. } = row;
        let policy = self.policies.of(*org, policy);
        let delivery = Delivery { attempts: was.attempts, clock_start: was.clock_start };
        let stored = StoredDue {
            due_at: was.due_at,
            deliver_at: *deliver_at,
            tried_at: *tried_at,
            clock_was_ahead: self.clock_was_ahead,
        };
        let corrected = delivery.corrected(&policy, &stored, trusted, now, self.entropy.chance());
        corrected.map(|(due_at, clock_start)| Rescheduled {
            endpoint: *endpoint,
            was: *was,
            due_at,
            clock_start,
        })
    }

    /// Lanes are told in the order of the commits.
    async fn write(
        &self,
        deliveries: Vec<Rescheduled>,
        lanes: Vec<(EndpointId, AppId)>,
    ) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let inbox = self.inbox.clone();
        let done = Done::new(move |result: Result<Changed, Error>| {
            if result.is_ok() {
                inbox.send(SchedulingEvent::Rescheduled(lanes));
            }
            drop(answer.send(result));
        });
        self.store.change(Change::Reschedule { deliveries }, None, done);
        answered.await.map_err(|_| Error::Closed)?.map(drop)
    }
}
