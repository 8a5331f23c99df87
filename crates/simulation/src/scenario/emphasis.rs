//! Most of the runs have one kind of trouble in plenty: rare meetings of faults become common there.

use super::{Order, Scenario, What};
use crate::entropy::Dice;
use crate::receiver::{Mood, Spell};
use crate::store::Span;
use std::time::Duration;

pub(super) fn add(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "emphasis");
    match dice.between(0, 5) {
        0 => little_room(scenario, &mut dice),
        1 => slow_reads(scenario, &mut dice),
        2 => dead_hosts(scenario, &mut dice),
        3 => second_thoughts(scenario, &mut dice),
        _ => {}
    }
}

/// The disk is full again and again: results are refused, written late and overtaken by others.
fn little_room(scenario: &mut Scenario, dice: &mut Dice) {
    let mut full = Vec::new();
    for order in scenario.orders.iter().filter(|order| matches!(order.what, What::Send(_))) {
        let from = order.at + dice.millis(0, 3000);
        full.push(Span { from, to: (from + dice.millis(10, 2000)).min(scenario.faults_end) });
    }
    scenario.faults.full = full;
    make_flaky(scenario);
}

/// Lanes remember little, and what they read of the rest is old when it comes.
fn slow_reads(scenario: &mut Scenario, dice: &mut Dice) {
    scenario.faults.slow_reads = 80;
    scenario.faults.failing_reads = 10;
    scenario.options.lane_buffer = dice.pick(&[1, 2, 4, 8]);
    scenario.options.lane_idle = Duration::from_secs(1);
    make_flaky(scenario);
}

/// Hosts go down for a moment wherever something is sent, under policies that hold them back.
fn dead_hosts(scenario: &mut Scenario, dice: &mut Dice) {
    for door in &mut scenario.doors {
        door.policy = dice.pick(&["standard", "persistent"]);
    }
    for order in &scenario.orders {
        let from = order.at + dice.millis(0, 2000);
        let span = Span { from, to: from + dice.millis(100, 600_000) };
        let host = dice.index(scenario.hosts.len());
        let mood = dice.pick(&[Mood::Refuses, Mood::Unresolved, Mood::Healthy]);
        scenario.hosts[host].push(Spell { span, mood });
    }
}

/// What was sent is cancelled again or sent manually, soon or while it waits for a retry; lanes are small,
/// and much of what is concerned is known to the store only.
fn second_thoughts(scenario: &mut Scenario, dice: &mut Dice) {
    let sent = |order: &Order| match &order.what {
        What::Send(event) => Some((order.at, event.tenant)),
        _ => None,
    };
    let sent: Vec<_> = scenario.orders.iter().filter_map(sent).collect();
    for (at, tenant) in sent {
        if dice.percent(30) {
            let at = at + dice.millis(0, 20_000);
            scenario.orders.push(Order { at, what: What::Cancel { tenant } });
            let door = dice.index(scenario.doors.len());
            let at = scenario.start + dice.millis(1, 6 * 3_600_000);
            scenario.orders.push(Order { at, what: What::Replay { door } });
        }
        for _ in 0..dice.pick(&[0, 0, 1, 3]) {
            let door = dice.index(scenario.doors.len());
            scenario.orders.push(Order { at: at + dice.millis(0, 20_000), what: What::Resend { door } });
        }
    }
    scenario.options.lane_buffer = dice.pick(&[1, 2, 4, 32]);
    make_flaky(scenario);
}

fn make_flaky(scenario: &mut Scenario) {
    let span = Span { from: scenario.start, to: scenario.faults_end };
    for door in &mut scenario.doors {
        door.moods.push(Spell { span, mood: Mood::Flaky });
    }
}
