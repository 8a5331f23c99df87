//! Requests that wait for a place on a shared connection.

use super::http2::StreamPermit;
use crate::wire::route::Route;
use aldaba_delivery::{Failure, FailureKind};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;

/// The most connections of one route that are made at once.
const MAX_CONNECTING: usize = 8;

/// The requests of each route that have no place yet.
#[derive(Default)]
pub(in crate::wire) struct ConnectionQueues {
    routes: BTreeMap<Route, RouteQueue>,
    /// How many have joined or begun to connect.
    last_number: u64,
}

#[derive(Default)]
struct RouteQueue {
    waiting: VecDeque<Waiter>,
    connecting: usize,
    /// How many connections have been made while somebody waited.
    created: u64,
}

/// A request in the queue. Whoever drops it waits no longer.
pub(in crate::wire) struct QueuedRequest {
    pub(in crate::wire) assignment: oneshot::Receiver<Assignment>,
    /// How many connections had been made when it joined.
    created_before: u64,
}

struct Waiter {
    number: u64,
    /// How long its policy lets it connect.
    connect_timeout: Duration,
    sender: oneshot::Sender<Assignment>,
}

/// What a request that waited gets.
pub(in crate::wire) enum Assignment {
    /// A place on a connection.
    Http2(StreamPermit),
    /// It makes a connection, for itself and for those behind it.
    Connect(ConnectPermit),
    /// The receiver speaks HTTP/1.1: it connects for itself alone.
    Http1,
    /// The connection that was made for it could not be made.
    Failed(Failure),
}

/// The right to make a connection.
pub(in crate::wire) struct ConnectPermit {
    pub(in crate::wire) route: Route,
    /// Those who joined before this number were there when it began.
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

    /// Whether the receiver has taken a connection since this one waits. If not, it is the receiver that is waited
    /// for: as long as somebody waits, somebody connects.
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

    /// The way to the first who waits.
    pub(in crate::wire) fn pop_waiter(&mut self, route: &Route) -> Option<oneshot::Sender<Assignment>> {
        let pop_waiter = self.routes.get_mut(route)?.waiting.pop_front();
        self.remove_if_empty(route);
        pop_waiter.map(|waiter| waiter.sender)
    }

    /// Whether another connection is to be made for those who wait, each carrying so many of them; and the number
    /// of its beginning.
    pub(in crate::wire) fn start_connecting(&mut self, route: &Route, streams: usize) -> Option<u64> {
        let number = self.number();
        let queue = self.routes.get_mut(route)?;
        let needed = queue.waiting.len().div_ceil(streams.max(1)).min(MAX_CONNECTING);
        (queue.connecting < needed).then(|| {
            queue.connecting += 1;
            number
        })
    }

    /// A connection was made, or was not. Then those who wait hear of it, unless another is being made. A timeout
    /// counts for those only who waited since before it began, and would not have waited longer.
    pub(in crate::wire) fn finish_connecting(
        &mut self,
        route: &Route,
        started: u64,
        failed: Option<(&Failure, Duration)>,
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
