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
/// One part in so many of the time may be spent on reading that finds nothing to remove.
const IN_VAIN_SHARE: u32 = 50;
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
            pause = self.options.interval;
            let now = self.clock.now();
            if steady.look(now, self.clock.monotonic()) && self.trust.may_end_by_time() {
                let round = self.run_once(now).await;
                pause = round.pause(self.options.interval);
                let RetentionRound { removed, end, .. } = round;
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
        }
    }
}

/// What a round has come to.
pub(crate) struct RetentionRound {
    pub(crate) removed: RemovedCounts,
    /// How long it has read without finding anything to remove.
    in_vain: Duration,
    /// Whether the round was finished.
    pub(crate) end: Result<(), Error>,
}

impl RetentionRound {
    /// Until the next round. Time for removing does not count: a busy server would remove less than it stores.
    fn pause(&self, interval: Duration) -> Duration {
        interval.max(self.in_vain.saturating_mul(IN_VAIN_SHARE))
    }
}

impl Retention {
    /// Runs one round.
    pub(crate) async fn run_once(&mut self, now: Timestamp) -> RetentionRound {
        let mut round =
            RetentionRound { removed: RemovedCounts::default(), in_vain: Duration::ZERO, end: Ok(()) };
        round.end = self.round(now, &mut round).await;
        round
    }

    async fn round(&mut self, now: Timestamp, round: &mut RetentionRound) -> Result<(), Error> {
        let begun = self.clock.monotonic();
        self.sum_up_hours(now).await?;
        round.in_vain += self.clock.monotonic().saturating_sub(begun);
        let rules = Arc::new(self.rules());
        self.walk.begin_again();
        while !self.walk.is_over() {
            let begun = self.clock.monotonic();
            let expired = match self.store.expire(self.walk.clone(), rules.clone(), now, BUDGET).await {
                // The writer is busy; what was found is still to be removed.
                Err(Error::Busy) if self.walk.is_removing() => {
                    tokio::time::sleep(BUSY_RETRY_DELAY).await;
                    continue;
                }
                expired => expired?,
            };
            let read = self.clock.monotonic().saturating_sub(begun);
            round.removed += expired.removed;
            self.credentials.forget(&expired.credentials);
            self.walk = expired.walk;
            match expired.took {
                Some(took) => tokio::time::sleep(PAUSE.max(took * PAUSE_FACTOR)).await,
                None if self.walk.is_removing() => {}
                None => round.in_vain += read,
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
