//! Looks now and then at what nothing counts: endpoints that have failed, the oldest delivery, the dead letter, and the
//! scheduler. So a question for these numbers reads nothing.

use super::statistics::Statistics;
use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::{Inbox, SchedulingQuestion};
use aldaba_delivery::{EndpointId, OrgId, Reason, Timestamp};
use aldaba_store::{DeadLetterCounts, Error, Seq, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often the scheduler is asked between two looks at the store.
const SCHEDULER_LOOKS: u32 = 3;
/// A look that takes long is followed by a pause of at least this many times as long.
const PAUSE_FACTOR: u32 = 50;
/// The pause between two slices of a walk.
const SLICE_PAUSE: Duration = Duration::from_millis(10);

/// What the background task has seen.
#[derive(Clone, Debug, Default)]
pub struct StoreView {
    /// When it has read the store last. `None`: not yet.
    pub seen_at: Option<Timestamp>,
    /// How many endpoints are given up.
    pub failed_endpoints: BTreeMap<OrgId, u64>,
    /// When the oldest delivery that waits might first go out. It may be in the future.
    pub oldest_waiting: Option<Timestamp>,
    /// How many deliveries are in the dead letter.
    pub dead_letter: Vec<(Reason, u64)>,
    pub scheduler: SchedulerLoad,
}

/// What the scheduler has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerLoad {
    /// Requests in flight, and results that are not written yet.
    pub in_flight: usize,
    /// Lanes that have their endpoint in memory.
    pub awake_lanes: usize,
    /// Lanes that only wait.
    pub idle_lanes: usize,
    /// Origins that are held because they look down, counted for each organization.
    pub held_gates: usize,
}

pub(crate) struct StoreWatch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) inbox: Inbox,
    pub(crate) statistics: Statistics,
    pub(crate) interval: Duration,
}

impl Task for StoreWatch {
    const NAME: &'static str = "store-watch";

    async fn run(&mut self) -> StoreClosed {
        loop {
            let began = self.statistics.clock.monotonic();
            match self.look().await {
                Err(Error::Closed) => return StoreClosed,
                // The next look tells as much.
                Err(error) => tracing::debug!(%error, "cannot look at the store"),
                Ok(()) => {}
            }
            let took = self.statistics.clock.monotonic().saturating_sub(began);
            let pause = self.interval.max(took * PAUSE_FACTOR) / SCHEDULER_LOOKS;
            for _ in 0..SCHEDULER_LOOKS {
                if let Some(load) = self.inbox.ask(SchedulingQuestion::Load).await {
                    self.statistics.view.lock().scheduler = load;
                }
                tokio::time::sleep(pause).await;
            }
        }
    }
}

impl StoreWatch {
    async fn look(&self) -> Result<(), Error> {
        let failed = self.store.failed_endpoints().await?;
        let failed = failed.into_iter().map(|failed| (failed.org, failed.endpoints)).collect();
        let oldest = self.oldest_waiting().await?;
        let dead_letter = self.dead_letter().await?;
        let mut view = self.statistics.view.lock();
        view.seen_at = Some(self.statistics.clock.now());
        view.failed_endpoints = failed;
        view.oldest_waiting = oldest;
        view.dead_letter = dead_letter;
        Ok(())
    }

    async fn oldest_waiting(&self) -> Result<Option<Timestamp>, Error> {
        let (mut oldest, mut after): (Option<Timestamp>, Option<EndpointId>) = (None, None);
        loop {
            let (found, next) = self.store.oldest_waiting(after).await?;
            oldest = oldest.into_iter().chain(found).min();
            after = next;
            if after.is_none() {
                return Ok(oldest);
            }
            tokio::time::sleep(SLICE_PAUSE).await;
        }
    }

    async fn dead_letter(&self) -> Result<Vec<(Reason, u64)>, Error> {
        let (mut counts, mut after): (Vec<_>, Option<Seq>) =
            (Reason::ALL.map(|reason| (reason, 0)).into(), None);
        loop {
            let DeadLetterCounts { counts: found, next } = self.store.dead_letter_reasons(after).await?;
            for (reason, more) in found {
                counts.iter_mut().filter(|(counted, _)| *counted == reason).for_each(|(_, sum)| *sum += more);
            }
            after = next;
            if after.is_none() {
                return Ok(counts);
            }
            tokio::time::sleep(SLICE_PAUSE).await;
        }
    }
}
