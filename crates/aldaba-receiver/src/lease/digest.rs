use std::fmt::Write;

/// A digest as records store it.
pub(crate) fn hex(digest: [u8; 32]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a text is a digest of this crate: other programs may store other values.
pub(crate) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
