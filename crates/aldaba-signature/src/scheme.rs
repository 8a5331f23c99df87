use crate::key::Kind;
use crate::sign::{ED25519_VERSION, HMAC_VERSION, signature_header};
use crate::{SigningKey, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::Signer;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha512};

/// `t=`, the time in a timestamped header.
pub(crate) const TIME: &str = "t";

/// The hash of an HMAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HashKind {
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-512.
    Sha512,
}

/// How a signature is computed and written. Use Standard Webhooks if you can; the others are for receivers that were
/// built for another sender.
///
/// An Ed25519 key signs the same bytes, whatever the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `v1,<base64>` over `<id>.<timestamp>.<body>`; one for each key, with spaces between.
    Standard,
    /// `t=<timestamp>,v1=<hex>` over `<timestamp>.<body>`; one `v1` for each key.
    Timestamped(HashKind),
    /// Hexadecimal, over the body alone. It has one signature: that of the first key.
    Hex(HashKind),
    /// The same in base64.
    Base64(HashKind),
}

impl Scheme {
    /// The value of the signature header. The current key comes first.
    pub fn sign(self, keys: &[SigningKey], id: &str, timestamp_secs: i64, body: &[u8]) -> String {
        match self {
            Self::Standard => signature_header(keys, id, timestamp_secs, body),
            Self::Timestamped(hash) => timestamped(hash, keys, timestamp_secs, body),
            Self::Hex(hash) => {
                keys.first().map(|key| hex::write(&key.sign_bytes(hash, &[body]))).unwrap_or_default()
            }
            Self::Base64(hash) => {
                keys.first().map(|key| STANDARD.encode(key.sign_bytes(hash, &[body]))).unwrap_or_default()
            }
        }
    }
}

fn timestamped(hash: HashKind, keys: &[SigningKey], timestamp_secs: i64, body: &[u8]) -> String {
    let head = format!("{timestamp_secs}.");
    let mut text = format!("{TIME}={timestamp_secs}");
    for key in keys {
        text.push(',');
        text.push_str(if key.is_asymmetric() { ED25519_VERSION } else { HMAC_VERSION });
        text.push('=');
        text.push_str(&hex::write(&key.sign_bytes(hash, &[head.as_bytes(), body])));
    }
    text
}

impl SigningKey {
    fn sign_bytes(&self, hash: HashKind, message: &[&[u8]]) -> Vec<u8> {
        match &self.0 {
            Kind::Hmac(secret) => hash.hmac(secret, message),
            Kind::Ed25519(key) => key.sign(&message.concat()).to_bytes().to_vec(),
        }
    }
}

impl HashKind {
    /// The length of the hash, in bytes.
    pub(crate) fn length(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Hashes the parts without joining them: a body may have a megabyte.
    pub(crate) fn hmac(self, secret: &[u8], message: &[&[u8]]) -> Vec<u8> {
        fn run<M: Mac + KeyInit>(secret: &[u8], message: &[&[u8]]) -> Vec<u8> {
            let mut mac = <M as KeyInit>::new_from_slice(secret).expect("HMAC takes a key of any length");
            message.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            Self::Sha256 => run::<Hmac<Sha256>>(secret, message),
            Self::Sha512 => run::<Hmac<Sha512>>(secret, message),
        }
    }
}
