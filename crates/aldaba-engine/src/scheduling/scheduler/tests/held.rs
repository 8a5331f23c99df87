//! Lanes behind gates.

use super::*;
use crate::scheduling::gates::GateBacklog;
use aldaba_delivery::{Gate, GateKey, Origin};

const HOLD: Duration = Duration::from_secs(60);
const START: Timestamp = Timestamp::from_millis(0);

/// Lanes of two applications. Every tenth sends to a host that is held, the others to one that is not.
fn world(options: Options) -> (World, GateKey) {
    let mut world = World::new(Options { in_flight: 1000, ..options }, 100, 2, |lane| lane % 2);
    let held = Target { org: one_organization(AppId::from_bytes([0; 20])), ..old_target() };
    let key = GateKey { org: held.org, origin: held.origin, scope: Gate::scopes(held.app)[0] };
    world.scheduler.gates.close(&key, START, HOLD);
    (world, key)
}

/// Runs the lanes until nothing is left to do; returns how many attempts were started.
fn run(world: &mut World, now: Timestamp) -> usize {
    let mut started = 0;
    loop {
        let actions = world.scheduler.run_once(now);
        if actions.is_empty() {
            return started;
        }
        for action in actions {
            match action {
                Action::Read(endpoint) => {
                    let app = world.apps[&endpoint];
                    let held = endpoint.as_bytes()[0] % 10 == 0;
                    let origin = if held { old_target().origin } else { Origin::new("https", "other", 443) };
                    let target = Target { app, org: (world.org)(app), origin, ..old_target() };
                    world.scheduler.endpoint_read(endpoint, target, Health::default(), now);
                }
                Action::Refill(query) => {
                    let rows = world.due(&query);
                    world.scheduler.refilled(query.endpoint, &rows, query.limit);
                }
                Action::Attempt(request) => {
                    started += 1;
                    world.end((request.endpoint, request.pending.seq), true);
                }
                Action::End(..) => panic!("nothing ends in these tests"),
                Action::Search(search) => world.scheduler.search_ended(search.endpoint, None, now),
            }
        }
    }
}

fn behind(world: &World, key: &GateKey, app: Option<u8>) -> GateBacklog {
    world.scheduler.gates.held().of(key.org, app.map(|app| AppId::from_bytes([app; 20])))[0].backlog
}

#[test]
fn what_waits_behind_a_gate_is_known_without_a_walk_over_the_lanes() {
    let (mut world, key) = world(Options::default());
    assert_eq!(run(&mut world, START), 180, "the lanes at the other host notice nothing");
    assert_eq!(behind(&world, &key, None), GateBacklog { lanes: 10, deliveries: 20 });
    assert_eq!(behind(&world, &key, Some(0)), GateBacklog { lanes: 10, deliveries: 20 });
    assert_eq!(behind(&world, &key, Some(1)), GateBacklog::default());
    // What comes meanwhile is counted, and what leaves unsent is not.
    let (endpoint, app) = (lane_id(10), AppId::from_bytes([0; 20]));
    world.scheduler.enqueue(endpoint, app, BufferedDelivery { pending: row_of(10, 2), content: None }, START);
    run(&mut world, START);
    assert_eq!(behind(&world, &key, None), GateBacklog { lanes: 10, deliveries: 21 });
    for row in 0..3 {
        let withdrawn = world.scheduler.reserve(endpoint, app, row_of(10, row), START);
        assert!(withdrawn.is_some());
        world.scheduler.reservation_ended(endpoint, row_of(10, row).seq, true, START);
    }
    run(&mut world, START);
    assert_eq!(behind(&world, &key, None), GateBacklog { lanes: 9, deliveries: 18 });
}

#[test]
fn a_release_wakes_the_lanes_behind_the_gate_and_no_others() {
    for lanes_awake in [1000, 0] {
        let (mut world, key) = world(Options { lanes_awake, ..Options::default() });
        run(&mut world, START);
        assert_eq!(behind(&world, &key, None).lanes, 10, "also of lanes at rest");
        assert!(!world.scheduler.has_ready());
        world.scheduler.gates_opened(&[key], START);
        let ready: BTreeSet<_> =
            world.scheduler.ready.iter().flat_map(|queue| queue.values().copied()).collect();
        assert_eq!(ready, (0..10).map(|lane| lane_id(lane * 10)).collect());
        assert!(run(&mut world, START) >= 1, "on a ramp");
        assert_eq!(world.scheduler.gates.held().of(one_organization(AppId::from_bytes([0; 20])), None), []);
    }
}

#[test]
fn lanes_that_are_gone_wait_behind_no_gate() {
    let (mut world, key) = world(Options::default());
    run(&mut world, START);
    world.scheduler.endpoint_missing(lane_id(0), START);
    assert_eq!(behind(&world, &key, None), GateBacklog { lanes: 9, deliveries: 18 });
}
