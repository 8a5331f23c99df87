//! Requests that wait for a place on a shared connection.

use super::lines::Slot;
use super::route::Route;
use aldaba_delivery::{AttemptFailure, FailureKind};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;

/// The most connections of one route that are made at once.
const MAX_CONNECTING: usize = 8;

/// The requests of each route that have no place yet.
#[derive(Default)]
pub(super) struct Queues {
    routes: BTreeMap<Route, Queue>,
    /// How many have joined or begun to connect.
    numbers: u64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiter>,
    connecting: usize,
    /// How many connections have been made while somebody waited.
    made: u64,
}

/// A request in the queue. Whoever drops it waits no longer.
pub(super) struct Joined {
    pub(super) given: oneshot::Receiver<Given>,
    /// How many connections had been made when it joined.
    made_before: u64,
}

struct Waiter {
    number: u64,
    /// How long its policy lets it connect.
    connect_timeout: Duration,
    give: oneshot::Sender<Given>,
}

/// What a request that waited gets.
pub(super) enum Given {
    /// A place on a connection.
    Slot(Slot),
    /// It makes a connection, for itself and for those behind it.
    Connect(Connecting),
    /// The receiver speaks HTTP/1.1: it connects for itself alone.
    Alone,
    /// The connection that was made for it could not be made.
    Failed(AttemptFailure),
}

/// The right to make a connection.
pub(super) struct Connecting {
    pub(super) route: Route,
    /// Those who joined before this number were there when it began.
    began: u64,
    pub(super) lines: super::lines::Shared,
    pub(super) ended: bool,
}

impl Queues {
    pub(super) fn join(&mut self, route: &Route, connect_timeout: Duration) -> Joined {
        let (give, given) = oneshot::channel();
        let number = self.number();
        let queue = self.routes.entry(route.clone()).or_default();
        queue.waiting.push_back(Waiter { number, connect_timeout, give });
        Joined { given, made_before: queue.made }
    }

    /// Whether the receiver has taken a connection since this one waits. If not, it is the receiver that is waited
    /// for: as long as somebody waits, somebody connects.
    pub(super) fn has_moved(&self, route: &Route, joined: &Joined) -> bool {
        self.routes.get(route).is_none_or(|queue| queue.made > joined.made_before)
    }

    pub(super) fn note_made(&mut self, route: &Route) {
        if let Some(queue) = self.routes.get_mut(route) {
            queue.made += 1;
        }
    }

    pub(super) fn anyone_waits(&mut self, route: &Route) -> bool {
        let Some(queue) = self.routes.get_mut(route) else { return false };
        while queue.waiting.front().is_some_and(|waiter| waiter.give.is_closed()) {
            queue.waiting.pop_front();
        }
        let waits = !queue.waiting.is_empty();
        self.tidy(route);
        waits
    }

    /// The way to the first who waits.
    pub(super) fn first(&mut self, route: &Route) -> Option<oneshot::Sender<Given>> {
        let first = self.routes.get_mut(route)?.waiting.pop_front();
        self.tidy(route);
        first.map(|waiter| waiter.give)
    }

    /// Whether another connection is to be made for those who wait, each carrying so many of them; and the number
    /// of its beginning.
    pub(super) fn begin_connecting(&mut self, route: &Route, streams: usize) -> Option<u64> {
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
    pub(super) fn connected(
        &mut self,
        route: &Route,
        began: u64,
        failed: Option<(&AttemptFailure, Duration)>,
    ) -> Vec<oneshot::Sender<Given>> {
        let Some(queue) = self.routes.get_mut(route) else { return Vec::new() };
        queue.connecting -= 1;
        let mut told = Vec::new();
        if let Some((failure, given)) = failed
            && queue.connecting == 0
        {
            let concerns = |waiter: &Waiter| {
                failure.kind != FailureKind::ConnectTimeout
                    || waiter.number < began && waiter.connect_timeout <= given
            };
            let (concerned, others): (VecDeque<_>, VecDeque<_>) = queue.waiting.drain(..).partition(concerns);
            queue.waiting = others;
            told = concerned.into_iter().map(|waiter| waiter.give).collect();
        }
        self.tidy(route);
        told
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn tidy(&mut self, route: &Route) {
        if self.routes.get(route).is_some_and(|queue| queue.waiting.is_empty() && queue.connecting == 0) {
            self.routes.remove(route);
        }
    }
}

impl Connecting {
    pub(super) fn new(lines: super::lines::Shared, route: Route, began: u64) -> Self {
        Self { route, began, lines, ended: false }
    }

    pub(super) fn began(&self) -> u64 {
        self.began
    }
}
