//! Times in RFC 3339.

use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;

/// The beginning of the year 0 in milliseconds. RFC 3339 writes no earlier one.
const YEAR_0_MILLIS: i64 = -62_167_219_200_000;

/// A moment in milliseconds. The last hours of the year 9999 cannot be shown and count as the last moment that can: they
/// mean that there is no end.
#[must_use]
pub fn moment_millis(text: &str) -> Option<i64> {
    let moment = text.parse::<jiff::Timestamp>().ok().or_else(|| {
        let pieces = Pieces::parse(text).ok()?;
        let is_moment = pieces.time().is_some() && pieces.to_numeric_offset().is_some();
        let is_last = pieces.date() >= jiff::Timestamp::MAX.to_zoned(TimeZone::UTC).date();
        (is_moment && is_last).then_some(jiff::Timestamp::MAX)
    })?;
    Some(moment.as_millisecond()).filter(|millis| *millis >= YEAR_0_MILLIS)
}

/// Checks a moment.
///
/// # Errors
/// Says how one is written.
pub fn is_moment(text: &str) -> Result<(), String> {
    match moment_millis(text) {
        Some(_) => Ok(()),
        None => Err("must be a date and time with an offset, such as 2026-01-31T12:00:00Z".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::moment_millis;

    #[test]
    fn moments_begin_with_the_year_0_and_end_with_the_year_9999() {
        assert_eq!(moment_millis("1970-01-01T00:00:01.5Z"), Some(1500));
        assert_eq!(moment_millis("0000-01-01T00:00:00Z"), Some(super::YEAR_0_MILLIS));
        assert!(moment_millis("9999-12-31T23:59:59Z").is_some());
        for wrong in
            ["-000001-12-31T23:59:59Z", "-009999-01-01T00:00:00Z", "0000-01-01T00:00:00+01:00", "2026-01-31"]
        {
            assert_eq!(moment_millis(wrong), None, "{wrong}");
        }
    }
}
