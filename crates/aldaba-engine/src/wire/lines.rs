use super::multiplex::Line;
use super::pool::PoolLimits;
use super::route::Route;
use super::ticks::{self, Aging, TICKS};
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
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    tick: u64,
    made: u64,
    idle: usize,
    routes: BTreeMap<Route, Vec<Entry>>,
    /// Whoever connects holds the gate of the route, so that the others share what is made.
    gates: BTreeMap<Route, Arc<tokio::sync::Mutex<()>>>,
    http1: BTreeSet<Route>,
    sweeper: Option<AbortHandle>,
}

struct Entry {
    number: u64,
    line: Arc<Line>,
    in_use: usize,
    born: u64,
    /// The tick of the last request's end.
    since: u64,
}

/// A place for one request on a shared connection.
pub(super) struct Slot {
    table: Arc<Mutex<Table>>,
    limits: PoolLimits,
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
    pub(super) fn new(limits: PoolLimits) -> Self {
        Self { limits, table: Arc::default() }
    }

    /// A place on a connection that stands and has room.
    pub(super) fn take(&self, route: &Route) -> Option<Slot> {
        let mut table = self.table.lock();
        let table = &mut *table;
        let (tick, longest_life) = (table.tick, self.longest_life());
        let entries = table.routes.get_mut(route)?;
        // What has ended or is too old gets no further request; those under way keep it to their end.
        entries.retain(|entry| {
            let keep = entry.line.is_open() && tick - entry.born < longest_life;
            table.idle -= usize::from(!keep && entry.in_use == 0);
            keep
        });
        let free = entries.iter_mut().find(|entry| entry.in_use < entry.line.room());
        let slot = free.map(|entry| {
            table.idle -= usize::from(entry.in_use == 0);
            entry.in_use += 1;
            (entry.number, Arc::clone(&entry.line))
        });
        if entries.is_empty() {
            table.routes.remove(route);
        }
        let (number, line) = slot?;
        Some(Slot { table: Arc::clone(&self.table), limits: self.limits, route: route.clone(), number, line })
    }

    /// A connection that has just been made, with a place on it.
    pub(super) fn add(&self, route: &Route, line: Line) -> Slot {
        let line = Arc::new(line);
        let mut table = self.table.lock();
        table.http1.remove(route);
        table.made += 1;
        let (number, tick) = (table.made, table.tick);
        let entry = Entry { number, line: Arc::clone(&line), in_use: 1, born: tick, since: tick };
        table.routes.entry(route.clone()).or_default().push(entry);
        if table.sweeper.is_none() {
            table.sweeper = Some(ticks::start(Arc::downgrade(&self.table), self.limits.idle_timeout));
        }
        Slot { table: Arc::clone(&self.table), limits: self.limits, route: route.clone(), number, line }
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
        let lock = Arc::clone(self.table.lock().gates.entry(route.clone()).or_default());
        Gate { table: Arc::clone(&self.table), route: route.clone(), lock }
    }

    pub(super) fn idle(&self) -> usize {
        self.table.lock().idle
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
    /// Closes those idle connections for which `which` holds.
    fn close(&mut self, which: impl Fn(&Entry) -> bool) {
        let idle = &mut self.idle;
        self.routes.retain(|_, entries| {
            entries.retain(|entry| {
                let close = entry.in_use == 0 && which(entry);
                *idle -= usize::from(close);
                !close
            });
            !entries.is_empty()
        });
    }

    fn oldest_idle(&self) -> Option<u64> {
        let idle = self.routes.values().flatten().filter(|entry| entry.in_use == 0);
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
        // This place is in use, so the connection does not count as idle.
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
        let entries = table.routes.get_mut(&self.route);
        let entry = entries.and_then(|all| all.iter_mut().find(|entry| entry.number == self.number));
        let Some(entry) = entry else { return };
        entry.in_use -= 1;
        if entry.in_use > 0 {
            return;
        }
        entry.since = tick;
        table.idle += 1;
        if table.idle > self.limits.idle_overall
            && let Some(oldest) = table.oldest_idle()
        {
            table.close(|entry| entry.number == oldest);
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        // The table's and this one: nobody else waits.
        if Arc::strong_count(&self.lock) == 2 {
            table.gates.remove(&self.route);
        }
    }
}
