use super::Recipe;
use crate::key::{HMAC_PREFIX, PUBLIC_PREFIX};
use crate::{KeyError, VerifyingKey, hex};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::fmt;
use thiserror::Error;
use zeroize::Zeroizing;

/// The maximum length of a secret's text, in bytes.
pub const MAX_SECRET_TEXT: usize = 1024;

/// Accepts missing padding and trailing bits in secrets of other senders, as their libraries do; the bytes are the same.
const SLOPPY: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The key of a signature check. Its memory is overwritten when it is dropped, and `Debug` does not show it.
#[derive(Clone, Debug)]
pub struct Secret(pub(crate) VerifyingKey);

/// The format of a sender's secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SecretForm {
    /// The bytes of the text.
    #[default]
    Text,
    /// The same in ASCII only, for a sender that changes other characters.
    AsciiText,
    /// `whsec_…` or `whpk_…`. The secret after `whsec_` may have any length, for other senders.
    Standard,
    /// `whsec_…` and `whpk_…` as `Standard`, any other text as `Text`.
    StandardOrText,
    /// Base64 of the bytes.
    Base64,
    /// Hexadecimal of the bytes.
    Hex,
    /// Base64 of an Ed25519 public key.
    PublicKey,
}

/// Why a text is not a secret. No variant contains any of the text.
#[derive(Clone, Copy, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretError {
    /// The text is empty.
    #[error("the secret is empty: with it, everybody could sign")]
    Empty,
    /// The text is too long.
    #[error("the secret is longer than {MAX_SECRET_TEXT} bytes")]
    TooLong,
    /// The text begins or ends with white space.
    #[error("the secret begins or ends with a space or a line break: copy it without")]
    Spaces,
    /// The text has non-ASCII characters, which this sender changes.
    #[error("the secret must be ASCII: this sender changes other characters before it signs")]
    NotAscii,
    /// The text is not standard base64.
    #[error("the secret must be standard base64")]
    Base64,
    /// The text is not hexadecimal.
    #[error("the secret must be hexadecimal")]
    Hex,
    /// The text is not a key of Standard Webhooks.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// `Debug` shows the same text as `Display`, for `main` and `unwrap`.
impl fmt::Debug for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Secret {
    /// Reads `whsec_…` (shared) or `whpk_…` (public), in the format of Standard Webhooks.
    pub fn standard(text: &str) -> Result<Self, SecretError> {
        Self::read(SecretForm::Standard, text)
    }

    /// The bytes of the text, as for Stripe, GitHub, Slack and Shopify, including a leading `whsec_`.
    pub fn text(text: &str) -> Result<Self, SecretError> {
        Self::read(SecretForm::Text, text)
    }

    /// Reads a secret in the format of the recipe's sender.
    pub fn parse_for(recipe: &Recipe, text: &str) -> Result<Self, SecretError> {
        Self::read(recipe.secret_form(), text)
    }

    /// Reads a secret in the given form.
    ///
    /// # Errors
    /// Fails if the text has another format.
    pub fn read(form: SecretForm, text: &str) -> Result<Self, SecretError> {
        if text.is_empty() {
            return Err(SecretError::Empty);
        }
        if text.len() > MAX_SECRET_TEXT {
            return Err(SecretError::TooLong);
        }
        if text.trim() != text {
            return Err(SecretError::Spaces);
        }
        match form {
            SecretForm::Text => Self::shared(Zeroizing::new(text.as_bytes().to_vec())),
            SecretForm::AsciiText if !text.is_ascii() => Err(SecretError::NotAscii),
            SecretForm::AsciiText => Self::read(SecretForm::Text, text),
            SecretForm::Standard => match text.strip_prefix(HMAC_PREFIX) {
                Some(encoded) => Self::shared(decode_base64(encoded)?),
                None => Ok(Self(VerifyingKey::parse(text)?)),
            },
            SecretForm::StandardOrText
                if text.starts_with(HMAC_PREFIX) || text.starts_with(PUBLIC_PREFIX) =>
            {
                Self::read(SecretForm::Standard, text)
            }
            SecretForm::StandardOrText => Self::read(SecretForm::Text, text),
            SecretForm::Base64 => Self::shared(decode_base64(text)?),
            SecretForm::Hex => Self::shared(hex::read(text).map(Zeroizing::new).ok_or(SecretError::Hex)?),
            SecretForm::PublicKey => Ok(Self(VerifyingKey::public(&decode_base64(text)?)?)),
        }
    }

    fn shared(bytes: Zeroizing<Vec<u8>>) -> Result<Self, SecretError> {
        if bytes.is_empty() { Err(SecretError::Empty) } else { Ok(Self(VerifyingKey::shared(bytes))) }
    }
}

fn decode_base64(text: &str) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    SLOPPY.decode(text).map(Zeroizing::new).map_err(|_| SecretError::Base64)
}

impl From<VerifyingKey> for Secret {
    fn from(key: VerifyingKey) -> Self {
        Self(key)
    }
}
