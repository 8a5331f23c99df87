//! What a commit costs: by itself, and for each operation that is in it.

use std::time::Duration;

/// How much one commit changes what is known of an operation: an eighth, and no more than if it had cost twice
/// as much. Some are held up by other things.
const SMOOTHING: u32 = 8;
/// How slowly a commit that takes longer is believed to be the quickest there is by now.
const RISE: u32 = 64;
/// Of fewer operations a commit says nothing about what one of them costs.
const ENOUGH: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Cost {
    /// The quickest commit of late, with hardly anything in it.
    empty: Option<Duration>,
    each: Option<Duration>,
    /// The one that is being written: when it began, and what is in it.
    writing: Option<(Duration, usize)>,
}

impl Cost {
    pub(super) fn begin(&mut self, now: Duration, operations: usize) {
        self.writing = Some((now, operations));
    }

    pub(super) fn end(&mut self, now: Duration) {
        let Some((begun, operations)) = self.writing.take() else { return };
        let took = now.saturating_sub(begun);
        let empty = match self.empty {
            Some(empty) if took > empty => empty + (took.min(empty * 2) - empty) / RISE,
            _ => took,
        };
        self.empty = Some(empty);
        if operations >= ENOUGH {
            let each = took.saturating_sub(empty) / u32::try_from(operations).unwrap_or(u32::MAX);
            self.each = Some(match self.each {
                Some(before) => before - before / SMOOTHING + each.min(before * 2) / SMOOTHING,
                None => each,
            });
        }
    }

    /// How many operations a commit can have that takes so long. `None`: not known yet.
    pub(super) fn within(&self, time: Duration) -> Option<usize> {
        let (empty, each) = (self.empty?, self.each?.as_nanos());
        Some(usize::try_from(time.saturating_sub(empty).as_nanos().checked_div(each)?).unwrap_or(usize::MAX))
    }

    /// How many operations make a commit take twice as long as an empty one. `None`: not known yet.
    pub(super) fn as_many_again(&self) -> Option<usize> {
        let (empty, each) = (self.empty?.as_nanos(), self.each?.as_nanos());
        Some(usize::try_from(empty.checked_div(each)?).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commits of so many operations that take so many microseconds, one after the other.
    fn commits(cost: &mut Cost, commits: impl IntoIterator<Item = (usize, u64)>) {
        for (operations, micros) in commits {
            cost.begin(Duration::ZERO, operations);
            cost.end(Duration::from_micros(micros));
        }
    }

    /// Single ones and bursts by turns, on a disk that needs so long, with operations that cost so much.
    fn by_turns(fsync: u64, each: u64) -> impl Iterator<Item = (usize, u64)> {
        [1, 30, 1, 1, 12].into_iter().cycle().take(500).map(move |n| (n, fsync + n as u64 * each))
    }

    #[test]
    fn a_slow_disk_makes_room_for_more() {
        for (fsync, each, fit) in [(400, 20, 20), (400, 10, 40), (10_000, 20, 500)] {
            let mut cost = Cost::default();
            assert_eq!(cost.as_many_again(), None);
            commits(&mut cost, by_turns(fsync, each));
            let found = cost.as_many_again().unwrap();
            assert!((fit * 3 / 4..=fit * 3 / 2).contains(&found), "{fsync} {each}: {found}, not {fit}");
        }
    }

    #[test]
    fn a_commit_that_was_held_up_changes_little() {
        let mut cost = Cost::default();
        commits(&mut cost, by_turns(400, 20));
        let before = cost.as_many_again().unwrap();
        commits(&mut cost, [(30, 500_000)]);
        assert!(cost.as_many_again().unwrap() > before * 3 / 4);
    }

    #[test]
    fn a_disk_that_has_become_quicker_is_noticed_at_once_and_a_slower_one_after_a_while() {
        let mut cost = Cost::default();
        commits(&mut cost, by_turns(10_000, 20));
        commits(&mut cost, [(1, 400)]);
        assert!(cost.as_many_again().unwrap() < 30);
        commits(&mut cost, by_turns(10_000, 20));
        assert!(cost.as_many_again().unwrap() > 300);
    }
}
