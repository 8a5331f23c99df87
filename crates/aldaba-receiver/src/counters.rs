//! What is counted, through the `metrics` facade and for whoever has no backend of metrics.

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

/// How many of the events that were handled were copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DuplicateRate {
    /// Events that were answered as new or as duplicate since the receiver was made.
    pub total: u64,
    /// How many of these were duplicates.
    pub duplicates: u64,
}

impl DuplicateRate {
    /// From 0 to 1; 0 where nothing came.
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

/// Tells the installed recorder of metrics what the counters mean. Every receiver does it when it is made; call it again
/// where the recorder is installed later.
pub fn describe_metrics() {
    describe_counter!(EVENTS, Unit::Count, "Requests by what became of them");
    describe_histogram!(HANDLER_SECONDS, Unit::Seconds, "How long handlers took, with the commit");
    describe_counter!(AFTER_COMMIT, Unit::Count, "Actions after a commit by how they ended");
    describe_counter!(CLEANED, Unit::Count, "Marks of events removed because they were old");
    describe_counter!(
        LEASES_EXPIRED,
        Unit::Count,
        "Leases that ended while their events were being handled, by how"
    );
    describe_counter!(CLEANUPS, Unit::Count, "Cleanups by how they ended");
}
