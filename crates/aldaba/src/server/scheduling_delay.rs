//! Measures how long a task waits for a thread of the API.
//!
//! When processors are short, requests wait in a queue that is not ours: the runtime's queue of tasks that are ready
//! to run. So pulses pass through it all the time. A thread outside of that queue sends them, so each joins at its
//! end; the age of the newest pulse that has come through is the length of the queue.

use aldaba_engine::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;

/// The time between two pulses.
const PULSE_INTERVAL: Duration = Duration::from_millis(10);
/// With this many connections or fewer nothing is refused.
const UNCROWDED_CONNECTIONS: usize = 64;
/// Pulses in the queue at once.
const MAX_PULSES: usize = 64;

#[derive(Debug)]
pub(super) struct SchedulingDelay {
    clock: Arc<dyn Clock>,
    limit: Duration,
    /// When the newest pulse that has come through was sent, in nanoseconds of the clock.
    newest: AtomicU64,
}

impl SchedulingDelay {
    /// The wait that a request may have in all. It waits for a thread twice, when it arrives and when its response is
    /// known: half of the limit. The other half is for the disk.
    pub(super) fn new(clock: Arc<dyn Clock>, longest_wait: Duration) -> Self {
        let newest = AtomicU64::new(nanos(&*clock));
        Self { clock, limit: PULSE_INTERVAL + longest_wait / 4, newest }
    }

    /// Whether a new connection would wait too long. While few are connected they do not cause the wait, and refusing
    /// them would not help.
    pub(super) fn exceeds_limit(&self, connections: usize) -> bool {
        if connections <= UNCROWDED_CONNECTIONS {
            return false;
        }
        let newest = self.newest.load(Ordering::Relaxed);
        Duration::from_nanos(nanos(&*self.clock).saturating_sub(newest)) > self.limit
    }

    /// Sends pulses through `api` without end. Runs on another runtime.
    pub(super) async fn measure(self: Arc<Self>, api: Handle) {
        let mut ticks = tokio::time::interval(PULSE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let under_way = Arc::new(Semaphore::new(MAX_PULSES));
        loop {
            ticks.tick().await;
            let (scheduling_delay, permit) = (self.clone(), under_way.clone().acquire_owned().await);
            let sent = nanos(&*self.clock);
            api.spawn(async move {
                // A pulse can be overtaken.
                scheduling_delay.newest.fetch_max(sent, Ordering::Relaxed);
                drop(permit);
            });
        }
    }
}

fn nanos(clock: &dyn Clock) -> u64 {
    u64::try_from(clock.monotonic().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::Timestamp;

    #[derive(Debug, Default)]
    struct ManualClock(AtomicU64);

    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn the_delay_is_the_age_of_the_newest_pulse() {
        let clock = Arc::new(ManualClock::default());
        let scheduling_delay = SchedulingDelay::new(clock.clone(), Duration::from_millis(400));
        for (now, came_through, long) in [(100, 0, false), (110, 0, false), (111, 0, true), (150, 100, false)]
        {
            clock.0.store(now, Ordering::Relaxed);
            scheduling_delay.newest.store(came_through * 1_000_000, Ordering::Relaxed);
            assert_eq!(scheduling_delay.exceeds_limit(UNCROWDED_CONNECTIONS + 1), long, "{now}");
            assert!(!scheduling_delay.exceeds_limit(UNCROWDED_CONNECTIONS), "few are never refused for it");
        }
    }
}
