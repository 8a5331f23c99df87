//! Ranges of HTTP statuses as text: `200-299`, or a single `429`.

/// What is expected of one.
pub const EXPECTED: &str = "a status such as \"429\" or \"200-299\"";

/// Parses the first and the last status of a range.
#[must_use]
pub fn parse_status_range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

/// Formats a range; a single status stands alone.
#[must_use]
pub fn format_status_range((first, last): (u16, u16)) -> String {
    match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    }
}

/// Checks a range that a caller gives.
///
/// # Errors
/// Says what is wrong.
pub fn check(text: &str) -> Result<(), String> {
    match parse_status_range(text) {
        Some(_) => Ok(()),
        None => Err(format!("expected {EXPECTED}, not \"{text}\"")),
    }
}
