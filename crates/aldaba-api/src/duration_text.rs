//! Durations as text: `500ms`, `5s`, `15m`, `2h`, `7d`.

use std::time::Duration;

/// From the largest unit to the smallest, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// What is expected of one.
pub const EXPECTED: &str = "a duration such as \"500ms\", \"5s\", \"15m\", \"2h\" or \"7d\"";

/// Parses a whole number with its unit.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*millis).map(Duration::from_millis)
}

/// Checks a duration that a caller gives.
///
/// # Errors
/// Says what is wrong.
pub fn check(text: &str) -> Result<(), String> {
    match parse_duration(text) {
        Some(_) => Ok(()),
        None if is_duration(text) => Err("is too long".into()),
        None => Err(format!("expected {EXPECTED}, not \"{text}\"")),
    }
}

/// Whether a text has the form of a duration, even if it is too long to represent.
pub(crate) fn is_duration(text: &str) -> bool {
    let text = text.trim();
    let Some(unit) = text.find(|c: char| !c.is_ascii_digit()) else { return false };
    unit > 0 && UNITS.iter().any(|(name, _)| *name == text[unit..].trim())
}

/// Formats a duration in the largest unit that divides it; fractions of a millisecond are dropped.
#[must_use]
pub fn format_duration(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let whole = |(_, unit): &&(&str, u64)| millis >= *unit && millis.is_multiple_of(*unit);
    match UNITS.iter().find(whole) {
        Some((name, unit)) => format!("{}{name}", millis / unit),
        None => "0s".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_their_units() {
        for (text, millis) in
            [("500ms", 500), ("5s", 5000), ("15m", 900_000), (" 2 h", 7_200_000), ("7d", 604_800_000)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_durations() {
        for text in
            ["", "5", "s", "-5s", "1.5s", "5 weeks", "5S", "99999999999999999999s", "18446744073709551615d"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn a_refused_duration_says_what_is_wrong_with_it() {
        check("5s").unwrap();
        assert_eq!(check("99999999999999999999s").unwrap_err(), "is too long");
        assert_eq!(check("soon").unwrap_err(), format!("expected {EXPECTED}, not \"soon\""));
    }
}
