use super::multiplex::{Line, MOST_STREAMS};
use super::places::{Place, Places};
use super::pool::PoolLimits;
use super::queue::{Connecting, Given, Joined, Queues};
use super::route::Route;
use super::ticks::{self, Aging, Supervisor, TICKS};
use aldaba_delivery::AttemptFailure;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The most routes that are remembered as speaking HTTP/1.1. Past it all are forgotten, and found out
/// again.
const REMEMBERED: usize = 4_096;

/// HTTP/2 connections, each shared by the requests of one route.
pub(super) struct Lines(Shared);

/// What the connections, their places and those who wait for one have in common.
#[derive(Clone)]
pub(super) struct Shared {
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
    queues: Queues,
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
    /// Held while no request is under way.
    place: Option<Place>,
}

/// A place for one request on a shared connection.
pub(super) struct Slot {
    shared: Shared,
    route: Route,
    number: u64,
    pub(super) line: Arc<Line>,
}

/// Who gets what.
struct Gift {
    give: oneshot::Sender<Given>,
    what: What,
}

enum What {
    Place(u64, Arc<Line>),
    Connect(u64),
    Alone,
}

impl Lines {
    pub(super) fn new(limits: PoolLimits, places: Arc<Places>, supervisor: Supervisor) -> Self {
        Self(Shared { limits, places, supervisor, table: Arc::default() })
    }

    /// A place on a connection that stands and has room.
    pub(super) fn take(&self, route: &Route) -> Option<Slot> {
        let place = self.0.table.lock().take(route, self.0.longest_life());
        place.map(|(number, line)| self.0.slot(route, number, line))
    }

    /// Waits for a place, or for one's turn to connect.
    pub(super) fn join(&self, route: &Route, connect_timeout: Duration) -> Joined {
        let joined = self.0.table.lock().queues.join(route, connect_timeout);
        self.0.hand_out(route);
        joined
    }

    /// Whether the receiver has taken a connection since this one waits.
    pub(super) fn has_moved(&self, route: &Route, joined: &Joined) -> bool {
        self.0.table.lock().queues.has_moved(route, joined)
    }

    /// A connection that has just been made, with a place on it.
    pub(super) fn add(&self, route: &Route, connecting: Option<Connecting>, line: Line) -> Slot {
        let line = Arc::new(line);
        let mut table = self.0.table.lock();
        table.http1.remove(route);
        table.made += 1;
        let (number, tick) = (table.made, table.tick);
        let entry =
            Entry { number, line: Arc::clone(&line), in_use: 1, born: tick, since: tick, place: None };
        table.routes.entry(route.clone()).or_default().push(entry);
        if table.sweeper.is_none() {
            let (weak, timeout) = (Arc::downgrade(&self.0.table), self.0.limits.idle_timeout);
            table.sweeper = Some(ticks::start(weak, timeout, &self.0.supervisor));
        }
        table.queues.note_made(route);
        drop(table);
        // Those who waited for it get their places.
        drop(connecting);
        self.0.slot(route, number, line)
    }

    /// Whether the receiver did not choose HTTP/2 the last time: then nobody waits for a connection
    /// to be shared.
    pub(super) fn speaks_http1(&self, route: &Route) -> bool {
        self.0.table.lock().http1.contains(route)
    }

    pub(super) fn note_http1(&self, route: &Route) {
        let mut table = self.0.table.lock();
        if table.http1.len() >= REMEMBERED {
            table.http1.clear();
        }
        table.http1.insert(route.clone());
    }

    /// Closes what is idle.
    pub(super) fn clear(&self) {
        self.0.table.lock().close(|_| true);
    }
}

impl Shared {
    fn slot(&self, route: &Route, number: u64, line: Arc<Line>) -> Slot {
        Slot { shared: self.clone(), route: route.clone(), number, line }
    }

    /// Gives those who wait what there is for them. What somebody no longer wants comes back by its drop, so
    /// that nothing may be given under the lock.
    fn hand_out(&self, route: &Route) {
        loop {
            let mut table = self.table.lock();
            let Some(Gift { give, what }) = table.next(route, self.longest_life()) else { return };
            drop(table);
            drop(give.send(match what {
                What::Alone => Given::Alone,
                What::Place(number, line) => Given::Slot(self.slot(route, number, line)),
                What::Connect(began) => Given::Connect(Connecting::new(self.clone(), route.clone(), began)),
            }));
        }
    }

    fn longest_life(&self) -> u64 {
        ticks::in_ticks(self.limits.longest_life, self.limits.idle_timeout)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let mut table = self.0.table.lock();
        if let Some(sweeper) = table.sweeper.take() {
            sweeper.abort();
        }
        // Requests under way hold their connection themselves.
        table.close(|_| true);
    }
}

impl Connecting {
    /// It could not be made, in so much time. Those who waited for it hear so too: the network has spoken to one
    /// for all of them.
    pub(super) fn failed(mut self, failure: &AttemptFailure, given: Duration) {
        self.ended = true;
        let told =
            self.lines.table.lock().queues.connected(&self.route, self.began(), Some((failure, given)));
        for give in told {
            drop(give.send(Given::Failed(failure.clone())));
        }
        self.lines.hand_out(&self.route);
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.lines.table.lock().queues.connected(&self.route, self.began(), None);
        self.lines.hand_out(&self.route);
    }
}

impl Table {
    /// A place on a connection that stands and has room.
    fn take(&mut self, route: &Route, longest_life: u64) -> Option<(u64, Arc<Line>)> {
        let tick = self.tick;
        let entries = self.routes.get_mut(route)?;
        // What has ended or is too old gets no further request; those under way keep it to their end.
        entries.retain(|entry| entry.line.is_open() && tick - entry.born < longest_life);
        let free = entries.iter_mut().find(|entry| entry.in_use < entry.line.room());
        let taken = free.map(|entry| {
            entry.in_use += 1;
            entry.place = None;
            (entry.number, Arc::clone(&entry.line))
        });
        if entries.is_empty() {
            self.routes.remove(route);
        }
        taken
    }

    /// The first of those who wait, and what there is for it.
    fn next(&mut self, route: &Route, longest_life: u64) -> Option<Gift> {
        if !self.queues.anyone_waits(route) {
            return None;
        }
        let entries = self.routes.get(route).map_or(&[][..], Vec::as_slice);
        // How many one connection carries is known from those that stand.
        let streams = entries.iter().map(|entry| entry.line.room()).max().unwrap_or(MOST_STREAMS);
        let what = if self.http1.contains(route) {
            What::Alone
        } else if let Some((number, line)) = self.take(route, longest_life) {
            What::Place(number, line)
        } else {
            What::Connect(self.queues.begin_connecting(route, streams)?)
        };
        self.queues.first(route).map(|give| Gift { give, what })
    }

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
        let mut table = self.shared.table.lock();
        let Some(entries) = table.routes.get_mut(&self.route) else { return };
        entries.retain(|entry| entry.number != self.number);
        if entries.is_empty() {
            table.routes.remove(&self.route);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.give_back(&self.route, self.number);
        // Somebody may wait for the place, or for the connection that this one no longer is.
        self.shared.hand_out(&self.route);
    }
}

impl Shared {
    fn give_back(&self, route: &Route, number: u64) {
        let mut table = self.table.lock();
        let tick = table.tick;
        let Some(entry) = table.entry(route, number) else { return };
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
            None if table.queues.anyone_waits(route) => {}
            None => table.close(|entry| entry.number == number),
            place => {
                if let Some(entry) = table.entry(route, number) {
                    entry.place = place;
                }
            }
        }
    }
}
