//! Whether the clock can be trusted to end and to remove things.
//!
//! What is removed too early cannot be brought back. So the newest moment that a trusted clock has shown is kept
//! on disk, and the clock is compared with it: at the start, and while the engine runs. A clock that is more than a
//! day off is not trusted. Nothing is removed and nothing ends by time until it is mended, has run steadily for
//! long enough, or the operator trusts it. The reference moves only while the clock is trusted: a wrong clock cannot
//! move it.

mod record;
mod watch;

pub use record::ClockRecord;
pub(crate) use watch::ClockWatch;

use crate::Clock;
use aldaba_delivery::Timestamp;
use parking_lot::Mutex;
use record::Change;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The name of the setting that keeps the [`ClockRecord`].
pub const CLOCK_SETTING: &str = "clock";

/// Judges the machine's clock. Clones share the state. The default one trusts every clock.
#[derive(Clone, Debug, Default)]
pub struct ClockTrust(Option<Arc<SharedTrust>>);

#[derive(Debug)]
struct SharedTrust {
    machine: Arc<dyn Clock>,
    trust_after: Duration,
    state: Mutex<TrustState>,
    /// Told when the clock has leapt: that is noted at once, in case the process is killed soon.
    leapt: Notify,
}

#[derive(Debug)]
struct TrustState {
    record: ClockRecord,
    /// The monotonic clock when the record was last brought up to date.
    looked: Duration,
}

/// What is thought of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    pub trusted: bool,
    /// What it shows.
    pub shown: Timestamp,
    /// What it was expected to show, by the last moment that was trusted and the time run since.
    pub expected: Timestamp,
    /// How long it still has to run steadily to be trusted.
    pub trusted_in: Duration,
}

impl ClockTrust {
    /// Compares the clock with the record of the last run. `newest`: when something last happened, for a store that
    /// has no record yet.
    pub(crate) fn starting(
        machine: Arc<dyn Clock>,
        record: Option<ClockRecord>,
        newest: Option<Timestamp>,
        trust_after: Duration,
    ) -> Self {
        let (shown, looked) = (machine.now(), machine.monotonic());
        let before = record.or(newest.map(ClockRecord::trusted)).unwrap_or(ClockRecord::trusted(shown));
        let (record, change) = before.at_start(shown);
        let state = Mutex::new(TrustState { record, looked });
        let inner = SharedTrust { machine, trust_after, state, leapt: Notify::new() };
        // As often as it starts.
        let change = if record.is_trusted() { change } else { Some(Change::Distrusted) };
        if let Some(change) = change {
            inner.say(change, &before, shown);
        }
        Self(Some(Arc::new(inner)))
    }

    /// Whether things may end and be removed because of the time that the clock shows.
    pub(crate) fn may_end_by_time(&self) -> bool {
        self.look().is_none_or(|record| record.is_trusted())
    }

    /// What the clock should show, as far as is known: for what ends a while after a hand has ended it, and neither
    /// sooner nor later because the clock is wrong. `now`: what it shows.
    pub(crate) fn believed(&self, now: Timestamp) -> Timestamp {
        match self.look() {
            Some(record) if !record.is_trusted() => record.expected(),
            _ => now,
        }
    }

    pub(crate) fn state(&self) -> Option<ClockState> {
        let (inner, record) = (self.0.as_ref()?, self.look()?);
        Some(ClockState {
            trusted: record.is_trusted(),
            shown: record.shown,
            expected: record.expected(),
            trusted_in: record
                .steady
                .map_or(Duration::ZERO, |steady| inner.trust_after.saturating_sub(steady)),
        })
    }

    /// The operator says that the clock is right.
    pub(crate) fn trust(&self) {
        let (Some(inner), Some(before)) = (&self.0, self.look()) else { return };
        let shown = inner.machine.now();
        *inner.state.lock() =
            TrustState { record: ClockRecord::trusted(shown), looked: inner.machine.monotonic() };
        if !before.is_trusted() {
            inner.say(Change::ByOperator, &before, shown);
        }
    }

    /// Resolves when the clock has leapt, or is right again.
    pub(super) async fn leapt(&self) {
        match &self.0 {
            Some(inner) => inner.leapt.notified().await,
            None => std::future::pending().await,
        }
    }

    /// The record as it is now. `None`: there is none.
    fn look(&self) -> Option<ClockRecord> {
        self.0.as_ref().map(|inner| inner.look())
    }
}

impl SharedTrust {
    fn look(&self) -> ClockRecord {
        let mut state = self.state.lock();
        let (shown, monotonic) = (self.machine.now(), self.machine.monotonic());
        let before = state.record;
        let passed = monotonic.saturating_sub(state.looked);
        let (record, change) = before.after(passed, shown, self.trust_after);
        *state = TrustState { record, looked: monotonic };
        drop(state);
        if let Some(change) = change {
            self.leapt.notify_one();
            self.say(change, &before, shown);
        }
        record
    }

    fn say(&self, change: Change, before: &ClockRecord, shown: Timestamp) {
        let off_by = off_by(shown.millis(), before.expected().millis());
        let hours = self.trust_after.as_secs() / 3600;
        match change {
            Change::Distrusted => tracing::warn!(
                %off_by,
                "the machine's clock is not where it should be, and is not trusted: nothing is removed and nothing ends by \
                 time. Set it right; if it is right, run `aldaba clock trust` (it is trusted after {hours} h anyway)"
            ),
            Change::Mended => tracing::info!("the machine's clock is right again, and trusted"),
            Change::Steady => tracing::warn!(
                %off_by,
                "the machine's clock has run steadily for {hours} h, and is trusted from now on"
            ),
            Change::ByOperator => tracing::info!(%off_by, "the operator trusts the machine's clock"),
        }
    }
}

/// The clock that the engine goes by: the machine's, but not behind what a trusted one has shown. A clock that starts
/// in 1970 would stamp what it takes in so that it is removed as soon as the clock is right.
#[derive(Debug)]
pub(crate) struct TrustedClock(pub(crate) ClockTrust, pub(crate) Arc<dyn Clock>);

impl Clock for TrustedClock {
    fn now(&self) -> Timestamp {
        let Self(trust, machine) = self;
        trust.look().map_or_else(|| machine.now(), |record| record.now())
    }

    fn wall(&self) -> Timestamp {
        self.1.wall()
    }

    fn monotonic(&self) -> Duration {
        self.1.monotonic()
    }
}

/// How far two moments are apart, for people.
fn off_by(shown: i64, expected: i64) -> String {
    let hours = shown.saturating_sub(expected) / 3_600_000;
    let (direction, hours) = if hours < 0 { ("behind", -hours) } else { ("ahead", hours) };
    if hours >= 72 { format!("{} days {direction}", hours / 24) } else { format!("{hours} h {direction}") }
}

#[cfg(test)]
mod tests;
