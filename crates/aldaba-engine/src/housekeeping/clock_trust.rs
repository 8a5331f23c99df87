//! Whether the clock can be trusted to end and remove things by time.
//!
//! Removed data cannot be brought back. So the newest moment that a trusted clock has shown is stored, and the clock is
//! compared with it at the start and while the engine runs. A clock that is more than a day off is not trusted. Nothing is
//! removed and nothing ends by time until the clock is corrected, has run steadily for long enough, or the operator trusts it.
//! The reference moves only while the clock is trusted.

mod record;
mod watch;

pub use record::ClockRecord;
pub(crate) use watch::ClockWatch;

use crate::Clock;
use aldaba_delivery::Timestamp;
use parking_lot::Mutex;
use record::Change;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// The name of the setting that keeps the [`ClockRecord`].
pub const CLOCK_SETTING: &str = "clock";

/// Decides about the machine's clock. Clones share the state. The default one trusts every clock.
#[derive(Clone, Debug, Default)]
pub struct ClockTrust(Option<Arc<SharedTrust>>);

#[derive(Debug)]
struct SharedTrust {
    machine: Arc<dyn Clock>,
    trust_after: Duration,
    state: Mutex<TrustState>,
    /// Notified when the clock has jumped: that is stored at once, in case the process ends soon.
    leapt: Notify,
    /// The data was restored, and the operator has not resumed yet.
    paused: AtomicBool,
}

#[derive(Debug)]
struct TrustState {
    record: ClockRecord,
    /// The monotonic clock at the last update of the record.
    looked: Duration,
}

/// The state of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    pub trusted: bool,
    /// The time that it shows.
    pub shown: Timestamp,
    /// The time that was expected, by the last trusted moment and the time run since.
    pub expected: Timestamp,
    /// How long it must still run steadily to be trusted.
    pub trusted_in: Duration,
}

impl ClockTrust {
    /// Compares the clock with the record of the last run. `newest`: the newest moment in a store without a record.
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
        let inner =
            SharedTrust { machine, trust_after, state, leapt: Notify::new(), paused: AtomicBool::new(false) };
        // As often as it starts.
        let change = if record.is_trusted() { change } else { Some(Change::Distrusted) };
        if let Some(change) = change {
            inner.say(change, &before, shown);
        }
        Self(Some(Arc::new(inner)))
    }

    /// Whether things may end and be removed by the time of the clock. Not while sending is paused after a restore: nothing had
    /// its chance meanwhile.
    pub(crate) fn may_end_by_time(&self) -> bool {
        !self.is_paused() && self.is_trusted()
    }

    /// Whether the clock is right, as far as is known.
    pub(crate) fn is_trusted(&self) -> bool {
        self.look().is_none_or(|record| record.is_trusted())
    }

    /// From here on nothing ends by time, or it may again.
    pub(crate) fn pause(&self, paused: bool) {
        if let Some(inner) = &self.0 {
            inner.paused.store(paused, Ordering::Release);
        }
    }

    fn is_paused(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.paused.load(Ordering::Acquire))
    }

    /// The probable true time, for what an operator has ended with a delay. `now`: the time that the clock shows.
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

    /// The operator trusts the clock.
    pub(crate) fn trust(&self) {
        let (Some(inner), Some(before)) = (&self.0, self.look()) else { return };
        let shown = inner.machine.now();
        *inner.state.lock() =
            TrustState { record: ClockRecord::trusted(shown), looked: inner.machine.monotonic() };
        if !before.is_trusted() {
            inner.say(Change::ByOperator, &before, shown);
        }
    }

    /// Resolves when the clock has jumped, or is right again.
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

/// The engine's clock: the machine's, but never behind the time that a trusted clock has shown. Otherwise a clock that starts
/// in 1970 would stamp new messages so that they are removed as soon as the clock is right.
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

/// The difference between two moments, for people.
fn off_by(shown: i64, expected: i64) -> String {
    let hours = shown.saturating_sub(expected) / 3_600_000;
    let (direction, hours) = if hours < 0 { ("behind", -hours) } else { ("ahead", hours) };
    if hours >= 72 { format!("{} days {direction}", hours / 24) } else { format!("{hours} h {direction}") }
}

#[cfg(test)]
mod tests;
