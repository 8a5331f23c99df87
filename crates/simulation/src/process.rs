//! One life of the server.

use crate::scenario::ClockStep;
use aldaba_delivery::Timestamp;
use aldaba_engine::{Clock, RuntimeClock, SteppedClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Once dead, nothing that its tasks still do until their runtime is dropped may leave a mark on
/// the world: the store, the wire and the client look here first.
#[derive(Debug)]
pub struct Process {
    pub number: usize,
    /// The true time, which everybody but the server has.
    pub clock: Arc<RuntimeClock>,
    /// What the server's machine shows.
    pub machine: Arc<SteppedClock>,
    dead: AtomicBool,
    died: Notify,
}

impl Process {
    /// One on a machine whose clock is right. Must be called on the runtime that the process lives on.
    pub fn new(number: usize, now: Timestamp) -> Arc<Self> {
        Self::with_clock_steps(number, now, &[])
    }

    /// One on a machine whose clock is set now and then.
    pub fn with_clock_steps(number: usize, now: Timestamp, steps: &[ClockStep]) -> Arc<Self> {
        let clock = Arc::new(RuntimeClock::new(now));
        let offset = steps.iter().rfind(|step| step.at <= now).map_or(0, |step| step.offset_millis);
        Arc::new(Self {
            number,
            machine: Arc::new(SteppedClock::new(clock.clone(), offset)),
            clock,
            dead: AtomicBool::new(false),
            died: Notify::new(),
        })
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Sets the machine's clock, whenever it is to be set.
    pub async fn set_clock(self: Arc<Self>, steps: Vec<ClockStep>) {
        for step in steps {
            if step.at > self.now() {
                self.sleep_until(step.at).await;
                self.machine.set_offset(step.offset_millis);
            }
        }
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.died.notify_one();
    }

    /// Resolves when the process has died.
    pub async fn death(&self) {
        self.died.notified().await;
    }

    pub async fn sleep_until(&self, at: Timestamp) {
        tokio::time::sleep(at.since(self.now())).await;
    }
}

/// Sleeps unless there is no time to sleep: a throw of the dice may well be zero.
pub async fn pause(span: Duration) {
    if !span.is_zero() {
        tokio::time::sleep(span).await;
    }
}
