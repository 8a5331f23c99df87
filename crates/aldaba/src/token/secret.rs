//! The secret that signs tokens.

use aldaba_engine::Entropy;
use std::fmt;

/// Signs and checks tokens. Too long to guess, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct JwtSecret(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the secret that signs tokens must be at least {} bytes long", JwtSecret::MIN_BYTES)]
pub struct SecretTooShort;

impl JwtSecret {
    /// The length of the digest of HS256.
    pub const MIN_BYTES: usize = 32;

    pub fn new(text: impl Into<String>) -> Result<Self, SecretTooShort> {
        let text = text.into();
        if text.len() < Self::MIN_BYTES { Err(SecretTooShort) } else { Ok(Self(text)) }
    }

    /// A secret that nobody knows, for a server without one.
    pub(crate) fn random(entropy: &dyn Entropy) -> Self {
        let bytes: [u8; Self::MIN_BYTES] = entropy.bytes();
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for JwtSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}
