//! What a dispatcher is held to.

use super::Dispatcher;
use crate::Client;
use crate::retry::Retries;
use std::time::Duration;

const FIRST_TRY: Duration = Duration::from_secs(2);
const GIVE_UP_AFTER: Duration = Duration::from_secs(3600);
const MOST_WAITING: usize = 1000;
const MOST_BYTES: usize = 64 << 20;
/// Each is a socket, and a worker has other uses for its open files.
const FIRST_TRIES_AT_ONCE: usize = 16;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) first_try: Duration,
    pub(super) first_tries_at_once: usize,
    pub(super) give_up_after: Duration,
    pub(super) most_waiting: usize,
    pub(super) most_bytes: usize,
    pub(super) pauses: Retries,
}

/// Makes a [`Dispatcher`].
#[derive(Clone, Debug)]
pub struct DispatcherBuilder {
    pub(super) client: Client,
    pub(super) app: String,
    pub(super) limits: Limits,
}

impl DispatcherBuilder {
    pub(super) fn new(client: Client, app: String) -> Self {
        let limits = Limits {
            first_try: FIRST_TRY,
            first_tries_at_once: FIRST_TRIES_AT_ONCE,
            give_up_after: GIVE_UP_AFTER,
            most_waiting: MOST_WAITING,
            most_bytes: MOST_BYTES,
            pauses: Retries::default().attempts(u32::MAX).pauses(FIRST_PAUSE, LONGEST_PAUSE),
        };
        Self { client, app, limits }
    }

    /// How long the first try may take, with the wait for its turn: for so long a job may have to wait for its
    /// dispatch. 2 s if not given.
    #[must_use]
    pub fn first_try(mut self, first_try: Duration) -> Self {
        self.limits.first_try = first_try;
        self
    }

    /// How many first tries are made at once, at least 1; others wait for their turn. As many at most are made at
    /// once in the background. 16 if not given. Each is a socket.
    #[must_use]
    pub fn first_tries_at_once(mut self, most: usize) -> Self {
        self.limits.first_tries_at_once = most.max(1);
        self
    }

    /// For how long it is tried again to reach Aldaba. An hour if not given.
    #[must_use]
    pub fn give_up_after(mut self, give_up_after: Duration) -> Self {
        self.limits.give_up_after = give_up_after;
        self
    }

    /// How many may wait in memory to be tried again. 1,000 if not given.
    #[must_use]
    pub fn most_waiting(mut self, most_waiting: usize) -> Self {
        self.limits.most_waiting = most_waiting;
        self
    }

    /// How many bytes those may have that wait. 64 MiB if not given.
    #[must_use]
    pub fn most_bytes(mut self, most_bytes: usize) -> Self {
        self.limits.most_bytes = most_bytes;
        self
    }

    /// The pause before the first try in the background, doubled after each that fails, up to `longest`. 500 ms and
    /// 30 s if not given.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        self.limits.pauses = self.limits.pauses.pauses(first, longest);
        self
    }

    /// The dispatcher.
    #[must_use]
    pub fn build(self) -> Dispatcher {
        Dispatcher::new(self)
    }
}
