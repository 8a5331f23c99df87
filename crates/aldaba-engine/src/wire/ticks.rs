//! Ages are counted in ticks, so that nobody has to read a clock.

use parking_lot::Mutex;
use std::sync::Weak;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

/// So many ticks make up the idle timeout.
pub(super) const TICKS: u64 = 4;

/// What grows older.
pub(super) trait Aging: Send + 'static {
    fn tick(&mut self);
}

/// Ticks until what ages is gone.
pub(super) fn start<A: Aging>(aging: Weak<Mutex<A>>, idle_timeout: Duration) -> AbortHandle {
    tokio::spawn(run(aging, idle_timeout)).abort_handle()
}

pub(super) fn in_ticks(duration: Duration, idle_timeout: Duration) -> u64 {
    u64::try_from(duration.as_nanos() / tick_of(idle_timeout).as_nanos()).unwrap_or(u64::MAX)
}

fn tick_of(idle_timeout: Duration) -> Duration {
    (idle_timeout / u32::try_from(TICKS).unwrap_or(1)).max(Duration::from_millis(1))
}

async fn run<A: Aging>(aging: Weak<Mutex<A>>, idle_timeout: Duration) {
    let mut ticks = interval(tick_of(idle_timeout));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick of an interval comes at once.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let Some(aging) = aging.upgrade() else { return };
        aging.lock().tick();
    }
}
