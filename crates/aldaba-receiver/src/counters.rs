//! The metrics of a receiver, for the `metrics` facade and for programs without a metrics backend.

use crate::Outcome;
use crate::after_commit::Ending;
use crate::lease::LEASES_EXPIRED;
use metrics::{
    SharedString, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const EVENTS: &str = "aldaba_receiver_events_total";
const HANDLER_SECONDS: &str = "aldaba_receiver_handler_seconds";
const AFTER_COMMIT: &str = "aldaba_receiver_after_commit_total";
const CLEANED: &str = "aldaba_receiver_cleaned_marks_total";
const DUPLICATE_RATIO: &str = "aldaba_receiver_duplicate_ratio";
const CLEANUPS: &str = "aldaba_receiver_cleanups_total";

/// How many of the handled events were duplicates. Shown as a percentage: `12.34%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DuplicateRate {
    /// Events answered as new or as duplicate.
    pub total: u64,
    /// How many of these were duplicates.
    pub duplicates: u64,
}

impl DuplicateRate {
    /// From 0 to 1; 0 before the first event.
    pub fn ratio(self) -> f64 {
        // Exact up to 2^53 events.
        if self.total == 0 { 0.0 } else { self.duplicates as f64 / self.total as f64 }
    }
}

impl DuplicateRate {
    /// New events and duplicates, as ledgers store them.
    pub fn stored(self) -> [i64; 2] {
        let Self { total, duplicates } = self;
        [total.saturating_sub(duplicates), duplicates].map(|count| i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// The rate of new events and duplicates that a ledger has stored.
    pub fn from_stored(stored: [i64; 2]) -> Self {
        let [new, duplicates] = stored.map(|count| u64::try_from(count).unwrap_or(0));
        Self { total: new.saturating_add(duplicates), duplicates }
    }
}

impl fmt::Display for DuplicateRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}%", self.ratio() * 100.0)
    }
}

/// The counters of one receiver.
#[derive(Debug)]
pub(crate) struct Counters {
    receiver: SharedString,
    new: AtomicU64,
    duplicates: AtomicU64,
    /// What the ledger has not been told yet.
    unstored: Mutex<DuplicateRate>,
    /// A task will tell it.
    will_store: AtomicBool,
}

impl Counters {
    pub(crate) fn named(receiver: String) -> Self {
        describe_metrics();
        Self {
            receiver: SharedString::from_owned(receiver),
            new: AtomicU64::new(0),
            duplicates: AtomicU64::new(0),
            unstored: Mutex::default(),
            will_store: AtomicBool::new(false),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.receiver
    }

    pub(crate) fn event(&self, outcome: Outcome) {
        match outcome {
            Outcome::New => {
                self.new.fetch_add(1, Relaxed);
                self.add_unstored(DuplicateRate { total: 1, duplicates: 0 });
            }
            Outcome::Duplicate => {
                self.duplicates.fetch_add(1, Relaxed);
                self.add_unstored(DuplicateRate { total: 1, duplicates: 1 });
            }
            _ => {}
        }
        counter!(EVENTS, "receiver" => self.receiver.clone(), "outcome" => outcome.name()).increment(1);
    }

    pub(crate) fn handler_took(&self, time: Duration) {
        histogram!(HANDLER_SECONDS, "receiver" => self.receiver.clone()).record(time);
    }

    pub(crate) fn after_commit(&self, ending: Ending) {
        counter!(AFTER_COMMIT, "receiver" => self.receiver.clone(), "outcome" => ending.name()).increment(1);
    }

    pub(crate) fn cleaned(&self, marks: u64) {
        counter!(CLEANED, "receiver" => self.receiver.clone()).increment(marks);
        counter!(CLEANUPS, "receiver" => self.receiver.clone(), "outcome" => "done").increment(1);
    }

    pub(crate) fn cleanup_failed(&self) {
        counter!(CLEANUPS, "receiver" => self.receiver.clone(), "outcome" => "failed").increment(1);
    }

    pub(crate) fn add_unstored(&self, seen: DuplicateRate) {
        let mut unstored = self.unstored.lock().unwrap_or_else(PoisonError::into_inner);
        unstored.total += seen.total;
        unstored.duplicates += seen.duplicates;
    }

    pub(crate) fn take_unstored(&self) -> DuplicateRate {
        std::mem::take(&mut self.unstored.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the caller is the one who has to store what is not stored. It says [`Self::stores`] when it begins to.
    pub(crate) fn must_store(&self) -> bool {
        let any = self.unstored.lock().unwrap_or_else(PoisonError::into_inner).total > 0;
        any && !self.will_store.swap(true, Relaxed)
    }

    pub(crate) fn stores(&self) {
        self.will_store.store(false, Relaxed);
    }

    pub(crate) fn rate_within_window(&self, rate: DuplicateRate) {
        gauge!(DUPLICATE_RATIO, "receiver" => self.receiver.clone()).set(rate.ratio());
    }

    pub(crate) fn duplicate_rate(&self) -> DuplicateRate {
        let duplicates = self.duplicates.load(Relaxed);
        DuplicateRate { total: self.new.load(Relaxed) + duplicates, duplicates }
    }
}

/// Describes the metrics to the installed recorder. Every receiver does this when it is built; call it again after
/// installing a recorder later.
pub fn describe_metrics() {
    describe_counter!(EVENTS, Unit::Count, "Requests by outcome");
    describe_histogram!(HANDLER_SECONDS, Unit::Seconds, "Duration of handlers, including the commit");
    describe_counter!(AFTER_COMMIT, Unit::Count, "Actions after a commit by result");
    describe_gauge!(DUPLICATE_RATIO, Unit::Count, "Share of duplicates within the window, of all processes");
    describe_counter!(CLEANED, Unit::Count, "Old marks removed");
    describe_counter!(
        LEASES_EXPIRED,
        Unit::Count,
        "Leases that ended while their events were handled, by cause"
    );
    describe_counter!(CLEANUPS, Unit::Count, "Cleanups by result");
}
