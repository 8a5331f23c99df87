//! Recent counters and refusals per source. They are in memory only: storing refused requests would let
//! anyone fill the disk.

use aldaba_delivery::{RefusalId, SourceId, Timestamp};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Sources with counters. Past it the one without activity for the longest time is dropped.
const MAX_SOURCES: usize = 1024;
/// Refusals that are kept per source.
const MAX_REFUSED: usize = 100;
/// The longest error text, in bytes.
const MAX_ERROR_BYTES: usize = 512;
/// The least time between two log lines about conflicts of one source, so that repeats cannot flood the log.
const CONFLICT_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct SourceCounters(Arc<Mutex<HashMap<SourceId, CounterEntry>>>);

#[derive(Clone, Debug)]
struct CounterEntry {
    counts: SourceCounts,
    refused: VecDeque<RefusedRequest>,
    last: Timestamp,
    /// When conflicts were last logged, and their count then.
    logged: Option<(Timestamp, u64)>,
}

/// Counters of a source since `since`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceCounts {
    pub since: Timestamp,
    /// New events.
    pub received: u64,
    /// Duplicates of earlier events.
    pub duplicates: u64,
    /// Duplicates of failed events, which are sent again.
    pub reopened: u64,
    /// Events that the source's filters reject.
    pub ignored: u64,
    /// Events with a known id and another body.
    pub conflicts: u64,
    /// All refused requests, conflicts included.
    pub refused: u64,
    /// Verification challenges.
    pub challenges: u64,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    pub id: RefusalId,
    pub at: Timestamp,
    pub status: u16,
    pub error: String,
}

impl SourceCounters {
    /// Updates the counters of a source.
    pub fn count(&self, source: SourceId, now: Timestamp, count: impl FnOnce(&mut SourceCounts)) {
        let mut all = self.0.lock();
        count(&mut entry(&mut all, source, now).counts);
    }

    /// Notes a refused request and the error that its sender got.
    pub fn refuse(&self, source: SourceId, now: Timestamp, status: u16, mut error: String) {
        let mut all = self.0.lock();
        let entry = entry(&mut all, source, now);
        entry.counts.refused += 1;
        if entry.refused.len() >= MAX_REFUSED {
            entry.refused.pop_front();
        }
        error.truncate(error.floor_char_boundary(MAX_ERROR_BYTES));
        // Numbered, so that refusals of the same millisecond have distinct, ordered ids.
        let mut number = [0; 15];
        number[..8].copy_from_slice(&entry.counts.refused.to_be_bytes());
        let id = RefusalId::new(entry.last, number);
        entry.refused.push_back(RefusedRequest { id, at: now, status, error });
    }

    /// Counts a conflict. `Some`: log it, with the conflicts since the last log line.
    pub(crate) fn conflict(&self, source: SourceId, now: Timestamp) -> Option<u64> {
        let mut all = self.0.lock();
        let entry = entry(&mut all, source, now);
        entry.counts.conflicts += 1;
        let before = match entry.logged {
            Some((at, _)) if now < at + CONFLICT_LOG_INTERVAL => return None,
            logged => logged.map_or(0, |(_, before)| before),
        };
        entry.logged = Some((now, entry.counts.conflicts));
        Some(entry.counts.conflicts - before)
    }

    /// `None`: there was no request.
    pub fn counts(&self, source: SourceId) -> Option<SourceCounts> {
        self.0.lock().get(&source).map(|entry| entry.counts)
    }

    /// Oldest first.
    pub fn refused(&self, source: SourceId) -> Vec<RefusedRequest> {
        self.0.lock().get(&source).map_or_else(Vec::new, |entry| entry.refused.iter().cloned().collect())
    }

    pub(crate) fn forget(&self, source: SourceId) {
        self.0.lock().remove(&source);
    }
}

fn entry(all: &mut HashMap<SourceId, CounterEntry>, source: SourceId, now: Timestamp) -> &mut CounterEntry {
    if all.len() >= MAX_SOURCES && !all.contains_key(&source) {
        let quiet = all.iter().min_by_key(|(id, entry)| (entry.last, **id)).map(|(id, _)| *id);
        quiet.map(|quiet| all.remove(&quiet));
    }
    let entry = all.entry(source).or_insert_with(|| CounterEntry {
        counts: SourceCounts {
            since: now,
            received: 0,
            duplicates: 0,
            reopened: 0,
            ignored: 0,
            conflicts: 0,
            refused: 0,
            challenges: 0,
        },
        refused: VecDeque::new(),
        last: now,
        logged: None,
    });
    entry.last = entry.last.max(now);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_780_000_000_000 + millis)
    }

    #[test]
    fn only_the_newest_refusals_are_kept_and_all_are_counted() {
        let (counters, source) = (SourceCounters::default(), SourceId::from_bytes([1; 20]));
        for number in 0..150 {
            counters.refuse(source, moment(number), 401, "é".repeat(400));
        }
        let kept = counters.refused(source);
        assert_eq!((kept.len(), kept[0].at, kept[99].at), (100, moment(50), moment(149)));
        assert!(kept.is_sorted_by(|one, two| one.id < two.id));
        assert!(kept[0].error.len() <= 512);
        assert_eq!(counters.counts(source).map(|counts| counts.refused), Some(150));
        counters.forget(source);
        assert_eq!(counters.counts(source), None);
    }

    #[test]
    fn conflicts_are_logged_once_a_minute_with_their_number() {
        let (counters, source) = (SourceCounters::default(), SourceId::from_bytes([1; 20]));
        let logged: Vec<_> =
            [0, 1, 59_999, 60_000, 60_001, 200_000].map(|at| counters.conflict(source, moment(at))).to_vec();
        assert_eq!(logged, [Some(1), None, None, Some(3), None, Some(2)]);
        assert_eq!(
            counters.conflict(SourceId::from_bytes([2; 20]), moment(1)),
            Some(1),
            "sources are independent"
        );
        assert_eq!(counters.counts(source).map(|counts| counts.conflicts), Some(6));
    }

    #[test]
    fn past_the_limit_the_least_active_source_is_dropped() {
        let counters = SourceCounters::default();
        let id = |number: u32| {
            let mut bytes = [0; 20];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            SourceId::from_bytes(bytes)
        };
        for number in 0..1025 {
            let at = moment(if number == 0 { 9999 } else { i64::from(number) });
            counters.count(id(number), at, |counts| counts.received += 1);
        }
        assert!(counters.counts(id(0)).is_some(), "it was active recently");
        assert_eq!(counters.counts(id(1)), None);
        assert!(counters.counts(id(1024)).is_some());
    }
}
