//! The clocks of this crate.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// The time of day, with which the timestamps of senders are compared.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The clock of the machine.
    pub fn system() -> Self {
        Self::reading(system_seconds)
    }

    /// A clock for tests: a function that returns seconds since 1970.
    pub fn reading(seconds: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(seconds))
    }

    pub(crate) fn seconds(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where this crate reads the calendar")]
fn system_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The monotonic clock, for durations.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate reads the clock")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The current time as records store it.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate reads the calendar")]
pub(crate) fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
