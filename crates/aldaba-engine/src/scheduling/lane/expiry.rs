//! When a lane is searched for expired deliveries.
//!
//! Most pending deliveries may be in the store only, in another order than that of their stop dates. So the lane keeps one moment:
//! no pending delivery has a stop-date clock that started earlier. A new delivery may lower it. A search sets it anew: it reads
//! the deliveries that started before a moment, and when the oldest of the rest started.

use aldaba_delivery::{Health, Timestamp, first_after_stop_date};
use std::time::Duration;

/// How long until the first search of a lane whose deliveries or policy are not known yet. Most lanes have sent everything by
/// then.
const FIRST_SEARCH_DELAY: Duration = Duration::from_secs(1);
/// How long until the next search after one that has ended nothing, doubled each time up to the maximum.
const EMPTY_SEARCH_DELAY: Duration = Duration::from_secs(1);
const MAX_EMPTY_SEARCH_DELAY: Duration = Duration::from_secs(8);
/// The same while the endpoint holds its deliveries.
const HELD_SEARCH_DELAY: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Expiry {
    /// No pending delivery has a clock that started earlier. [`Timestamp::MIN`]: unknown; [`Timestamp::MAX`]: none is pending.
    oldest: Timestamp,
    stop_after: StopAfter,
    search: Search,
    not_before: Timestamp,
    /// The delay after the last search, if that has ended nothing.
    delay: Duration,
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
    Running,
    /// Running, and the endpoint or its policy has changed since it started.
    Outdated,
}

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SearchResult {
    /// `None`: the policy has no stop date.
    pub(crate) stop_after: Option<Duration>,
    /// The endpoint holds its deliveries.
    pub(crate) held: bool,
    /// How many deliveries it has ended.
    pub(crate) ended: usize,
    /// When the oldest clock of the remaining deliveries started.
    pub(crate) oldest: Option<Timestamp>,
}

impl SearchResult {
    /// When to search next: right after the next stop date. `None`: none is known, or it is past and the deliveries could not
    /// be ended; the next walk tries again.
    pub(crate) fn next_search(&self, now: Timestamp) -> Option<Timestamp> {
        let past = first_after_stop_date(self.oldest.filter(|_| !self.held)?, self.stop_after?);
        (past > now).then_some(past)
    }
}

impl Expiry {
    /// Of a new lane.
    pub(crate) fn new() -> Self {
        Self {
            oldest: Timestamp::MIN,
            stop_after: StopAfter::Unknown,
            search: Search::Idle,
            not_before: Timestamp::MIN,
            delay: Duration::ZERO,
            alarm: None,
        }
    }

    /// A delivery is pending.
    pub(crate) fn enqueued(&mut self, clock_start: Timestamp) {
        self.oldest = self.oldest.min(clock_start);
    }

    pub(crate) fn nothing_pending(&mut self) {
        self.oldest = Timestamp::MAX;
    }

    /// Only the store knows what is pending.
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

    /// Whether the next stop date is known.
    pub(crate) fn knows_stop_date(&self) -> bool {
        matches!(self.stop_after, StopAfter::After(_))
            && ![Timestamp::MIN, Timestamp::MAX].contains(&self.oldest)
    }

    /// The endpoint or its policy was changed.
    pub(crate) fn endpoint_changed(&mut self) {
        self.stop_after = StopAfter::Unknown;
        self.not_before = Timestamp::MIN;
        if self.search == Search::Running {
            self.search = Search::Outdated;
        }
    }

    pub(crate) fn is_searching(&self) -> bool {
        self.search != Search::Idle
    }

    /// Whether the result of the running search will be dropped.
    pub(crate) fn is_outdated(&self) -> bool {
        self.search == Search::Outdated
    }

    /// A search begins. It reads everything that is pending now.
    pub(crate) fn search_begins(&mut self) {
        self.search = Search::Running;
        self.oldest = Timestamp::MAX;
    }

    /// The search is over. `None`: it could not be finished.
    pub(crate) fn search_ended(&mut self, searched: Option<SearchResult>, now: Timestamp) {
        let outdated = self.is_outdated();
        self.search = Search::Idle;
        let Some(SearchResult { stop_after, held, ended, oldest }) = searched.filter(|_| !outdated) else {
            self.oldest = Timestamp::MIN;
            self.not_before = now + self.longer_delay();
            return;
        };
        self.policy_read(stop_after);
        self.oldest = self.oldest.min(oldest.unwrap_or(Timestamp::MAX));
        self.not_before = match (held, ended) {
            (true, _) => now + HELD_SEARCH_DELAY,
            (false, 0) => now + self.longer_delay(),
            (false, _) => now,
        };
        if ended > 0 {
            self.delay = Duration::ZERO;
        }
    }

    fn longer_delay(&mut self) -> Duration {
        self.delay = (self.delay * 2).clamp(EMPTY_SEARCH_DELAY, MAX_EMPTY_SEARCH_DELAY);
        self.delay
    }

    /// Something of the lane that was in flight has recorded: it may have been in the way.
    pub(crate) fn recorded(&mut self) {
        if !self.delay.is_zero() {
            (self.delay, self.not_before) = (Duration::ZERO, Timestamp::MIN);
        }
    }

    /// When the next search may begin at the earliest.
    pub(crate) fn earliest(&self, now: Timestamp) -> Timestamp {
        self.not_before.max(now)
    }

    /// When to search next. `health`: the endpoint's, if it is known; after a hold, stop dates count from its end. `until`:
    /// nothing is sent before this moment; deliveries that expire until then can end now.
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
        expiry.search_begins();
        expiry.search_ended(Some(searched(oldest)), NOW.before(MINUTE));
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
        expiry.enqueued(NOW.before(Duration::from_secs(1)));
        assert_eq!(next(&expiry), after(Duration::from_secs(59)));
        expiry.enqueued(NOW + MINUTE);
        assert_eq!(next(&expiry), after(Duration::from_secs(59)), "that is a later one");
        let released = Health { released_at: Some(NOW + MINUTE), ..Health::default() };
        assert_eq!(
            expiry.next_search(Some(&released), NOW, NOW),
            after(MINUTE * 2),
            "it counts from the release"
        );
        expiry.nothing_pending();
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
    fn deliveries_that_arrive_during_a_search_count_beside_what_it_finds() {
        let mut expiry = known(NOW);
        expiry.search_begins();
        expiry.enqueued(NOW);
        expiry.search_ended(Some(searched(NOW + MINUTE)), NOW);
        assert_eq!(expiry.oldest, NOW);
        // A result under the old policy is dropped.
        expiry.search_begins();
        expiry.endpoint_changed();
        assert!(expiry.is_outdated());
        expiry.search_ended(Some(searched(NOW)), NOW);
        assert_eq!((expiry.oldest, expiry.stop_after), (Timestamp::MIN, StopAfter::Unknown));
    }

    #[test]
    fn a_search_that_has_ended_nothing_is_not_repeated_at_once() {
        let mut expiry = known(NOW);
        expiry.search_begins();
        expiry.search_ended(Some(SearchResult { ended: 0, ..searched(NOW.before(MINUTE * 9)) }), NOW);
        assert_eq!(expiry.next_search(None, NOW, NOW), Some(NOW + EMPTY_SEARCH_DELAY));
        let mut delays = Vec::new();
        for _ in 0..4 {
            expiry.search_begins();
            expiry.search_ended(Some(SearchResult { ended: 0, ..searched(NOW.before(MINUTE * 9)) }), NOW);
            delays.push(expiry.earliest(NOW).since(NOW).as_secs());
        }
        assert_eq!(delays, [2, 4, 8, 8]);
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
