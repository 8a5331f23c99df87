//! Requests that wait for a shared connection.

use super::http2::StreamPermit;
use crate::wire::route::Route;
use aldaba_delivery::{AttemptFailure, FailureKind};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;

/// The most connections of one route that are opened at once.
const MAX_CONNECTING: usize = 8;

/// The queued requests of each route.
#[derive(Default)]
pub(in crate::wire) struct ConnectionQueues {
    routes: BTreeMap<Route, RouteQueue>,
    /// The last sequence number given to a queued request or a connect permit.
    last_number: u64,
}

#[derive(Default)]
struct RouteQueue {
    waiting: VecDeque<Waiter>,
    connecting: usize,
    /// How many connections were opened while requests waited.
    created: u64,
}

/// A queued request. Dropping it leaves the queue.
pub(in crate::wire) struct QueuedRequest {
    pub(in crate::wire) assignment: oneshot::Receiver<Assignment>,
    /// How many connections had been opened when it was queued.
    created_before: u64,
}

struct Waiter {
    number: u64,
    /// The connect timeout of its policy.
    connect_timeout: Duration,
    sender: oneshot::Sender<Assignment>,
}

/// What a queued request is given.
pub(in crate::wire) enum Assignment {
    /// A permit on a shared connection.
    Http2(StreamPermit),
    /// It opens a connection for itself and the requests behind it.
    Connect(ConnectPermit),
    /// The receiver speaks HTTP/1.1: the request connects for itself.
    Http1,
    /// The connection that it waited for failed.
    Failed(AttemptFailure),
}

/// The right to open a connection.
pub(in crate::wire) struct ConnectPermit {
    pub(in crate::wire) route: Route,
    /// Requests with a lower number were queued before connecting began.
    started: u64,
    pub(in crate::wire) pool: super::http2::Http2PoolHandle,
    pub(in crate::wire) is_finished: bool,
}

impl ConnectionQueues {
    pub(in crate::wire) fn join(&mut self, route: &Route, connect_timeout: Duration) -> QueuedRequest {
        let (sender, assignment) = oneshot::channel();
        let number = self.number();
        let queue = self.routes.entry(route.clone()).or_default();
        queue.waiting.push_back(Waiter { number, connect_timeout, sender });
        QueuedRequest { assignment, created_before: queue.created }
    }

    /// Whether the receiver accepted a connection since this request was queued. If not, the receiver is the
    /// cause of the wait: while requests are queued, somebody connects.
    pub(in crate::wire) fn has_progressed(&self, route: &Route, joined: &QueuedRequest) -> bool {
        self.routes.get(route).is_none_or(|queue| queue.created > joined.created_before)
    }

    pub(in crate::wire) fn note_created(&mut self, route: &Route) {
        if let Some(queue) = self.routes.get_mut(route) {
            queue.created += 1;
        }
    }

    pub(in crate::wire) fn has_waiters(&mut self, route: &Route) -> bool {
        let Some(queue) = self.routes.get_mut(route) else { return false };
        while queue.waiting.front().is_some_and(|waiter| waiter.sender.is_closed()) {
            queue.waiting.pop_front();
        }
        let waits = !queue.waiting.is_empty();
        self.remove_if_empty(route);
        waits
    }

    /// Takes the first request out of the queue.
    pub(in crate::wire) fn pop_waiter(&mut self, route: &Route) -> Option<oneshot::Sender<Assignment>> {
        let pop_waiter = self.routes.get_mut(route)?.waiting.pop_front();
        self.remove_if_empty(route);
        pop_waiter.map(|waiter| waiter.sender)
    }

    /// Starts another connection if the queue needs one, with this many streams each. Returns the number of
    /// its permit.
    pub(in crate::wire) fn start_connecting(&mut self, route: &Route, streams: usize) -> Option<u64> {
        let number = self.number();
        let queue = self.routes.get_mut(route)?;
        let needed = queue.waiting.len().div_ceil(streams.max(1)).min(MAX_CONNECTING);
        (queue.connecting < needed).then(|| {
            queue.connecting += 1;
            number
        })
    }

    /// Notes that connecting ended. After a failure, if no other connection is being opened, returns the
    /// requests to fail. A timeout counts only for requests that were queued before connecting began and
    /// whose own timeout is not longer.
    pub(in crate::wire) fn finish_connecting(
        &mut self,
        route: &Route,
        started: u64,
        failed: Option<(&AttemptFailure, Duration)>,
    ) -> Vec<oneshot::Sender<Assignment>> {
        let Some(queue) = self.routes.get_mut(route) else { return Vec::new() };
        queue.connecting -= 1;
        let mut notified = Vec::new();
        if let Some((failure, assignment)) = failed
            && queue.connecting == 0
        {
            let concerns = |waiter: &Waiter| {
                failure.kind != FailureKind::ConnectTimeout
                    || waiter.number < started && waiter.connect_timeout <= assignment
            };
            let (concerned, others): (VecDeque<_>, VecDeque<_>) = queue.waiting.drain(..).partition(concerns);
            queue.waiting = others;
            notified = concerned.into_iter().map(|waiter| waiter.sender).collect();
        }
        self.remove_if_empty(route);
        notified
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn remove_if_empty(&mut self, route: &Route) {
        if self.routes.get(route).is_some_and(|queue| queue.waiting.is_empty() && queue.connecting == 0) {
            self.routes.remove(route);
        }
    }
}

impl ConnectPermit {
    pub(in crate::wire) fn new(pool: super::http2::Http2PoolHandle, route: Route, started: u64) -> Self {
        Self { route, started, pool, is_finished: false }
    }

    pub(in crate::wire) fn started(&self) -> u64 {
        self.started
    }
}
