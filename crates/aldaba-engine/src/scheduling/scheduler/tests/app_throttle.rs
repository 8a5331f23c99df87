//! The rate of an application.

use super::*;

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
            let actions = self.world.scheduler.run_once(now);
            let idle = actions.is_empty() && !self.world.scheduler.has_ready();
            for action in actions {
                match action {
                    Action::Read(endpoint) => {
                        let app = self.world.apps[&endpoint];
                        let target = Target { app, app_rate: self.rate, ..old_target() };
                        self.world.scheduler.endpoint_read(endpoint, target, Health::default(), now);
                    }
                    Action::Refill(query) => {
                        let rows = self.world.due(&query);
                        self.world.scheduler.refilled(query.endpoint, &rows, query.limit);
                    }
                    Action::Attempt(request) => {
                        assert_eq!(self.world.scheduler.may_start(&request, now), MayStart::Yes);
                        started.push((self.now, request.endpoint));
                        self.world.end((request.endpoint, request.pending.seq), true);
                    }
                    Action::End(..) => panic!("nothing ends in these tests"),
                    // A changed endpoint may have a stop date now.
                    Action::Search(search) => self.world.scheduler.search_ended(search.endpoint, None, now),
                }
            }
            if idle {
                let next = self.world.scheduler.next_alarm(now).map_or(end, |at| at.millis());
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
fn a_lane_with_much_to_send_does_not_get_ahead_of_the_queue() {
    let mut throttled = Throttled::new(3, 500, 10);
    for lane in 1..3 {
        throttled.world.rows.get_mut(&lane_id(lane)).unwrap().truncate(10);
    }
    let mut started = Vec::new();
    for row in 0..30 {
        // Every step adds a delivery to the first lane.
        let waiting = BufferedDelivery { pending: row_of(0, 600 + row), content: None };
        throttled.world.rows.get_mut(&lane_id(0)).unwrap().push(waiting.pending);
        let (app, now) = (throttled.world.apps[&lane_id(0)], Timestamp::from_millis(throttled.now));
        throttled.world.scheduler.enqueue(lane_id(0), app, waiting, now);
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
    assert!(throttled.world.scheduler.throttled_since(lane_id(0), Timestamp::from_millis(3000)).is_some());
    throttled.rate = Some(100);
    throttled.world.scheduler.application_changed(app);
    let faster = throttled.run(1000).len();
    assert!((99..=105).contains(&faster), "{faster}");
    throttled.rate = None;
    throttled.world.scheduler.application_changed(app);
    assert_eq!(throttled.run(10).len(), 300 - 2 - faster);
}

#[test]
fn a_deleted_endpoint_does_not_wait_for_the_rate_of_its_application() {
    let mut throttled = Throttled::new(2, 20, 1);
    throttled.run(10);
    let now = Timestamp::from_millis(throttled.now);
    throttled.world.scheduler.endpoint_deleted(lane_id(1), AppId::from_bytes([0; 20]), now);
    let ends = throttled.world.scheduler.run_once(now);
    assert_eq!(ends.iter().filter(|action| matches!(action, Action::End(..))).count(), 20);
    assert!((1..=3).contains(&of_lane(&throttled.run(2500), 0)), "the other goes on");
}

#[test]
fn nothing_spins_while_nothing_may_be_sent() {
    let mut throttled = Throttled::new(3, 20, 10);
    throttled.run(500);
    throttled.world.scheduler.halted = true;
    assert!(throttled.run(2000).is_empty());
    throttled.world.scheduler.halted = false;
    assert!((18..=22).contains(&throttled.run(2000).len()));
}
