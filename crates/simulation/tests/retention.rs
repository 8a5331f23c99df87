//! Document A's history over a simulated day, with a kill in the middle: exactly what should go is gone.

use aldaba_engine::{Options, RetentionOptions};
use aldaba_store::{DeliveryState, DeliveryStatus};
use simulation::checks::verdict;
use simulation::receiver::{Mood, Spell};
use simulation::run::play;
use simulation::scenario::{EventPlan, LifePlan, Order, PlannedEnd, Scenario, What};
use simulation::store::{Faults, Span};
use simulation::world::World;
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const EVENTS: usize = 700;

/// 700 events to three endpoints of one application under `quick`, one of which rejects everything; the
/// server is killed twice, and lives for so long in the end.
fn day(hours: u32) -> Arc<World> {
    let mut scenario = Scenario::new(3);
    scenario.hosts = vec![Vec::new()];
    scenario.faults = Faults::none();
    scenario.tenants = 1;
    scenario.sources.clear();
    scenario.faults_end = scenario.start + MINUTE * 60 * hours;
    scenario.limit = scenario.faults_end + MINUTE * 600;
    let retention = RetentionOptions { interval: MINUTE * 10, ..RetentionOptions::default() };
    scenario.options = Options { max_sleep: scenario.options.max_sleep, retention, ..Options::default() };
    let pattern = scenario.doors[0].clone();
    scenario.doors = vec![pattern; 3];
    for door in &mut scenario.doors {
        (door.tenant, door.host, door.policy, door.late) = (0, 0, "quick", false);
        (door.event_types, door.channels, door.throttle_rate) = (Vec::new(), Vec::new(), None);
        door.moods.clear();
    }
    let span = Span { from: scenario.start, to: scenario.limit };
    scenario.doors[2].moods.push(Spell { span, mood: Mood::Answers(404) });
    let order = |number: usize| Order {
        at: scenario.start + MINUTE + Duration::from_secs(number as u64 * 2),
        what: What::Send(EventPlan {
            deliver_at: None,
            payload_kept: None,
            number,
            tenant: 0,
            event_type: "invoice.paid",
            channels: Vec::new(),
            has_event_id: number.is_multiple_of(2),
            has_key: true,
            twice: false,
            again: number.is_multiple_of(7),
            padding: 0,
            address: None,
        }),
    };
    scenario.orders = (0..EVENTS).map(order).collect();
    let life =
        |minutes| LifePlan { length: MINUTE * minutes, end: PlannedEnd::Kill, crash: None, downtime: MINUTE };
    scenario.lives = vec![life(21), life(11)];
    let world = play(scenario, false);
    let violations = verdict(&world);
    assert!(violations.is_empty(), "{violations:?}");
    world
}

/// Those that the server still has, delivered and dead.
fn left(world: &World) -> [Vec<DeliveryStatus>; 2] {
    let disk = world.disk.lock().everything();
    let kept: Vec<_> = disk.deliveries.iter().filter(|row| disk.has_delivery(row.seq)).cloned().collect();
    let (delivered, dead) =
        kept.into_iter().partition(|row| matches!(row.state, DeliveryState::Delivered { .. }));
    [delivered, dead]
}

#[test]
fn a5_the_newest_1000_of_the_application_are_left_and_every_failed_one() {
    let world = day(3);
    let [mut delivered, dead] = left(&world);
    assert_eq!((delivered.len(), dead.len()), (1000, EVENTS));
    // They are the newest: everything that was removed ended before them.
    let ended = |row: &DeliveryStatus| match row.state {
        DeliveryState::Delivered { at }
        | DeliveryState::Dead { at, .. }
        | DeliveryState::Skipped { at, .. } => (at, row.seq),
        DeliveryState::Waiting { .. } => panic!("{row:?} waits"),
    };
    delivered.sort_by_key(ended);
    let log = world.log.lock();
    assert_eq!(log.removals.len(), 2 * EVENTS - 1000);
    assert!(log.removals.iter().all(|removal| ended(&removal.delivery) < ended(&delivered[0])));
}

#[test]
fn a5_after_24_hours_only_failed_ones_are_left() {
    let world = day(26);
    let [delivered, dead] = left(&world);
    assert_eq!((delivered.len(), dead.len()), (0, EVENTS));
}
