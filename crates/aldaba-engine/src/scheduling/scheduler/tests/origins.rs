//! How much of one origin lanes have, and who waits for it.

use super::fair_queue::longest_wait;
use super::*;

fn one_origin(_: EndpointId) -> Origin {
    Origin::new("https", "example.com", 443)
}

/// Endpoints from 200 on are elsewhere.
fn two_origins(endpoint: EndpointId) -> Origin {
    let elsewhere = endpoint >= lane_id(200);
    Origin::new("https", if elsewhere { "other.example" } else { "example.com" }, 443)
}

/// Lanes at one origin, of which an organization may have so many requests in flight there.
fn at_one_origin(requests_per_origin: usize, lanes: u8, rows: i64, app: fn(u8) -> u8) -> World {
    let options = Options { in_flight: 1000, requests_per_origin, ..Options::default() };
    let mut world = World::new(options, lanes, rows, app);
    world.origin = one_origin;
    world
}

/// Lets everything end, in the order of its beginning; returns how many did and how many were on their way at most.
fn run_to_the_end(world: &mut World, answered: bool) -> (usize, usize) {
    let mut flying: VecDeque<_> = world.started().into();
    let (mut ended, mut most) = (0, 0);
    while let Some(start) = flying.pop_front() {
        most = most.max(flying.len() + 1);
        ended += 1;
        world.end(start, answered);
        flying.extend(world.started());
    }
    (ended, most)
}

#[test]
fn requests_of_many_endpoints_at_one_origin_stay_within_its_cap() {
    let mut world = at_one_origin(16, 50, 20, |lane| lane % 5);
    let (ended, most) = run_to_the_end(&mut world, true);
    assert_eq!(ended, 1000);
    assert!((12..=16).contains(&most), "{most} at once");
    assert!(world.scheduler.origins.is_empty() && world.scheduler.shares.is_empty());
    // Elsewhere there is no such bound.
    let mut world = at_one_origin(16, 50, 20, |lane| lane % 5);
    world.origin = own_origin;
    assert!(run_to_the_end(&mut world, true).1 > 100);
}

#[test]
fn an_application_alone_has_half_of_an_origins_cap() {
    let mut world = at_one_origin(128, 50, 20, |_| 0);
    let (ended, most) = run_to_the_end(&mut world, true);
    assert_eq!((ended, most), (1000, 64));
}

#[test]
fn an_organization_does_not_wait_for_another_at_the_same_origin() {
    let mut world = at_one_origin(8, 20, 10, |_| 0).of(two_organizations);
    let first = world.started().len();
    assert!(first <= 8, "{first}");
    world.add(100, 1, 10);
    assert_eq!(world.started(), [(lane_id(100), Seq(100_000))]);
}

#[test]
fn a_lane_that_waits_for_an_origin_holds_no_slot_of_the_overall_limit() {
    let options = Options { in_flight: 16, requests_per_origin: 2, ..Options::default() };
    let mut world = World::new(options, 100, 10, |lane| lane % 10);
    world.origin = two_origins;
    let held = world.started();
    assert!(held.len() <= 2, "{}", held.len());
    let taken = world.scheduler.shares.in_flight();
    assert_eq!(taken, held.len(), "only requests on the wire have a slot");
    // The rest of the cap is for others, of the same organization too.
    world.add(200, 1, 20);
    world.add(201, 1, 21);
    assert_eq!(world.started().len(), 2);
}

#[test]
fn a_slot_at_an_origin_is_free_with_the_answer_and_goes_to_the_next_lane() {
    let mut world = at_one_origin(1, 3, 2, |lane| lane);
    let first = world.started();
    assert_eq!(first.len(), 1);
    // Its record is not on disk yet: it still holds a slot of the overall limit.
    let (endpoint, seq) = first[0];
    world.scheduler.left_wire(endpoint, seq, Some((true, Duration::from_millis(1))));
    let second = world.started();
    assert_eq!(second.len(), 1);
    assert_ne!(second[0].0, endpoint, "others have waited for longer");
    assert_eq!(world.scheduler.in_flight(), 2);
    let third = {
        world.end(second[0], true);
        world.started()
    };
    assert_eq!(third.len(), 1);
    assert!(![endpoint, second[0].0].contains(&third[0].0));
}

#[test]
fn lanes_and_applications_are_served_round_robin_at_an_origin() {
    for at_once in [1, 7] {
        for answered in [true, false] {
            let world = at_one_origin(16, 200, 12, |lane| lane % 20);
            let longest = longest_wait(world, answered, at_once);
            assert!(longest <= 2.5, "{longest} rounds, {at_once} at once, answered: {answered}");
        }
    }
    // An application with one endpoint does not stand behind another's ninety.
    let mut world = at_one_origin(8, 90, 10, |_| 0);
    let mut flying: VecDeque<_> = world.started().into();
    world.add(100, 1, 1);
    flying.extend(world.started());
    let mut before = 0;
    while let Some(start) = flying.pop_front() {
        if start.0 == lane_id(100) {
            break;
        }
        before += 1;
        world.end(start, true);
        flying.extend(world.started());
    }
    assert!(before <= 10, "{before} before it");
}

/// Nobody answers, until all that is started is of endpoints that are known to be silent; returns that.
fn until_all_are_slow(world: &mut World) -> Vec<(EndpointId, Seq)> {
    let mut silent = world.started();
    for _ in 0..12 {
        for start in silent {
            world.end(start, false);
        }
        silent = world.started();
    }
    silent
}

#[test]
fn silent_endpoints_leave_capacity_at_their_origin_for_others() {
    // Two hundred applications with a silent endpoint each.
    let mut world = at_one_origin(128, 200, 20, |lane| lane);
    assert_eq!(world.started().len(), 96, "a quarter is kept for those that answer");
    let mut world = at_one_origin(128, 200, 20, |lane| lane);
    let silent = until_all_are_slow(&mut world).len();
    assert_eq!(silent, 64, "half of the cap, once they are known");
    // One that was never tried does not wait for them, and once it has answered it has its full width.
    world.add(250, 400, 250);
    let mut flying: VecDeque<_> = world.started().into();
    assert_eq!(flying.len(), 2, "a few, until it has answered");
    let (mut sent, mut most) = (0, 0);
    while let Some(start) = flying.pop_front() {
        (sent, most) = (sent + 1, most.max(flying.len() + 1));
        world.end(start, true);
        flying.extend(world.started());
    }
    assert_eq!(sent, 400);
    assert!(most >= 32, "{most}");
}

#[test]
fn the_silent_endpoints_of_few_applications_have_a_quarter_of_their_origin() {
    let mut world = at_one_origin(128, 60, 20, |lane| lane / 20);
    let silent = until_all_are_slow(&mut world).len();
    assert!((24..=32 + 3 * 2).contains(&silent), "a quarter, and a few of each: {silent}");
    world.add(200, 1, 99);
    assert_eq!(world.started(), [(lane_id(200), Seq(200_000))]);
}

#[test]
fn every_lane_is_served_at_its_origin_and_nothing_is_kept_afterwards() {
    let caps = [(1, 1), (1, 16), (3, 2), (5, 64), (16, 16), (64, 8)];
    for ((requests_per_origin, in_flight), lanes_awake) in
        caps.into_iter().flat_map(|caps| [(caps, 0), (caps, 10), (caps, 1000)])
    {
        let options = Options { in_flight, requests_per_origin, lanes_awake, ..Options::default() };
        let mut world = World::new(options, 210, 3, |lane| lane % 23)
            .of(|app| OrgId::from_bytes([app.as_bytes()[0] % 4; 20]));
        world.origin = two_origins;
        let (mut flying, mut count) = (world.started(), 0);
        while !flying.is_empty() {
            count += 1;
            // They end in any order, and most stay silent.
            let start = flying.swap_remove(count * 7919 % flying.len());
            world.end(start, count % 7 == 0);
            flying.extend(world.started());
        }
        let caps = format!("{requests_per_origin} an origin, {in_flight} in all, {lanes_awake} awake");
        assert_eq!((count, world.scheduler.in_flight()), (630, 0), "{caps}");
        assert!(world.scheduler.origins.is_empty() && world.scheduler.shares.is_empty(), "{caps}");
    }
}

#[test]
fn an_endpoint_that_has_moved_does_not_wait_at_its_former_origin() {
    let mut world = at_one_origin(2, 2, 4, |lane| lane);
    let first = world.started();
    assert_eq!(first.len(), 2);
    let waiting = row_of(0, 9);
    world.scheduler.enqueue(
        lane_id(0),
        world.apps[&lane_id(0)],
        BufferedDelivery { pending: waiting, content: None },
        world.now,
    );
    assert!(world.started().is_empty());
    world.origin =
        |endpoint| if endpoint == lane_id(0) { own_origin(endpoint) } else { one_origin(endpoint) };
    world.scheduler.endpoint_changed(lane_id(0));
    let moved = world.started();
    assert_eq!(moved.first().map(|start| start.0), Some(lane_id(0)));
    let mut flying: VecDeque<_> = first.into_iter().chain(moved).collect();
    while let Some(start) = flying.pop_front() {
        world.end(start, true);
        flying.extend(world.started());
    }
    assert!(world.scheduler.origins.is_empty());
}

#[test]
fn a_slot_that_its_lane_does_not_use_goes_to_the_next_in_the_queue() {
    let mut world = at_one_origin(1, 4, 1, |lane| lane);
    let first = world.started();
    let waiting: Vec<_> = (0..4).map(lane_id).filter(|lane| *lane != first[0].0).collect();
    // The next is asked for quiet, the one after it is no more.
    world.scheduler.health(waiting[0]).expect("it is awake").0.quiet_until =
        Some(Timestamp::from_millis(3_000_000));
    world.scheduler.endpoint_missing(waiting[1], world.now);
    world.end(first[0], true);
    assert_eq!(world.started().iter().map(|start| start.0).collect::<Vec<_>>(), waiting[2..]);
}

#[test]
fn an_application_with_a_rate_is_served_at_a_full_origin() {
    // Ten requests a second, and others that always have more than the origin takes.
    let mut world = at_one_origin(2, 0, 0, |_| 0);
    world.app_rate = Some(10);
    for lane in 0..10 {
        world.add(lane, 5, 0);
    }
    let mut flying: VecDeque<_> = world.started().into();
    world.app_rate = None;
    for lane in 20..30 {
        world.add(lane, 900, 1);
    }
    let mut of_limited = 0;
    for millis in 0..2000 {
        world.now = Timestamp::from_millis(millis);
        flying.extend(world.started());
        let Some(start) = flying.pop_front() else { break };
        of_limited += usize::from(start.0 < lane_id(20));
        world.end(start, true);
    }
    assert!((15..=25).contains(&of_limited), "{of_limited} in two seconds");
}
