use super::stream::Stream;
use aldaba_delivery::Origin;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Ages are counted in ticks of a sweeper: this many make up the idle timeout.
const TICKS: u64 = 4;

/// Connections that wait for their next request. They are bare sockets: nobody reads from them, and
/// what protocol state there was has been taken off, so that dropping one closes it at once.
pub(super) struct Pool {
    limits: PoolLimits,
    shelf: Arc<Mutex<Shelf>>,
}

/// How many connections are kept open between requests, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Per origin; a further connection is closed after its answer.
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
            idle_per_origin: 64,
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
    idle: usize,
    /// Oldest first within an origin; the newest is taken first, so that the others can age.
    origins: BTreeMap<Origin, Vec<Idle>>,
    /// The origin that gave up a connection last.
    evicted: Option<Origin>,
    sweeper: Option<AbortHandle>,
}

struct Idle {
    loan: Loan,
    since: u64,
}

impl Pool {
    pub(super) fn new(limits: PoolLimits) -> Self {
        Self { limits, shelf: Arc::default() }
    }

    /// A connection to the origin that is open as far as this machine can know.
    pub(super) fn take(&self, origin: &Origin) -> Option<Loan> {
        loop {
            let mut loan = self.shelf.lock().take(origin)?;
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
    pub(super) fn put_back(&self, origin: Origin, loan: Loan) {
        let mut shelf = self.shelf.lock();
        let age = shelf.tick - loan.born;
        if age >= self.longest_life_in_ticks() || shelf.waiting(&origin) >= self.limits.idle_per_origin {
            return;
        }
        if shelf.idle >= self.limits.idle_overall {
            shelf.evict();
        }
        if shelf.idle >= self.limits.idle_overall {
            return;
        }
        shelf.put(origin, loan);
        if shelf.sweeper.is_none() {
            let sweeper = tokio::spawn(sweep(Arc::downgrade(&self.shelf), self.limits.idle_timeout));
            shelf.sweeper = Some(sweeper.abort_handle());
        }
    }

    pub(super) fn idle(&self) -> usize {
        self.shelf.lock().idle
    }

    /// Closes what is idle.
    pub(super) fn clear(&self) {
        let mut shelf = self.shelf.lock();
        shelf.idle = 0;
        shelf.origins.clear();
    }

    fn longest_life_in_ticks(&self) -> u64 {
        let tick = tick_of(self.limits.idle_timeout);
        u64::try_from(self.limits.longest_life.as_nanos() / tick.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.shelf.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

fn tick_of(idle_timeout: Duration) -> Duration {
    (idle_timeout / u32::try_from(TICKS).unwrap_or(1)).max(Duration::from_millis(1))
}

async fn sweep(shelf: Weak<Mutex<Shelf>>, idle_timeout: Duration) {
    let mut ticks = interval(tick_of(idle_timeout));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick of an interval comes at once.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(shelf) = shelf.upgrade() else { return };
        shelf.lock().sweep();
    }
}

impl Shelf {
    fn waiting(&self, origin: &Origin) -> usize {
        self.origins.get(origin).map_or(0, Vec::len)
    }

    fn put(&mut self, origin: Origin, loan: Loan) {
        let since = self.tick;
        self.origins.entry(origin).or_default().push(Idle { loan, since });
        self.idle += 1;
    }

    fn take(&mut self, origin: &Origin) -> Option<Loan> {
        let waiting = self.origins.get_mut(origin)?;
        let idle = waiting.pop();
        if waiting.is_empty() {
            self.origins.remove(origin);
        }
        self.idle -= usize::from(idle.is_some());
        idle.map(|idle| idle.loan)
    }

    /// Closes the oldest connection of the next origin in turn: whoever is used a lot comes back at
    /// once, whoever is not makes room.
    fn evict(&mut self) {
        let after = self.evicted.take().map_or(Bound::Unbounded, Bound::Excluded);
        let next =
            self.origins.range((after, Bound::Unbounded)).next().or_else(|| self.origins.iter().next());
        let Some(origin) = next.map(|(origin, _)| origin.clone()) else { return };
        if let Some(waiting) = self.origins.get_mut(&origin) {
            waiting.remove(0);
            self.idle -= 1;
            if waiting.is_empty() {
                self.origins.remove(&origin);
            }
        }
        self.evicted = Some(origin);
    }

    /// Closes what has waited too long, and what the other side has closed.
    fn sweep(&mut self) {
        self.tick += 1;
        let tick = self.tick;
        self.origins.retain(|_, waiting| {
            let before = waiting.len();
            waiting.retain(|idle| tick - idle.since < TICKS && idle.loan.stream.is_quiet());
            self.idle -= before - waiting.len();
            !waiting.is_empty()
        });
    }
}
