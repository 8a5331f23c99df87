use std::fmt;
use std::ops::Add;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment, in milliseconds since the Unix epoch. Arithmetic saturates: a receiver's
/// `Retry-After` or an operator's clock must not be able to cause a panic or a wrap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const MIN: Self = Self(i64::MIN);
    pub const MAX: Self = Self(i64::MAX);

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).try_into().unwrap_or(0))
    }

    /// The moment `span` earlier.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// Moments before the epoch become the epoch.
impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self(0) + time.duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// A moment that the system clock cannot represent becomes the epoch.
impl From<Timestamp> for SystemTime {
    fn from(moment: Timestamp) -> Self {
        UNIX_EPOCH.checked_add(moment.since(Timestamp(0))).unwrap_or(UNIX_EPOCH)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_convert_to_system_time_and_back_without_panics() {
        let moment = Timestamp::from_millis(1_780_000_000_123);
        assert_eq!(Timestamp::from(SystemTime::from(moment)), moment);
        assert_eq!(SystemTime::from(Timestamp::MIN), UNIX_EPOCH);
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_secs(5)), Timestamp::from_millis(0));
        assert!(SystemTime::from(Timestamp::MAX) >= UNIX_EPOCH);
    }
}
