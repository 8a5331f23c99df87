//! Which lanes are searched for expired deliveries, and when. This is independent of their selection: a lane may wait for
//! capacity, a rate or a gate longer than its deliveries may.

use super::Scheduler;
use crate::scheduling::expiry::ExpirySearch;
use crate::scheduling::lane::{Awake, EndpointRead, Lane, SearchResult};
use aldaba_delivery::{EndpointId, StopRule, Timestamp};

/// Searches at once: enough to keep up with what was accepted, few enough to leave the store to others.
pub(super) const MAX_SEARCHES: usize = 4;

impl Scheduler {
    /// Plans the next search of a lane. `until`: nothing is sent before.
    pub(super) fn plan_search(&mut self, endpoint: EndpointId, until: Timestamp, now: Timestamp) {
        if let Some(at) = self.lanes.get_mut(&endpoint).and_then(|lane| lane.next_search(until, now)) {
            self.search_at(endpoint, at);
        }
    }

    /// Plans a search at a moment, unless an earlier one is planned. The lane need not be in memory.
    pub(super) fn search_at(&mut self, endpoint: EndpointId, at: Timestamp) {
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            if lane.expiry.alarm.is_some_and(|alarm| alarm <= at) {
                return;
            }
            if let Some(alarm) = lane.expiry.alarm.replace(at) {
                self.searches.remove(&(alarm, endpoint));
            }
        }
        self.searches.insert((at, endpoint));
    }

    /// The first delivery of a lane is past its stop date.
    pub(super) fn search_expired(&mut self, endpoint: EndpointId, now: Timestamp) {
        if let Some(at) = self.lanes.get(&endpoint).map(|lane| lane.expiry.earliest(now)) {
            self.search_at(endpoint, at);
        }
    }

    /// When the next search is due, if it may begin.
    pub(super) fn next_search(&self, now: Timestamp) -> Option<Timestamp> {
        let (at, _) = *self.searches.first()?;
        let may_begin = !self.halted && self.searching < MAX_SEARCHES;
        // The clock is checked only when a search is due.
        (may_begin && (at > now || self.trust.may_end_by_time())).then_some(at)
    }

    /// The searches that begin now.
    pub(super) fn due_searches(&mut self, now: Timestamp) -> Vec<ExpirySearch> {
        let mut begun = Vec::new();
        while self.next_search(now).is_some_and(|at| at <= now)
            && let Some((_, endpoint)) = self.searches.pop_first()
        {
            if let Some(until) = self.begin_search(endpoint, now) {
                self.searching += 1;
                begun.push(ExpirySearch { endpoint, until });
            }
        }
        begun
    }

    /// The moment before which nothing is sent to the endpoint. `None`: there is nothing to search for.
    fn begin_search(&mut self, endpoint: EndpointId, now: Timestamp) -> Option<Timestamp> {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return Some(now);
        };
        lane.expiry.alarm = None;
        let is_over = lane.deleted || self.deleted_apps.contains(&lane.app);
        if is_over || lane.expiry.is_searching() || !lane.may_have_expired() {
            return None;
        }
        lane.expiry.search_begins();
        Some(self.not_before(endpoint, now))
    }

    /// The moment before which the gates hold everything of a lane.
    fn not_before(&self, endpoint: EndpointId, now: Timestamp) -> Timestamp {
        let awake = self.lanes.get(&endpoint).and_then(|lane| lane.awake.as_ref());
        let held = awake.and_then(|awake| self.gates.held_until(&awake.target, now));
        held.map_or(now, |until| until.max(now))
    }

    /// A search is over.
    pub(crate) fn search_ended(
        &mut self,
        endpoint: EndpointId,
        searched: Option<SearchResult>,
        now: Timestamp,
    ) {
        self.searching = self.searching.saturating_sub(1);
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.expiry.search_ended(searched, now);
            self.plan_search(endpoint, now, now);
            // Its first delivery may have been past its stop date.
            self.wake(endpoint);
        } else if let Some(searched) = searched {
            self.search_after(endpoint, searched, now);
        }
    }

    /// Plans a search after the next stop date that a search has found. The lane need not be in memory.
    pub(crate) fn search_after(&mut self, endpoint: EndpointId, searched: SearchResult, now: Timestamp) {
        if let Some(at) = searched.next_search(now) {
            self.search_at(endpoint, at);
        }
    }

    /// The stop rule of an awake lane, and the moment before which nothing of it is sent.
    pub(crate) fn stop_rule(&self, endpoint: EndpointId, now: Timestamp) -> Option<(StopRule, Timestamp)> {
        let lane = self.lanes.get(&endpoint).filter(|lane| lane.endpoint_read == EndpointRead::Current)?;
        let rule = lane.awake.as_ref()?.stop_rule();
        Some((rule, self.not_before(endpoint, now)))
    }

    /// Whether deliveries that a search has read may still be ended: nothing has changed since.
    pub(crate) fn may_end_expired(&self, endpoint: EndpointId) -> bool {
        let is_over =
            |lane: &Lane| lane.deleted || self.deleted_apps.contains(&lane.app) || lane.expiry.is_outdated();
        !self.halted && self.lanes.get(&endpoint).is_none_or(|lane| !is_over(lane))
    }

    /// Whether a lane has deliveries in flight.
    pub(crate) fn has_flights(&self, endpoint: EndpointId) -> bool {
        self.lanes.get(&endpoint).is_some_and(|lane| lane.backlog.has_flights())
    }

    /// A policy was changed. Idle lanes do not know whether it is theirs.
    pub(super) fn search_idle_lanes(&mut self) {
        let is_idle = |lane: &Lane| lane.awake.is_none() && lane.expiry.alarm.is_some();
        let mut endpoints: Vec<_> =
            self.lanes.iter().filter(|(_, lane)| is_idle(lane)).map(|(endpoint, _)| *endpoint).collect();
        endpoints.sort_unstable();
        for endpoint in endpoints {
            if let Some(lane) = self.lanes.get_mut(&endpoint) {
                lane.expiry.endpoint_changed();
            }
            self.search_at(endpoint, Timestamp::MIN);
        }
    }
}

impl Lane {
    fn next_search(&mut self, until: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let Some(due_at) = self.backlog.next_due() else {
            self.expiry.nothing_pending();
            return None;
        };
        if self.expiry.never_stops() {
            return None;
        }
        let awake = self.awake.as_ref().filter(|_| self.endpoint_read == EndpointRead::Current);
        match awake {
            Some(awake) if awake.state().holds() => None,
            Some(awake) => self.expiry.next_search(Some(&awake.health), until, now),
            // A delivery is due before its stop date, unless the stop date has become earlier: then the search after the
            // change has found when the oldest clock started.
            None if due_at > now && !self.expiry.knows_stop_date() => None,
            None => self.expiry.next_search(None, until, now),
        }
    }

    /// Whether a search may find something, as far as the lane knows.
    fn may_have_expired(&self) -> bool {
        let awake = self.awake.as_deref().filter(|_| self.endpoint_read == EndpointRead::Current);
        let may_stop = |awake: &Awake| awake.target.policy.has_stop_date() && !awake.state().holds();
        self.backlog.next_due().is_some() && awake.is_none_or(may_stop)
    }
}
