//! The sweep: finds lanes with work that memory does not know of. The first sweep finds everything, later ones what becomes due.

use crate::housekeeping::background::{self, Background};
use crate::scheduling::dispatcher::{Inbox, SchedulingEvent};
use aldaba_delivery::Timestamp;
use aldaba_store::{Error, LanePosition, LanesCursor, LanesQuery, Seq, Store};
use std::sync::Arc;
use std::time::Duration;

/// Pending deliveries of one read.
const SWEEP_PAGE_ROWS: usize = 10_000;
/// One sweep of this many starts from the beginning, in case something was missed.
const SWEEPS_PER_FULL_SWEEP: u32 = 20;

/// How long until an unfinished sweep is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// When and from where to sweep.
pub(crate) struct Sweep {
    interval: Duration,
    next_at: Timestamp,
    running: Option<Timestamp>,
    swept_until: Option<Timestamp>,
    count: u32,
}

impl Sweep {
    pub(crate) fn new(interval: Duration, now: Timestamp) -> Self {
        Self { interval, next_at: now, running: None, swept_until: None, count: 0 }
    }

    /// The clock went back: sweeps everything again, soon.
    pub(crate) fn start_over(&mut self, now: Timestamp) {
        (self.next_at, self.swept_until, self.count) = (now, None, 0);
        self.running = self.running.map(|_| now);
    }

    pub(crate) fn due(&self, now: Timestamp) -> bool {
        self.running.is_none() && self.next_at <= now
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.running.is_none().then_some(self.next_at)
    }

    /// Starts a sweep. Returns its horizon: a later sweep finds what is due later.
    pub(crate) fn start(
        &mut self,
        store: &Arc<dyn Store>,
        inbox: &Inbox,
        background: &Background,
        now: Timestamp,
    ) -> Timestamp {
        let until = self.swept_until.unwrap_or(now).max(now + self.interval * 2);
        let from = self.swept_until.filter(|_| !self.count.is_multiple_of(SWEEPS_PER_FULL_SWEEP));
        self.count = self.count.wrapping_add(1);
        self.running = Some(until);
        self.next_at = now + self.interval;
        let (store, inbox, background) = (store.clone(), inbox.clone(), background.clone());
        tokio::spawn(async move {
            let sweep = || walk(&*store, &inbox, from, until);
            let result = background.supervised(background::SWEEP, sweep).await;
            if let Err(error) = &result
                && *error != Error::Closed
            {
                tracing::warn!(%error, "cannot search for due deliveries; trying again soon");
            }
            inbox.send(SchedulingEvent::SweepEnded(result.is_ok()));
        });
        until
    }

    pub(crate) fn ended(&mut self, finished: bool, now: Timestamp) {
        let until = self.running.take();
        if finished {
            self.swept_until = until;
        } else {
            // The first sweep is the only one that finds most lanes. It must not wait for an interval that may be days.
            self.next_at = self.next_at.min(now + RETRY_DELAY);
        }
    }
}

async fn walk(
    store: &dyn Store,
    inbox: &Inbox,
    from: Option<Timestamp>,
    until: Timestamp,
) -> Result<(), Error> {
    let mut after = from.map(|due_at| LanesCursor(LanePosition { due_at, seq: Seq(i64::MAX) }));
    loop {
        let page = store.lanes(LanesQuery { after, until, limit: SWEEP_PAGE_ROWS }).await?;
        if !page.lanes.is_empty() {
            inbox.send(SchedulingEvent::LanesFound(page.lanes));
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_that_could_not_be_finished_is_tried_again_soon() {
        let day = Duration::from_secs(24 * 3600);
        let start = Timestamp::from_millis(0);
        let mut sweep = Sweep::new(day, start);
        (sweep.running, sweep.next_at) = (Some(start + day * 2), start + day);
        sweep.ended(false, start + Duration::from_secs(5));
        assert_eq!(sweep.next(), Some(start + Duration::from_secs(6)));
        assert_eq!(sweep.swept_until, None);
    }
}
