//! The one file that reads the clock.

use aldaba_delivery::Timestamp;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where `now` comes from. Waiting is tokio's business, so that a paused runtime moves both.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time of day: what is stored and compared with due times. It does not go back, but for a step of more
    /// than `MAX_SLEWED_STEP`: then it was wrong before.
    fn now(&self) -> Timestamp;

    /// The time of day as others have it, for what they compare with their own clocks. It may go
    /// back.
    fn wall(&self) -> Timestamp {
        self.now()
    }

    /// A clock that only moves forward, for measuring how long something took.
    fn monotonic(&self) -> Duration;
}

/// A step back that is worth a line in the log; less is everyday correction.
const WORTH_SAYING: Duration = Duration::from_secs(1);

/// A step of the clock, forward or back, beyond which it is not trusted.
pub const MAX_TRUSTED_STEP: Duration = Duration::from_secs(24 * 3600);

/// The largest step back that `now` makes up for by running at half speed. A larger one is followed at once: it takes back an
/// earlier step ahead, or the clock is not trusted.
const MAX_SLEWED_STEP: Duration = Duration::from_secs(3600);

/// The machine's clocks. `now` follows the wall clock. After a small step back, `now` runs at half speed until the wall clock
/// has caught up, so that what is due within a minute is due within two.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    follower: Follower,
}

/// Makes a time of day that does not go back of one that may.
#[derive(Debug, Default)]
struct Follower(Mutex<Reading>);

/// The last time that was returned, since the epoch, and the monotonic clock at that moment.
#[derive(Debug, Default)]
struct Reading {
    said: Duration,
    monotonic: Duration,
    /// The wall clock was behind the last returned time.
    behind: bool,
}

impl Follower {
    fn now(&self, wall: Duration, monotonic: Duration) -> Duration {
        let mut last = self.0.lock();
        let said = next(last.said, wall, monotonic.saturating_sub(last.monotonic));
        let set_back = last.said.saturating_sub(wall);
        if set_back > MAX_SLEWED_STEP {
            tracing::warn!(?set_back, "the machine's clock was set back");
        } else if set_back >= WORTH_SAYING && !last.behind {
            tracing::warn!(
                ?set_back,
                "the machine's clock was set back; time runs at half speed until it has caught up"
            );
        }
        *last = Reading { said, monotonic, behind: said > wall };
        said
    }
}

impl SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn new() -> Self {
        Self { started: Instant::now(), follower: Follower::default() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        timestamp(self.follower.now(since_epoch(), self.monotonic()))
    }

    fn wall(&self) -> Timestamp {
        timestamp(since_epoch())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// The time to return: the wall clock, unless it is a little behind the last returned time. Then the time goes on at half the
/// speed of the monotonic clock, in steps finer than the milliseconds of a [`Timestamp`], or time would stand still for frequent
/// callers.
fn next(last: Duration, wall: Duration, passed: Duration) -> Duration {
    let behind = last.saturating_sub(wall);
    if behind.is_zero() || behind > MAX_SLEWED_STEP { wall } else { last.saturating_add(passed / 2) }
}

#[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn timestamp(since_epoch: Duration) -> Timestamp {
    Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// A clock that can be set, for tests: another one, and how far off that it is.
#[derive(Debug)]
pub struct SteppedClock {
    true_clock: Arc<dyn Clock>,
    offset_millis: AtomicI64,
    follower: Follower,
}

impl SteppedClock {
    pub fn new(true_clock: Arc<dyn Clock>, offset_millis: i64) -> Self {
        Self { true_clock, offset_millis: AtomicI64::new(offset_millis), follower: Follower::default() }
    }

    /// Sets it: so far ahead of the true clock, or behind.
    pub fn set_offset(&self, millis: i64) {
        self.offset_millis.store(millis, Ordering::SeqCst);
    }

    fn since_epoch(&self) -> Duration {
        let millis =
            self.true_clock.wall().millis().saturating_add(self.offset_millis.load(Ordering::SeqCst));
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        timestamp(self.follower.now(self.since_epoch(), self.monotonic()))
    }

    fn wall(&self) -> Timestamp {
        timestamp(self.since_epoch())
    }

    fn monotonic(&self) -> Duration {
        self.true_clock.monotonic()
    }
}

/// A clock that moves with tokio's: on a paused runtime, simulated time.
#[derive(Debug)]
pub struct RuntimeClock {
    start: Timestamp,
    started: tokio::time::Instant,
}

impl RuntimeClock {
    /// Must be called on the runtime whose time it follows.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn new(start: Timestamp) -> Self {
        Self { start, started: tokio::time::Instant::now() }
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        self.start + self.monotonic()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const NOON: Duration = Duration::from_secs(1_800_000_000);
    const STEP: Duration = Duration::from_micros(300);

    #[test]
    fn the_wall_clock_is_followed_and_a_step_forward_too() {
        assert_eq!(next(NOON, NOON + STEP, HOUR), NOON + STEP);
        assert_eq!(next(NOON, NOON + HOUR, STEP), NOON + HOUR);
        assert_eq!(next(NOON, NOON, STEP), NOON);
    }

    #[test]
    fn after_a_small_step_back_time_runs_at_half_speed_until_the_wall_has_caught_up() {
        let (mut said, mut wall) = (NOON, NOON - HOUR);
        for _ in 0..10_000 {
            wall += STEP;
            let after = next(said, wall, STEP);
            assert_eq!(after, said + STEP / 2, "however often it is asked");
            said = after;
        }
        let minute = Duration::from_secs(60);
        let mut minutes = 0;
        while said > wall {
            wall += minute;
            let after = next(said, wall, minute);
            assert!(after >= said, "time does not go back");
            (said, minutes) = (after, minutes + 1);
        }
        assert!(said == wall && minutes <= 120, "an hour is made up for within two: {minutes}");
    }

    #[test]
    fn a_step_back_of_more_than_an_hour_is_followed() {
        assert_eq!(next(NOON, NOON - HOUR, STEP), NOON + STEP / 2);
        assert_eq!(next(NOON, NOON - HOUR - STEP, STEP), NOON - HOUR - STEP);
        for hours in [2, 20, 24, 400 * 24] {
            let clock = SteppedClock::new(Arc::new(SystemClock::new()), hours * 3_600_000);
            let ahead = clock.now();
            clock.set_offset(0);
            let hours = u32::try_from(hours).unwrap();
            assert!(clock.now() + hours * HOUR < ahead + HOUR, "{hours} h: it was corrected");
        }
    }

    #[test]
    fn the_systems_clock_does_not_go_back_after_a_wall_clock_that_was_a_little_ahead() {
        let clock = SystemClock::new();
        let wall = clock.wall();
        assert!(clock.now() >= wall);
        // As if the wall clock had been half an hour ahead until now.
        clock.follower.0.lock().said += HOUR / 2;
        let ahead = clock.now();
        assert!(ahead >= wall + HOUR / 2);
        assert!(clock.now() >= ahead);
        assert!(clock.wall() < wall + HOUR / 2, "what is signed is the true time");
    }
}
