//! The one file that reads the clock.

use aldaba_delivery::Timestamp;
use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where `now` comes from. Waiting is tokio's business, so that a paused runtime moves both.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time of day: what is stored, signed and compared with due times.
    fn now(&self) -> Timestamp;

    /// A clock that only moves forward, for measuring how long something took.
    fn monotonic(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    fn monotonic(&self) -> Duration {
        self.started.elapsed()
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
