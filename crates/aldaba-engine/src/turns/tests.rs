use super::*;
use crate::{Policies, Profile};
use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{AppId, MessageId, Origin};

/// An endpoint as a read that began before its deletion saw it.
fn old_target() -> Target {
    let policies = Policies::new(&Overrides::default()).expect("the built-in policies are valid");
    Target {
        app: AppId::from_bytes([2; 20]),
        policy: policies.of("standard").clone(),
        profile: Profile::Standard,
        throttle_rate: None,
        deleted: false,
        origin: Origin::new("https", "example.com", 443),
        address: Err("nothing is sent in this test"),
    }
}

#[test]
fn an_older_read_does_not_bring_a_deleted_endpoint_back() {
    let (endpoint, now) = (EndpointId::from_bytes([1; 20]), Timestamp::from_millis(0));
    let mut turns = Turns::new(Options::default(), Gates::default());
    assert_eq!(turns.open(endpoint, now), Opening::ReadEndpoint);
    assert_eq!(turns.removed(endpoint, now), Opening::Known);
    turns.opened(endpoint, old_target(), Health::default(), now);
    assert!(matches!(turns.run_once(now)[..], [Action::Refill(_)]));
    let message = MessageId::from_bytes([3; 20]);
    let waiting = Waiting { seq: Seq(1), message, due_at: now, attempts: 0, clock_start: now };
    turns.refilled(endpoint, &[waiting], Options::default().lane_buffer);
    assert!(matches!(turns.run_once(now)[..], [Action::End(_, Reason::Cancelled)]));
}

/// Lanes that are open and have `rows` due deliveries each, of the applications that `app` says.
fn with_lanes(in_flight: usize, lanes: u8, rows: i64, app: fn(u8) -> u8) -> Turns {
    let now = Timestamp::from_millis(0);
    let options = Options { in_flight, ..Options::default() };
    let mut turns = Turns::new(options, Gates::default());
    for lane in 0..lanes {
        let endpoint = lane_id(lane);
        turns.open(endpoint, now);
        let target = Target { app: AppId::from_bytes([app(lane); 20]), ..old_target() };
        turns.opened(endpoint, target, Health::default(), now);
    }
    // Each asks for its rows once.
    assert_eq!(turns.run_once(now).len(), usize::from(lanes));
    for lane in 0..lanes {
        let rows: Vec<_> = (0..rows).map(|row| row_of(lane, row)).collect();
        turns.refilled(lane_id(lane), &rows, Options::default().lane_buffer);
    }
    turns
}

fn lane_id(lane: u8) -> EndpointId {
    EndpointId::from_bytes([lane; 20])
}

fn row_of(lane: u8, row: i64) -> Waiting {
    let now = Timestamp::from_millis(0);
    let message = MessageId::from_bytes([3; 20]);
    Waiting { seq: Seq(i64::from(lane) * 1000 + row), message, due_at: now, attempts: 0, clock_start: now }
}

/// Everything that is started now, until nothing more can be.
fn started(turns: &mut Turns) -> Vec<(EndpointId, Seq)> {
    let mut started = Vec::new();
    loop {
        let actions = turns.run_once(Timestamp::from_millis(0));
        if actions.is_empty() {
            return started;
        }
        for action in actions {
            if let Action::Attempt(start) = action {
                started.push((start.endpoint, start.waiting.seq));
            }
        }
    }
}

fn end(turns: &mut Turns, (endpoint, seq): (EndpointId, Seq), answered: bool) {
    turns.left_wire(endpoint, seq, Some((answered, Duration::from_millis(1))));
    turns.landed(endpoint, seq, None, Timestamp::from_millis(0));
}

#[test]
fn ready_lanes_take_turns_one_delivery_at_a_time() {
    let mut turns = with_lanes(1000, 5, 6, |_| 0);
    let order = started(&mut turns);
    for (number, round) in order.chunks(5).enumerate() {
        let mut lanes: Vec<_> = round.iter().map(|(endpoint, _)| *endpoint).collect();
        lanes.sort();
        lanes.dedup();
        assert_eq!(lanes.len(), 5, "round {number} left a lane out");
    }
    assert_eq!(order.len(), 30);
}

#[test]
fn a_quarter_of_the_cap_is_only_for_lanes_that_answer_whatever_the_others_do() {
    let mut turns = with_lanes(32, 40, 20, |lane| lane);
    let first = started(&mut turns);
    assert_eq!(first.len(), 24, "every application has one, until only the kept quarter is left");
    let (healthy, black_holes) = (first[0], &first[1..]);
    end(&mut turns, healthy, true);
    let second = started(&mut turns);
    let of_healthy = second.iter().filter(|(endpoint, _)| *endpoint == healthy.0).count();
    assert_eq!(of_healthy, 8, "the one that answers has its full width");
    for start in black_holes {
        end(&mut turns, *start, false);
    }
    let third = started(&mut turns);
    assert!(third.len() <= 24, "{} went to lanes that are not known to answer", third.len());
}

#[test]
fn an_endpoint_that_was_never_tried_finds_room_beside_any_number_of_black_holes() {
    // Three applications with twenty silent endpoints each fill everything that can be shared.
    let mut turns = with_lanes(128, 60, 8, |lane| lane / 20);
    for start in started(&mut turns) {
        end(&mut turns, start, false);
    }
    let silent = started(&mut turns).len();
    assert!(silent >= 32, "black holes have taken their share: {silent}");
    let (newcomer, now) = (lane_id(200), Timestamp::from_millis(0));
    turns.open(newcomer, now);
    let target = Target { app: AppId::from_bytes([99; 20]), ..old_target() };
    turns.opened(newcomer, target, Health::default(), now);
    turns.run_once(now);
    turns.refilled(newcomer, &[row_of(200, 0)], Options::default().lane_buffer);
    assert_eq!(started(&mut turns).iter().filter(|(endpoint, _)| *endpoint == newcomer).count(), 1);
}

#[test]
fn one_application_with_many_new_endpoints_leaves_room_for_the_others() {
    let mut turns = with_lanes(32, 41, 4, |lane| u8::from(lane == 40));
    let first = started(&mut turns);
    let of_other = first.iter().filter(|(endpoint, _)| *endpoint == lane_id(40)).count();
    assert_eq!(of_other, 4, "the other application's lane is not behind the forty");
    assert_eq!(first.len() - of_other, 8, "a quarter of the cap for one application's unproven lanes");
    for start in first.iter().filter(|(endpoint, _)| *endpoint != lane_id(40)) {
        end(&mut turns, *start, false);
    }
    assert_eq!(started(&mut turns).len(), 8, "as places come free, its parked lanes have their turn");
}

#[test]
fn a_place_that_one_parked_lane_does_not_use_goes_to_the_next() {
    let mut turns = with_lanes(4, 4, 1, |_| 0);
    let first = started(&mut turns);
    assert_eq!(first.len(), 1, "a quarter of four");
    // The lanes that wait are deleted but for the last: ending needs no place.
    let waiting: Vec<_> = (0..4).map(lane_id).filter(|lane| *lane != first[0].0).collect();
    for lane in &waiting[..2] {
        turns.vanished(*lane);
    }
    end(&mut turns, first[0], false);
    assert_eq!(started(&mut turns).iter().map(|start| start.0).collect::<Vec<_>>(), waiting[2..]);
}

#[test]
fn many_lanes_at_once_read_the_store_a_few_at_a_time_and_all_come_to_it() {
    let (now, lanes) = (Timestamp::from_millis(0), 200u8);
    let mut turns = Turns::new(Options::default(), Gates::default());
    for lane in 0..lanes {
        turns.open(lane_id(lane), now);
        turns.opened(lane_id(lane), old_target(), Health::default(), now);
    }
    let mut read = 0;
    loop {
        let under_way: Vec<_> = turns.run_once(now).into_iter().collect();
        assert!(under_way.len() <= REFILLS);
        if under_way.is_empty() {
            break;
        }
        for action in under_way {
            let Action::Refill(query) = action else { panic!("nothing waits in these lanes") };
            turns.refilled(query.endpoint, &[], query.limit);
            read += 1;
        }
    }
    assert_eq!(read, usize::from(lanes));
}

#[test]
fn a_changed_endpoint_is_read_again_before_the_next_attempt() {
    let (endpoint, now) = (EndpointId::from_bytes([1; 20]), Timestamp::from_millis(0));
    let mut turns = Turns::new(Options::default(), Gates::default());
    let message = MessageId::from_bytes([3; 20]);
    let waiting = Waiting { seq: Seq(1), message, due_at: now, attempts: 0, clock_start: now };
    assert_eq!(turns.altered(endpoint), Opening::Known, "a lane that is not in memory reads it anyway");
    assert_eq!(turns.open(endpoint, now), Opening::ReadEndpoint);
    turns.wake(endpoint);
    assert!(matches!(turns.run_once(now)[..], [Action::Refill(_)]));
    turns.refilled(endpoint, &[waiting], Options::default().lane_buffer);
    // Two changes while the first read is under way: what it brings is old.
    assert_eq!([turns.altered(endpoint), turns.altered(endpoint)], [Opening::Known; 2]);
    assert_eq!(turns.opened(endpoint, old_target(), Health::default(), now), Opening::ReadEndpoint);
    let attempts =
        |turns: &mut Turns| turns.run_once(now).iter().filter(|a| matches!(a, Action::Attempt(_))).count();
    assert_eq!(attempts(&mut turns), 0);
    assert_eq!(turns.opened(endpoint, old_target(), Health::default(), now), Opening::Known);
    // A change of a lane that is open holds it until it has been read again.
    assert_eq!(turns.altered(endpoint), Opening::ReadEndpoint);
    assert_eq!(attempts(&mut turns), 0);
    assert_eq!(turns.opened(endpoint, old_target(), Health::default(), now), Opening::Known);
    assert_eq!(attempts(&mut turns), 1);
}
