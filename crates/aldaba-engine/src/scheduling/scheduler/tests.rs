//! Lanes and the store that they read from, for tests of the scheduler.

mod app_throttle;
mod deleted;
mod fair_queue;
mod held;
mod ordered;
mod origins;
mod shares;
mod stop_dates;
mod waking;

use super::*;
use aldaba_delivery::{AppId, MessageId, OnExhausted, Ordering, Origin};

/// An endpoint as a read that began before its deletion saw it.
fn old_target() -> Target {
    Target::sample("standard")
}

fn one_organization(_: AppId) -> OrgId {
    OrgId::from_bytes([7; 20])
}

/// Every application has one of its own.
fn own_organization(app: AppId) -> OrgId {
    OrgId::from_bytes(*app.as_bytes())
}

/// Whose of the applications of a test: those below ten are one organization's.
fn two_organizations(app: AppId) -> OrgId {
    OrgId::from_bytes([u8::from(app >= AppId::from_bytes([10; 20])); 20])
}

/// Every endpoint has one of its own.
fn own_origin(endpoint: EndpointId) -> Origin {
    Origin::new("https", &endpoint.to_string(), 443)
}

/// Lanes, and the store that they read from.
struct World {
    scheduler: Scheduler,
    /// What waits, by lane.
    rows: BTreeMap<EndpointId, Vec<PendingDelivery>>,
    apps: BTreeMap<EndpointId, AppId>,
    /// Whose the applications are.
    org: fn(AppId) -> OrgId,
    /// Of all endpoints.
    ordering: Ordering,
    app_rate: Option<u16>,
    /// Where the endpoints are.
    origin: fn(EndpointId) -> Origin,
    now: Timestamp,
    policy: &'static str,
}

impl World {
    /// Lanes with `rows` due deliveries each, of the applications that `app` says.
    fn new(options: Options, lanes: u8, rows: i64, app: fn(u8) -> u8) -> Self {
        let scheduler = Scheduler::new(options, Gates::default());
        let mut world = Self {
            scheduler,
            rows: BTreeMap::new(),
            apps: BTreeMap::new(),
            org: one_organization,
            ordering: Ordering::None,
            app_rate: None,
            origin: own_origin,
            now: Timestamp::from_millis(0),
            policy: "standard",
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
        self.scheduler.open_lane(endpoint, app, Timestamp::from_millis(0));
    }

    fn of(mut self, org: fn(AppId) -> OrgId) -> Self {
        self.org = org;
        self
    }

    /// Everything that is started now, until nothing more can be. Reads are answered at once.
    fn started(&mut self) -> Vec<(EndpointId, Seq)> {
        let mut started = Vec::new();
        loop {
            let actions = self.scheduler.run_once(self.now);
            if actions.is_empty() {
                return started;
            }
            for action in actions {
                match action {
                    Action::Read(endpoint) => self.read(endpoint),
                    Action::Refill(query) => {
                        let rows = self.due(&query);
                        self.scheduler.refilled(query.endpoint, &rows, query.limit);
                    }
                    Action::Attempt(request) => started.push((request.endpoint, request.pending.seq)),
                    Action::End(..) => panic!("nothing ends in these tests"),
                    Action::Search(search) => self.scheduler.search_ended(search.endpoint, None, self.now),
                }
            }
        }
    }

    fn read(&mut self, endpoint: EndpointId) {
        let app = self.apps[&endpoint];
        let (org, origin) = ((self.org)(app), (self.origin)(endpoint));
        let Self { ordering, app_rate, policy, .. } = *self;
        let target = Target { app, org, ordering, app_rate, origin, ..Target::sample(policy) };
        self.scheduler.endpoint_read(endpoint, target, Health::default(), self.now);
    }

    fn due(&self, query: &DueQuery) -> Vec<PendingDelivery> {
        let mut rows = self.rows[&query.endpoint].clone();
        let place = |turn: aldaba_store::LanePosition| {
            if query.ordered { (Timestamp::MIN, turn.seq) } else { (turn.due_at, turn.seq) }
        };
        rows.sort_by_key(|row| place(row.position()));
        rows.retain(|row| query.after.is_none_or(|after| place(row.position()) > place(after)));
        rows.truncate(query.limit);
        rows
    }

    /// An attempt ends; with `false` nobody answered it. Either way its delivery is settled.
    fn end(&mut self, (endpoint, seq): (EndpointId, Seq), answered: bool) {
        self.rows.entry(endpoint).or_default().retain(|row| row.seq != seq);
        self.scheduler.left_wire(endpoint, seq, Some((answered, Duration::from_millis(1))));
        self.scheduler.recorded(endpoint, seq, None, self.now);
    }
}

/// Lanes under a cap on what is in flight.
fn with_lanes(in_flight: usize, lanes: u8, rows: i64, app: fn(u8) -> u8) -> World {
    World::new(Options { in_flight, ..Options::default() }, lanes, rows, app)
}

fn lane_id(lane: u8) -> EndpointId {
    EndpointId::from_bytes([lane; 20])
}

fn row_of(lane: u8, row: i64) -> PendingDelivery {
    let now = Timestamp::from_millis(0);
    let message = MessageId::from_bytes([3; 20]);
    let seq = Seq(i64::from(lane) * 1000 + row);
    PendingDelivery {
        seq,
        message,
        due_at: now,
        attempts: 0,
        clock_start: now,
        replayed: false,
        sequence: Some(seq),
    }
}
