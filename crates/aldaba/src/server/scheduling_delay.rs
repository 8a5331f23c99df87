//! How late the threads of the API are: how long whoever needs one of them waits for his turn.
//!
//! When processors are short, requests wait in a line that no queue of ours shows: that of the tasks
//! that are ready to run. So pulses go through it all the time. They are sent from a thread that is not
//! in that line, so each goes to its end; and as old as the newest is that has come through, so long
//! is the line.

use aldaba_engine::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;

/// Between two pulses.
const PERIOD: Duration = Duration::from_millis(10);
/// So many connections are no crowd.
const FEW: usize = 64;
/// How many pulses may be under way.
const MOST: usize = 64;

#[derive(Debug)]
pub(super) struct SchedulingDelay {
    clock: Arc<dyn Clock>,
    limit: Duration,
    /// When the newest pulse was sent that has come through, in nanoseconds of the clock.
    newest: AtomicU64,
}

impl SchedulingDelay {
    /// A request may wait so long in all. It waits for a thread twice, when it comes and when its answer
    /// is known, and that is half of it; the other half is for the disk.
    pub(super) fn new(clock: Arc<dyn Clock>, longest_wait: Duration) -> Self {
        let newest = AtomicU64::new(nanos(&*clock));
        Self { clock, limit: PERIOD + longest_wait / 4, newest }
    }

    /// Whether whoever comes now would wait too long. Where few are connected it is not they who make others
    /// wait, and refusing them would help nobody.
    pub(super) fn exceeds_limit(&self, connections: usize) -> bool {
        if connections <= FEW {
            return false;
        }
        let newest = self.newest.load(Ordering::Relaxed);
        Duration::from_nanos(nanos(&*self.clock).saturating_sub(newest)) > self.limit
    }

    /// Sends pulses through `api`, for ever. To be run on another runtime.
    pub(super) async fn measure(self: Arc<Self>, api: Handle) {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let under_way = Arc::new(Semaphore::new(MOST));
        loop {
            ticks.tick().await;
            let (scheduling_delay, permit) = (self.clone(), under_way.clone().acquire_owned().await);
            let sent = nanos(&*self.clock);
            api.spawn(async move {
                // One can be overtaken.
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
    struct Hands(AtomicU64);

    impl Clock for Hands {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }

        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn the_line_is_as_long_as_the_newest_pulse_that_came_through_is_old() {
        let clock = Arc::new(Hands::default());
        let scheduling_delay = SchedulingDelay::new(clock.clone(), Duration::from_millis(400));
        for (now, came_through, long) in [(100, 0, false), (110, 0, false), (111, 0, true), (150, 100, false)]
        {
            clock.0.store(now, Ordering::Relaxed);
            scheduling_delay.newest.store(came_through * 1_000_000, Ordering::Relaxed);
            assert_eq!(scheduling_delay.exceeds_limit(FEW + 1), long, "{now}");
            assert!(!scheduling_delay.exceeds_limit(FEW), "few are never refused for it");
        }
    }
}
