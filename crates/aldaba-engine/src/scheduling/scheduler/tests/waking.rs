//! Idle lanes wake up, and read what they need.

use super::*;

#[test]
fn many_lanes_at_once_read_the_store_a_few_at_a_time_and_all_come_to_it() {
    let mut world = with_lanes(1000, 200, 0, |lane| lane);
    let mut refilled = BTreeSet::new();
    loop {
        let actions = world.scheduler.run_once(Timestamp::from_millis(0));
        let refills = actions.iter().filter(|action| matches!(action, Action::Refill(_))).count();
        assert!(refills <= pass::MAX_REFILLS);
        if actions.is_empty() {
            break;
        }
        for action in actions {
            match action {
                Action::Read(endpoint) => world.read(endpoint),
                Action::Refill(query) => {
                    refilled.insert(query.endpoint);
                    world.scheduler.refilled(query.endpoint, &[], query.limit);
                }
                _ => panic!("nothing waits in these lanes"),
            }
        }
    }
    assert_eq!(refilled.len(), 200);
}

#[test]
fn a_changed_endpoint_is_read_again_before_the_next_attempt() {
    let (endpoint, now) = (lane_id(0), Timestamp::from_millis(0));
    let mut world = World::new(Options::default(), 0, 0, |_| 0);
    // What is past a stop date that has changed is another matter.
    let acts = |world: &mut World| -> Vec<_> {
        world
            .scheduler
            .run_once(now)
            .into_iter()
            .filter(|action| !matches!(action, Action::Search(_)))
            .collect()
    };
    world.scheduler.endpoint_changed(endpoint);
    assert!(acts(&mut world).is_empty(), "a lane that is not in memory reads it anyway");
    world.add(0, 3, 0);
    assert!(matches!(acts(&mut world)[..], [Action::Read(_), Action::Refill(_)]));
    world.scheduler.refilled(endpoint, &[row_of(0, 0), row_of(0, 1)], 100);
    // Two changes while the first read is under way: what it brings is old.
    world.scheduler.endpoint_changed(endpoint);
    world.scheduler.endpoint_changed(endpoint);
    world.read(endpoint);
    assert!(matches!(acts(&mut world)[..], [Action::Read(_)]));
    world.read(endpoint);
    assert!(matches!(acts(&mut world)[..], [Action::Attempt(_), Action::Attempt(_)]));
    // A change of a lane that is awake holds it until it has been read again.
    let later = BufferedDelivery { pending: row_of(0, 2), content: None };
    world.scheduler.endpoint_changed(endpoint);
    world.scheduler.enqueue(endpoint, world.apps[&endpoint], later, now);
    assert!(matches!(acts(&mut world)[..], [Action::Read(_)]));
    world.read(endpoint);
    assert!(matches!(acts(&mut world)[..], [Action::Attempt(_)]));
}

#[test]
fn lanes_that_only_wait_become_idle_when_too_many_are_awake_and_all_are_served() {
    let options = Options { in_flight: 32, lanes_awake: 4, ..Options::default() };
    // Two of three lanes belong to one application; most of them wait for their share at any time.
    let mut world = World::new(options, 100, 3, |lane| lane % 3 / 2);
    let mut flying: VecDeque<_> = world.started().into();
    let mut order = Vec::new();
    while let Some(start) = flying.pop_front() {
        assert!(world.scheduler.awake <= 32 + 4, "{} lanes are awake", world.scheduler.awake);
        order.push(start.0);
        world.end(start, false);
        flying.extend(world.started());
    }
    assert_eq!(order.len(), 300, "every delivery was started once");
    assert_eq!(world.scheduler.in_flight(), 0);
    assert!(world.scheduler.awake <= 4);
    // A lane that has to load does not lose its position to awake lanes.
    let first_round: BTreeSet<_> = order[..150].iter().collect();
    assert!(first_round.len() >= 90, "only {} of 100 lanes were served", first_round.len());
}

#[test]
fn a_lane_that_loads_keeps_its_slot_until_it_sends() {
    let mut world = with_lanes(4, 3, 1, |_| 0);
    let now = Timestamp::from_millis(0);
    let actions = world.scheduler.run_once(now);
    assert_eq!(actions.len(), 2, "one lane reads its endpoint and its rows; a quarter of four is one");
    assert!(world.scheduler.run_once(now).is_empty(), "its slot is not granted to another");
    let Action::Read(endpoint) = actions[0] else { panic!("it reads its endpoint") };
    world.scheduler.endpoint_missing(endpoint, Timestamp::from_millis(0));
    assert_eq!(world.started().len(), 1, "the slot of a lane that is gone is free again");
}

#[test]
fn a_new_throttle_rate_holds_from_the_next_read_on() {
    let (endpoint, now) = (lane_id(0), Timestamp::from_millis(0));
    let mut world = with_lanes(100, 1, 5, |_| 0);
    assert_eq!(world.started().len(), 5);
    for row in 0..5 {
        world.end((endpoint, Seq(row)), true);
    }
    world.scheduler.endpoint_changed(endpoint);
    let waiting = BufferedDelivery { pending: row_of(0, 9), content: None };
    world.scheduler.enqueue(endpoint, world.apps[&endpoint], waiting, now);
    assert!(matches!(world.scheduler.run_once(now)[..], [Action::Read(_)]));
    let target = Target { throttle_rate: Some(10), app: world.apps[&endpoint], ..old_target() };
    world.scheduler.endpoint_read(endpoint, target, Health::default(), now);
    assert!(world.scheduler.run_once(now).is_empty(), "its bucket is empty");
    assert_eq!(world.scheduler.next_alarm(now), Some(Timestamp::from_millis(100)));
}
