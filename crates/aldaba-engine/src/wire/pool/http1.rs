use super::PoolLimits;
use super::aging::{self, Aging, Supervisor, TICKS_PER_IDLE_TIMEOUT};
use super::idle_limit::{IdleLimit, IdlePermit};
use crate::wire::route::Route;
use crate::wire::stream::WireStream;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use tokio::task::AbortHandle;

/// Idle HTTP/1.1 connections. They are bare sockets without protocol state: nobody reads from them, and
/// dropping one closes it at once.
pub(in crate::wire) struct Http1Pool {
    limits: PoolLimits,
    idle_limit: Arc<IdleLimit>,
    supervisor: Supervisor,
    table: Arc<Mutex<Http1Table>>,
}

/// A connection taken from the pool, and the tick at which it was opened.
pub(in crate::wire) struct PooledStream {
    pub(in crate::wire) stream: WireStream,
    pub(in crate::wire) created_tick: u64,
}

#[derive(Default)]
struct Http1Table {
    tick: u64,
    /// Oldest first within a route. The newest is reused first, so that the others can expire.
    routes: BTreeMap<Route, Vec<IdleConnection>>,
    /// The route of the last eviction.
    evicted: Option<Route>,
    ticker: Option<AbortHandle>,
}

struct IdleConnection {
    pooled: PooledStream,
    idle_since: u64,
    _permit: IdlePermit,
}

impl Http1Pool {
    pub(in crate::wire) fn new(
        limits: PoolLimits,
        idle_limit: Arc<IdleLimit>,
        supervisor: Supervisor,
    ) -> Self {
        Self { limits, idle_limit, supervisor, table: Arc::default() }
    }

    /// An idle connection of this route that is open as far as this machine knows.
    pub(in crate::wire) fn take(&self, route: &Route) -> Option<PooledStream> {
        loop {
            let mut pooled = self.table.lock().take(route)?;
            if pooled.stream.is_idle() {
                pooled.stream.begin_request();
                return Some(pooled);
            }
        }
    }

    /// Registers a connection that was just opened.
    pub(in crate::wire) fn adopt(&self, mut stream: WireStream) -> PooledStream {
        stream.begin_request();
        PooledStream { stream, created_tick: self.table.lock().tick }
    }

    /// Returns a connection whose last response ended cleanly.
    pub(in crate::wire) fn put_back(&self, route: Route, pooled: PooledStream) {
        let mut table = self.table.lock();
        let age = table.tick - pooled.created_tick;
        // Organizations share connections, so one origin may need more than `idle_per_origin`. That limit
        // applies only when slots are scarce.
        let scarce = self.idle_limit.in_use() >= self.limits.idle_overall / 2;
        if age >= aging::in_ticks(self.limits.max_lifetime, self.limits.idle_timeout)
            || scarce && table.idle_count(&route) >= self.limits.idle_per_origin
        {
            return;
        }
        let permit = self.idle_limit.try_acquire().or_else(|| {
            table.evict();
            self.idle_limit.try_acquire()
        });
        let Some(permit) = permit else { return };
        let idle = IdleConnection { pooled, idle_since: table.tick, _permit: permit };
        table.routes.entry(route).or_default().push(idle);
        if table.ticker.is_none() {
            table.ticker = Some(aging::start_ticker(
                Arc::downgrade(&self.table),
                self.limits.idle_timeout,
                &self.supervisor,
            ));
        }
    }

    /// Closes all idle connections.
    pub(in crate::wire) fn clear(&self) {
        self.table.lock().routes.clear();
    }
}

impl Drop for Http1Pool {
    fn drop(&mut self) {
        if let Some(ticker) = self.table.lock().ticker.take() {
            ticker.abort();
        }
    }
}

impl Http1Table {
    fn idle_count(&self, route: &Route) -> usize {
        self.routes.get(route).map_or(0, Vec::len)
    }

    fn take(&mut self, route: &Route) -> Option<PooledStream> {
        let idle_count = self.routes.get_mut(route)?;
        let idle = idle_count.pop();
        if idle_count.is_empty() {
            self.routes.remove(route);
        }
        idle.map(|idle| idle.pooled)
    }

    /// Closes the oldest connection of the next route, round robin. Busy routes reopen theirs; unused ones
    /// give up their slots.
    fn evict(&mut self) {
        let after = self.evicted.take().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.routes.range((after, Bound::Unbounded)).next().or_else(|| self.routes.iter().next());
        let Some(route) = next.map(|(route, _)| route.clone()) else { return };
        if let Some(idle_count) = self.routes.get_mut(&route) {
            idle_count.remove(0);
            if idle_count.is_empty() {
                self.routes.remove(&route);
            }
        }
        self.evicted = Some(route);
    }
}

impl Aging for Http1Table {
    /// Closes connections that were idle too long or that the receiver closed.
    fn tick(&mut self) {
        self.tick += 1;
        let tick = self.tick;
        self.routes.retain(|_, idle_count| {
            idle_count.retain(|idle| {
                tick - idle.idle_since < TICKS_PER_IDLE_TIMEOUT && idle.pooled.stream.is_idle()
            });
            !idle_count.is_empty()
        });
    }
}
