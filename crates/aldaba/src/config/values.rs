//! From the text of a setting to its value.

use aldaba_engine::key_from_hex;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ipnet::IpNet;
use std::time::Duration;

pub(super) fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(super) fn days(number: u64) -> Duration {
    Duration::from_secs(number.saturating_mul(24 * 3600))
}

pub(super) fn encryption_key(text: &str) -> Option<[u8; 32]> {
    key_from_hex(text).or_else(|| BASE64_STANDARD.decode(text).ok()?.try_into().ok())
}

pub(super) fn networks(text: &str) -> Option<Vec<IpNet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect()
}
