//! What happened at the doors lately. It is in memory alone: what was refused is not worth a write, or whoever knocks in
//! vain could fill the disk.

use aldaba_delivery::{RefusalId, SourceId, Timestamp};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Sources of which anything is remembered. Past it that one goes of which nothing was heard for the longest time.
const MOST_SOURCES: usize = 1024;
/// Refusals that are remembered of a source.
const MOST_REFUSED: usize = 100;
/// Bytes of what is said of one.
const LONGEST_ERROR: usize = 512;
/// Conflicts of one source are told of so often at most: who repeats them must not fill the log.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Clones share what they hold.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<HashMap<SourceId, Entry>>>);

#[derive(Clone, Debug)]
struct Entry {
    counts: SourceCounts,
    refused: VecDeque<Refused>,
    last: Timestamp,
    /// When conflicts were told of last, and how many of them then.
    told: Option<(Timestamp, u64)>,
}

/// How often what happened, since the server began to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceCounts {
    pub since: Timestamp,
    /// New events.
    pub received: u64,
    /// Repeats of former ones.
    pub duplicates: u64,
    /// Repeats of former ones that had failed, and are forwarded again.
    pub reopened: u64,
    /// What the source's filters did not want.
    pub ignored: u64,
    /// Another body under the id of a former event.
    pub conflicts: u64,
    /// All that was not taken, conflicts among them.
    pub refused: u64,
    /// Questions whether this receiver is one.
    pub challenges: u64,
}

/// A request that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub id: RefusalId,
    pub at: Timestamp,
    pub status: u16,
    pub error: String,
}

impl Tally {
    /// Counts something.
    pub fn count(&self, source: SourceId, now: Timestamp, count: impl FnOnce(&mut SourceCounts)) {
        let mut all = self.0.lock();
        count(&mut entry(&mut all, source, now).counts);
    }

    /// Notes that a request was not taken, and what its sender was told.
    pub fn refuse(&self, source: SourceId, now: Timestamp, status: u16, mut error: String) {
        let mut all = self.0.lock();
        let entry = entry(&mut all, source, now);
        entry.counts.refused += 1;
        if entry.refused.len() >= MOST_REFUSED {
            entry.refused.pop_front();
        }
        error.truncate(error.floor_char_boundary(LONGEST_ERROR));
        // Those of one moment are told apart by their number, and in order: no clock is that fine.
        let mut number = [0; 15];
        number[..8].copy_from_slice(&entry.counts.refused.to_be_bytes());
        let id = RefusalId::new(entry.last, number);
        entry.refused.push_back(Refused { id, at: now, status, error });
    }

    /// Counts another body under the id of a former event. `Some`: it is worth a line in the log, for so many since the
    /// last one.
    pub(crate) fn conflict(&self, source: SourceId, now: Timestamp) -> Option<u64> {
        let mut all = self.0.lock();
        let entry = entry(&mut all, source, now);
        entry.counts.conflicts += 1;
        let before = match entry.told {
            Some((at, _)) if now < at + TOLD_EVERY => return None,
            told => told.map_or(0, |(_, before)| before),
        };
        entry.told = Some((now, entry.counts.conflicts));
        Some(entry.counts.conflicts - before)
    }

    /// `None`: nothing has happened there.
    pub fn counts(&self, source: SourceId) -> Option<SourceCounts> {
        self.0.lock().get(&source).map(|entry| entry.counts)
    }

    /// The newest last.
    pub fn refused(&self, source: SourceId) -> Vec<Refused> {
        self.0.lock().get(&source).map_or_else(Vec::new, |entry| entry.refused.iter().cloned().collect())
    }

    pub(crate) fn forget(&self, source: SourceId) {
        self.0.lock().remove(&source);
    }
}

fn entry(all: &mut HashMap<SourceId, Entry>, source: SourceId, now: Timestamp) -> &mut Entry {
    if all.len() >= MOST_SOURCES && !all.contains_key(&source) {
        let quiet = all.iter().min_by_key(|(id, entry)| (entry.last, **id)).map(|(id, _)| *id);
        quiet.map(|quiet| all.remove(&quiet));
    }
    let entry = all.entry(source).or_insert_with(|| Entry {
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
        told: None,
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
    fn only_the_newest_refusals_are_remembered_and_all_are_counted() {
        let (tally, source) = (Tally::default(), SourceId::from_bytes([1; 20]));
        for number in 0..150 {
            tally.refuse(source, moment(number), 401, "é".repeat(400));
        }
        let kept = tally.refused(source);
        assert_eq!((kept.len(), kept[0].at, kept[99].at), (100, moment(50), moment(149)));
        assert!(kept.is_sorted_by(|one, two| one.id < two.id));
        assert!(kept[0].error.len() <= 512);
        assert_eq!(tally.counts(source).map(|counts| counts.refused), Some(150));
        tally.forget(source);
        assert_eq!(tally.counts(source), None);
    }

    #[test]
    fn conflicts_are_told_of_once_a_minute_with_their_number() {
        let (tally, source) = (Tally::default(), SourceId::from_bytes([1; 20]));
        let told: Vec<_> =
            [0, 1, 59_999, 60_000, 60_001, 200_000].map(|at| tally.conflict(source, moment(at))).to_vec();
        assert_eq!(told, [Some(1), None, None, Some(3), None, Some(2)]);
        assert_eq!(tally.conflict(SourceId::from_bytes([2; 20]), moment(1)), Some(1), "each for itself");
        assert_eq!(tally.counts(source).map(|counts| counts.conflicts), Some(6));
    }

    #[test]
    fn of_too_many_sources_the_quietest_is_forgotten() {
        let tally = Tally::default();
        let id = |number: u32| {
            let mut bytes = [0; 20];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            SourceId::from_bytes(bytes)
        };
        for number in 0..1025 {
            let at = moment(if number == 0 { 9999 } else { i64::from(number) });
            tally.count(id(number), at, |counts| counts.received += 1);
        }
        assert!(tally.counts(id(0)).is_some(), "it was heard of lately");
        assert_eq!(tally.counts(id(1)), None);
        assert!(tally.counts(id(1024)).is_some());
    }
}
