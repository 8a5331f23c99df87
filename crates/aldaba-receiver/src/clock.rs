//! Time, read nowhere else in this crate.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// The time of day, against which timestamps of senders are held.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        Self::reading(system_seconds)
    }

    /// One of the caller's own, in seconds since 1970. For tests.
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

/// For measuring how long something takes.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate reads the clock")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The present moment, as records say it.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate reads the calendar")]
pub(crate) fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
