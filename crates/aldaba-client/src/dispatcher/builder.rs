//! The limits of a dispatcher, and its builder.

use super::Dispatcher;
use crate::Client;
use crate::retry::Retries;
use std::time::Duration;

const FIRST_TRY_TIMEOUT: Duration = Duration::from_secs(2);
const GIVE_UP_AFTER: Duration = Duration::from_secs(3600);
const MAX_WAITING: usize = 1000;
const MAX_BYTES: usize = 64 << 20;
/// Each is a socket, and a worker needs open files for other things.
const MAX_FIRST_TRIES: usize = 16;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) first_try: Duration,
    pub(super) first_tries_at_once: usize,
    pub(super) give_up_after: Duration,
    pub(super) max_waiting: usize,
    pub(super) max_bytes: usize,
    pub(super) pauses: Retries,
}

/// Builds a [`Dispatcher`].
#[derive(Clone, Debug)]
pub struct DispatcherBuilder {
    pub(super) client: Client,
    pub(super) app: String,
    pub(super) limits: Limits,
}

impl DispatcherBuilder {
    pub(super) fn new(client: Client, app: String) -> Self {
        let limits = Limits {
            first_try: FIRST_TRY_TIMEOUT,
            first_tries_at_once: MAX_FIRST_TRIES,
            give_up_after: GIVE_UP_AFTER,
            max_waiting: MAX_WAITING,
            max_bytes: MAX_BYTES,
            pauses: Retries::default().attempts(u32::MAX).pauses(FIRST_PAUSE, MAX_PAUSE),
        };
        Self { client, app, limits }
    }

    /// How long the first request may take, including its wait for one of the permitted requests. A call of
    /// [`Dispatcher::dispatch`] takes no longer. 2 s by default.
    #[must_use]
    pub fn first_try(mut self, first_try: Duration) -> Self {
        self.limits.first_try = first_try;
        self
    }

    /// How many first requests are made at the same time, at least 1; further ones wait. The background makes at
    /// most as many. Each uses a socket. 16 by default.
    #[must_use]
    pub fn first_tries_at_once(mut self, most: usize) -> Self {
        self.limits.first_tries_at_once = most.max(1);
        self
    }

    /// How long an end is retried before it is dropped. One hour by default.
    #[must_use]
    pub fn give_up_after(mut self, give_up_after: Duration) -> Self {
        self.limits.give_up_after = give_up_after;
        self
    }

    /// How many ends may wait in memory for a retry. 1,000 by default.
    #[must_use]
    pub fn most_waiting(mut self, max_waiting: usize) -> Self {
        self.limits.max_waiting = max_waiting;
        self
    }

    /// How many bytes the waiting ends may have together. 64 MiB by default.
    #[must_use]
    pub fn most_bytes(mut self, most_bytes: usize) -> Self {
        self.limits.max_bytes = most_bytes;
        self
    }

    /// The pause before the first retry, doubled after each failure up to `longest`. 500 ms and 30 s by default.
    #[must_use]
    pub fn pauses(mut self, first: Duration, longest: Duration) -> Self {
        self.limits.pauses = self.limits.pauses.pauses(first, longest);
        self
    }

    /// Builds the dispatcher.
    #[must_use]
    pub fn build(self) -> Dispatcher {
        Dispatcher::new(self)
    }
}
