//! Decodes received signatures. Unknown schemes are skipped, because a sender may add new ones.

use crate::scheme::TIME;
use crate::sign::{ED25519_VERSION, HMAC_VERSION};
use crate::verify::MAX_SIGNATURES;
use crate::{HashKind, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// One signature, of the kind of key that can check it.
pub(crate) enum DecodedSignature {
    Hmac(Vec<u8>),
    Ed25519(Box<ed25519_dalek::Signature>),
}

impl DecodedSignature {
    /// `v1,<base64>` or `v1a,<base64>`.
    pub(crate) fn standard(text: &str) -> Option<Self> {
        let (version, encoded) = text.split_once(',')?;
        Self::of(version, || STANDARD.decode(encoded).ok())
    }

    /// Text without a version may be of either kind.
    pub(crate) fn hex(text: &str) -> Vec<Self> {
        Self::bare(hex::read(text))
    }

    pub(crate) fn base64(text: &str) -> Vec<Self> {
        Self::bare(STANDARD.decode(text).ok())
    }

    fn bare(bytes: Option<Vec<u8>>) -> Vec<Self> {
        let Some(bytes) = bytes else { return Vec::new() };
        let kinds = [HMAC_VERSION, ED25519_VERSION];
        kinds.into_iter().filter_map(|version| Self::of(version, || Some(bytes.clone()))).collect()
    }

    fn of(version: &str, bytes: impl FnOnce() -> Option<Vec<u8>>) -> Option<Self> {
        match version {
            HMAC_VERSION => bytes().map(Self::Hmac),
            ED25519_VERSION => {
                let bytes: [u8; 64] = bytes()?.try_into().ok()?;
                Some(Self::Ed25519(Box::new(ed25519_dalek::Signature::from_bytes(&bytes))))
            }
            _ => None,
        }
    }

    pub(crate) fn hmac(&self, hash: HashKind) -> Option<&[u8]> {
        match self {
            Self::Hmac(signature) if signature.len() == hash.length() => Some(signature),
            Self::Hmac(_) | Self::Ed25519(_) => None,
        }
    }

    pub(crate) fn ed25519(&self) -> Option<&ed25519_dalek::Signature> {
        match self {
            Self::Ed25519(signature) => Some(signature),
            Self::Hmac(_) => None,
        }
    }
}

/// `t=<seconds>,v1=<hex>,…`
pub(crate) struct Timestamped<'a> {
    pub(crate) time: &'a str,
    pub(crate) signatures: Vec<DecodedSignature>,
}

impl<'a> Timestamped<'a> {
    /// Reads the header. `None` unless it has exactly one time.
    pub(crate) fn read(header: &'a str) -> Option<Self> {
        let (mut time, mut signatures) = (None, Vec::new());
        // The signatures and the time.
        for part in header.split(',').take(MAX_SIGNATURES + 1) {
            let Some((name, value)) = part.trim_ascii().split_once('=') else { continue };
            if name != TIME {
                signatures.extend(DecodedSignature::of(name, || hex::read(value)));
            } else if time.replace(value).is_some() {
                return None;
            }
        }
        Some(Self { time: time?, signatures })
    }
}
