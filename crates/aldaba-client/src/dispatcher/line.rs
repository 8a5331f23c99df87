//! What waits to be told: in order, bounded in number, bytes and time.

use super::{DispatcherStats, Limits};
use crate::api::JobEnd;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A pause of a line that is closed is no longer: somebody waits for its end.
const HURRIED_PAUSE: Duration = Duration::from_millis(500);

/// The end of a job that waits to be told.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) end: JobEnd,
    bytes: usize,
    until: Instant,
}

impl Waiting {
    pub(super) fn new(end: JobEnd, until: Instant) -> Self {
        let bytes = serde_json::to_vec(&end).map_or(0, |json| json.len());
        Self { end, bytes, until }
    }
}

#[derive(Debug, Default)]
pub(super) struct Line {
    state: Mutex<State>,
    /// Told when the pause of whoever works is over before its time.
    hurry: Notify,
    /// Told when nothing waits any more.
    empty: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Waiting>>,
    bytes: usize,
    /// Somebody works on it.
    worked: bool,
    /// Who that is, once known. It ends before its time with the runtime that it runs on.
    worker: Option<AbortHandle>,
    closed: bool,
    accepted: u64,
    refused: u64,
    dropped: u64,
}

/// What came of joining the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nobody works on the line; whoever joined must see to it.
    First,
    /// Somebody does.
    Later,
    /// No more may wait.
    Full,
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is done under the lock that could leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(&self, waiting: Waiting, limits: &Limits) -> Place {
        let mut state = self.state();
        let bytes = state.bytes.saturating_add(waiting.bytes);
        if state.closed || state.waiting.len() >= limits.most_waiting || bytes > limits.most_bytes {
            state.dropped += 1;
            return Place::Full;
        }
        state.bytes = bytes;
        state.waiting.push_back(Arc::new(waiting));
        let ended = state.worker.as_ref().is_some_and(AbortHandle::is_finished);
        if state.worked && !ended {
            return Place::Later;
        }
        (state.worked, state.worker) = (true, None);
        Place::First
    }

    pub(super) fn worked_by(&self, worker: AbortHandle) {
        self.state().worker = Some(worker);
    }

    /// The first that waits. Those whose time is over are dropped.
    pub(super) fn head(&self, now: Instant) -> Option<Arc<Waiting>> {
        let mut state = self.state();
        let before = state.waiting.len();
        state.waiting.retain(|waiting| waiting.until > now);
        let late = before - state.waiting.len();
        if late > 0 {
            state.dropped += late as u64;
            state.bytes = state.waiting.iter().map(|waiting| waiting.bytes).sum();
            tracing::error!(count = late, "Aldaba was not reached for too long: webhooks are lost");
        }
        state.waiting.front().cloned()
    }

    /// One has been taken or refused.
    pub(super) fn settled(&self, waiting: &Arc<Waiting>, accepted: bool) {
        let mut state = self.state();
        if state.remove(waiting) {
            *(if accepted { &mut state.accepted } else { &mut state.refused }) += 1;
        }
    }

    pub(super) fn to_the_end(&self, waiting: &Arc<Waiting>) {
        let mut state = self.state();
        if state.remove(waiting) {
            state.bytes += waiting.bytes;
            state.waiting.push_back(Arc::clone(waiting));
        }
    }

    /// Whoever works asks whether that was all. If so, nobody works any more.
    pub(super) fn leave(&self) -> bool {
        let mut state = self.state();
        let done = state.waiting.is_empty();
        if done {
            (state.worked, state.worker) = (false, None);
            self.empty.notify_waiters();
        }
        done
    }

    /// Waits, or until there is hurry.
    pub(super) async fn pause(&self, pause: Duration) {
        let pause = if self.state().closed { pause.min(HURRIED_PAUSE) } else { pause };
        // Its end does not say which of both it was, and it does not matter.
        let _ = tokio::time::timeout(pause, self.hurry.notified()).await;
    }

    /// Nothing can join any more, and what waits is tried now.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.hurry.notify_one();
    }

    /// Ends when nobody works any more.
    pub(super) async fn emptied(&self) {
        loop {
            let empty = self.empty.notified();
            if !self.state().worked {
                return;
            }
            empty.await;
        }
    }

    /// Everything that still waits; it does not any more.
    pub(super) fn give_up(&self) -> Vec<JobEnd> {
        let mut state = self.state();
        state.bytes = 0;
        let left: Vec<_> = state.waiting.drain(..).map(|waiting| waiting.end.clone()).collect();
        state.dropped += left.len() as u64;
        self.hurry.notify_one();
        left
    }

    pub(super) fn accepted(&self) {
        self.state().accepted += 1;
    }

    pub(super) fn refused(&self) {
        self.state().refused += 1;
    }

    pub(super) fn stats(&self) -> DispatcherStats {
        let state = self.state();
        DispatcherStats {
            accepted: state.accepted,
            retrying: state.waiting.len() as u64,
            refused: state.refused,
            dropped: state.dropped,
        }
    }
}

impl State {
    /// Whether it was still there.
    fn remove(&mut self, waiting: &Arc<Waiting>) -> bool {
        let place = self.waiting.iter().position(|other| Arc::ptr_eq(other, waiting));
        if let Some(place) = place {
            self.waiting.remove(place);
            self.bytes = self.bytes.saturating_sub(waiting.bytes);
        }
        place.is_some()
    }
}
