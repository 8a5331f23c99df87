//! Signatures as they come in, decoded. What is no signature is passed over: a sender may add schemes
//! that this receiver has never heard of.

use crate::scheme::TIME;
use crate::sign::{ED25519_VERSION, HMAC_VERSION};
use crate::verify::MAX_SIGNATURES;
use crate::{HashKind, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// One signature. Which kind of key may check it is part of it.
pub(crate) enum Given {
    Hmac(Vec<u8>),
    Ed25519(Box<ed25519_dalek::Signature>),
}

impl Given {
    /// `v1,<base64>` or `v1a,<base64>`.
    pub(crate) fn standard(text: &str) -> Option<Self> {
        let (version, encoded) = text.split_once(',')?;
        Self::of(version, || STANDARD.decode(encoded).ok())
    }

    /// Bare text says nothing of its kind: the key that checks it does.
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
    pub(crate) given: Vec<Given>,
}

impl<'a> Timestamped<'a> {
    /// `None`: it does not name one time.
    pub(crate) fn read(header: &'a str) -> Option<Self> {
        let (mut time, mut given) = (None, Vec::new());
        // One more than the signatures: the time.
        for part in header.split(',').take(MAX_SIGNATURES + 1) {
            let Some((name, value)) = part.trim_ascii().split_once('=') else { continue };
            if name != TIME {
                given.extend(Given::of(name, || hex::read(value)));
            } else if time.replace(value).is_some() {
                return None;
            }
        }
        Some(Self { time: time?, given })
    }
}
