use crate::decoded::{DecodedSignature, Timestamped};
use crate::key::{HMAC_PREFIX, Kind, PUBLIC_PREFIX, decode};
use crate::{HashKind, KeyError, SigningKey};
use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

/// The default tolerance of timestamps, in both directions.
pub const DEFAULT_TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// The maximum number of signatures that are checked in one header. A sender has few keys; without a limit, a header full
/// of Ed25519 signatures would cost the receiver much time.
pub const MAX_SIGNATURES: usize = 32;

/// A key that verifies: a shared secret (`whsec_…`) or a public key (`whpk_…`).
#[derive(Clone)]
pub struct VerifyingKey(KeyKind);

#[derive(Clone)]
enum KeyKind {
    Hmac(Zeroizing<Vec<u8>>),
    Ed25519(Box<ed25519_dalek::VerifyingKey>),
}

/// The unit of a timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Whole seconds since 1970.
    #[default]
    Seconds,
    /// Whole milliseconds since 1970.
    Milliseconds,
}

/// Verifies messages with all keys that are valid now: during a rotation there are several.
#[derive(Clone, Debug)]
pub struct Verifier {
    keys: Vec<VerifyingKey>,
    tolerance: Duration,
}

/// Why a message is rejected. Only `Mismatch` means that the content or the key is wrong.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The timestamp is not an integer.
    #[error("the timestamp is not an integer")]
    TimestampInvalid,
    /// The timestamp is further in the past than the tolerance.
    #[error("the timestamp is too far in the past: the message is old, or a clock is wrong")]
    TooOld,
    /// The timestamp is further in the future than the tolerance.
    #[error("the timestamp is too far in the future: a clock is wrong")]
    TooNew,
    /// The header has no signature of a supported kind.
    #[error("the header has no signature of a kind that the keys can verify")]
    NoUsableSignature,
    /// No signature matches the message and the keys.
    #[error("no signature matches the message and the keys")]
    Mismatch,
}

impl TimeUnit {
    fn to_seconds(self, time: i64) -> i64 {
        match self {
            Self::Seconds => time,
            Self::Milliseconds => time.div_euclid(1000),
        }
    }
}

impl VerifyingKey {
    /// Reads `whsec_…` or `whpk_…`.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.starts_with(HMAC_PREFIX) {
            SigningKey::parse(text).map(|key| Self::from(&key))
        } else if let Some(encoded) = text.strip_prefix(PUBLIC_PREFIX) {
            Self::public(&decode(encoded)?)
        } else {
            Err(KeyError::Prefix("`whsec_` or `whpk_`"))
        }
    }

    /// A secret of any length, for other senders.
    pub(crate) fn shared(secret: Zeroizing<Vec<u8>>) -> Self {
        Self(KeyKind::Hmac(secret))
    }

    /// The secret, if it is a shared one.
    pub(crate) fn secret(&self) -> Option<&[u8]> {
        match &self.0 {
            KeyKind::Hmac(secret) => Some(secret),
            KeyKind::Ed25519(_) => None,
        }
    }

    pub(crate) fn public(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes: &[u8; 32] = bytes.try_into().map_err(|_| KeyError::PublicLength(bytes.len()))?;
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::PublicInvalid)?;
        if key.is_weak() {
            return Err(KeyError::PublicInvalid);
        }
        Ok(Self(KeyKind::Ed25519(Box::new(key))))
    }
}

impl From<&SigningKey> for VerifyingKey {
    fn from(key: &SigningKey) -> Self {
        Self(match &key.0 {
            Kind::Hmac(secret) => KeyKind::Hmac(secret.clone()),
            Kind::Ed25519(key) => KeyKind::Ed25519(Box::new(key.verifying_key())),
        })
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            KeyKind::Hmac(_) => "VerifyingKey(hmac)",
            KeyKind::Ed25519(_) => "VerifyingKey(ed25519)",
        })
    }
}

impl Verifier {
    /// A verifier that accepts a signature of any of these keys, with the default tolerance.
    pub fn new(keys: impl IntoIterator<Item = VerifyingKey>) -> Self {
        Self { keys: keys.into_iter().collect(), tolerance: DEFAULT_TOLERANCE }
    }

    /// The same verifier with another tolerance for timestamps, in both directions.
    pub fn with_tolerance(self, tolerance: Duration) -> Self {
        Self { tolerance, ..self }
    }

    pub(crate) fn keys(&self) -> &[VerifyingKey] {
        &self.keys
    }

    /// The same with one key.
    pub(crate) fn with_only(&self, key: VerifyingKey) -> Self {
        Self { keys: vec![key], ..*self }
    }

    /// Verifies the three headers, the exact bytes of the body, and the time of day.
    pub fn verify(
        &self,
        id: &str,
        timestamp: &str,
        signatures: &str,
        body: &[u8],
        now_secs: i64,
    ) -> Result<(), VerifyError> {
        self.check_timestamp(timestamp, TimeUnit::Seconds, now_secs)?;
        let signatures: Vec<_> = signatures
            .split_ascii_whitespace()
            .take(MAX_SIGNATURES)
            .filter_map(DecodedSignature::standard)
            .collect();
        let head = format!("{id}.{timestamp}.");
        self.check_signatures(HashKind::Sha256, &signatures, &[head.as_bytes(), body])
    }

    /// Verifies a header `t=…,v1=…` ([`Scheme::Timestamped`](crate::Scheme)).
    pub fn verify_timestamped(
        &self,
        hash: HashKind,
        header: &str,
        body: &[u8],
        now_secs: i64,
    ) -> Result<(), VerifyError> {
        let Timestamped { time, signatures } =
            Timestamped::read(header).ok_or(VerifyError::TimestampInvalid)?;
        self.check_timestamp(time, TimeUnit::Seconds, now_secs)?;
        let head = format!("{time}.");
        self.check_signatures(hash, &signatures, &[head.as_bytes(), body])
    }

    /// Verifies a hexadecimal signature of the body alone ([`Scheme::Hex`](crate::Scheme)). It never expires: only the
    /// receiver's record of ids detects a copy.
    pub fn verify_hex(&self, hash: HashKind, signature: &str, body: &[u8]) -> Result<(), VerifyError> {
        self.check_signatures(hash, &DecodedSignature::hex(signature), &[body])
    }

    /// The same in base64 ([`Scheme::Base64`](crate::Scheme)).
    pub fn verify_base64(&self, hash: HashKind, signature: &str, body: &[u8]) -> Result<(), VerifyError> {
        self.check_signatures(hash, &DecodedSignature::base64(signature), &[body])
    }

    pub(crate) fn check_timestamp(
        &self,
        timestamp: &str,
        unit: TimeUnit,
        now_secs: i64,
    ) -> Result<(), VerifyError> {
        // Digits only: `+5` and `-0` would parse, but no sender writes them.
        if timestamp.is_empty() || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(VerifyError::TimestampInvalid);
        }
        let sent: i64 = timestamp.parse().map_err(|_| VerifyError::TimestampInvalid)?;
        let sent = unit.to_seconds(sent);
        let tolerance = i64::try_from(self.tolerance.as_secs()).unwrap_or(i64::MAX);
        let age = now_secs.saturating_sub(sent);
        if age > tolerance {
            Err(VerifyError::TooOld)
        } else if age < -tolerance {
            Err(VerifyError::TooNew)
        } else {
            Ok(())
        }
    }

    pub(crate) fn check_signatures(
        &self,
        hash: HashKind,
        signatures: &[DecodedSignature],
        message: &[&[u8]],
    ) -> Result<(), VerifyError> {
        let mut usable = false;
        for key in &self.keys {
            let fits = match &key.0 {
                KeyKind::Hmac(secret) => {
                    let mut candidates =
                        signatures.iter().filter_map(|signature| signature.hmac(hash)).peekable();
                    if candidates.peek().is_none() {
                        continue;
                    }
                    let expected = hash.hmac(secret, message);
                    candidates.fold(false, |fits, signature| fits | bool::from(signature.ct_eq(&expected)))
                }
                KeyKind::Ed25519(key) => {
                    let mut candidates = signatures.iter().filter_map(DecodedSignature::ed25519).peekable();
                    if candidates.peek().is_none() {
                        continue;
                    }
                    let message = message.concat();
                    candidates.any(|signature| key.verify_strict(&message, signature).is_ok())
                }
            };
            if fits {
                return Ok(());
            }
            usable = true;
        }
        Err(if usable { VerifyError::Mismatch } else { VerifyError::NoUsableSignature })
    }
}
