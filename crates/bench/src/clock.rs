//! The clock of a run. The load and the receiver are threads of this process, so a time that one writes into a payload is
//! valid for the other.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

/// Nanoseconds since the start of the run.
pub(crate) type Nanos = u64;

pub(crate) const SECOND: Nanos = 1_000_000_000;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Nanos {
    let began = *BEGAN;
    nanos(Instant::now().saturating_duration_since(began))
}

/// Seconds since 1970, for the headers of signed requests.
#[expect(clippy::disallowed_methods, reason = "receivers know no other clock")]
pub(crate) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or_default()
}

pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

pub(crate) fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

pub(crate) fn millis(nanos: Nanos) -> f64 {
    nanos as f64 / 1e6
}

/// Sleeps until a moment, with the precision of the system's timers: those of the runtime have a resolution of a
/// millisecond.
pub(crate) fn sleep_until(moment: Nanos) {
    std::thread::sleep(Duration::from_nanos(moment.saturating_sub(now())));
}
