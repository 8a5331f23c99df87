//! Time and random numbers: the only place that reads them.

use crate::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

#[expect(clippy::disallowed_methods, reason = "the one place where this crate reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The current date and time.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate reads the calendar")]
pub(crate) fn calendar() -> SystemTime {
    SystemTime::now()
}

/// The current time as the API writes it.
pub(crate) fn timestamp() -> String {
    rfc3339(calendar().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Random bytes of the operating system.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate takes random bytes")]
fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok().map(|()| bytes)
}

/// A random number from 0 to 1; 0.5 if the system has none, so that pauses are merely not spread.
pub(crate) fn chance() -> f64 {
    random().map_or(0.5, |bytes| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

/// A unique idempotency key.
pub(crate) fn unique_key() -> Result<String, Error> {
    let bytes: [u8; 16] = random().ok_or_else(|| Error::Request {
        detail: "the operating system gives no random bytes for an idempotency key".into(),
    })?;
    Ok(format!("auto-{:032x}", u128::from_le_bytes(bytes)))
}

/// Formats a time since 1970 as UTC with milliseconds.
fn rfc3339(since_epoch: Duration) -> String {
    let (seconds, millis) = (since_epoch.as_secs(), since_epoch.subsec_millis());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day. Internally a year begins in March, so that a leap day is its last.
fn date(days_since_epoch: u64) -> (u64, u64, u64) {
    let days = days_since_epoch + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_dates() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (1_736_937_000_000, "2025-01-15T10:30:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn keys_are_unique() {
        let keys: std::collections::HashSet<_> = (0..1000).map(|_| unique_key().unwrap()).collect();
        assert_eq!(keys.len(), 1000);
    }

    #[test]
    fn random_numbers_are_from_0_to_1() {
        assert!((0..1000).map(|_| chance()).all(|chance| (0.0..=1.0).contains(&chance)));
    }
}
