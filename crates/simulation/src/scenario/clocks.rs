//! The clock of the server's machine is set: before a start, while it runs and across restarts; then right again.

use super::{ClockStep, LifePlan, Order, PlannedEnd, Scenario, What};
use crate::entropy::Dice;
use crate::receiver::{Mood, Spell};
use crate::store::{Faults, Span};
use aldaba_delivery::Ordering;
use aldaba_delivery::policy::RetentionDefaults;
use aldaba_engine::RetentionOptions;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const HOUR_MILLIS: i64 = 3_600_000;
/// How far off a clock may be, in hours.
const OFFSETS: [i64; 12] = [1, -1, 2, 20, -20, 24, -24, 25, -25, 400 * 24, -400 * 24, 20 * 365 * 24];
/// The endpoints that are always well are at this host, alone.
const HEALTHY_HOST: usize = 0;
/// Every fourth endpoint fails all the time: one of those that are not at that host.
const FIRST_FAILING: usize = 1;
const FAILING_APART: usize = 4;
/// By then the clock is right again, for good.
const RIGHT_AFTER: Duration = Duration::from_secs(20 * 3600);
/// The slowest policies wait 12 hours; a few such waits.
const TO_SETTLE: Duration = Duration::from_secs(48 * 3600);

pub(super) fn set(scenario: &mut Scenario) {
    let mut dice = Dice::of(scenario.seed, "clocks");
    let start = scenario.start;
    scenario.faults = Faults::none();
    scenario.sources.clear();
    scenario.faults_end = start + RIGHT_AFTER;
    scenario.limit = scenario.faults_end + TO_SETTLE;
    // Nothing that is kept is over within the run.
    let days = |days: u64| Some(HOUR * 24 * u32::try_from(days).unwrap_or(30));
    scenario.options.retention = RetentionOptions {
        defaults: RetentionDefaults { delivered: days(30), dead: days(30) },
        interval: MINUTE * 10,
        ..RetentionOptions::default()
    };
    scenario.options.held = HOUR * 24 * 30;
    scenario.options.max_sleep = Duration::from_secs(10);
    scenario.options.clock_record_interval = MINUTE;
    scenario.overrides.stop_after = HOUR * 168;
    tidy(scenario);
    steps(scenario, &mut dice);
    lives(scenario, &mut dice);
    failing(scenario);
}

/// Endpoints that stay, events and nothing else, spread over the time in which the clock is set.
fn tidy(scenario: &mut Scenario) {
    let doors = scenario.doors.len();
    scenario.doors.retain(|door| door.tenant < scenario.tenants);
    for (number, door) in scenario.doors.iter_mut().enumerate() {
        (door.late, door.holds, door.throttle_rate, door.ordering) = (false, false, None, Ordering::None);
        if door.policy == "quick" {
            door.policy = "standard";
        }
        if number.is_multiple_of(2) {
            door.host = HEALTHY_HOST;
            door.moods.clear();
        } else {
            door.host = 1;
        }
    }
    scenario.hosts = vec![Vec::new(); 2.max(doors)];
    scenario.orders.retain(|order| matches!(&order.what, What::Send(event) if event.address.is_none()));
    let count = u32::try_from(scenario.orders.len()).unwrap_or(1).max(1);
    let apart = (RIGHT_AFTER - HOUR) / count;
    for (number, Order { at, what }) in scenario.orders.iter_mut().enumerate() {
        *at = scenario.start + MINUTE + apart * u32::try_from(number).unwrap_or(0);
        if let What::Send(event) = what {
            (event.number, event.deliver_at, event.again) = (number, None, true);
            // Longer than what is checked to be kept.
            event.payload_kept = Some(HOUR * 48);
            event.has_key |= !event.has_event_id;
        }
    }
}

/// Some endpoints fail all the time, so that retries wait on every clock, and take long to do so when the clock is set. Just
/// before, what waits for them is attempted manually.
fn failing(scenario: &mut Scenario) {
    const MARGIN: Duration = Duration::from_secs(60);
    let near_steps: Vec<Spell> = scenario
        .clock_steps
        .iter()
        .map(|step| Spell {
            span: Span { from: step.at.before(MARGIN), to: step.at + MARGIN },
            mood: Mood::Silent,
        })
        .collect();
    let always =
        Spell { span: Span { from: scenario.start, to: scenario.faults_end }, mood: Mood::Answers(503) };
    for number in (FIRST_FAILING..scenario.doors.len()).step_by(FAILING_APART) {
        scenario.doors[number].moods = near_steps.clone();
        scenario.doors[number].moods.push(always);
        let resends = scenario.clock_steps.iter().map(|step| Order {
            at: step.at.before(Duration::from_secs(2)),
            what: What::Resend { door: number },
        });
        scenario.orders.extend(resends);
    }
    scenario.orders.sort_by_key(|order| order.at);
}

/// A few steps, each taken back after a while.
fn steps(scenario: &mut Scenario, dice: &mut Dice) {
    let mut at = scenario.start;
    while at + HOUR * 4 < scenario.faults_end {
        at = at + dice.span(MINUTE * 5, HOUR * 3);
        let offset_millis = dice.pick(&OFFSETS) * HOUR_MILLIS;
        scenario.clock_steps.push(ClockStep { at, offset_millis });
        at = at + dice.span(MINUTE, HOUR * 3);
        // Right again, or wrong in another way.
        if dice.percent(75) {
            scenario.clock_steps.push(ClockStep { at, offset_millis: 0 });
        }
    }
    scenario.clock_steps.retain(|step| step.at < scenario.faults_end.before(HOUR));
    let right = ClockStep { at: scenario.faults_end.before(HOUR), offset_millis: 0 };
    scenario.clock_steps.push(right);
}

/// Lives end at some of the steps, so that the next one starts on another clock, and between them.
fn lives(scenario: &mut Scenario, dice: &mut Dice) {
    let (mut began, mut last_moments) = (scenario.start, Vec::new());
    scenario.lives.clear();
    for step in &scenario.clock_steps {
        let ends = match dice.between(0, 2) {
            // Off when the clock is set.
            0 => step.at.before(Duration::from_secs(30)),
            // Soon after: what was accepted meanwhile may not have been sent.
            1 => step.at + dice.millis(100, 20_000),
            _ => continue,
        };
        if ends <= began + MINUTE * 2 {
            continue;
        }
        let end = match dice.percent(70) {
            true => PlannedEnd::Kill,
            false => PlannedEnd::Stop { limit: Duration::from_secs(5) },
        };
        let downtime = MINUTE;
        scenario.lives.push(LifePlan { length: ends.since(began), end, crash: None, downtime });
        last_moments.push(ends);
        began = ends + downtime;
    }
    // A few events come just before an end: accepted, and not delivered yet.
    let orders = scenario.orders.iter_mut().step_by(3);
    for (order, ends) in orders.zip(last_moments.iter().cycle().take(last_moments.len() * 4)) {
        order.at = ends.before(dice.millis(1, 40));
    }
    scenario.orders.sort_by_key(|order| order.at);
}
