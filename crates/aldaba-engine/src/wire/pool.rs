use super::places::{Place, Places};
use super::route::Route;
use super::stream::Stream;
use super::ticks::{self, Aging, Supervisor, TICKS};
use crate::REQUESTS_PER_ORIGIN;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Connections that wait for their next request. They are bare sockets: nobody reads from them, and
/// what protocol state there was has been taken off, so that dropping one closes it at once.
pub(super) struct Pool {
    limits: PoolLimits,
    places: Arc<Places>,
    supervisor: Supervisor,
    shelf: Arc<Mutex<Shelf>>,
}

/// How many connections are kept open between requests, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Per origin (and client certificate), once half of those over all origins wait; a further connection is closed after
    /// its answer. No fewer than an organization may have requests there, or connections would be closed only to be made
    /// again.
    pub idle_per_origin: usize,
    /// Over all origins; past it a waiting connection is closed for each further one.
    pub idle_overall: usize,
    pub idle_timeout: Duration,
    /// No connection is used longer than this, so that a name which has moved is followed.
    pub longest_life: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            idle_per_origin: REQUESTS_PER_ORIGIN,
            idle_overall: 1_024,
            idle_timeout: Duration::from_secs(30),
            longest_life: Duration::from_secs(300),
        }
    }
}

/// A connection on loan, and the tick at which it was made.
pub(super) struct Loan {
    pub(super) stream: Stream,
    pub(super) born: u64,
}

#[derive(Default)]
struct Shelf {
    tick: u64,
    /// Oldest first within a route; the newest is taken first, so that the others can age.
    routes: BTreeMap<Route, Vec<Idle>>,
    /// The route that gave up a connection last.
    evicted: Option<Route>,
    sweeper: Option<AbortHandle>,
}

struct Idle {
    loan: Loan,
    since: u64,
    _place: Place,
}

impl Pool {
    pub(super) fn new(limits: PoolLimits, places: Arc<Places>, supervisor: Supervisor) -> Self {
        Self { limits, places, supervisor, shelf: Arc::default() }
    }

    /// A connection of this route that is open as far as this machine can know.
    pub(super) fn take(&self, route: &Route) -> Option<Loan> {
        loop {
            let mut loan = self.shelf.lock().take(route)?;
            if loan.stream.is_quiet() {
                loan.stream.start_afresh();
                return Some(loan);
            }
        }
    }

    /// A connection that has just been made.
    pub(super) fn adopt(&self, mut stream: Stream) -> Loan {
        stream.start_afresh();
        Loan { stream, born: self.shelf.lock().tick }
    }

    /// Takes a connection back whose last answer ended cleanly.
    pub(super) fn put_back(&self, route: Route, loan: Loan) {
        let mut shelf = self.shelf.lock();
        let age = shelf.tick - loan.born;
        // Organizations share connections, so that together they may need more than one of them may have. Those of one origin are
        // bounded when others need the room.
        let scarce = self.places.taken() >= self.limits.idle_overall / 2;
        if age >= ticks::in_ticks(self.limits.longest_life, self.limits.idle_timeout)
            || scarce && shelf.waiting(&route) >= self.limits.idle_per_origin
        {
            return;
        }
        let place = self.places.take().or_else(|| {
            shelf.evict();
            self.places.take()
        });
        let Some(place) = place else { return };
        let idle = Idle { loan, since: shelf.tick, _place: place };
        shelf.routes.entry(route).or_default().push(idle);
        if shelf.sweeper.is_none() {
            shelf.sweeper =
                Some(ticks::start(Arc::downgrade(&self.shelf), self.limits.idle_timeout, &self.supervisor));
        }
    }

    /// Closes what is idle.
    pub(super) fn clear(&self) {
        self.shelf.lock().routes.clear();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.shelf.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

impl Shelf {
    fn waiting(&self, route: &Route) -> usize {
        self.routes.get(route).map_or(0, Vec::len)
    }

    fn take(&mut self, route: &Route) -> Option<Loan> {
        let waiting = self.routes.get_mut(route)?;
        let idle = waiting.pop();
        if waiting.is_empty() {
            self.routes.remove(route);
        }
        idle.map(|idle| idle.loan)
    }

    /// Closes the oldest connection of the next route in turn: whoever is used a lot comes back at
    /// once, whoever is not makes room.
    fn evict(&mut self) {
        let after = self.evicted.take().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.routes.range((after, Bound::Unbounded)).next().or_else(|| self.routes.iter().next());
        let Some(route) = next.map(|(route, _)| route.clone()) else { return };
        if let Some(waiting) = self.routes.get_mut(&route) {
            waiting.remove(0);
            if waiting.is_empty() {
                self.routes.remove(&route);
            }
        }
        self.evicted = Some(route);
    }
}

impl Aging for Shelf {
    /// Closes what has waited too long, and what the other side has closed.
    fn tick(&mut self) {
        self.tick += 1;
        let tick = self.tick;
        self.routes.retain(|_, waiting| {
            waiting.retain(|idle| tick - idle.since < TICKS && idle.loan.stream.is_quiet());
            !waiting.is_empty()
        });
    }
}
