//! Lanes are searched for expired deliveries, whatever they wait for.

use super::*;
use crate::scheduling::expiry::ExpirySearch;
use crate::scheduling::lane::SearchResult;
use crate::scheduling::scheduler::expiry::MAX_SEARCHES;

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
const MILLI: Duration = Duration::from_millis(1);
const START: Timestamp = Timestamp::from_millis(0);

/// Lanes under a policy with a stop date.
fn persistent(in_flight: usize, lanes: u8, rows: i64) -> World {
    let mut world = with_lanes(in_flight, lanes, rows, |_| 0);
    world.policy = "persistent";
    world
}

/// What a search finds out where nothing is past its stop date.
fn nothing_over(oldest: Timestamp) -> Option<SearchResult> {
    Some(SearchResult { stop_after: Some(WEEK), held: false, ended: 0, oldest: Some(oldest) })
}

impl World {
    /// What begins at a moment: searches, and how many attempts. Reads are answered at once.
    fn at(&mut self, now: Timestamp) -> (Vec<ExpirySearch>, usize) {
        let (mut searches, mut attempts) = (Vec::new(), 0);
        loop {
            let actions = self.scheduler.run_once(now);
            if actions.is_empty() {
                return (searches, attempts);
            }
            for action in actions {
                match action {
                    Action::Read(endpoint) => self.read(endpoint),
                    Action::Refill(query) => {
                        let rows = self.due(&query);
                        self.scheduler.refilled(query.endpoint, &rows, query.limit);
                    }
                    Action::Attempt(_) => attempts += 1,
                    Action::End(..) => panic!("nothing ends here"),
                    Action::Search(search) => searches.push(search),
                }
            }
        }
    }

    /// The lanes whose search begins at a moment.
    fn searched(&mut self, now: Timestamp) -> Vec<EndpointId> {
        let (searches, attempts) = self.at(now);
        assert_eq!(attempts, 0);
        searches.iter().map(|search| search.endpoint).collect()
    }
}

#[test]
fn b4_a_lane_is_searched_right_after_the_oldest_stop_date_while_others_are_in_flight() {
    let mut world = persistent(1000, 1, 20);
    assert_eq!(world.at(START).1, 8, "the others wait for capacity of the lane");
    // What waits on disk is not known: that is asked once.
    assert_eq!(world.searched(START + Duration::from_secs(1)), [lane_id(0)]);
    let oldest = START + Duration::from_secs(5);
    world.scheduler.search_ended(lane_id(0), nothing_over(oldest), START + Duration::from_secs(1));
    assert_eq!(world.scheduler.next_alarm(START + Duration::from_secs(1)), Some(oldest + WEEK + MILLI));
    assert_eq!(world.searched(oldest + WEEK), []);
    assert_eq!(world.searched(oldest + WEEK + MILLI), [lane_id(0)]);
}

#[test]
fn b4_a_lane_that_is_never_selected_is_searched_all_the_same() {
    let mut world = persistent(1, 3, 1);
    assert_eq!(world.at(START).1, 1);
    let mut searched = world.searched(START + Duration::from_secs(1));
    searched.sort_unstable();
    // That of the first is in flight, and nothing else waits for it.
    assert_eq!(searched, [lane_id(1), lane_id(2)]);
}

#[test]
fn b4_a_head_past_its_stop_date_is_not_sent_but_searched_for_tried_or_not() {
    let mut world = persistent(1000, 1, 1);
    let late = START + WEEK + MILLI;
    let (searches, attempts) = world.at(late);
    assert_eq!((&searches[..], attempts), (&[ExpirySearch { endpoint: lane_id(0), until: late }][..], 0));
    // Exactly at its stop date it is still sent.
    let mut world = persistent(1000, 1, 1);
    assert_eq!(world.at(START + WEEK).1, 1);
}

#[test]
fn what_a_person_has_resumed_is_sent_however_late() {
    let mut world = persistent(1000, 1, 1);
    let late = START + WEEK * 3;
    let actions = world.scheduler.run_once(late);
    assert!(matches!(actions[..], [Action::Search(_), Action::Read(_), Action::Refill(_)]));
    let target = Target { app: world.apps[&lane_id(0)], ..Target::sample("persistent") };
    let resumed = Health::default().resumed(START + WEEK);
    world.scheduler.endpoint_read(lane_id(0), target, resumed, late);
    world.scheduler.refilled(lane_id(0), &[row_of(0, 0)], 256);
    let (searches, attempts) = world.at(late);
    assert_eq!((searches.len(), attempts), (0, 1));
}

#[test]
fn what_somebody_has_replayed_is_sent_however_late_once() {
    for (attempts, sent) in [(0, 1), (1, 0)] {
        let mut world = persistent(1000, 1, 0);
        world.rows.insert(lane_id(0), vec![PendingDelivery { replayed: true, attempts, ..row_of(0, 0) }]);
        assert_eq!(world.at(START + WEEK * 3).1, sent);
    }
}

#[test]
fn a_lane_without_a_stop_date_is_never_searched() {
    let mut world = with_lanes(1000, 1, 20, |_| 0);
    assert_eq!(world.at(START).1, 8);
    for weeks in 1..10 {
        assert_eq!(world.searched(START + WEEK * weeks), []);
    }
}

#[test]
fn what_is_changed_is_searched_at_once_also_where_no_lane_is_in_memory() {
    let mut world = persistent(1000, 0, 0);
    let endpoint = lane_id(9);
    world.scheduler.endpoint_changed(endpoint);
    assert_eq!(world.searched(START), [endpoint]);
    world.scheduler.search_ended(endpoint, None, START);
    assert_eq!(world.searched(START + WEEK), []);
}

#[test]
fn only_so_many_are_searched_at_once_and_none_while_nothing_can_be_written() {
    let mut world = persistent(1, 20, 1);
    assert_eq!(world.at(START).1, 1);
    world.scheduler.halted = true;
    let now = START + Duration::from_secs(1);
    assert_eq!(world.searched(now), []);
    world.scheduler.halted = false;
    let first = world.searched(now);
    assert_eq!(first.len(), MAX_SEARCHES);
    assert!(world.scheduler.next_alarm(now).is_none_or(|at| at > now), "it would spin");
    world.scheduler.search_ended(first[0], nothing_over(START), now);
    assert_eq!(world.searched(now).len(), 1);
}

#[test]
fn b4_a_hold_past_the_oldest_stop_date_is_searched_for_at_once_up_to_its_end() {
    let mut world = persistent(1000, 1, 3);
    let near = START + (WEEK - Duration::from_secs(10));
    let until = START + WEEK + Duration::from_secs(50);
    world.scheduler.gates = held(near, until);
    // The lane does not know its policy yet, nor what waits.
    assert_eq!(world.at(near), (vec![ExpirySearch { endpoint: lane_id(0), until: near }], 0));
    world.scheduler.search_ended(lane_id(0), nothing_over(START), near);
    assert_eq!(world.at(near), (vec![], 0), "not again at once");
    let later = near + Duration::from_secs(1);
    assert_eq!(world.at(later), (vec![ExpirySearch { endpoint: lane_id(0), until }], 0));
    // The next one is known: another hold is compared with it.
    let ended = SearchResult { stop_after: Some(WEEK), held: false, ended: 3, oldest: Some(START + WEEK) };
    world.scheduler.search_ended(lane_id(0), Some(ended), later);
    let (searches, _) = world.at(later);
    assert_eq!(searches, []);
}

#[test]
fn b4_a_stop_date_that_becomes_an_earlier_one_is_searched_for_though_the_retry_is_due_later() {
    let stricter = Duration::from_secs(5);
    let found = SearchResult { stop_after: Some(stricter), held: false, ended: 0, oldest: Some(START) };
    let changed = START + Duration::from_secs(2);
    for in_memory in [true, false] {
        let mut world = persistent(1000, 0, 0);
        let endpoint = lane_id(0);
        if in_memory {
            // It was tried, and its retry is due in five minutes.
            world.add(0, 1, 0);
            world.rows.clear();
            let retry =
                PendingDelivery { due_at: START + Duration::from_secs(300), attempts: 1, ..row_of(0, 0) };
            world.rows.insert(endpoint, vec![retry]);
            assert_eq!(world.at(START + MILLI).1, 0);
        }
        world.scheduler.endpoint_changed(endpoint);
        assert_eq!(world.at(changed).0.len(), 1, "at once: nothing is past it yet");
        world.scheduler.search_ended(endpoint, Some(found), changed);
        assert_eq!(world.at(START + stricter).0, [], "in memory: {in_memory}");
        let over = START + stricter + Duration::from_secs(1);
        assert_eq!(world.at(over).0.len(), 1, "in memory: {in_memory}");
        let ended = SearchResult { ended: 1, oldest: None, ..found };
        world.scheduler.search_ended(endpoint, Some(ended), over);
        assert_eq!(world.at(over + Duration::from_secs(60)).0, [], "in memory: {in_memory}");
    }
}

#[test]
fn what_the_walk_has_found_is_searched_after_its_stop_date_also_where_no_lane_is_in_memory() {
    let mut world = persistent(1000, 0, 0);
    let found = SearchResult { stop_after: Some(WEEK), held: false, ended: 0, oldest: Some(START) };
    let now = START + WEEK.saturating_sub(Duration::from_secs(60));
    for unknown in [
        SearchResult { stop_after: None, ..found },
        SearchResult { oldest: None, ..found },
        SearchResult { held: true, ..found },
        SearchResult { oldest: Some(START.before(WEEK)), ..found },
    ] {
        world.scheduler.search_after(lane_id(3), unknown, now);
        assert_eq!(world.scheduler.next_alarm(now), None, "{unknown:?}");
    }
    world.scheduler.search_after(lane_id(3), found, now);
    assert_eq!(world.scheduler.next_alarm(now), Some(START + WEEK + MILLI));
    assert_eq!(world.searched(START + WEEK + MILLI), [lane_id(3)]);
}

/// A gate that holds an application's lanes.
fn held(from: Timestamp, until: Timestamp) -> Gates {
    use aldaba_delivery::{Gate, GateKey, GateScope};
    let gate = Gate {
        failures: 9,
        held_until: Some(until),
        hold: until.since(from),
        failed_at: Some(from),
        ..Gate::default()
    };
    let scope = GateScope::Application(AppId::from_bytes([0; 20]));
    let key =
        GateKey { org: one_organization(AppId::from_bytes([0; 20])), origin: own_origin(lane_id(0)), scope };
    let record = aldaba_store::GateRecord { key, gate, why: String::new() };
    Gates::restore(Options::default().gate_limits(), vec![record]).0
}
