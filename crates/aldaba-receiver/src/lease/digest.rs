use std::fmt::Write;

/// A digest as it stands in a record.
pub(crate) fn hex(digest: [u8; 32]) -> String {
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing into a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether it is one of ours: what other programs write there says nothing of bodies.
pub(crate) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
