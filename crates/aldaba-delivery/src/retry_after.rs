use crate::Timestamp;
use std::time::{Duration, UNIX_EPOCH};

/// The value of a `Retry-After` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    Seconds(u64),
    At(Timestamp),
}

impl RetryAfter {
    /// Parses whole seconds or an HTTP date. Anything else, and two different headers, is ignored: a garbled
    /// header must neither stop nor hurry a delivery.
    pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut wishes = values.into_iter().map(Self::parse_one);
        let first = wishes.next()??;
        wishes.all(|wish| wish == Some(first)).then_some(first)
    }

    fn parse_one(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?.trim();
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            // More digits than fit are still a number of seconds; the policy's limit clamps it.
            return Some(Self::Seconds(text.parse().unwrap_or(u64::MAX)));
        }
        let date = httpdate::parse_http_date(text).ok()?;
        let millis = date.duration_since(UNIX_EPOCH).ok()?.as_millis();
        Some(Self::At(Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))))
    }

    /// The delay from `now`; zero for a past date.
    pub fn delay(self, now: Timestamp) -> Duration {
        match self {
            Self::Seconds(seconds) => Duration::from_secs(seconds),
            Self::At(at) => at.since(now),
        }
    }
}
