use super::*;
use aldaba_delivery::{AppId, MessageId, OnExhausted, Ordering};

/// An endpoint as a read that began before its deletion saw it.
fn old_target() -> Target {
    Target::sample("standard")
}

#[test]
fn an_older_read_does_not_bring_a_deleted_endpoint_back() {
    let (endpoint, now) = (EndpointId::from_bytes([1; 20]), Timestamp::from_millis(0));
    let mut turns = Turns::new(Options::default(), Gates::default());
    turns.open(endpoint, old_target().app, now);
    assert!(matches!(turns.run_once(now)[..], [Action::Read(_), Action::Refill(_)]));
    turns.removed(endpoint, old_target().app, now);
    turns.opened(endpoint, old_target(), Health::default(), now);
    let message = MessageId::from_bytes([3; 20]);
    let waiting = Waiting { seq: Seq(1), message, due_at: now, attempts: 0, clock_start: now };
    turns.refilled(endpoint, &[waiting], Options::default().lane_buffer);
    assert!(matches!(turns.run_once(now)[..], [Action::End(_, Reason::Cancelled)]));
}

/// Lanes, and the store that they read from.
struct World {
    turns: Turns,
    /// What waits, by lane.
    rows: BTreeMap<EndpointId, Vec<Waiting>>,
    apps: BTreeMap<EndpointId, AppId>,
    /// Whose the applications are.
    org: fn(AppId) -> OrgId,
    /// Of all endpoints.
    ordering: Ordering,
}

fn one_organization(_: AppId) -> OrgId {
    OrgId::from_bytes([7; 20])
}

/// Every application has one of its own.
fn own_organization(app: AppId) -> OrgId {
    OrgId::from_bytes(*app.as_bytes())
}

impl World {
    /// Lanes with `rows` due deliveries each, of the applications that `app` says.
    fn new(options: Options, lanes: u8, rows: i64, app: fn(u8) -> u8) -> Self {
        let turns = Turns::new(options, Gates::default());
        let mut world = Self {
            turns,
            rows: BTreeMap::new(),
            apps: BTreeMap::new(),
            org: one_organization,
            ordering: Ordering::None,
        };
        for lane in 0..lanes {
            world.add(lane, rows, app(lane));
        }
        world
    }

    fn add(&mut self, lane: u8, rows: i64, app: u8) {
        let (endpoint, app) = (lane_id(lane), AppId::from_bytes([app; 20]));
        self.rows.insert(endpoint, (0..rows).map(|row| row_of(lane, row)).collect());
        self.apps.insert(endpoint, app);
        self.turns.open(endpoint, app, Timestamp::from_millis(0));
    }

    fn of(mut self, org: fn(AppId) -> OrgId) -> Self {
        self.org = org;
        self
    }

    /// Everything that is started now, until nothing more can be. Reads are answered at once.
    fn started(&mut self) -> Vec<(EndpointId, Seq)> {
        let (mut started, now) = (Vec::new(), Timestamp::from_millis(0));
        loop {
            let actions = self.turns.run_once(now);
            if actions.is_empty() {
                return started;
            }
            for action in actions {
                match action {
                    Action::Read(endpoint) => self.read(endpoint),
                    Action::Refill(query) => {
                        let rows = self.due(&query);
                        self.turns.refilled(query.endpoint, &rows, query.limit);
                    }
                    Action::Attempt(start) => started.push((start.endpoint, start.waiting.seq)),
                    Action::End(..) => panic!("nothing ends in these tests"),
                }
            }
        }
    }

    fn read(&mut self, endpoint: EndpointId) {
        let app = self.apps[&endpoint];
        let target = Target { app, org: (self.org)(app), ordering: self.ordering, ..old_target() };
        self.turns.opened(endpoint, target, Health::default(), Timestamp::from_millis(0));
    }

    fn due(&self, query: &DueQuery) -> Vec<Waiting> {
        let mut rows = self.rows[&query.endpoint].clone();
        let place = |turn: aldaba_store::Turn| {
            if query.ordered { (Timestamp::MIN, turn.seq) } else { (turn.due_at, turn.seq) }
        };
        rows.sort_by_key(|row| place(row.turn()));
        rows.retain(|row| query.after.is_none_or(|after| place(row.turn()) > place(after)));
        rows.truncate(query.limit);
        rows
    }

    /// An attempt ends; with `false` nobody answered it. Either way its delivery is settled.
    fn end(&mut self, (endpoint, seq): (EndpointId, Seq), answered: bool) {
        self.rows.entry(endpoint).or_default().retain(|row| row.seq != seq);
        self.turns.left_wire(endpoint, seq, Some((answered, Duration::from_millis(1))));
        self.turns.landed(endpoint, seq, None, Timestamp::from_millis(0));
    }
}

/// Lanes under a cap on what is in flight.
fn with_lanes(in_flight: usize, lanes: u8, rows: i64, app: fn(u8) -> u8) -> World {
    World::new(Options { in_flight, ..Options::default() }, lanes, rows, app)
}

fn lane_id(lane: u8) -> EndpointId {
    EndpointId::from_bytes([lane; 20])
}

fn row_of(lane: u8, row: i64) -> Waiting {
    let now = Timestamp::from_millis(0);
    let message = MessageId::from_bytes([3; 20]);
    Waiting { seq: Seq(i64::from(lane) * 1000 + row), message, due_at: now, attempts: 0, clock_start: now }
}

#[test]
fn ready_lanes_take_turns_one_delivery_at_a_time() {
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
fn an_endpoint_that_was_never_tried_finds_room_beside_any_number_of_black_holes() {
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
fn one_application_with_many_new_endpoints_leaves_room_for_the_others() {
    let mut world = with_lanes(32, 41, 4, |lane| u8::from(lane == 40)).of(own_organization);
    let first = world.started();
    let of_other = first.iter().filter(|(endpoint, _)| *endpoint == lane_id(40)).count();
    assert_eq!(of_other, 4, "the other application's lane is not behind the forty");
    assert_eq!(first.len() - of_other, 8, "a quarter of the cap for one application's unproven lanes");
    for start in first.iter().filter(|(endpoint, _)| *endpoint != lane_id(40)) {
        world.end(*start, false);
    }
    assert_eq!(world.started().len(), 8, "as places come free, its parked lanes have their turn");
}

/// Whose of the applications of a test: those below ten are one organization's.
fn two_organizations(app: AppId) -> OrgId {
    OrgId::from_bytes([u8::from(app >= AppId::from_bytes([10; 20])); 20])
}

fn of_app(started: &[(EndpointId, Seq)], world: &World, app: u8) -> usize {
    started.iter().filter(|(endpoint, _)| world.apps[endpoint] == AppId::from_bytes([app; 20])).count()
}

#[test]
fn two_applications_of_one_organization_leave_room_for_another_organization() {
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
    // As the holes time out, it has its turns beside the two.
    let before = of_app(&third, &world, 2);
    for start in &holes {
        world.end(*start, false);
    }
    let then = world.started();
    let now = before + of_app(&then, &world, 2);
    assert!(now >= 12, "{before} before, {now} now, {} in all", then.len());
}

#[test]
fn the_few_of_very_many_applications_leave_room_for_another_organization() {
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
fn quick_lanes_of_one_organization_leave_room_for_another() {
    let mut world = with_lanes(64, 20, 64, |lane| lane % 4).of(two_organizations);
    let mut flying: VecDeque<_> = world.started().into();
    // All of them answer, and are as wide as they can be.
    for _ in 0..600 {
        let Some(start) = flying.pop_front() else { break };
        world.end(start, true);
        flying.extend(world.started());
    }
    assert!((40..=48).contains(&world.turns.in_flight()), "{}", world.turns.in_flight());
    world.add(200, 4, 10);
    assert_eq!(world.started().len(), 4);
}

#[test]
fn every_lane_has_its_turn_however_organizations_and_applications_crowd() {
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
        assert_eq!((count, world.turns.in_flight()), (600, 0), "with {in_flight} in flight");
        assert!(world.turns.shares.is_empty(), "nothing is remembered of who has nothing");
    }
}

/// How many starts of others a lane of a crowd has waited for at most, in rounds of all lanes. Attempts end in the order of
/// their beginning, `at_once` at a time.
fn longest_wait(mut world: World, answered: bool, at_once: usize) -> f64 {
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
    assert_eq!(world.turns.in_flight(), 0);
    longest as f64 / lanes as f64
}

#[test]
fn lanes_that_wait_for_the_share_of_their_organization_take_turns() {
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
fn a_place_that_one_parked_lane_does_not_use_goes_to_the_next() {
    let mut world = with_lanes(4, 4, 1, |_| 0);
    let first = world.started();
    assert_eq!(first.len(), 1, "a quarter of four");
    // The lanes that wait are deleted but for the last: ending needs no place.
    let waiting: Vec<_> = (0..4).map(lane_id).filter(|lane| *lane != first[0].0).collect();
    for lane in &waiting[..2] {
        world.turns.vanished(*lane, Timestamp::from_millis(0));
    }
    world.end(first[0], false);
    assert_eq!(world.started().iter().map(|start| start.0).collect::<Vec<_>>(), waiting[2..]);
}

#[test]
fn many_lanes_at_once_read_the_store_a_few_at_a_time_and_all_come_to_it() {
    let mut world = with_lanes(1000, 200, 0, |lane| lane);
    let mut refilled = BTreeSet::new();
    loop {
        let actions = world.turns.run_once(Timestamp::from_millis(0));
        let refills = actions.iter().filter(|action| matches!(action, Action::Refill(_))).count();
        assert!(refills <= serve::REFILLS);
        if actions.is_empty() {
            break;
        }
        for action in actions {
            match action {
                Action::Read(endpoint) => world.read(endpoint),
                Action::Refill(query) => {
                    refilled.insert(query.endpoint);
                    world.turns.refilled(query.endpoint, &[], query.limit);
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
    world.turns.altered(endpoint);
    assert!(world.turns.run_once(now).is_empty(), "a lane that is not in memory reads it anyway");
    world.add(0, 3, 0);
    assert!(matches!(world.turns.run_once(now)[..], [Action::Read(_), Action::Refill(_)]));
    world.turns.refilled(endpoint, &[row_of(0, 0), row_of(0, 1)], 100);
    // Two changes while the first read is under way: what it brings is old.
    world.turns.altered(endpoint);
    world.turns.altered(endpoint);
    world.read(endpoint);
    assert!(matches!(world.turns.run_once(now)[..], [Action::Read(_)]));
    world.read(endpoint);
    assert!(matches!(world.turns.run_once(now)[..], [Action::Attempt(_), Action::Attempt(_)]));
    // A change of a lane that is awake holds it until it has been read again.
    let later = Entry { waiting: row_of(0, 2), content: None };
    world.turns.altered(endpoint);
    world.turns.offer(endpoint, world.apps[&endpoint], later, now);
    assert!(matches!(world.turns.run_once(now)[..], [Action::Read(_)]));
    world.read(endpoint);
    assert!(matches!(world.turns.run_once(now)[..], [Action::Attempt(_)]));
}

#[test]
fn lanes_that_only_wait_rest_when_too_many_are_awake_and_all_are_served() {
    let options = Options { in_flight: 32, lanes_awake: 4, ..Options::default() };
    // Two of three lanes belong to one application, most of which are parked at any time.
    let mut world = World::new(options, 100, 3, |lane| lane % 3 / 2);
    let mut flying: VecDeque<_> = world.started().into();
    let mut order = Vec::new();
    while let Some(start) = flying.pop_front() {
        assert!(world.turns.awake <= 32 + 4, "{} lanes are awake", world.turns.awake);
        order.push(start.0);
        world.end(start, false);
        flying.extend(world.started());
    }
    assert_eq!(order.len(), 300, "every delivery was started once");
    assert_eq!(world.turns.in_flight(), 0);
    assert!(world.turns.awake <= 4);
    // A lane that has to wake up does not lose its turn to those that are awake.
    let first_round: BTreeSet<_> = order[..150].iter().collect();
    assert!(first_round.len() >= 90, "only {} of 100 lanes had their turn", first_round.len());
}

#[test]
fn a_lane_that_wakes_up_keeps_its_place_until_it_sends() {
    let mut world = with_lanes(4, 3, 1, |_| 0);
    let now = Timestamp::from_millis(0);
    let actions = world.turns.run_once(now);
    assert_eq!(actions.len(), 2, "one lane reads its endpoint and its rows; a quarter of four is one");
    assert!(world.turns.run_once(now).is_empty(), "its place is not given to another");
    let Action::Read(endpoint) = actions[0] else { panic!("it reads its endpoint") };
    world.turns.vanished(endpoint, Timestamp::from_millis(0));
    assert_eq!(world.started().len(), 1, "the place of a lane that is gone is free again");
}

#[test]
fn a_new_throttle_rate_holds_from_the_next_read_on() {
    let (endpoint, now) = (lane_id(0), Timestamp::from_millis(0));
    let mut world = with_lanes(100, 1, 5, |_| 0);
    assert_eq!(world.started().len(), 5);
    for row in 0..5 {
        world.end((endpoint, Seq(row)), true);
    }
    world.turns.altered(endpoint);
    let waiting = Entry { waiting: row_of(0, 9), content: None };
    world.turns.offer(endpoint, world.apps[&endpoint], waiting, now);
    assert!(matches!(world.turns.run_once(now)[..], [Action::Read(_)]));
    let target = Target { throttle_rate: Some(10), app: world.apps[&endpoint], ..old_target() };
    world.turns.opened(endpoint, target, Health::default(), now);
    assert!(world.turns.run_once(now).is_empty(), "its bucket is empty");
    assert_eq!(world.turns.next_alarm(), Some(Timestamp::from_millis(100)));
}

#[test]
fn a_parked_lane_is_not_forgotten_when_the_one_before_it_has_no_use_for_its_turn() {
    let (now, app) = (Timestamp::from_millis(0), AppId::from_bytes([9; 20]));
    // Everything that can be shared is full but for the one place of each application.
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
    world.turns.offer(lane_id(10), app, Entry { waiting, content: None }, now);
    flying.extend(world.started());
    world.add(11, 1, 9);
    for lane in 20..60 {
        world.add(lane, 1, lane);
    }
    flying.extend(world.started());
    // The first one parked is asked for quiet; then the place comes free, and another takes it.
    world.turns.health(lane_id(10)).expect("it is awake").0.quiet_until =
        Some(Timestamp::from_millis(3_000_000));
    world.end(own[0], false);
    flying.extend(world.started());
    let mut served = BTreeSet::new();
    while let Some(start) = flying.pop_front() {
        served.insert(start.0);
        world.end(start, false);
        flying.extend(world.started());
    }
    assert!(served.contains(&lane_id(11)), "the second one parked had no turn");
}

#[test]
fn the_line_of_parked_lanes_has_each_of_them_once() {
    let (now, app) = (Timestamp::from_millis(0), AppId::from_bytes([0; 20]));
    let mut world = with_lanes(8, 2, 1, |_| 0);
    for start in world.started() {
        world.end(start, true);
    }
    let offer = |world: &mut World, lane: u8, row: i64| {
        world.turns.offer(lane_id(lane), app, Entry { waiting: row_of(lane, row), content: None }, now);
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
    let lined_up = world.turns.shares.parked(app);
    assert!(lined_up <= 2, "{lined_up} places in the line for two lanes");
}

#[test]
fn the_lanes_of_a_deleted_application_send_nothing_more_though_none_of_them_is_told() {
    let now = Timestamp::from_millis(0);
    let mut world = with_lanes(1000, 4, 10, |lane| lane / 2);
    let (gone, other) = (AppId::from_bytes([0; 20]), AppId::from_bytes([1; 20]));
    let started = world.started();
    assert_eq!(started.len(), 32, "each lane has its width, and two more in line");
    world.turns.application_removed(gone);
    let Some(waits) = world.turns.lanes[&lane_id(0)].awake.as_ref().map(|awake| awake.target.clone()) else {
        panic!("it is awake");
    };
    let start = Start {
        endpoint: lane_id(0),
        target: waits,
        waiting: row_of(0, 0),
        content: None,
        standing: crate::lane::Standing::Fresh,
    };
    assert_eq!(
        world.turns.may_start(&start, now),
        MayStart::No,
        "one that had its turn, and read its payload"
    );
    for start in started {
        world.end(start, true);
    }
    let actions = world.turns.run_once(now);
    let sent =
        actions.iter().filter(|action| matches!(action, Action::Attempt(start) if start.target.app == other));
    let ended =
        actions.iter().filter(|action| matches!(action, Action::End(start, _) if start.target.app == gone));
    assert_eq!((sent.count(), ended.count(), actions.len()), (4, 4, 8));
}

#[test]
fn a_deleted_application_is_remembered_as_long_as_it_has_lanes() {
    let (now, app) = (Timestamp::from_millis(0), AppId::from_bytes([0; 20]));
    let mut world = with_lanes(1000, 1, 1, |_| 0);
    let [start] = world.started()[..] else { panic!("it sends") };
    world.turns.application_removed(app);
    let later = now + Duration::from_secs(3600);
    world.turns.forget_idle(later, later);
    assert!(world.turns.gone.contains(&app), "one of its requests is still under way");
    world.end(start, true);
    assert!(world.started().is_empty());
    world.turns.forget_idle(later, later);
    assert!(world.turns.gone.is_empty() && world.turns.lanes.is_empty());
    // What is ended for it needs no lane.
    world.turns.application_removed(app);
    assert_eq!(world.turns.withdraw(lane_id(7), app, row_of(7, 0), now), Some(row_of(7, 0)));
    world.turns.withdrawn(lane_id(7), row_of(7, 0).seq, true, now);
    assert!(world.turns.lanes.is_empty());
}

/// One ordered lane with three deliveries.
fn ordered_lane() -> World {
    let mut world = with_lanes(1000, 1, 3, |_| 0);
    world.ordering = Ordering::Fifo(OnExhausted::Block);
    world
}

#[test]
fn an_ordered_lane_starts_the_next_when_the_one_before_is_on_disk() {
    let mut world = ordered_lane();
    let endpoint = lane_id(0);
    for row in 0..3 {
        let seq = row_of(0, row).seq;
        assert_eq!(world.started(), [(endpoint, seq)]);
        world.turns.left_wire(endpoint, seq, Some((true, Duration::from_millis(1))));
        assert_eq!(world.started(), [], "its result is not written yet");
        world.rows.entry(endpoint).or_default().retain(|row| row.seq != seq);
        world.turns.landed(endpoint, seq, None, Timestamp::from_millis(0));
    }
    assert_eq!(world.started(), []);
}

#[test]
fn a_lane_that_becomes_ordered_waits_for_all_that_is_in_flight() {
    let mut world = with_lanes(1000, 1, 10, |_| 0);
    let mut flying = world.started();
    assert_eq!(flying.len(), 8);
    world.ordering = Ordering::Fifo(OnExhausted::Skip);
    world.turns.altered(lane_id(0));
    assert_eq!(world.started(), []);
    for start in flying.split_off(1) {
        world.end(start, true);
        assert_eq!(world.started(), [], "the first one is still under way");
    }
    world.end(flying[0], true);
    assert_eq!(world.started(), [(lane_id(0), row_of(0, 8).seq)]);
}

#[test]
fn a_block_holds_the_lane_until_its_ordering_no_longer_asks_for_it() {
    let mut world = ordered_lane();
    let now = Timestamp::from_millis(0);
    let first = world.started()[0];
    let health = world.turns.health(lane_id(0)).expect("it is awake").0;
    *health = health.blocked(now);
    world.end(first, true);
    assert_eq!(world.started(), []);
    world.turns.altered(lane_id(0));
    assert_eq!(world.started(), [], "another change makes no difference");
    world.ordering = Ordering::Fifo(OnExhausted::Skip);
    world.turns.altered(lane_id(0));
    assert_eq!(world.started(), [(lane_id(0), row_of(0, 1).seq)]);
}

#[test]
fn what_is_due_does_not_wait_for_a_head_that_only_an_older_ordering_put_there() {
    let mut world = with_lanes(4, 1, 0, |_| 1);
    world.ordering = Ordering::Fifo(OnExhausted::Skip);
    assert_eq!(world.started(), []);
    let (endpoint, app) = (lane_id(0), AppId::from_bytes([1; 20]));
    // It is no ordered one any more, so that a message for later is taken.
    world.ordering = Ordering::None;
    world.turns.altered(endpoint);
    let later = Waiting { due_at: Timestamp::from_millis(3_600_000), ..row_of(0, 1) };
    let rows = [later, row_of(0, 2)];
    world.rows.insert(endpoint, rows.to_vec());
    for waiting in rows {
        world.turns.offer(endpoint, app, Entry { waiting, content: None }, Timestamp::from_millis(0));
    }
    assert_eq!(world.started(), [(endpoint, Seq(2))]);
}

/// Lanes of one application that has a rate, and what they start.
struct Throttled {
    world: World,
    rate: Option<u16>,
    now: i64,
}

impl Throttled {
    fn new(lanes: u8, rows: i64, rate: u16) -> Self {
        let world = World::new(Options { in_flight: 1000, ..Options::default() }, lanes, rows, |_| 0);
        Self { world, rate: Some(rate), now: 0 }
    }

    /// Everything that is started within so many milliseconds, with its moment; all of it ends at once, well.
    fn run(&mut self, millis: i64) -> Vec<(i64, EndpointId)> {
        let (mut started, end) = (Vec::new(), self.now + millis);
        while self.now < end {
            let now = Timestamp::from_millis(self.now);
            let actions = self.world.turns.run_once(now);
            let idle = actions.is_empty() && !self.world.turns.has_ready();
            for action in actions {
                match action {
                    Action::Read(endpoint) => {
                        let app = self.world.apps[&endpoint];
                        let target = Target { app, app_rate: self.rate, ..old_target() };
                        self.world.turns.opened(endpoint, target, Health::default(), now);
                    }
                    Action::Refill(query) => {
                        let rows = self.world.due(&query);
                        self.world.turns.refilled(query.endpoint, &rows, query.limit);
                    }
                    Action::Attempt(start) => {
                        assert_eq!(self.world.turns.may_start(&start, now), MayStart::Yes);
                        started.push((self.now, start.endpoint));
                        self.world.end((start.endpoint, start.waiting.seq), true);
                    }
                    Action::End(..) => panic!("nothing ends in these tests"),
                }
            }
            if idle {
                let next = self.world.turns.next_alarm().map_or(end, |at| at.millis());
                assert!(next > self.now, "it would spin");
                self.now = next.min(end);
            }
        }
        started
    }
}

fn of_lane(started: &[(i64, EndpointId)], lane: u8) -> usize {
    started.iter().filter(|(_, endpoint)| *endpoint == lane_id(lane)).count()
}

#[test]
fn the_rate_of_an_application_binds_all_its_lanes_together() {
    let mut throttled = Throttled::new(5, 100, 50);
    let started = throttled.run(2000);
    assert!((98..=102).contains(&started.len()), "{}", started.len());
    for window in started.windows(10) {
        assert!(window[9].0 - window[0].0 >= 100, "{window:?}");
    }
    for lane in 0..5 {
        assert!((19..=21).contains(&of_lane(&started, lane)), "lane {lane}: {}", of_lane(&started, lane));
    }
}

#[test]
fn a_lane_with_much_to_send_does_not_get_ahead_of_the_line() {
    let mut throttled = Throttled::new(3, 500, 10);
    for lane in 1..3 {
        throttled.world.rows.get_mut(&lane_id(lane)).unwrap().truncate(10);
    }
    let mut started = Vec::new();
    for row in 0..30 {
        // Every step brings news for the first lane.
        let waiting = Entry { waiting: row_of(0, 600 + row), content: None };
        throttled.world.rows.get_mut(&lane_id(0)).unwrap().push(waiting.waiting);
        let (app, now) = (throttled.world.apps[&lane_id(0)], Timestamp::from_millis(throttled.now));
        throttled.world.turns.offer(lane_id(0), app, waiting, now);
        started.extend(throttled.run(100));
    }
    let counts = [0, 1, 2].map(|lane| of_lane(&started, lane));
    assert!(counts[1] >= 9 && counts[2] >= 9, "{counts:?}");
}

#[test]
fn lanes_of_other_applications_do_not_wait_for_the_rate_of_one() {
    let mut throttled = Throttled::new(2, 50, 1);
    throttled.world.apps.insert(lane_id(9), AppId::from_bytes([9; 20]));
    throttled.run(10);
    throttled.rate = None;
    throttled.world.add(9, 50, 9);
    assert_eq!(of_lane(&throttled.run(100), 9), 50);
}

#[test]
fn another_rate_or_none_holds_from_the_next_read_on() {
    let mut throttled = Throttled::new(3, 100, 1);
    assert_eq!(throttled.run(3000).len(), 2);
    let app = AppId::from_bytes([0; 20]);
    assert!(throttled.world.turns.throttled_since(lane_id(0), Timestamp::from_millis(3000)).is_some());
    throttled.rate = Some(100);
    throttled.world.turns.application_changed(app);
    let faster = throttled.run(1000).len();
    assert!((99..=105).contains(&faster), "{faster}");
    throttled.rate = None;
    throttled.world.turns.application_changed(app);
    assert_eq!(throttled.run(10).len(), 300 - 2 - faster);
}

#[test]
fn a_deleted_endpoint_does_not_wait_for_the_rate_of_its_application() {
    let mut throttled = Throttled::new(2, 20, 1);
    throttled.run(10);
    let now = Timestamp::from_millis(throttled.now);
    throttled.world.turns.removed(lane_id(1), AppId::from_bytes([0; 20]), now);
    let ends = throttled.world.turns.run_once(now);
    assert_eq!(ends.iter().filter(|action| matches!(action, Action::End(..))).count(), 20);
    assert!((1..=3).contains(&of_lane(&throttled.run(2500), 0)), "the other goes on");
}

#[test]
fn nothing_spins_while_nothing_may_be_sent() {
    let mut throttled = Throttled::new(3, 20, 10);
    throttled.run(500);
    throttled.world.turns.halted = true;
    assert!(throttled.run(2000).is_empty());
    throttled.world.turns.halted = false;
    assert!((18..=22).contains(&throttled.run(2000).len()));
}
