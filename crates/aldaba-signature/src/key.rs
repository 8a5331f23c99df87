use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use thiserror::Error;
use zeroize::Zeroizing;

/// The minimum length of a symmetric secret, in bytes.
pub const MIN_SECRET: usize = 24;
/// The maximum length of a symmetric secret, in bytes.
pub const MAX_SECRET: usize = 75;

pub(crate) const HMAC_PREFIX: &str = "whsec_";
const ED25519_PREFIX: &str = "whsk_";
pub(crate) const PUBLIC_PREFIX: &str = "whpk_";

/// A key that signs. Its memory is overwritten when it is dropped, and `Debug` does not show it.
#[derive(Clone)]
pub struct SigningKey(pub(crate) Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    Hmac(Zeroizing<Vec<u8>>),
    Ed25519(Box<ed25519_dalek::SigningKey>),
}

/// Why a text is not a key. No variant contains any of the text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The text has an unknown prefix.
    #[error("the key must begin with {0}")]
    Prefix(&'static str),
    /// The text after the prefix is not standard base64 with padding.
    #[error("the text after the prefix of the key must be standard base64 with padding")]
    Base64,
    /// A shared secret has the wrong length: its bytes.
    #[error("a `whsec_` secret must be {MIN_SECRET} to {MAX_SECRET} bytes long, this one is {0}")]
    SecretLength(usize),
    /// A key pair has the wrong length: its bytes.
    #[error("a `whsk_` key must be 64 bytes long (seed, then public key), this one is {0}")]
    PairLength(usize),
    /// The public half of a key pair does not belong to its seed.
    #[error("the two halves of the `whsk_` key do not match")]
    PairMismatch,
    /// A public key has the wrong length: its bytes.
    #[error("a public key (`whpk_`, Ed25519) must be 32 bytes long, this one is {0}")]
    PublicLength(usize),
    /// A public key is not a valid point, or a weak one.
    #[error("the public key (`whpk_`, Ed25519) is not a point on the curve, or is weak")]
    PublicInvalid,
}

impl SigningKey {
    /// Reads `whsec_…` or `whsk_…`.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if let Some(encoded) = text.strip_prefix(HMAC_PREFIX) {
            Self::hmac(decode(encoded)?)
        } else if let Some(encoded) = text.strip_prefix(ED25519_PREFIX) {
            Self::ed25519_pair(&decode(encoded)?)
        } else {
            Err(KeyError::Prefix("`whsec_` or `whsk_`"))
        }
    }

    /// A shared secret of the given random bytes.
    pub fn generate_hmac(random: [u8; MIN_SECRET]) -> Self {
        Self(Kind::Hmac(Zeroizing::new(random.to_vec())))
    }

    /// A key pair of the given random seed.
    pub fn generate_ed25519(seed: [u8; 32]) -> Self {
        Self(Kind::Ed25519(Box::new(ed25519_dalek::SigningKey::from_bytes(&seed))))
    }

    /// The key for verifiers: a shared secret itself, or the public half of a key pair.
    pub fn public_text(&self) -> String {
        match &self.0 {
            Kind::Hmac(secret) => encode(HMAC_PREFIX, secret),
            Kind::Ed25519(key) => encode(PUBLIC_PREFIX, key.verifying_key().as_bytes()),
        }
    }

    /// The whole key in the format of [`SigningKey::parse`]: for encrypted storage only, never to be shown.
    pub fn secret_text(&self) -> Zeroizing<String> {
        Zeroizing::new(match &self.0 {
            Kind::Hmac(secret) => encode(HMAC_PREFIX, secret),
            Kind::Ed25519(key) => encode(ED25519_PREFIX, &*Zeroizing::new(key.to_keypair_bytes())),
        })
    }

    /// The public half of a key pair.
    pub fn public_bytes(&self) -> Option<[u8; 32]> {
        match &self.0 {
            Kind::Hmac(_) => None,
            Kind::Ed25519(key) => Some(key.verifying_key().to_bytes()),
        }
    }

    /// Whether receivers verify its signatures with a public key.
    pub fn is_asymmetric(&self) -> bool {
        matches!(self.0, Kind::Ed25519(_))
    }

    pub(crate) fn hmac(secret: Zeroizing<Vec<u8>>) -> Result<Self, KeyError> {
        if (MIN_SECRET..=MAX_SECRET).contains(&secret.len()) {
            Ok(Self(Kind::Hmac(secret)))
        } else {
            Err(KeyError::SecretLength(secret.len()))
        }
    }

    fn ed25519_pair(bytes: &[u8]) -> Result<Self, KeyError> {
        let pair: &[u8; 64] = bytes.try_into().map_err(|_| KeyError::PairLength(bytes.len()))?;
        let key = ed25519_dalek::SigningKey::from_keypair_bytes(pair).map_err(|_| KeyError::PairMismatch)?;
        Ok(Self(Kind::Ed25519(Box::new(key))))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Hmac(_) => "SigningKey(hmac)",
            Kind::Ed25519(_) => "SigningKey(ed25519)",
        })
    }
}

pub(crate) fn decode(encoded: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    STANDARD.decode(encoded).map(Zeroizing::new).map_err(|_| KeyError::Base64)
}

fn encode(prefix: &str, bytes: &[u8]) -> String {
    // The length is known, so the string never reallocates and leaves no copy behind.
    let mut text = String::with_capacity(prefix.len() + bytes.len().div_ceil(3) * 4);
    text.push_str(prefix);
    STANDARD.encode_string(bytes, &mut text);
    text
}
