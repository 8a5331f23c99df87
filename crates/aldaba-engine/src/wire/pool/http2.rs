use super::PoolLimits;
use super::aging::{self, Aging, Supervisor, TICKS_PER_IDLE_TIMEOUT};
use super::idle_limit::{IdleLimit, IdlePermit};
use super::queue::{Assignment, ConnectPermit, ConnectionQueues, QueuedRequest};
use crate::wire::http2::{Http2Connection, MAX_STREAMS};
use crate::wire::route::Route;
use aldaba_delivery::AttemptFailure;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The most routes that are remembered as HTTP/1.1. Past it all are forgotten and detected again.
const MAX_HTTP1_ROUTES: usize = 4_096;

/// HTTP/2 connections, each shared by the requests of one route.
pub(in crate::wire) struct Http2Pool(Http2PoolHandle);

/// The shared state of the pool, its connections and its permits.
#[derive(Clone)]
pub(in crate::wire) struct Http2PoolHandle {
    limits: PoolLimits,
    idle_limit: Arc<IdleLimit>,
    supervisor: Supervisor,
    table: Arc<Mutex<Http2Table>>,
}

#[derive(Default)]
struct Http2Table {
    tick: u64,
    created: u64,
    routes: BTreeMap<Route, Vec<Http2Entry>>,
    queues: ConnectionQueues,
    http1: BTreeSet<Route>,
    ticker: Option<AbortHandle>,
}

struct Http2Entry {
    number: u64,
    connection: Arc<Http2Connection>,
    in_use: usize,
    created_tick: u64,
    /// The tick at which the last request ended.
    idle_since: u64,
    /// Held while the connection is idle.
    idle_permit: Option<IdlePermit>,
}

/// The right to send one request over a shared connection.
pub(in crate::wire) struct StreamPermit {
    shared: Http2PoolHandle,
    route: Route,
    number: u64,
    pub(in crate::wire) connection: Arc<Http2Connection>,
}

/// What a queued request is given.
struct Handoff {
    sender: oneshot::Sender<Assignment>,
    kind: HandoffKind,
}

enum HandoffKind {
    Http2(u64, Arc<Http2Connection>),
    Connect(u64),
    Http1,
}

impl Http2Pool {
    pub(in crate::wire) fn new(
        limits: PoolLimits,
        idle_limit: Arc<IdleLimit>,
        supervisor: Supervisor,
    ) -> Self {
        Self(Http2PoolHandle { limits, idle_limit, supervisor, table: Arc::default() })
    }

    /// A permit on an open connection with a free stream.
    pub(in crate::wire) fn take(&self, route: &Route) -> Option<StreamPermit> {
        let idle_permit = self.0.table.lock().take(route, self.0.max_lifetime());
        idle_permit.map(|(number, connection)| self.0.permit(route, number, connection))
    }

    /// Queues a request for a permit, or for the right to connect.
    pub(in crate::wire) fn join(&self, route: &Route, connect_timeout: Duration) -> QueuedRequest {
        let joined = self.0.table.lock().queues.join(route, connect_timeout);
        self.0.assign_waiting(route);
        joined
    }

    /// Whether the receiver accepted a connection since this request was queued.
    pub(in crate::wire) fn has_progressed(&self, route: &Route, joined: &QueuedRequest) -> bool {
        self.0.table.lock().queues.has_progressed(route, joined)
    }

    /// Adds a new connection and takes a permit on it.
    pub(in crate::wire) fn add(
        &self,
        route: &Route,
        connecting: Option<ConnectPermit>,
        connection: Http2Connection,
    ) -> StreamPermit {
        let connection = Arc::new(connection);
        let mut table = self.0.table.lock();
        table.http1.remove(route);
        table.created += 1;
        let (number, tick) = (table.created, table.tick);
        let entry = Http2Entry {
            number,
            connection: Arc::clone(&connection),
            in_use: 1,
            created_tick: tick,
            idle_since: tick,
            idle_permit: None,
        };
        table.routes.entry(route.clone()).or_default().push(entry);
        if table.ticker.is_none() {
            let (weak, timeout) = (Arc::downgrade(&self.0.table), self.0.limits.idle_timeout);
            table.ticker = Some(aging::start_ticker(weak, timeout, &self.0.supervisor));
        }
        table.queues.note_created(route);
        drop(table);
        // Queued requests get its free streams.
        drop(connecting);
        self.0.permit(route, number, connection)
    }

    /// Whether the receiver chose HTTP/1.1 the last time. Then no request waits for a shared connection.
    pub(in crate::wire) fn speaks_http1(&self, route: &Route) -> bool {
        self.0.table.lock().http1.contains(route)
    }

    pub(in crate::wire) fn note_http1(&self, route: &Route) {
        let mut table = self.0.table.lock();
        if table.http1.len() >= MAX_HTTP1_ROUTES {
            table.http1.clear();
        }
        table.http1.insert(route.clone());
    }

    /// Closes all idle connections.
    pub(in crate::wire) fn clear(&self) {
        self.0.table.lock().close(|_| true);
    }
}

impl Http2PoolHandle {
    fn permit(&self, route: &Route, number: u64, connection: Arc<Http2Connection>) -> StreamPermit {
        StreamPermit { shared: self.clone(), route: route.clone(), number, connection }
    }

    /// Gives queued requests what is available. A permit that nobody wants returns through its `Drop`, which
    /// takes the lock, so nothing is handed out under the lock.
    fn assign_waiting(&self, route: &Route) {
        loop {
            let mut table = self.table.lock();
            let Some(Handoff { sender, kind }) = table.next(route, self.max_lifetime()) else { return };
            drop(table);
            drop(sender.send(match kind {
                HandoffKind::Http1 => Assignment::Http1,
                HandoffKind::Http2(number, connection) => {
                    Assignment::Http2(self.permit(route, number, connection))
                }
                HandoffKind::Connect(started) => {
                    Assignment::Connect(ConnectPermit::new(self.clone(), route.clone(), started))
                }
            }));
        }
    }

    fn max_lifetime(&self) -> u64 {
        aging::in_ticks(self.limits.max_lifetime, self.limits.idle_timeout)
    }
}

impl Drop for Http2Pool {
    fn drop(&mut self) {
        let mut table = self.0.table.lock();
        if let Some(ticker) = table.ticker.take() {
            ticker.abort();
        }
        // Requests in flight hold their connection themselves.
        table.close(|_| true);
    }
}

impl ConnectPermit {
    /// Reports that connecting failed within this time. Queued requests that waited for it fail too.
    pub(in crate::wire) fn failed(mut self, failure: &AttemptFailure, time_given: Duration) {
        self.is_finished = true;
        let notified = self.pool.table.lock().queues.finish_connecting(
            &self.route,
            self.started(),
            Some((failure, time_given)),
        );
        for sender in notified {
            drop(sender.send(Assignment::Failed(failure.clone())));
        }
        self.pool.assign_waiting(&self.route);
    }
}

impl Drop for ConnectPermit {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        self.pool.table.lock().queues.finish_connecting(&self.route, self.started(), None);
        self.pool.assign_waiting(&self.route);
    }
}

impl Http2Table {
    /// A permit on an open connection with a free stream.
    fn take(&mut self, route: &Route, max_lifetime: u64) -> Option<(u64, Arc<Http2Connection>)> {
        let tick = self.tick;
        let entries = self.routes.get_mut(route)?;
        // A closed or expired connection gets no further request; those in flight keep it.
        entries.retain(|entry| entry.connection.is_open() && tick - entry.created_tick < max_lifetime);
        let free = entries.iter_mut().find(|entry| entry.in_use < entry.connection.max_streams());
        let taken = free.map(|entry| {
            entry.in_use += 1;
            entry.idle_permit = None;
            (entry.number, Arc::clone(&entry.connection))
        });
        if entries.is_empty() {
            self.routes.remove(route);
        }
        taken
    }

    /// The next queued request, and what it is given.
    fn next(&mut self, route: &Route, max_lifetime: u64) -> Option<Handoff> {
        if !self.queues.has_waiters(route) {
            return None;
        }
        let entries = self.routes.get(route).map_or(&[][..], Vec::as_slice);
        // The streams per connection are known from open connections.
        let streams = entries.iter().map(|entry| entry.connection.max_streams()).max().unwrap_or(MAX_STREAMS);
        let kind = if self.http1.contains(route) {
            HandoffKind::Http1
        } else if let Some((number, connection)) = self.take(route, max_lifetime) {
            HandoffKind::Http2(number, connection)
        } else {
            HandoffKind::Connect(self.queues.start_connecting(route, streams)?)
        };
        self.queues.pop_waiter(route).map(|sender| Handoff { sender, kind })
    }

    fn entry(&mut self, route: &Route, number: u64) -> Option<&mut Http2Entry> {
        self.routes.get_mut(route)?.iter_mut().find(|entry| entry.number == number)
    }

    /// Closes the idle connections that match `which`.
    fn close(&mut self, which: impl Fn(&Http2Entry) -> bool) {
        self.routes.retain(|_, entries| {
            entries.retain(|entry| entry.in_use > 0 || !which(entry));
            !entries.is_empty()
        });
    }

    fn oldest_idle(&self) -> Option<u64> {
        let idle = self.routes.values().flatten().filter(|entry| entry.idle_permit.is_some());
        idle.min_by_key(|entry| (entry.idle_since, entry.number)).map(|entry| entry.number)
    }
}

impl Aging for Http2Table {
    fn tick(&mut self) {
        self.tick += 1;
        let tick = self.tick;
        self.close(|entry| tick - entry.idle_since >= TICKS_PER_IDLE_TIMEOUT || !entry.connection.is_open());
    }
}

impl StreamPermit {
    /// Takes the connection out of the pool.
    pub(in crate::wire) fn retire(&self) {
        let mut table = self.shared.table.lock();
        let Some(entries) = table.routes.get_mut(&self.route) else { return };
        entries.retain(|entry| entry.number != self.number);
        if entries.is_empty() {
            table.routes.remove(&self.route);
        }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.shared.release(&self.route, self.number);
        // A queued request may take the permit, or replace this connection.
        self.shared.assign_waiting(&self.route);
    }
}

impl Http2PoolHandle {
    fn release(&self, route: &Route, number: u64) {
        let mut table = self.table.lock();
        let tick = table.tick;
        let Some(entry) = table.entry(route, number) else { return };
        entry.in_use -= 1;
        if entry.in_use > 0 {
            return;
        }
        entry.idle_since = tick;
        let idle_permit = self.idle_limit.try_acquire().or_else(|| {
            let oldest = table.oldest_idle()?;
            table.close(|entry| entry.number == oldest);
            self.idle_limit.try_acquire()
        });
        match idle_permit {
            None if table.queues.has_waiters(route) => {}
            None => table.close(|entry| entry.number == number),
            idle_permit => {
                if let Some(entry) = table.entry(route, number) {
                    entry.idle_permit = idle_permit;
                }
            }
        }
    }
}
