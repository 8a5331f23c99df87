//! How much of the cap lanes have.

use super::*;

fn of_app(started: &[(EndpointId, Seq)], world: &World, app: u8) -> usize {
    started.iter().filter(|(endpoint, _)| world.apps[endpoint] == AppId::from_bytes([app; 20])).count()
}

#[test]
fn a_quarter_of_the_cap_is_only_for_lanes_that_answer_whatever_the_others_do() {
    let mut world = with_lanes(64, 60, 20, |lane| lane).of(own_organization);
    let first = world.started();
    assert_eq!(first.len(), 48, "every application has one, until only the kept quarter is left");
    let (healthy, black_holes) = (first[0], &first[1..]);
    world.end(healthy, true);
    let second = world.started();
    let of_healthy = second.iter().filter(|(endpoint, _)| *endpoint == healthy.0).count();
    assert_eq!(of_healthy, 8, "the one that answers has its full width");
    for start in black_holes {
        world.end(*start, false);
    }
    let third = world.started();
    assert!(third.len() <= 48, "{} went to lanes that are not known to answer", third.len());
}

#[test]
fn an_endpoint_that_was_never_tried_gets_capacity_beside_any_number_of_silent_ones() {
    // Three applications with twenty silent endpoints each fill everything that can be shared.
    let mut world = with_lanes(128, 60, 8, |lane| lane / 20);
    for start in world.started() {
        world.end(start, false);
    }
    let silent = world.started().len();
    assert!(silent >= 24, "black holes have taken their share: {silent}");
    world.add(200, 1, 99);
    assert_eq!(world.started(), [(lane_id(200), Seq(200_000))]);
}

#[test]
fn the_minimum_of_many_applications_with_slow_endpoints_leaves_capacity_for_a_new_one() {
    let mut world = with_lanes(64, 200, 20, |lane| lane).of(own_organization);
    let mut silent = world.started();
    for _ in 0..18 {
        for start in silent {
            world.end(start, false);
        }
        silent = world.started();
    }
    assert_eq!(silent.len(), 32, "half of the cap");
    world.add(250, 1, 250);
    assert_eq!(world.started(), [(lane_id(250), Seq(250_000))]);
}

#[test]
fn one_application_with_many_new_endpoints_leaves_capacity_for_the_others() {
    let mut world = with_lanes(32, 41, 4, |lane| u8::from(lane == 40)).of(own_organization);
    let first = world.started();
    let of_other = first.iter().filter(|(endpoint, _)| *endpoint == lane_id(40)).count();
    assert_eq!(of_other, 4, "the other application's lane is not behind the forty");
    assert_eq!(first.len() - of_other, 8, "a quarter of the cap for one application's unproven lanes");
    for start in first.iter().filter(|(endpoint, _)| *endpoint != lane_id(40)) {
        world.end(*start, false);
    }
    assert_eq!(world.started().len(), 8, "as slots become free, its waiting lanes are served");
}

#[test]
fn two_applications_of_one_organization_leave_capacity_for_another_organization() {
    // Two applications with a hundred endpoints that nobody has tried, and then one of somebody else.
    let mut world = with_lanes(256, 200, 4, |lane| lane / 100).of(two_organizations);
    let holes = world.started();
    assert!((64..=96).contains(&holes.len()), "three quarters of what can be shared: {}", holes.len());
    assert!(of_app(&holes, &world, 0) <= 64, "a quarter of the cap for one application");
    for lane in 200..220 {
        world.add(lane, 1, 10);
    }
    assert_eq!(world.started().len(), 20, "none of them waits for a black hole to time out");
    // And a third one of the first organization has more than the few that everybody has.
    for lane in 220..250 {
        world.add(lane, 1, 2);
    }
    let third = world.started();
    assert!(of_app(&third, &world, 2) >= 4, "{}", third.len());
    // As the silent endpoints time out, it is served beside the two.
    let before = of_app(&third, &world, 2);
    for start in &holes {
        world.end(*start, false);
    }
    let then = world.started();
    let now = before + of_app(&then, &world, 2);
    assert!(now >= 12, "{before} before, {now} now, {} in all", then.len());
}

#[test]
fn the_minimum_of_many_applications_leaves_capacity_for_another_organization() {
    // One for each of a hundred applications, all of one organization.
    let mut world = with_lanes(64, 100, 4, |lane| lane)
        .of(|app| OrgId::from_bytes([u8::from(app >= AppId::from_bytes([100; 20])); 20]));
    let taken = world.started().len();
    assert!(taken <= 36, "three quarters of what lanes may have that are not known to answer: {taken}");
    for lane in 100..109 {
        world.add(lane, 1, lane);
    }
    assert_eq!(world.started().len(), 9);
}

#[test]
fn responsive_lanes_of_one_organization_leave_capacity_for_another() {
    let mut world = with_lanes(64, 20, 64, |lane| lane % 4).of(two_organizations);
    let mut flying: VecDeque<_> = world.started().into();
    // All of them answer, and are as wide as they can be.
    for _ in 0..600 {
        let Some(start) = flying.pop_front() else { break };
        world.end(start, true);
        flying.extend(world.started());
    }
    assert!((40..=48).contains(&world.scheduler.in_flight()), "{}", world.scheduler.in_flight());
    world.add(200, 4, 10);
    assert_eq!(world.started().len(), 4);
}

#[test]
fn every_lane_is_served_however_many_organizations_and_applications_there_are() {
    let caps = [1, 2, 3, 5, 8, 16, 64];
    for (in_flight, lanes_awake) in caps.into_iter().flat_map(|cap| [(cap, 0), (cap, 10), (cap, 1000)]) {
        let options = Options { in_flight, lanes_awake, ..Options::default() };
        let mut world = World::new(options, 200, 3, |lane| lane % 23)
            .of(|app| OrgId::from_bytes([app.as_bytes()[0] % 4; 20]));
        let mut flying = world.started();
        let mut count = 0;
        while !flying.is_empty() {
            count += 1;
            // They end in any order, and most stay silent.
            let start = flying.swap_remove(count * 7919 % flying.len());
            world.end(start, count % 7 == 0);
            flying.extend(world.started());
        }
        assert_eq!((count, world.scheduler.in_flight()), (600, 0), "with {in_flight} in flight");
        assert!(world.scheduler.shares.is_empty(), "nothing is remembered of who has nothing");
    }
}
