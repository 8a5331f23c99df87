use super::json::{are_equal, fit_for_jsonb};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// A larger body is kept as its digest: JSONB needs up to six times the size of the text, and is limited to 256 MiB.
const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

/// What a mark keeps of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// The whole body.
    #[default]
    Payload,
    /// Only a digest, for programs that must not store payloads.
    Digest,
}

/// A body as the column `payload` stores it. There are three forms, all JSON: the body itself; `{"base64": "…"}` for a body
/// that is not JSON or that JSONB cannot store; `{"sha256": "…"}` for a digest.
#[derive(Clone, Debug)]
pub struct Payload {
    body: Bytes,
    keep: Keep,
}

impl Payload {
    /// A body, and what to keep of it.
    pub fn new(body: &Bytes, keep: Keep) -> Self {
        Self { body: body.clone(), keep }
    }

    /// The value for a new mark.
    pub fn kept(&self) -> Cow<'_, str> {
        if self.keep == Keep::Digest { Cow::Owned(self.digest()) } else { self.whole() }
    }

    /// The values that a mark of this body may have.
    pub fn forms(&self) -> [Cow<'_, str>; 2] {
        [self.whole(), Cow::Owned(self.digest())]
    }

    /// Whether a stored value is of the same body, by the equality of JSONB.
    pub fn is_kept_as(&self, stored: &str) -> bool {
        self.forms().iter().any(|form| are_equal(form, stored))
    }

    fn whole(&self) -> Cow<'_, str> {
        if self.body.len() > MAX_PAYLOAD_BYTES {
            return Cow::Owned(self.digest());
        }
        match fit_for_jsonb(&self.body) {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(format!(r#"{{"base64": "{}"}}"#, BASE64_STANDARD.encode(&self.body))),
        }
    }

    fn digest(&self) -> String {
        let hex: String = Sha256::digest(&self.body).iter().map(|byte| format!("{byte:02x}")).collect();
        format!(r#"{{"sha256": "{hex}"}}"#)
    }
}

#[cfg(test)]
mod tests {
    use super::{Keep, MAX_PAYLOAD_BYTES, Payload};
    use bytes::Bytes;

    fn payload(body: &'static [u8], keep: Keep) -> Payload {
        Payload::new(&Bytes::from_static(body), keep)
    }

    #[test]
    fn json_is_kept_as_it_is_and_anything_else_as_base64() {
        assert_eq!(payload(br#"{"a": 1}"#, Keep::Payload).kept(), r#"{"a": 1}"#);
        assert_eq!(payload(b"a=1", Keep::Payload).kept(), r#"{"base64": "YT0x"}"#);
        assert_eq!(payload(b"", Keep::Payload).kept(), r#"{"base64": ""}"#);
        assert_eq!(payload(br#""\u0000""#, Keep::Payload).kept(), r#"{"base64": "Ilx1MDAwMCI="}"#);
    }

    #[test]
    fn a_digest_shows_nothing_of_the_body() {
        let kept = payload(b"abc", Keep::Digest).kept().into_owned();
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(kept, format!(r#"{{"sha256": "{digest}"}}"#));
    }

    #[test]
    fn a_mark_is_recognized_in_either_form() {
        for (now, then) in [(Keep::Payload, Keep::Digest), (Keep::Digest, Keep::Payload)] {
            for body in [br#"{"a": 1}"#.as_slice(), b"a=1"] {
                assert!(payload(body, now).is_kept_as(&payload(body, then).kept()));
                assert!(!payload(body, now).is_kept_as(&payload(b"{}", then).kept()));
            }
        }
    }

    #[test]
    fn bodies_too_large_for_jsonb_are_kept_as_digests() {
        let large = Bytes::from(vec![b' '; MAX_PAYLOAD_BYTES + 1]);
        assert!(Payload::new(&large, Keep::Payload).kept().starts_with(r#"{"sha256""#));
    }
}
