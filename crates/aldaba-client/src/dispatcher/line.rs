//! What waits to be told: in order, bounded in number, bytes and time.

use super::DispatcherStats;
use super::builder::Limits;
use crate::api::JobEnd;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A pause of a line that is closed is no longer: somebody waits for its end.
const HURRIED_PAUSE: Duration = Duration::from_millis(500);

/// A server that asks for more is tried all the same.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The end of a job that waits to be told.
pub(super) struct Waiting {
    pub(super) end: JobEnd,
    bytes: usize,
    /// When it is given up; never, if there is no such moment.
    until: Option<Instant>,
}

impl Waiting {
    pub(super) fn new(end: JobEnd, now: Instant, give_up_after: Duration) -> Box<Self> {
        let bytes = serde_json::to_vec(&end).map_or(0, |json| json.len());
        Box::new(Self { end, bytes, until: now.checked_add(give_up_after) })
    }
}

#[derive(Default)]
pub(super) struct Line {
    state: Mutex<State>,
    /// Told when the pause of whoever works is over before its time.
    hurry: Notify,
    /// Told when nothing waits any more.
    empty: Notify,
}

#[derive(Default)]
struct State {
    places: VecDeque<Place>,
    bytes: usize,
    /// Aldaba was not reached when it was last tried, and something waits for it.
    is_down: bool,
    /// For how long Aldaba has asked to be left alone.
    asked_for: Duration,
    /// Somebody works on it.
    worked: bool,
    /// Who that is, once known. It ends before its time with the runtime that it runs on.
    worker: Option<AbortHandle>,
    closed: bool,
    accepted: u64,
    refused: u64,
    dropped: u64,
}

struct Place {
    waiting: Arc<Waiting>,
    /// It is being told just now.
    taken: bool,
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is done under the lock that could leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `false`: no more may wait, and it is lost.
    pub(super) fn join(&self, waiting: Box<Waiting>, limits: &Limits) -> bool {
        let mut state = self.state();
        let joined = state.join(waiting, limits).is_ok();
        state.dropped += u64::from(!joined);
        joined
    }

    /// Joins while Aldaba is known to be away and there is room. Otherwise it comes back: a try is better.
    pub(super) fn join_if_down(&self, waiting: Box<Waiting>, limits: &Limits) -> Result<(), Box<Waiting>> {
        let mut state = self.state();
        if state.is_down { state.join(waiting, limits) } else { Err(waiting) }
    }

    pub(super) fn is_down(&self) -> bool {
        let state = self.state();
        state.is_down && !state.places.is_empty()
    }

    /// Whether Aldaba was there when it was last tried.
    pub(super) fn note_reached(&self, reached: bool) {
        self.state().is_down = !reached;
    }

    /// Whoever gets a `true` works on what waits; there is one of these at most.
    pub(super) fn claim(&self) -> bool {
        let mut state = self.state();
        let worked = state.worked && !state.worker.as_ref().is_some_and(AbortHandle::is_finished);
        if worked || state.places.is_empty() {
            return false;
        }
        // One that ended before its time has left these behind.
        state.places.iter_mut().for_each(|place| place.taken = false);
        (state.worked, state.worker) = (true, None);
        true
    }

    pub(super) fn worked_by(&self, worker: AbortHandle) {
        self.state().worker = Some(worker);
    }

    /// The first that waits. Those whose time is over are dropped.
    pub(super) fn take(&self, now: Instant) -> Option<Arc<Waiting>> {
        let mut state = self.state();
        let before = state.places.len();
        state.places.retain(|place| place.taken || place.waiting.until.is_none_or(|until| until > now));
        let late = before - state.places.len();
        if late > 0 {
            state.dropped += late as u64;
            state.bytes = state.places.iter().map(|place| place.waiting.bytes).sum();
            tracing::error!(count = late, "Aldaba was not reached for too long: webhooks are lost");
        }
        let place = state.places.iter_mut().find(|place| !place.taken)?;
        place.taken = true;
        Some(Arc::clone(&place.waiting))
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
            state.places.push_back(Place { waiting: Arc::clone(waiting), taken: false });
        }
    }

    /// Whoever works asks whether that was all. If so, nobody works any more.
    pub(super) fn leave(&self) -> bool {
        let mut state = self.state();
        let done = state.places.is_empty();
        if done {
            (state.worked, state.worker, state.is_down) = (false, None, false);
            self.empty.notify_waiters();
        }
        done
    }

    /// The next pause is as long at least.
    pub(super) fn asks_for(&self, pause: Option<Duration>) {
        let mut state = self.state();
        state.asked_for = state.asked_for.max(pause.unwrap_or_default().min(LONGEST_RETRY_AFTER));
    }

    /// Waits, or until there is hurry.
    pub(super) async fn pause(&self, pause: Duration) {
        let pause = {
            let mut state = self.state();
            let pause = pause.max(std::mem::take(&mut state.asked_for));
            if state.closed { pause.min(HURRIED_PAUSE) } else { pause }
        };
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
        let left: Vec<_> = state.places.drain(..).map(|place| place.waiting.end.clone()).collect();
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
            retrying: state.places.len() as u64,
            refused: state.refused,
            dropped: state.dropped,
        }
    }
}

impl State {
    fn join(&mut self, waiting: Box<Waiting>, limits: &Limits) -> Result<(), Box<Waiting>> {
        let bytes = self.bytes.saturating_add(waiting.bytes);
        if self.closed || self.places.len() >= limits.most_waiting || bytes > limits.most_bytes {
            return Err(waiting);
        }
        self.bytes = bytes;
        self.places.push_back(Place { waiting: Arc::from(waiting), taken: false });
        Ok(())
    }

    /// Whether it was still there.
    fn remove(&mut self, waiting: &Arc<Waiting>) -> bool {
        let place = self.places.iter().position(|place| Arc::ptr_eq(&place.waiting, waiting));
        if let Some(place) = place {
            self.places.remove(place);
            self.bytes = self.bytes.saturating_sub(waiting.bytes);
        }
        place.is_some()
    }
}
