//! Lanes that wait for capacity are served round robin.

use super::*;

#[test]
fn ready_lanes_are_served_round_robin_one_delivery_at_a_time() {
    let mut world = with_lanes(1000, 5, 6, |_| 0);
    let order = world.started();
    for (number, round) in order.chunks(5).enumerate() {
        let mut lanes: Vec<_> = round.iter().map(|(endpoint, _)| *endpoint).collect();
        lanes.sort();
        lanes.dedup();
        assert_eq!(lanes.len(), 5, "round {number} left a lane out");
    }
    assert_eq!(order.len(), 30);
}

/// How many starts of others a lane of a crowd has waited for at most, in rounds of all lanes. Attempts end in the order of
/// their beginning, `at_once` at a time.
pub(super) fn longest_wait(mut world: World, answered: bool, at_once: usize) -> f64 {
    let lanes = world.rows.len();
    let mut flying: VecDeque<_> = world.started().into();
    let (mut last, mut longest, mut count) = (BTreeMap::new(), 0, 0);
    while !flying.is_empty() {
        for start in flying.drain(..at_once.min(flying.len())).collect::<Vec<_>>() {
            count += 1;
            longest = longest.max(count - last.insert(start.0, count).unwrap_or(0));
            world.end(start, answered);
        }
        flying.extend(world.started());
    }
    assert_eq!(world.scheduler.in_flight(), 0);
    longest as f64 / lanes as f64
}

#[test]
fn lanes_that_wait_for_the_share_of_their_organization_are_served_round_robin() {
    for at_once in [1, 7] {
        for answered in [true, false] {
            // All of one organization; one each of many; a few of several.
            for org in [one_organization, own_organization, two_organizations] {
                let world = with_lanes(64, 200, 12, |lane| lane % 20).of(org);
                let longest = longest_wait(world, answered, at_once);
                assert!(longest <= 2.5, "{longest} rounds, {at_once} at once, answered: {answered}");
            }
        }
    }
}

#[test]
fn a_slot_that_one_waiting_lane_does_not_use_goes_to_the_next() {
    let mut world = with_lanes(4, 4, 1, |_| 0);
    let first = world.started();
    assert_eq!(first.len(), 1, "a quarter of four");
    // The waiting lanes are deleted but for the last: ending needs no slot.
    let waiting: Vec<_> = (0..4).map(lane_id).filter(|lane| *lane != first[0].0).collect();
    for lane in &waiting[..2] {
        world.scheduler.endpoint_missing(*lane, Timestamp::from_millis(0));
    }
    world.end(first[0], false);
    assert_eq!(world.started().iter().map(|start| start.0).collect::<Vec<_>>(), waiting[2..]);
}

#[test]
fn a_waiting_lane_is_not_forgotten_when_the_one_before_it_does_not_use_its_slot() {
    let (now, app) = (Timestamp::from_millis(0), AppId::from_bytes([9; 20]));
    // Every share is used up but for one slot of each application.
    let mut world = World::new(Options { in_flight: 64, ..Options::default() }, 0, 0, |_| 0);
    world.org = own_organization;
    world.add(10, 1, 9);
    for start in world.started() {
        world.end(start, false);
    }
    for lane in 100..116 {
        world.add(lane, 8, lane);
    }
    let mut flying: VecDeque<_> = world.started().into();
    world.add(9, 1, 9);
    let own = world.started();
    assert_eq!((flying.len(), own.len()), (32, 1));
    let waiting = row_of(10, 1);
    world.rows.insert(lane_id(10), vec![waiting]);
    world.scheduler.enqueue(lane_id(10), app, BufferedDelivery { pending: waiting, content: None }, now);
    flying.extend(world.started());
    world.add(11, 1, 9);
    for lane in 20..60 {
        world.add(lane, 1, lane);
    }
    flying.extend(world.started());
    // The first waiting lane is asked for quiet; then a slot is free, and another lane takes it.
    world.scheduler.health(lane_id(10)).expect("it is awake").0.quiet_until =
        Some(Timestamp::from_millis(3_000_000));
    world.end(own[0], false);
    flying.extend(world.started());
    let mut served = BTreeSet::new();
    while let Some(start) = flying.pop_front() {
        served.insert(start.0);
        world.end(start, false);
        flying.extend(world.started());
    }
    assert!(served.contains(&lane_id(11)), "the second waiting lane was not served");
}

#[test]
fn the_fair_queue_has_each_waiting_lane_once() {
    let (now, app) = (Timestamp::from_millis(0), AppId::from_bytes([0; 20]));
    let mut world = with_lanes(8, 2, 1, |_| 0);
    for start in world.started() {
        world.end(start, true);
    }
    let offer = |world: &mut World, lane: u8, row: i64| {
        world.scheduler.enqueue(
            lane_id(lane),
            app,
            BufferedDelivery { pending: row_of(lane, row), content: None },
            now,
        );
    };
    let mut flying = VecDeque::new();
    for row in 1..500 {
        offer(&mut world, 0, row);
        offer(&mut world, 1, row);
        flying.extend(world.started());
        let start = flying.pop_front().expect("half of the cap is in use");
        world.end(start, true);
        flying.extend(world.started());
    }
    let entries = world.scheduler.shares.waiting_lanes(app);
    assert!(entries <= 2, "{entries} entries for two lanes");
}
