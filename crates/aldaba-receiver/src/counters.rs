//! The metrics of a receiver, for the `metrics` facade and for programs without a metrics backend.

use crate::Outcome;
use crate::after_commit::Ending;
use crate::lease::LEASES_EXPIRED;
use metrics::{SharedString, Unit, counter, describe_counter, describe_histogram, histogram};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const EVENTS: &str = "aldaba_receiver_events_total";
const HANDLER_SECONDS: &str = "aldaba_receiver_handler_seconds";
const AFTER_COMMIT: &str = "aldaba_receiver_after_commit_total";
const CLEANED: &str = "aldaba_receiver_cleaned_marks_total";
const CLEANUPS: &str = "aldaba_receiver_cleanups_total";

/// How many of the handled events were duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DuplicateRate {
    /// Events answered as new or as duplicate since the receiver was built.
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

/// The counters of one receiver.
#[derive(Debug)]
pub(crate) struct Counters {
    receiver: SharedString,
    new: AtomicU64,
    duplicates: AtomicU64,
}

impl Counters {
    pub(crate) fn named(receiver: String) -> Self {
        describe_metrics();
        Self {
            receiver: SharedString::from_owned(receiver),
            new: AtomicU64::new(0),
            duplicates: AtomicU64::new(0),
        }
    }

    pub(crate) fn event(&self, outcome: Outcome) {
        match outcome {
            Outcome::New => drop(self.new.fetch_add(1, Relaxed)),
            Outcome::Duplicate => drop(self.duplicates.fetch_add(1, Relaxed)),
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
    describe_counter!(CLEANED, Unit::Count, "Old marks removed");
    describe_counter!(
        LEASES_EXPIRED,
        Unit::Count,
        "Leases that ended while their events were handled, by cause"
    );
    describe_counter!(CLEANUPS, Unit::Count, "Cleanups by result");
}
