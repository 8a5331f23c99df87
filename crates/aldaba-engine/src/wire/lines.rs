use super::multiplex::Line;
use super::places::{Place, Places};
use super::pool::PoolLimits;
use super::route::Route;
use super::ticks::{self, Aging, Supervisor, TICKS};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::AbortHandle;

/// The most routes that are remembered as speaking HTTP/1.1. Past it all are forgotten, and found out
/// again.
const REMEMBERED: usize = 4_096;

/// HTTP/2 connections, each shared by the requests of one route.
pub(super) struct Lines {
    limits: PoolLimits,
    places: Arc<Places>,
    supervisor: Supervisor,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    tick: u64,
    made: u64,
    routes: BTreeMap<Route, Vec<Entry>>,
    /// Whoever connects holds the gate of the route, so that the others share what is made.
    gates: BTreeMap<Route, Gathering>,
    http1: BTreeSet<Route>,
    sweeper: Option<AbortHandle>,
}

/// Those who hold or wait for a gate.
#[derive(Default)]
struct Gathering {
    lock: Arc<tokio::sync::Mutex<()>>,
    users: usize,
}

struct Entry {
    number: u64,
    line: Arc<Line>,
    in_use: usize,
    born: u64,
    /// The tick of the last request's end.
    since: u64,
    /// Held while no request is under way.
    place: Option<Place>,
}

/// A place for one request on a shared connection.
pub(super) struct Slot {
    table: Arc<Mutex<Table>>,
    places: Arc<Places>,
    route: Route,
    number: u64,
    pub(super) line: Arc<Line>,
}

/// The place where the requests of a route wait for the one of them that connects.
pub(super) struct Gate {
    table: Arc<Mutex<Table>>,
    route: Route,
    pub(super) lock: Arc<tokio::sync::Mutex<()>>,
}

impl Lines {
    pub(super) fn new(limits: PoolLimits, places: Arc<Places>, supervisor: Supervisor) -> Self {
        Self { limits, places, supervisor, table: Arc::default() }
    }

    /// A place on a connection that stands and has room.
    pub(super) fn take(&self, route: &Route) -> Option<Slot> {
        let mut table = self.table.lock();
        let (tick, longest_life) = (table.tick, self.longest_life());
        let entries = table.routes.get_mut(route)?;
        // What has ended or is too old gets no further request; those under way keep it to their end.
        entries.retain(|entry| entry.line.is_open() && tick - entry.born < longest_life);
        let free = entries.iter_mut().find(|entry| entry.in_use < entry.line.room());
        let slot = free.map(|entry| {
            entry.in_use += 1;
            entry.place = None;
            (entry.number, Arc::clone(&entry.line))
        });
        if entries.is_empty() {
            table.routes.remove(route);
        }
        drop(table);
        let (number, line) = slot?;
        Some(self.slot(route, number, line))
    }

    /// A connection that has just been made, with a place on it.
    pub(super) fn add(&self, route: &Route, line: Line) -> Slot {
        let line = Arc::new(line);
        let mut table = self.table.lock();
        table.http1.remove(route);
        table.made += 1;
        let (number, tick) = (table.made, table.tick);
        let entry =
            Entry { number, line: Arc::clone(&line), in_use: 1, born: tick, since: tick, place: None };
        table.routes.entry(route.clone()).or_default().push(entry);
        if table.sweeper.is_none() {
            table.sweeper =
                Some(ticks::start(Arc::downgrade(&self.table), self.limits.idle_timeout, &self.supervisor));
        }
        drop(table);
        self.slot(route, number, line)
    }

    fn slot(&self, route: &Route, number: u64, line: Arc<Line>) -> Slot {
        let (table, places) = (Arc::clone(&self.table), Arc::clone(&self.places));
        Slot { table, places, route: route.clone(), number, line }
    }

    /// Whether the receiver did not choose HTTP/2 the last time: then nobody waits for a connection
    /// to be shared.
    pub(super) fn speaks_http1(&self, route: &Route) -> bool {
        self.table.lock().http1.contains(route)
    }

    pub(super) fn note_http1(&self, route: &Route) {
        let mut table = self.table.lock();
        if table.http1.len() >= REMEMBERED {
            table.http1.clear();
        }
        table.http1.insert(route.clone());
    }

    /// What whoever connects has to hold.
    pub(super) fn gate(&self, route: &Route) -> Gate {
        let mut table = self.table.lock();
        let gathering = table.gates.entry(route.clone()).or_default();
        gathering.users += 1;
        let lock = Arc::clone(&gathering.lock);
        Gate { table: Arc::clone(&self.table), route: route.clone(), lock }
    }

    /// Closes what is idle.
    pub(super) fn clear(&self) {
        self.table.lock().close(|_| true);
    }

    fn longest_life(&self) -> u64 {
        ticks::in_ticks(self.limits.longest_life, self.limits.idle_timeout)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        if let Some(sweeper) = table.sweeper.take() {
            sweeper.abort();
        }
        // Requests under way hold their connection themselves.
        table.close(|_| true);
    }
}

impl Table {
    fn entry(&mut self, route: &Route, number: u64) -> Option<&mut Entry> {
        self.routes.get_mut(route)?.iter_mut().find(|entry| entry.number == number)
    }

    /// Closes those idle connections for which `which` holds.
    fn close(&mut self, which: impl Fn(&Entry) -> bool) {
        self.routes.retain(|_, entries| {
            entries.retain(|entry| entry.in_use > 0 || !which(entry));
            !entries.is_empty()
        });
    }

    fn oldest_waiting(&self) -> Option<u64> {
        let idle = self.routes.values().flatten().filter(|entry| entry.place.is_some());
        idle.min_by_key(|entry| (entry.since, entry.number)).map(|entry| entry.number)
    }
}

impl Aging for Table {
    fn tick(&mut self) {
        self.tick += 1;
        let tick = self.tick;
        self.close(|entry| tick - entry.since >= TICKS || !entry.line.is_open());
    }
}

impl Slot {
    /// The connection gets no further request.
    pub(super) fn retire(&self) {
        let mut table = self.table.lock();
        let Some(entries) = table.routes.get_mut(&self.route) else { return };
        entries.retain(|entry| entry.number != self.number);
        if entries.is_empty() {
            table.routes.remove(&self.route);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        let tick = table.tick;
        let Some(entry) = table.entry(&self.route, self.number) else { return };
        entry.in_use -= 1;
        if entry.in_use > 0 {
            return;
        }
        entry.since = tick;
        let place = self.places.take().or_else(|| {
            let oldest = table.oldest_waiting()?;
            table.close(|entry| entry.number == oldest);
            self.places.take()
        });
        match place {
            None => table.close(|entry| entry.number == self.number),
            place => {
                if let Some(entry) = table.entry(&self.route, self.number) {
                    entry.place = place;
                }
            }
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        let Some(gathering) = table.gates.get_mut(&self.route) else { return };
        gathering.users -= 1;
        if gathering.users == 0 {
            table.gates.remove(&self.route);
        }
    }
}
