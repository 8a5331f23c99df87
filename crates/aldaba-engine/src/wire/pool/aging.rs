//! Ages of connections, counted in ticks so that no clock is read.

use crate::housekeeping::background::{Background, CONNECTION_AGES};
use aldaba_store::panic_message;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

/// Where panics are reported, once the engine runs.
pub(in crate::wire) type Supervisor = Arc<OnceLock<Background>>;

/// The idle timeout in ticks.
pub(in crate::wire) const TICKS_PER_IDLE_TIMEOUT: u64 = 4;

/// A table whose entries age.
pub(in crate::wire) trait Aging: Send + 'static {
    fn tick(&mut self);
}

/// Starts a task that ticks until the table is dropped.
pub(in crate::wire) fn start_ticker<A: Aging>(
    aging: Weak<Mutex<A>>,
    idle_timeout: Duration,
    supervisor: &Supervisor,
) -> AbortHandle {
    tokio::spawn(run(aging, idle_timeout, supervisor.clone())).abort_handle()
}

pub(in crate::wire) fn in_ticks(duration: Duration, idle_timeout: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / tick_of(idle_timeout).as_nanos()).unwrap_or(u64::MAX)
}

fn tick_of(idle_timeout: Duration) -> Duration {
    (idle_timeout / u32::try_from(TICKS_PER_IDLE_TIMEOUT).unwrap_or(1)).max(Duration::from_millis(1))
}

async fn run<A: Aging>(aging: Weak<Mutex<A>>, idle_timeout: Duration, supervisor: Supervisor) {
    let mut ticks = interval(tick_of(idle_timeout));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick of an interval fires immediately.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(aging) = aging.upgrade() else { return };
        // Unclosed connections would exhaust the descriptors.
        let ticked = catch_unwind(AssertUnwindSafe(|| aging.lock().tick()));
        drop(aging);
        match (ticked, supervisor.get()) {
            (Ok(()), _) => {}
            (Err(panic), Some(background)) => {
                tokio::time::sleep(background.panicked(CONNECTION_AGES, &*panic)).await;
            }
            (Err(panic), None) => {
                tracing::error!(message = panic_message(&*panic), "closing idle connections panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemClock;

    struct CountsTicks(u64);

    impl Aging for CountsTicks {
        fn tick(&mut self) {
            self.0 += 1;
            assert!(self.0 != 2, "on purpose");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ticks_go_on_after_one_that_panics() {
        let counts = Arc::new(Mutex::new(CountsTicks(0)));
        let supervisor = Supervisor::default();
        let background = Background::new(Arc::new(SystemClock::new()));
        supervisor.set(background.clone()).unwrap();
        let ticking = start_ticker(Arc::downgrade(&counts), Duration::from_secs(4), &supervisor);
        while counts.lock().0 < 5 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(background.restarted()[0].name, CONNECTION_AGES);
        ticking.abort();
    }
}
