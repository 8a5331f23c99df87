use super::Recipe;
use crate::key::{HMAC_PREFIX, PUBLIC_PREFIX};
use crate::{KeyError, VerifyingKey, hex};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::fmt;
use thiserror::Error;
use zeroize::Zeroizing;

/// The longest text of a secret, in bytes.
pub const MAX_SECRET_TEXT: usize = 1024;

/// Padding that is missing, and bits that are left over at the end, are no reason to refuse another sender's secret: the
/// libraries that senders point to take it so, and the bytes are the same.
const SLOPPY: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What a signature is checked with. Its memory is overwritten when it is dropped, and it never shows itself in
/// debug output.
#[derive(Clone, Debug)]
pub struct Secret(pub(crate) VerifyingKey);

/// How a sender's secret is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SecretForm {
    /// The bytes of the text, whatever it looks like.
    #[default]
    Text,
    /// The same, where the sender does not use the bytes of other texts as they are.
    AsciiText,
    /// `whsec_…` or `whpk_…`. The secret behind `whsec_` may have any length: how long other senders make theirs is
    /// not ours to judge.
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

/// Why a text is no secret. No variant holds any of the text.
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
    /// The text has characters beyond ASCII, which this sender changes.
    #[error("the secret must be ASCII: this sender changes other characters before it signs")]
    NotAscii,
    /// The text is not standard base64.
    #[error("the secret must be standard base64")]
    Base64,
    /// The text is not hexadecimal.
    #[error("the secret must be hexadecimal")]
    Hex,
    /// The text is no key of Standard Webhooks.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// In the same words as for everybody: `main` shows the error that it returns in this way, and so does `unwrap`.
impl fmt::Debug for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Secret {
    /// Reads `whsec_…` (shared) or `whpk_…` (public), as Standard Webhooks writes them.
    pub fn standard(text: &str) -> Result<Self, SecretError> {
        Self::read(SecretForm::Standard, text)
    }

    /// The bytes of the text, as Stripe, GitHub, Slack and Shopify use it. A `whsec_` at its beginning is part of it.
    pub fn text(text: &str) -> Result<Self, SecretError> {
        Self::read(SecretForm::Text, text)
    }

    /// Reads a secret in the form in which the recipe's sender shows it.
    pub fn parse_for(recipe: &Recipe, text: &str) -> Result<Self, SecretError> {
        Self::read(recipe.secret_form(), text)
    }

    /// Reads a secret in the given form.
    ///
    /// # Errors
    /// If the text has another form.
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
