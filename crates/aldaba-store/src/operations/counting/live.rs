//! The newest counts in memory: of each organization the last hour by minutes and the last day by hours, what waits, and what
//! commits cost. The writer adds to them after each commit, and a question reads nothing from the store.
//!
//! The rows of the store would cost a commit a tenth of its time, so counts are written at most once a second. A crash forgets the
//! counts of that second, and nothing else: what waits is written in each commit, and deliveries do not depend on counts.

use crate::operations::commit_watch::{CommitWatch, CommitWatcher};
use crate::operations::counters::BatchCounts;
use crate::operations::{Monotonic, Op, Reading, Result, Transaction, organizations};
use crate::{CountedSpans, OrganizationCounts};
use aldaba_delivery::{OrgId, Timestamp};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How long counts stay in memory only.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of rows that one commit writes for them. The next commit goes on.
const MAX_ROWS_AT_ONCE: usize = 200;
/// An hour, the minute that is under way and a clock that is a little ahead.
const MINUTES_KEPT: usize = 62;
/// A day, the hour that is under way and a clock that is a little ahead.
const HOURS_KEPT: usize = 26;
/// The maximum number of minutes and hours in memory, of all organizations: about 90 MB. Beyond it the organizations without
/// activity for the longest time are forgotten here; the counts of the server stay whole.
const MAX_SPANS: usize = 200_000;

/// The upper bounds of the time of a commit, in microseconds.
pub const COMMIT_MICROS: [u64; 12] =
    [250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000];
/// The upper bounds of the number of operations in a commit.
pub const COMMIT_OPERATIONS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// The counts in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LiveCounts(Arc<Mutex<LiveState>>, CommitWatch);

#[derive(Debug, Default)]
struct LiveState {
    server: RecentCounts,
    organizations: HashMap<OrgId, RecentCounts>,
    /// Minutes and hours of all organizations.
    spans: usize,
    since_start: OrganizationCounts,
    commits: CommitCounts,
    waiting: HashMap<OrgId, i64>,
    total_waiting: i64,
    unwritten: BTreeMap<(OrgId, i64), OrganizationCounts>,
    /// When the first of them was counted.
    since: Option<Duration>,
    /// They are in a commit whose fate is not known yet.
    writing: Arc<Vec<((OrgId, i64), OrganizationCounts)>>,
}

/// What commits cost since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitCounts {
    /// By [`COMMIT_MICROS`]; the last ones took longer.
    pub by_time: [u64; COMMIT_MICROS.len() + 1],
    pub time: Duration,
    /// By [`COMMIT_OPERATIONS`]; the last ones have more.
    pub by_operations: [u64; COMMIT_OPERATIONS.len() + 1],
    pub operations: u64,
}

#[derive(Debug, Default)]
struct RecentCounts {
    /// By their numbers, without those in which nothing happened.
    minutes: VecDeque<(i64, OrganizationCounts)>,
    hours: VecDeque<(i64, OrganizationCounts)>,
}

impl RecentCounts {
    /// Returns by how many spans it has grown.
    fn add(&mut self, minute: i64, counts: &OrganizationCounts) -> isize {
        add(&mut self.minutes, MINUTES_KEPT, minute, counts)
            + add(&mut self.hours, HOURS_KEPT, minute.div_euclid(60), counts)
    }

    fn spans(&self) -> usize {
        self.minutes.len() + self.hours.len()
    }

    fn last_minute(&self) -> i64 {
        self.minutes.back().map_or(i64::MIN, |(minute, _)| *minute)
    }

    fn window(&self, now: Timestamp, span: Duration) -> OrganizationCounts {
        let minute = now.millis().div_euclid(60_000);
        let minutes = i64::try_from(span.as_secs().div_ceil(60)).unwrap_or(i64::MAX);
        let (spans, present, number) = match minutes {
            ..=60 => (&self.minutes, minute, minutes),
            _ => (&self.hours, minute.div_euclid(60), (minutes - 1) / 60 + 1),
        };
        let mut sum = OrganizationCounts::default();
        for (_, counts) in
            spans.iter().filter(|(at, _)| (present.saturating_sub(number)..=present).contains(at))
        {
            sum.add(counts);
        }
        sum
    }
}

fn add(
    spans: &mut VecDeque<(i64, OrganizationCounts)>,
    kept: usize,
    at: i64,
    counts: &OrganizationCounts,
) -> isize {
    // Nearly always it is the last one.
    let later = spans.iter().rev().take_while(|(span, _)| *span > at).count();
    let place = spans.len() - later;
    if let Some((span, sum)) = place.checked_sub(1).and_then(|last| spans.get_mut(last))
        && *span == at
    {
        sum.add(counts);
        return 0;
    }
    spans.insert(place, (at, counts.clone()));
    if spans.len() <= kept {
        return 1;
    }
    // After a clock was ahead, what is new is the oldest.
    if place == 0 {
        spans.pop_back()
    } else {
        spans.pop_front()
    };
    0
}

impl LiveCounts {
    /// Loads what is written, up to the newest moment.
    pub(crate) fn restore(reading: &dyn Reading, newest: Option<Timestamp>) -> Result<Self> {
        let live = Self::default();
        let mut state = live.0.lock();
        for (org, waiting) in organizations::all_waiting(reading)? {
            let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
            state.waiting.insert(org, waiting);
            state.total_waiting += waiting;
        }
        if let Some(newest) = newest {
            let minute = newest.millis().div_euclid(60_000);
            let minutes = CountedSpans::Minutes(minute - 61..=minute + 1);
            for (org, at, counts) in organizations::newest_counts(reading, &minutes)? {
                let state = &mut *state;
                add(&mut state.server.minutes, MINUTES_KEPT, at, &counts);
                let recent = state.organizations.entry(org).or_default();
                add(&mut recent.minutes, MINUTES_KEPT, at, &counts);
            }
            let hour = minute.div_euclid(60);
            let hours = CountedSpans::Hours(hour - 25..=hour + 1);
            for (org, at, counts) in organizations::newest_counts(reading, &hours)? {
                let state = &mut *state;
                add(&mut state.server.hours, HOURS_KEPT, at, &counts);
                let recent = state.organizations.entry(org).or_default();
                add(&mut recent.hours, HOURS_KEPT, at, &counts);
            }
        }
        state.spans = state.organizations.values().map(RecentCounts::spans).sum();
        state.forget();
        drop(state);
        Ok(live)
    }

    /// What happened in the minute of `now` and in the span before; beyond an hour, in the hour of `now` and in the hours of the
    /// span before. `None`: on the whole server.
    pub fn window(&self, org: Option<OrgId>, now: Timestamp, span: Duration) -> OrganizationCounts {
        let state = self.0.lock();
        match org {
            None => state.server.window(now, span),
            Some(org) => {
                state.organizations.get(&org).map(|recent| recent.window(now, span)).unwrap_or_default()
            }
        }
    }

    /// What happened on the whole server since it was started.
    pub fn since_start(&self) -> OrganizationCounts {
        self.0.lock().since_start.clone()
    }

    pub fn commits(&self) -> CommitCounts {
        self.0.lock().commits.clone()
    }

    /// How many deliveries wait. `None`: on the whole server.
    pub fn waiting(&self, org: Option<OrgId>) -> u64 {
        let state = self.0.lock();
        let waiting = match org {
            None => state.total_waiting,
            Some(org) => state.waiting.get(&org).copied().unwrap_or(0),
        };
        u64::try_from(waiting).unwrap_or(0)
    }

    /// The organizations in which something happened within a day, or deliveries wait.
    pub fn organizations(&self) -> Vec<OrgId> {
        let state = self.0.lock();
        let waiting = state.waiting.iter().filter(|(_, waiting)| **waiting > 0).map(|(org, _)| org);
        let silent = waiting.filter(|org| !state.organizations.contains_key(org));
        state.organizations.keys().chain(silent).copied().collect()
    }

    /// How long the writer may wait for other work until it should write. `None`: there is nothing to write.
    pub(crate) fn due_in(&self, clock: &Monotonic) -> Option<Duration> {
        let since = self.0.lock().since?;
        Some((since + WRITE_INTERVAL).saturating_sub(clock.now()))
    }

    /// Writes what has waited for long enough, or at once. [`Self::ended`] must follow.
    pub(crate) fn write(&self, tx: &dyn Transaction, clock: &Monotonic, when: WriteCounts) -> Result<()> {
        let mut state = self.0.lock();
        let Some(since) = state.since else { return Ok(()) };
        if when == WriteCounts::Due && clock.now().saturating_sub(since) < WRITE_INTERVAL {
            return Ok(());
        }
        let most = if when == WriteCounts::All { usize::MAX } else { MAX_ROWS_AT_ONCE };
        let mut rows = Vec::new();
        while rows.len() < most
            && let Some(row) = state.unwritten.pop_first()
        {
            rows.push(row);
        }
        let rows = Arc::new(rows);
        state.writing = rows.clone();
        // Questions need not wait for the statements.
        drop(state);
        rows.iter().try_for_each(|(key, counts)| organizations::add_counts(tx, *key, counts))
    }

    /// The fate of a commit is known: with what it has counted, if it is on disk.
    pub(crate) fn ended(&self, clock: &Monotonic, counted: Option<&BatchCounts>) {
        let mut state = self.0.lock();
        let writing = std::mem::take(&mut state.writing);
        match counted {
            Some(_) if state.unwritten.is_empty() => state.since = None,
            Some(_) => {}
            // Not with the next commit, which may be the same one once more.
            None if writing.is_empty() => {}
            None => {
                for (key, counts) in writing.iter() {
                    state.unwritten.entry(*key).or_default().add(counts);
                }
                state.since = Some(clock.now());
            }
        }
        if let Some(counted) = counted {
            state.add(clock, counted);
        }
    }

    /// Hears of commits that concern an organization.
    pub fn watch(&self, org: OrgId) -> CommitWatcher {
        self.1.watch(org)
    }

    /// Tells of a commit those who look at what it concerns. What is not counted may concern everybody.
    pub(crate) fn tell(&self, counted: &BatchCounts, ops: &[Op]) {
        if !self.1.is_watched() {
            return;
        }
        let everybody = ops.iter().any(Op::changes_uncounted);
        let is_counted = |org: OrgId| {
            counted.waiting.contains_key(&org)
                || counted.organizations.range((org, i64::MIN)..=(org, i64::MAX)).next().is_some()
        };
        self.1.tell(|org| everybody || is_counted(org));
    }

    pub(crate) fn committed(&self, took: Duration, operations: usize) {
        let mut state = self.0.lock();
        let CommitCounts { by_time, time, by_operations, operations: all } = &mut state.commits;
        let (micros, operations) = (u64::try_from(took.as_micros()).unwrap_or(u64::MAX), operations as u64);
        by_time[COMMIT_MICROS.iter().take_while(|bound| micros > **bound).count()] += 1;
        by_operations[COMMIT_OPERATIONS.iter().take_while(|bound| operations > **bound).count()] += 1;
        *time += took;
        *all += operations;
    }
}

/// Which counts a commit writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteCounts {
    /// Those that have waited long enough.
    Due,
    /// As many as one commit may have.
    Now,
    /// All: the store is closed.
    All,
}

impl LiveState {
    fn add(&mut self, clock: &Monotonic, counted: &BatchCounts) {
        for ((org, minute), counts) in &counted.organizations {
            self.since_start.add(counts);
            self.server.add(*minute, counts);
            let grown = self.organizations.entry(*org).or_default().add(*minute, counts);
            self.spans = self.spans.saturating_add_signed(grown);
            self.unwritten.entry((*org, *minute)).or_default().add(counts);
        }
        for (org, more) in &counted.waiting {
            *self.waiting.entry(*org).or_default() += more;
            self.total_waiting += more;
        }
        if !self.unwritten.is_empty() && self.since.is_none() {
            self.since = Some(clock.now());
        }
        self.forget();
    }

    /// Forgets a tenth of the organizations, those without activity for the longest time.
    fn forget(&mut self) {
        if self.spans <= MAX_SPANS {
            return;
        }
        let mut by_age: Vec<_> =
            self.organizations.iter().map(|(org, recent)| (recent.last_minute(), *org)).collect();
        by_age.sort_unstable();
        for (_, org) in by_age.iter().take(by_age.len().div_ceil(10)) {
            let spans = self.organizations.remove(org).map_or(0, |recent| recent.spans());
            self.spans -= spans;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CountKind;

    fn org(number: u32) -> OrgId {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        OrgId::from_bytes(bytes)
    }

    fn accepted(number: u64) -> OrganizationCounts {
        let mut counts = OrganizationCounts::default();
        counts.count(CountKind::Accepted, number);
        counts
    }

    fn counted(org: OrgId, minute: i64, number: u64) -> BatchCounts {
        BatchCounts {
            organizations: BTreeMap::from([((org, minute), accepted(number))]),
            waiting: BTreeMap::from([(org, 2)]),
            ..BatchCounts::default()
        }
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_millis(minute * 60_000 + 30_000)
    }

    fn minutes(number: u64) -> Duration {
        Duration::from_secs(number * 60)
    }

    #[test]
    fn a_window_has_the_minute_that_is_under_way_and_the_span_before() {
        let (live, clock) = (LiveCounts::default(), Monotonic::default());
        for minute in 1000..1100 {
            live.ended(&clock, Some(&counted(org(1), minute, 1)));
        }
        live.ended(&clock, Some(&counted(org(2), 1099, 5)));
        let window = |of, now, span| live.window(of, at(now), span).get(CountKind::Accepted);
        assert_eq!(window(Some(org(1)), 1099, minutes(5)), 6);
        assert_eq!(window(Some(org(1)), 1099, minutes(60)), 61);
        assert_eq!(window(Some(org(1)), 1103, minutes(5)), 2);
        assert_eq!(window(None, 1099, minutes(5)), 11);
        assert_eq!(window(Some(org(3)), 1099, minutes(5)), 0);
        // By hours: those of the minutes from 960 and from 1080 on.
        assert_eq!(window(Some(org(1)), 1099, minutes(120)), 100);
        assert_eq!(window(Some(org(1)), 1099, minutes(61)), 100);
        assert_eq!(live.since_start().get(CountKind::Accepted), 105);
        assert_eq!((live.waiting(Some(org(1))), live.waiting(None)), (200, 202));
        assert_eq!(live.organizations().len(), 2);
    }

    #[test]
    fn a_clock_that_was_ahead_does_not_keep_the_present_out() {
        let (live, clock) = (LiveCounts::default(), Monotonic::default());
        for minute in 9000..9100 {
            live.ended(&clock, Some(&counted(org(1), minute, 1)));
        }
        for minute in 1000..1010 {
            live.ended(&clock, Some(&counted(org(1), minute, 1)));
        }
        let window = live.window(Some(org(1)), at(1009), minutes(5));
        assert!(window.get(CountKind::Accepted) >= 1, "{window:?}");
    }

    #[test]
    fn memory_has_a_limit_and_the_quiet_ones_go_first() {
        let (live, clock) = (LiveCounts::default(), Monotonic::default());
        let organizations = u32::try_from(MAX_SPANS).unwrap() / 2 + 10;
        for number in 0..organizations {
            live.ended(&clock, Some(&counted(org(number), i64::from(number), 1)));
        }
        let state = live.0.lock();
        assert!(state.spans <= MAX_SPANS);
        assert_eq!(state.spans, state.organizations.values().map(RecentCounts::spans).sum::<usize>());
        assert!(state.organizations.contains_key(&org(organizations - 1)));
        assert!(!state.organizations.contains_key(&org(0)));
        assert_eq!(state.server.minutes.len(), MINUTES_KEPT);
        assert_eq!(state.total_waiting, 2 * i64::from(organizations), "what waits is not forgotten");
    }
}
