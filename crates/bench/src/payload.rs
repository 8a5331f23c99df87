//! The payload: a number and its due time, padded to a size.

use crate::clock::Nanos;

/// The bytes of a payload that contain its stamp.
pub(crate) const STAMP_BYTES: usize = 80;

/// The information that the receiver reads from a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) sent_at: Nanos,
    pub(crate) number: u64,
}

impl Stamp {
    /// A payload of `bytes`, or of its minimum length.
    pub(crate) fn payload(self, bytes: usize) -> String {
        let Self { sent_at, number } = self;
        let mut text = format!(r#"{{"sent_at_ns":{sent_at},"n":{number},"fill":""#);
        let fill = bytes.saturating_sub(text.len() + 2);
        text.extend(std::iter::repeat_n('x', fill));
        text.push_str("\"}");
        text
    }

    /// Reads the stamp at the beginning of a payload.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let (sent_at, rest) = digits(payload.strip_prefix(br#"{"sent_at_ns":"#)?)?;
        let (number, _) = digits(rest.strip_prefix(br#","n":"#)?)?;
        Some(Self { sent_at, number })
    }
}

fn digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, rest) = bytes.split_at(end);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_its_size_and_gives_its_stamp_back() {
        let stamp = Stamp { sent_at: 12_345_678_901, number: u64::MAX };
        for bytes in [0, 128, 1024] {
            let payload = stamp.payload(bytes);
            assert!(payload.len() == bytes || bytes == 0, "{}", payload.len());
            let start = &payload.as_bytes()[..STAMP_BYTES.min(payload.len())];
            assert_eq!(Stamp::read(start), Some(stamp));
        }
    }

    #[test]
    fn a_foreign_payload_has_no_stamp() {
        assert_eq!(Stamp::read(b"{\"invoice\":42}"), None);
        assert_eq!(Stamp::read(b""), None);
    }
}
