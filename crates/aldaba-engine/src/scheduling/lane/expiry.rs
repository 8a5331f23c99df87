//! When a lane's waiting deliveries have to be searched for those past their stop date.
//!
//! Most of them may be in the store only, in another order than that of their stop dates. So the lane remembers one
//! moment: none of them has a clock that started earlier. It is lowered by what the lane hears, and set anew by every
//! search, which reads what has started before and when the rest has.

use aldaba_delivery::{Health, Timestamp, first_after_stop_date};
use std::time::Duration;

/// How long until the first search where the store has to say what waits, or under which policy. Most lanes have sent
/// everything by then.
const FIRST_SEARCH_DELAY: Duration = Duration::from_secs(1);
/// How long until the next search after one that has ended nothing, doubled each time up to the second: what cannot be
/// ended is not to be read hotly.
const EMPTY_SEARCH_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_EMPTY_SEARCH_PAUSE: Duration = Duration::from_secs(8);
/// The same where the endpoint holds what waits.
const HELD_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Expiry {
    /// No waiting delivery of the endpoint has a clock that started earlier. [`Timestamp::MIN`]: it is not known;
    /// [`Timestamp::MAX`]: none waits.
    oldest: Timestamp,
    stop_after: StopAfter,
    search: Search,
    not_before: Timestamp,
    /// How long the pause was after the last search, if that has ended nothing.
    pause: Duration,
    /// When the next search is planned.
    pub(crate) alarm: Option<Timestamp>,
}

/// The policy's stop date, as far as the lane knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopAfter {
    Unknown,
    Never,
    After(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Idle,
    UnderWay,
    /// Under way, and the endpoint or its policy has changed since it began.
    Outdated,
}

/// What a search has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchResult {
    /// `None`: the policy has no stop date.
    pub(crate) stop_after: Option<Duration>,
    /// The endpoint holds what waits.
    pub(crate) held: bool,
    /// How many deliveries it has ended.
    pub(crate) ended: usize,
    /// When the oldest clock of those that wait on has started.
    pub(crate) oldest: Option<Timestamp>,
}

impl SearchResult {
    /// When to search next, right after the next stop date. `None`: none is known, or it has come already and what waits could
    /// not be ended: then the next walk looks again.
    pub(crate) fn next_search(&self, now: Timestamp) -> Option<Timestamp> {
        let past = first_after_stop_date(self.oldest.filter(|_| !self.held)?, self.stop_after?);
        (past > now).then_some(past)
    }
}

impl Expiry {
    /// Of a lane that has heard nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            oldest: Timestamp::MIN,
            stop_after: StopAfter::Unknown,
            search: Search::Idle,
            not_before: Timestamp::MIN,
            pause: Duration::ZERO,
            alarm: None,
        }
    }

    /// Something waits.
    pub(crate) fn offered(&mut self, clock_start: Timestamp) {
        self.oldest = self.oldest.min(clock_start);
    }

    pub(crate) fn nothing_waits(&mut self) {
        self.oldest = Timestamp::MAX;
    }

    /// Only the store knows what waits.
    pub(crate) fn start_over(&mut self) {
        self.oldest = Timestamp::MIN;
    }

    /// The endpoint was read.
    pub(crate) fn policy_read(&mut self, stop_after: Option<Duration>) {
        self.stop_after = stop_after.map_or(StopAfter::Never, StopAfter::After);
    }

    /// The policy has no stop date, as far as is known.
    pub(crate) fn never_stops(&self) -> bool {
        self.stop_after == StopAfter::Never
    }

    /// Whether it is known when the next stop date comes.
    pub(crate) fn knows_stop_date(&self) -> bool {
        matches!(self.stop_after, StopAfter::After(_))
            && ![Timestamp::MIN, Timestamp::MAX].contains(&self.oldest)
    }

    /// The endpoint or its policy was changed.
    pub(crate) fn altered(&mut self) {
        self.stop_after = StopAfter::Unknown;
        self.not_before = Timestamp::MIN;
        if self.search == Search::UnderWay {
            self.search = Search::Outdated;
        }
    }

    pub(crate) fn is_searching(&self) -> bool {
        self.search != Search::Idle
    }

    /// What the search under way has read counts no longer.
    pub(crate) fn is_outdated(&self) -> bool {
        self.search == Search::Outdated
    }

    /// A search begins: it reads everything that waits now.
    pub(crate) fn begins(&mut self) {
        self.search = Search::UnderWay;
        self.oldest = Timestamp::MAX;
    }

    /// The search is over. `None`: it could not be finished.
    pub(crate) fn searched(&mut self, searched: Option<SearchResult>, now: Timestamp) {
        let outdated = self.is_outdated();
        self.search = Search::Idle;
        let Some(SearchResult { stop_after, held, ended, oldest }) = searched.filter(|_| !outdated) else {
            self.oldest = Timestamp::MIN;
            self.not_before = now + self.longer_pause();
            return;
        };
        self.policy_read(stop_after);
        self.oldest = self.oldest.min(oldest.unwrap_or(Timestamp::MAX));
        self.not_before = match (held, ended) {
            (true, _) => now + HELD_PAUSE,
            (false, 0) => now + self.longer_pause(),
            (false, _) => now,
        };
        if ended > 0 {
            self.pause = Duration::ZERO;
        }
    }

    fn longer_pause(&mut self) -> Duration {
        self.pause = (self.pause * 2).clamp(EMPTY_SEARCH_PAUSE, LONGEST_EMPTY_SEARCH_PAUSE);
        self.pause
    }

    /// Something of the lane that was in flight has recorded: it may have been in the way.
    pub(crate) fn recorded(&mut self) {
        if !self.pause.is_zero() {
            (self.pause, self.not_before) = (Duration::ZERO, Timestamp::MIN);
        }
    }

    /// When a search may begin that is wanted now.
    pub(crate) fn earliest(&self, now: Timestamp) -> Timestamp {
        self.not_before.max(now)
    }

    /// When to search next. `health`: the endpoint's, where it is known; stop dates count from when what was held was let
    /// go. `until`: the moment before which nothing is sent; what would be past its stop date then is so now.
    pub(crate) fn next_search(
        &self,
        health: Option<&Health>,
        until: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let at = match self.stop_after {
            StopAfter::Never => return None,
            StopAfter::Unknown => now + FIRST_SEARCH_DELAY,
            StopAfter::After(_) if self.oldest == Timestamp::MAX => return None,
            StopAfter::After(_) if self.oldest == Timestamp::MIN => now + FIRST_SEARCH_DELAY,
            StopAfter::After(span) => {
                let clock_start = health.map_or(self.oldest, |health| health.clock_start(self.oldest));
                let past = first_after_stop_date(clock_start, span);
                if until >= past { now } else { past }
            }
        };
        Some(at.max(self.not_before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    const MINUTE: Duration = Duration::from_secs(60);

    fn known(oldest: Timestamp) -> Expiry {
        let mut expiry = Expiry::new();
        expiry.begins();
        expiry.searched(Some(searched(oldest)), NOW.before(MINUTE));
        expiry
    }

    fn searched(oldest: Timestamp) -> SearchResult {
        SearchResult { stop_after: Some(MINUTE), held: false, ended: 1, oldest: Some(oldest) }
    }

    #[test]
    fn the_search_comes_right_after_the_oldest_stop_date() {
        let mut expiry = known(NOW);
        let next = |expiry: &Expiry| expiry.next_search(None, NOW, NOW);
        let after = |span: Duration| Some(NOW + span + Duration::from_millis(1));
        assert_eq!(next(&expiry), after(MINUTE));
        expiry.offered(NOW.before(Duration::from_secs(1)));
        assert_eq!(next(&expiry), after(Duration::from_secs(59)));
        expiry.offered(NOW + MINUTE);
        assert_eq!(next(&expiry), after(Duration::from_secs(59)), "that is a later one");
        let released = Health { released_at: Some(NOW + MINUTE), ..Health::default() };
        assert_eq!(
            expiry.next_search(Some(&released), NOW, NOW),
            after(MINUTE * 2),
            "it counts from the release"
        );
        expiry.nothing_waits();
        assert_eq!(next(&expiry), None);
    }

    #[test]
    fn a_hold_past_the_oldest_stop_date_is_a_reason_to_search_at_once() {
        let expiry = known(NOW);
        assert_eq!(
            expiry.next_search(None, NOW + MINUTE, NOW),
            Some(NOW + MINUTE + Duration::from_millis(1))
        );
        assert_eq!(expiry.next_search(None, NOW + MINUTE * 2, NOW), Some(NOW));
    }

    #[test]
    fn what_is_heard_during_a_search_counts_beside_what_it_finds() {
        let mut expiry = known(NOW);
        expiry.begins();
        expiry.offered(NOW);
        expiry.searched(Some(searched(NOW + MINUTE)), NOW);
        assert_eq!(expiry.oldest, NOW);
        // What was read under the policy from before says nothing.
        expiry.begins();
        expiry.altered();
        assert!(expiry.is_outdated());
        expiry.searched(Some(searched(NOW)), NOW);
        assert_eq!((expiry.oldest, expiry.stop_after), (Timestamp::MIN, StopAfter::Unknown));
    }

    #[test]
    fn a_search_that_has_ended_nothing_is_not_repeated_at_once() {
        let mut expiry = known(NOW);
        expiry.begins();
        expiry.searched(Some(SearchResult { ended: 0, ..searched(NOW.before(MINUTE * 9)) }), NOW);
        assert_eq!(expiry.next_search(None, NOW, NOW), Some(NOW + EMPTY_SEARCH_PAUSE));
        let mut pauses = Vec::new();
        for _ in 0..4 {
            expiry.begins();
            expiry.searched(Some(SearchResult { ended: 0, ..searched(NOW.before(MINUTE * 9)) }), NOW);
            pauses.push(expiry.earliest(NOW).since(NOW).as_secs());
        }
        assert_eq!(pauses, [2, 4, 8, 8]);
        expiry.recorded();
        assert_eq!(
            expiry.next_search(None, NOW, NOW),
            Some(NOW),
            "what was in the way is not there any more"
        );
    }

    #[test]
    fn a_policy_without_a_stop_date_asks_for_no_search() {
        let mut expiry = Expiry::new();
        assert_eq!(expiry.next_search(None, NOW, NOW), Some(NOW + FIRST_SEARCH_DELAY), "it is not known yet");
        expiry.policy_read(None);
        assert_eq!(expiry.next_search(None, Timestamp::MAX, NOW), None);
    }
}
