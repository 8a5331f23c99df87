use super::json::{are_equal, fit_for_jsonb};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// A larger body is kept as its digest: JSONB takes up to six times the room of the text, and ends at 256 MiB.
const LARGEST: usize = 16 * 1024 * 1024;

/// What a mark keeps of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// All of it.
    #[default]
    Payload,
    /// Only its digest, for those who must not store what they receive.
    Digest,
}

/// A body as the column `payload` has it. There are three forms, all JSON: the body itself; `{"base64": "…"}` for one
/// that is no JSON, or such JSON as JSONB cannot hold; `{"sha256": "…"}` where only the digest is kept.
#[derive(Clone, Debug)]
pub struct Payload {
    body: Bytes,
    keep: Keep,
}

impl Payload {
    /// The part of a body that is to be kept.
    pub fn new(body: &Bytes, keep: Keep) -> Self {
        Self { body: body.clone(), keep }
    }

    /// What a new mark keeps.
    pub fn kept(&self) -> Cow<'_, str> {
        if self.keep == Keep::Digest { Cow::Owned(self.digest()) } else { self.whole() }
    }

    /// What a mark of this body may hold, whichever way it was kept.
    pub fn forms(&self) -> [Cow<'_, str>; 2] {
        [self.whole(), Cow::Owned(self.digest())]
    }

    /// Whether a mark that holds this is of the same body, by the equality of JSONB.
    pub fn is_kept_as(&self, stored: &str) -> bool {
        self.forms().iter().any(|form| are_equal(form, stored))
    }

    fn whole(&self) -> Cow<'_, str> {
        if self.body.len() > LARGEST {
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
    use super::{Keep, LARGEST, Payload};
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
    fn a_mark_is_known_again_whichever_way_it_was_kept() {
        for (now, then) in [(Keep::Payload, Keep::Digest), (Keep::Digest, Keep::Payload)] {
            for body in [br#"{"a": 1}"#.as_slice(), b"a=1"] {
                assert!(payload(body, now).is_kept_as(&payload(body, then).kept()));
                assert!(!payload(body, now).is_kept_as(&payload(b"{}", then).kept()));
            }
        }
    }

    #[test]
    fn what_is_too_large_for_jsonb_is_kept_as_its_digest() {
        let large = Bytes::from(vec![b' '; LARGEST + 1]);
        assert!(Payload::new(&large, Keep::Payload).kept().starts_with(r#"{"sha256""#));
    }
}
