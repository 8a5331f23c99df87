//! Bugs that seeds and readers have found, each as the smallest run that shows it.

use aldaba_delivery::{Ordering, Timestamp};
use aldaba_engine::Options;
use aldaba_store::Recorded;
use simulation::checks::verdict;
use simulation::log::{Log, RecordCommit};
use simulation::receiver::{Mood, Spell};
use simulation::run::play;
use simulation::scenario::{Door, EventPlan, LifePlan, Order, PlannedEnd, Scenario, What};
use simulation::store::{Faults, Span};
use simulation::world::World;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// One endpoint, and nothing goes wrong but for what a test adds.
fn quiet() -> Scenario {
    let mut scenario = Scenario::new(0);
    scenario.lives.clear();
    scenario.orders.clear();
    scenario.sources.clear();
    scenario.hosts.iter_mut().for_each(Vec::clear);
    scenario.faults = Faults::none();
    scenario.options = Options { max_sleep: scenario.options.max_sleep, ..Options::default() };
    scenario.tenants = 1;
    scenario.doors.truncate(1);
    let door = &mut scenario.doors[0];
    (door.tenant, door.host, door.policy, door.late) = (0, 0, "standard", false);
    (door.event_types, door.channels, door.throttle_rate) = (Vec::new(), Vec::new(), None);
    door.ordering = Ordering::None;
    door.moods.clear();
    scenario
}

fn after(scenario: &Scenario, millis: u64) -> Timestamp {
    scenario.start + Duration::from_millis(millis)
}

fn send(scenario: &mut Scenario, millis: u64) {
    let at = after(scenario, millis);
    let event = EventPlan {
        number: scenario.orders.len(),
        tenant: 0,
        event_type: "invoice.paid",
        channels: Vec::new(),
        has_event_id: false,
        has_key: false,
        twice: false,
        again: false,
        deliver_at: None,
        payload_kept: None,
        padding: 0,
        address: None,
    };
    scenario.orders.push(Order { at, what: What::Send(event) });
}

fn span(scenario: &Scenario, from: u64, to: u64) -> Span {
    Span { from: after(scenario, from), to: after(scenario, to) }
}

fn assert_kept(scenario: Scenario) {
    let world = play(scenario, false);
    let violations: Vec<_> = verdict(&world).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[test]
fn while_results_are_refused_nothing_is_sent_now_and_then_to_find_out() {
    let mut scenario = quiet();
    (scenario.options.lane_start, scenario.options.lane_most) = (1, 1);
    for _ in 0..200 {
        send(&mut scenario, 60_000);
    }
    let full = span(&scenario, 60_500, 180_000);
    scenario.faults.full.push(full);
    assert_kept(scenario);
}

#[test]
fn a_result_that_is_written_late_does_not_replace_newer_health() {
    let mut scenario = quiet();
    let (silent, full) = (span(&scenario, 60_000, 61_000), span(&scenario, 90_000, 90_500));
    scenario.doors[0].moods.push(Spell { span: silent, mood: Mood::Silent });
    scenario.faults.full.push(full);
    // Both wait 30 s in vain. The first finds the disk full and is written a second later; by then
    // the other is written, which counts both failures.
    send(&mut scenario, 60_000);
    send(&mut scenario, 60_550);
    scenario.lives.push(LifePlan {
        length: Duration::from_secs(92),
        end: PlannedEnd::Stop { limit: Duration::from_secs(1) },
        crash: None,
        downtime: Duration::from_secs(1),
    });
    assert_kept(scenario);
}

/// Messages for much later, to an endpoint and to an address; then their application is deleted.
fn leaving() -> Scenario {
    let mut scenario = quiet();
    let address = scenario.doors[0].clone();
    scenario.doors.push(Door { late: true, ..address });
    for number in 0..300 {
        send(&mut scenario, 61_000 + number);
        let later = after(&scenario, 0) + Duration::from_secs(300 * 24 * 3600);
        let Some(Order { what: What::Send(event), .. }) = scenario.orders.last_mut() else {
            panic!("just sent")
        };
        (event.deliver_at, event.address) = (Some(later), (number % 3 == 0).then_some(1));
    }
    let at = after(&scenario, 65_000);
    scenario.orders.push(Order { at, what: What::DeleteApplication { tenant: 0 } });
    scenario
}

#[test]
fn deliveries_of_a_deleted_application_end_before_they_are_due() {
    assert_kept(leaving());
}

/// One life of so long after the set-up, ended by a crash, and the next one.
fn crashing_after(length: Duration) -> Arc<World> {
    let mut scenario = leaving();
    let downtime = Duration::from_secs(60);
    scenario.lives = vec![LifePlan { length, end: PlannedEnd::Kill, crash: None, downtime }];
    play(scenario, false)
}

/// The deliveries that ended in a life. What another search has ended before is passed over.
fn ended_in(log: &Log, life: usize) -> impl Iterator<Item = &RecordCommit> {
    log.records.iter().filter(move |record| record.life == life && record.result == Recorded::Applied)
}

/// The same run up to the crash shows when what waits ends: how long that takes, and from when on, changes with every other use of
/// the store.
#[test]
fn deliveries_of_a_deleted_application_end_after_a_crash() {
    let whole = Duration::from_secs(100);
    let world = crashing_after(whole);
    let (ends, set_up) = {
        let log = world.log.lock();
        let ends: BTreeSet<_> = ended_in(&log, 0).map(|record| record.at).collect();
        (ends, log.lives[0].ended.before(whole))
    };
    let ends: Vec<_> = ends.into_iter().collect();
    let moment = Duration::from_millis(1);
    let between = ends.windows(2).filter(|pair| pair[0] + moment < pair[1]).map(|pair| pair[0]);
    let between: Vec<_> = between.collect();
    assert!(!between.is_empty(), "no crash can come between: {ends:?}");
    for end in between {
        let world = crashing_after(end.since(set_up) + moment);
        let violations: Vec<_> = verdict(&world).iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{}", violations.join("\n"));
        let log = world.log.lock();
        let (before, after) = (ended_in(&log, 0).count(), ended_in(&log, 1).count());
        assert!(
            before > 0 && after > 0,
            "after {end:?} of {ends:?}: {before} before the crash, {after} after it"
        );
    }
}

/// Two searches for what is past its stop date overlap: one ends the head of an ordered endpoint, which blocks it. The other
/// has read the endpoint before and the new head after.
#[test]
fn a_search_that_began_before_a_block_ends_nothing_behind_it() {
    assert_kept(Scenario::new(7647));
}
