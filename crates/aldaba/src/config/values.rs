//! From the text of a setting to its value.

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
    from_hex(text).or_else(|| BASE64_STANDARD.decode(text).ok()?.try_into().ok())
}

/// The 32 bytes that 64 hexadecimal digits stand for.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |d: u8| char::from(d).to_digit(16);
        *byte = u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()?;
    }
    Some(bytes)
}

pub(super) fn networks(text: &str) -> Option<Vec<IpNet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect()
}
