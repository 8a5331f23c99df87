//! Removes data whose retention period is over, a little at a time.
//!
//! The store has the rules for removal: each step of [`Retention::expire`](aldaba_store::Retention::expire) finds expired data
//! or removes a slice of it. This task provides the periods, runs one step after another, and pauses after each slice, so that
//! accepting and delivering are not delayed. An interrupted round starts again: everything is still to be found.

mod steady;
mod sums;
#[cfg(test)]
mod tests;

use crate::clock::MAX_TRUSTED_STEP;
use crate::housekeeping::background::{StoreClosed, Task};
use crate::scheduling::GATE_RETENTION;
use crate::{Clock, ClockTrust, Credentials, Policies};
use aldaba_delivery::Timestamp;
use aldaba_delivery::policy::RetentionDefaults;
use aldaba_store::{Error, RemovedCounts, RetentionBudget, RetentionRules, RetentionWalk, Store};
use std::sync::Arc;
use std::time::Duration;
use steady::Steady;

/// The store ends a slice earlier when its time is over.
const BUDGET: RetentionBudget = RetentionBudget { found: 2000, rows: 5000, slice: 100 };
/// The shortest pause between two slices. A longer slice is followed by a longer pause.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_FACTOR: u32 = 4;
/// How long until a slice is repeated that the store had no capacity for.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The share of the time between two rounds that a round may take.
const MAX_TIME_SHARE: u32 = 50;
/// How long a resolved alert is kept.
const ALERT_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// The retention periods that no policy sets, and how often to search.
#[derive(Clone, Copy, Debug)]
pub struct RetentionOptions {
    /// Its period for delivered messages also applies to messages without deliveries.
    pub defaults: RetentionDefaults,
    /// Counters of endpoints per minute.
    pub counters: Duration,
    /// Ended replays. One is kept at least as long as its idempotency key.
    pub replays: Duration,
    /// Rows of the audit log.
    pub audit: Duration,
    pub interval: Duration,
}

impl Default for RetentionOptions {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        Self {
            defaults: RetentionDefaults { delivered: Some(days(90)), dead: Some(days(365)) },
            counters: days(30),
            replays: days(30),
            audit: days(365),
            interval: Duration::from_secs(60),
        }
    }
}

pub(crate) struct Retention {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policies: Policies,
    pub(crate) credentials: Credentials,
    pub(crate) options: RetentionOptions,
    pub(crate) idempotency_kept: Duration,
    pub(crate) trust: ClockTrust,
    /// Lasts longer than a round.
    pub(crate) walk: RetentionWalk,
}

impl Task for Retention {
    const NAME: &'static str = "retention";

    async fn run(&mut self) -> StoreClosed {
        self.walk = std::mem::take(&mut self.walk).reset();
        let mut steady = Steady::new(self.clock.now(), self.clock.monotonic());
        let mut pause = self.options.interval;
        loop {
            tokio::time::sleep(pause).await;
            let begun = self.clock.monotonic();
            let now = self.clock.now();
            if steady.look(now, begun) && self.trust.may_end_by_time() {
                let (removed, end) = self.run_once(now).await;
                if removed != RemovedCounts::default() {
                    let RemovedCounts { deliveries, attempts, messages, payloads, keys, .. } = removed;
                    let RemovedCounts { counters, gates, replays, endpoints, applications, .. } = removed;
                    let RemovedCounts { audit, alerts, revocations, .. } = removed;
                    tracing::info!(
                        deliveries,
                        attempts,
                        messages,
                        payloads,
                        keys,
                        counters,
                        gates,
                        replays,
                        endpoints,
                        applications,
                        audit,
                        alerts,
                        revocations,
                        "removed what is no longer kept"
                    );
                }
                match end {
                    Ok(()) => {}
                    Err(Error::Closed) => return StoreClosed,
                    Err(error) => {
                        tracing::warn!(%error, "cannot remove what is no longer kept; trying again");
                    }
                }
            }
            // A long round is followed by a longer pause.
            let took = self.clock.monotonic().saturating_sub(begun);
            pause = self.options.interval.max(took.saturating_mul(MAX_TIME_SHARE));
        }
    }
}

impl Retention {
    /// Runs one round. Returns what was removed, and whether the round was finished.
    pub(crate) async fn run_once(&mut self, now: Timestamp) -> (RemovedCounts, Result<(), Error>) {
        let mut removed = RemovedCounts::default();
        let end = self.round(now, &mut removed).await;
        (removed, end)
    }

    async fn round(&mut self, now: Timestamp, removed: &mut RemovedCounts) -> Result<(), Error> {
        self.sum_up_hours(now).await?;
        let rules = Arc::new(self.rules());
        self.walk.begin_again();
        while !self.walk.is_over() {
            let expired = match self.store.expire(self.walk.clone(), rules.clone(), now, BUDGET).await {
                // The writer is busy; what was found is still to be removed.
                Err(Error::Busy) if self.walk.is_removing() => {
                    tokio::time::sleep(BUSY_RETRY_DELAY).await;
                    continue;
                }
                expired => expired?,
            };
            *removed += expired.removed;
            self.credentials.forget(&expired.credentials);
            self.walk = expired.walk;
            if let Some(took) = expired.took {
                tokio::time::sleep(PAUSE.max(took * PAUSE_FACTOR)).await;
            }
        }
        Ok(())
    }

    fn rules(&self) -> RetentionRules {
        let RetentionOptions { defaults, counters, replays, audit, .. } = self.options;
        RetentionRules {
            policies: self.policies.retention(),
            defaults,
            counters,
            // A repeat of the request that started it must still find it.
            replays: replays.max(self.idempotency_kept),
            audit,
            gates: GATE_RETENTION,
            alerts: ALERT_RETENTION,
            event_ids: self.idempotency_kept + MAX_TRUSTED_STEP,
            clock_tolerance: MAX_TRUSTED_STEP,
        }
    }
}
