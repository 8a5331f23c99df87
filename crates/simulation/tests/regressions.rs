//! Bugs that seeds have found, each as the smallest run that shows it.

use aldaba_delivery::Timestamp;
use simulation::checks::verdict;
use simulation::receiver::{Mood, Spell};
use simulation::run::play;
use simulation::scenario::{Event, Order, Scenario, What};
use simulation::store::{Faults, Span};
use std::time::Duration;

/// One endpoint, one request at a time, and nothing goes wrong but for what a test adds.
fn quiet() -> Scenario {
    let mut scenario = Scenario::new(0);
    scenario.lives.clear();
    scenario.orders.clear();
    scenario.hosts.iter_mut().for_each(Vec::clear);
    scenario.faults = Faults::none();
    scenario.options.lane_start = 1;
    scenario.options.lane_most = 1;
    scenario.options.content_bytes = 64 << 20;
    scenario.tenants = 1;
    scenario.doors.truncate(1);
    let door = &mut scenario.doors[0];
    (door.tenant, door.host, door.policy, door.late) = (0, 0, "standard", false);
    (door.event_types, door.channels, door.throttle_rate) = (Vec::new(), Vec::new(), None);
    door.moods.clear();
    scenario
}

fn after(scenario: &Scenario, millis: u64) -> Timestamp {
    scenario.start + Duration::from_millis(millis)
}

fn send(scenario: &mut Scenario, millis: u64) {
    let at = after(scenario, millis);
    let event = Event {
        number: scenario.orders.len(),
        tenant: 0,
        event_type: "invoice.paid",
        channels: Vec::new(),
        has_event_id: false,
        has_key: false,
        twice: false,
        again: false,
        padding: 0,
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
fn while_results_are_refused_nothing_is_sent_again_and_again_to_find_out() {
    let mut scenario = quiet();
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
    let (fails, full) = (span(&scenario, 60_000, 60_020), span(&scenario, 60_010, 60_500));
    scenario.doors[0].moods.push(Spell { span: fails, mood: Mood::Answers(500) });
    scenario.faults.full.push(full);
    // The first fails, and its result finds no room for a second; the next succeeds meanwhile.
    send(&mut scenario, 60_000);
    send(&mut scenario, 60_510);
    assert_kept(scenario);
}
