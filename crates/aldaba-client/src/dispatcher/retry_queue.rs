//! The queue of job ends that wait for a retry: in order, bounded in number, bytes and time.

use super::DispatcherStats;
use super::builder::Limits;
use crate::api::JobEnd;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The longest pause of a closed queue: a shutdown waits for its end.
const CLOSING_PAUSE: Duration = Duration::from_millis(500);

/// The longest `Retry-After` that the queue follows.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The end of a job that waits for a retry.
pub(super) struct QueuedEnd {
    pub(super) end: JobEnd,
    bytes: usize,
    /// When it is dropped; `None`: never.
    until: Option<Instant>,
}

impl QueuedEnd {
    pub(super) fn new(end: JobEnd, now: Instant, give_up_after: Duration) -> Box<Self> {
        let bytes = serde_json::to_vec(&end).map_or(0, |json| json.len());
        Box::new(Self { end, bytes, until: now.checked_add(give_up_after) })
    }
}

/// The queue, and the state of the worker that empties it.
#[derive(Default)]
pub(super) struct RetryQueue {
    state: Mutex<QueueState>,
    /// Ends the worker's pause early.
    wake: Notify,
    /// Notified when the queue is empty.
    empty: Notify,
}

#[derive(Default)]
struct QueueState {
    entries: VecDeque<QueueEntry>,
    bytes: usize,
    /// The last request did not reach Aldaba.
    is_down: bool,
    /// The `Retry-After` of the last answers.
    requested_delay: Duration,
    /// A worker was started and has not finished.
    has_worker: bool,
    /// The worker's task, once known. The end of its runtime ends it early.
    worker: Option<AbortHandle>,
    closed: bool,
    accepted: u64,
    refused: u64,
    dropped: u64,
}

struct QueueEntry {
    waiting: Arc<QueuedEnd>,
    /// A request for it is under way.
    in_progress: bool,
}

impl RetryQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        // No code under the lock can leave the state inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an end. `false`: the queue is full or closed, and the end is dropped.
    pub(super) fn enqueue(&self, waiting: Box<QueuedEnd>, limits: &Limits) -> bool {
        let mut state = self.state();
        let added = state.enqueue(waiting, limits).is_ok();
        state.dropped += u64::from(!added);
        added
    }

    /// Adds an end if Aldaba is known to be down and the queue has capacity; else returns it for a first request.
    pub(super) fn enqueue_if_down(
        &self,
        waiting: Box<QueuedEnd>,
        limits: &Limits,
    ) -> Result<(), Box<QueuedEnd>> {
        let mut state = self.state();
        if state.is_down { state.enqueue(waiting, limits) } else { Err(waiting) }
    }

    pub(super) fn is_down(&self) -> bool {
        let state = self.state();
        state.is_down && !state.entries.is_empty()
    }

    /// Records whether the last request reached Aldaba.
    pub(super) fn note_reached(&self, reached: bool) {
        self.state().is_down = !reached;
    }

    /// Reserves the role of the only worker. `false`: there is one already, or nothing to do.
    pub(super) fn claim_worker(&self) -> bool {
        let mut state = self.state();
        let has_worker = state.has_worker && !state.worker.as_ref().is_some_and(AbortHandle::is_finished);
        if has_worker || state.entries.is_empty() {
            return false;
        }
        // A worker that ended early may have left these marked.
        state.entries.iter_mut().for_each(|entry| entry.in_progress = false);
        (state.has_worker, state.worker) = (true, None);
        true
    }

    pub(super) fn set_worker(&self, worker: AbortHandle) {
        self.state().worker = Some(worker);
    }

    /// Takes the first end that no request is under way for, and drops those whose time is over.
    pub(super) fn take(&self, now: Instant) -> Option<Arc<QueuedEnd>> {
        let mut state = self.state();
        let before = state.entries.len();
        state
            .entries
            .retain(|entry| entry.in_progress || entry.waiting.until.is_none_or(|until| until > now));
        let expired = before - state.entries.len();
        if expired > 0 {
            state.dropped += expired as u64;
            state.bytes = state.entries.iter().map(|entry| entry.waiting.bytes).sum();
            tracing::error!(count = expired, "Aldaba was unreachable for too long; webhooks are lost");
        }
        let entry = state.entries.iter_mut().find(|entry| !entry.in_progress)?;
        entry.in_progress = true;
        Some(Arc::clone(&entry.waiting))
    }

    /// Removes an end that was accepted or refused.
    pub(super) fn settled(&self, waiting: &Arc<QueuedEnd>, accepted: bool) {
        let mut state = self.state();
        if state.remove(waiting) {
            *(if accepted { &mut state.accepted } else { &mut state.refused }) += 1;
        }
    }

    /// Moves an end behind all others.
    pub(super) fn move_to_back(&self, waiting: &Arc<QueuedEnd>) {
        let mut state = self.state();
        if state.remove(waiting) {
            state.bytes += waiting.bytes;
            state.entries.push_back(QueueEntry { waiting: Arc::clone(waiting), in_progress: false });
        }
    }

    /// Ends the worker's role if the queue is empty.
    pub(super) fn finish_if_empty(&self) -> bool {
        let mut state = self.state();
        let done = state.entries.is_empty();
        if done {
            (state.has_worker, state.worker, state.is_down) = (false, None, false);
            self.empty.notify_waiters();
        }
        done
    }

    /// Makes the next pause at least this long.
    pub(super) fn delay_by(&self, pause: Option<Duration>) {
        let mut state = self.state();
        state.requested_delay = state.requested_delay.max(pause.unwrap_or_default().min(MAX_RETRY_AFTER));
    }

    /// Waits for the pause, or until it is ended early.
    pub(super) async fn pause(&self, pause: Duration) {
        let pause = {
            let mut state = self.state();
            let pause = pause.max(std::mem::take(&mut state.requested_delay));
            if state.closed { pause.min(CLOSING_PAUSE) } else { pause }
        };
        // Either reason to go on is fine.
        let _ = tokio::time::timeout(pause, self.wake.notified()).await;
    }

    /// Refuses further ends and starts the next round at once.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_one();
    }

    /// Waits until the worker has finished.
    pub(super) async fn until_empty(&self) {
        loop {
            let empty = self.empty.notified();
            if !self.state().has_worker {
                return;
            }
            empty.await;
        }
    }

    /// Removes and returns every end that still waits.
    pub(super) fn drain(&self) -> Vec<JobEnd> {
        let mut state = self.state();
        state.bytes = 0;
        let left: Vec<_> = state.entries.drain(..).map(|entry| entry.waiting.end.clone()).collect();
        state.dropped += left.len() as u64;
        self.wake.notify_one();
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
            retrying: state.entries.len() as u64,
            refused: state.refused,
            dropped: state.dropped,
        }
    }
}

impl QueueState {
    fn enqueue(&mut self, waiting: Box<QueuedEnd>, limits: &Limits) -> Result<(), Box<QueuedEnd>> {
        let bytes = self.bytes.saturating_add(waiting.bytes);
        if self.closed || self.entries.len() >= limits.max_waiting || bytes > limits.max_bytes {
            return Err(waiting);
        }
        self.bytes = bytes;
        self.entries.push_back(QueueEntry { waiting: Arc::from(waiting), in_progress: false });
        Ok(())
    }

    /// Removes an end. `false`: it was not in the queue.
    fn remove(&mut self, waiting: &Arc<QueuedEnd>) -> bool {
        let entry = self.entries.iter().position(|entry| Arc::ptr_eq(&entry.waiting, waiting));
        if let Some(entry) = entry {
            self.entries.remove(entry);
            self.bytes = self.bytes.saturating_sub(waiting.bytes);
        }
        entry.is_some()
    }
}
