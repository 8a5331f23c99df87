//! Moments: written in UTC, so that a page reads the same whenever it is rendered; the script shows how long ago that is.

use crate::api::shown_time;
use aldaba_delivery::Timestamp;

/// Such as `2026-11-19 18:12:03`.
fn short(at: Timestamp) -> String {
    let whole = shown_time(at);
    match whole.split_once('.') {
        Some((seconds, _)) => seconds.replace('T', " "),
        None => whole,
    }
}

pub(crate) fn moment(at: Timestamp) -> String {
    let exact = shown_time(at);
    format!("<time datetime=\"{exact}\" title=\"{exact}\">{} UTC</time>", short(at))
}

/// A dash where there is none.
pub(crate) fn moment_opt(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "–".to_owned(), moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_the_same_whenever_it_is_rendered() {
        let text = moment(Timestamp::from_millis(1_780_000_000_123));
        assert_eq!(
            text,
            "<time datetime=\"2026-05-28T20:26:40.123Z\" title=\"2026-05-28T20:26:40.123Z\">2026-05-28 20:26:40 UTC</time>"
        );
        assert_eq!(moment_opt(None), "–");
    }
}
