//! Removes what is no longer kept, a little at a time.
//!
//! The store knows how: each step of [`Retention::expire`](aldaba_store::Retention::expire) finds something or removes a slice
//! of what was found. This task says what is kept and for how long, takes one step after the other, and makes a pause after
//! each slice, so that neither accepting nor delivering feels it. A round that is cut off, by an error or a crash, is begun
//! again: everything that it had to do is still to be found.

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
/// The shortest pause between two slices. A longer slice is followed by a pause that is longer as well.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_FACTOR: u32 = 4;
/// How long until a slice is tried again that the store had no room for.
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The share of its time that a round may take of the time between two rounds.
const MAX_TIME_SHARE: u32 = 50;

/// What is kept for how long, where no policy says so, and how often to look.
#[derive(Clone, Copy, Debug)]
pub struct RetentionOptions {
    /// Its span for delivered ones is that of messages which went to nobody, too.
    pub defaults: RetentionDefaults,
    /// Counters of endpoints per minute.
    pub counters: Duration,
    /// Replays that have ended. One is kept for as long as the idempotency key that it was started with, too.
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
                    let RemovedCounts { audit, revocations, .. } = removed;
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
            // Where there is very much to look at, it is looked at less often.
            let took = self.clock.monotonic().saturating_sub(begun);
            pause = self.options.interval.max(took.saturating_mul(MAX_TIME_SHARE));
        }
    }
}

impl Retention {
    /// One round: what was removed, and whether it came to its end.
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
                // The writer has better things to do; what was found is still to go.
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
            // A repeat of the request that started one must still find it.
            replays: replays.max(self.idempotency_kept),
            audit,
            gates: GATE_RETENTION,
            event_ids: self.idempotency_kept + MAX_TRUSTED_STEP,
            clock_tolerance: MAX_TRUSTED_STEP,
        }
    }
}
