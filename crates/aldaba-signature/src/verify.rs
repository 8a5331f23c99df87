use crate::given::{Given, Timestamped};
use crate::key::{HMAC_PREFIX, Kind, PUBLIC_PREFIX, decode};
use crate::{HashKind, KeyError, SigningKey};
use std::fmt;
use std::time::Duration;
use subtle::ConstantTimeEq;
use thiserror::Error;
use zeroize::Zeroizing;

/// How far a timestamp may lie from now, in both directions.
pub const DEFAULT_TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// The most signatures that are looked at in one header. A sender has a handful of keys; without a
/// bound a header full of Ed25519 signatures would be a cheap way to burn a receiver's time.
pub const MAX_SIGNATURES: usize = 32;

/// A key that verifies: a shared secret (`whsec_…`) or a public key (`whpk_…`).
#[derive(Clone)]
pub struct VerifyingKey(KeyKind);

#[derive(Clone)]
enum KeyKind {
    Hmac(Zeroizing<Vec<u8>>),
    Ed25519(Box<ed25519_dalek::VerifyingKey>),
}

/// What a timestamp counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Whole seconds since 1970.
    #[default]
    Seconds,
    /// Whole milliseconds since 1970.
    Milliseconds,
}

/// Checks what arrives against all keys that are valid now: while a key is being rotated there are
/// several.
#[derive(Clone, Debug)]
pub struct Verifier {
    keys: Vec<VerifyingKey>,
    tolerance: Duration,
}

/// Why a message is not taken. Only `Mismatch` means that the content or the key was wrong.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyError {
    /// The timestamp is no whole number.
    #[error("the timestamp is no whole number")]
    TimestampInvalid,
    /// The timestamp is further in the past than the tolerance.
    #[error("the timestamp lies too far in the past: the message is old, or a clock is wrong")]
    TooOld,
    /// The timestamp is further in the future than the tolerance.
    #[error("the timestamp lies too far in the future: a clock is wrong")]
    TooNew,
    /// The header has no signature that the keys could check.
    #[error("the header holds no signature of a kind that the keys can check")]
    NoUsableSignature,
    /// No signature fits the message and the keys.
    #[error("no signature fits the message and the keys")]
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

    /// A secret of any length: that of another sender is not ours to judge.
    pub(crate) fn shared(secret: Zeroizing<Vec<u8>>) -> Self {
        Self(KeyKind::Hmac(secret))
    }

    /// The secret, where it is a shared one.
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

    /// Takes the three headers as they came, the body's exact bytes, and the time of day.
    pub fn verify(
        &self,
        id: &str,
        timestamp: &str,
        signatures: &str,
        body: &[u8],
        now_secs: i64,
    ) -> Result<(), VerifyError> {
        self.check_timestamp(timestamp, TimeUnit::Seconds, now_secs)?;
        let given: Vec<_> =
            signatures.split_ascii_whitespace().take(MAX_SIGNATURES).filter_map(Given::standard).collect();
        let head = format!("{id}.{timestamp}.");
        self.check_signatures(HashKind::Sha256, &given, &[head.as_bytes(), body])
    }

    /// Takes a header `t=…,v1=…` as it came ([`Scheme::Timestamped`](crate::Scheme)).
    pub fn verify_timestamped(
        &self,
        hash: HashKind,
        header: &str,
        body: &[u8],
        now_secs: i64,
    ) -> Result<(), VerifyError> {
        let Timestamped { time, given } = Timestamped::read(header).ok_or(VerifyError::TimestampInvalid)?;
        self.check_timestamp(time, TimeUnit::Seconds, now_secs)?;
        let head = format!("{time}.");
        self.check_signatures(hash, &given, &[head.as_bytes(), body])
    }

    /// Takes a signature of the body alone in hexadecimal ([`Scheme::Hex`](crate::Scheme)). It holds for
    /// ever: only the receiver's own memory tells a message from its copy.
    pub fn verify_hex(&self, hash: HashKind, signature: &str, body: &[u8]) -> Result<(), VerifyError> {
        self.check_signatures(hash, &Given::hex(signature), &[body])
    }

    /// The same in base64 ([`Scheme::Base64`](crate::Scheme)).
    pub fn verify_base64(&self, hash: HashKind, signature: &str, body: &[u8]) -> Result<(), VerifyError> {
        self.check_signatures(hash, &Given::base64(signature), &[body])
    }

    pub(crate) fn check_timestamp(
        &self,
        timestamp: &str,
        unit: TimeUnit,
        now_secs: i64,
    ) -> Result<(), VerifyError> {
        // Digits only: `+5` and `-0` would parse, and their signed text is not what a sender writes.
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
        given: &[Given],
        message: &[&[u8]],
    ) -> Result<(), VerifyError> {
        let mut usable = false;
        for key in &self.keys {
            let fits = match &key.0 {
                KeyKind::Hmac(secret) => {
                    let mut candidates = given.iter().filter_map(|given| given.hmac(hash)).peekable();
                    if candidates.peek().is_none() {
                        continue;
                    }
                    let expected = hash.hmac(secret, message);
                    candidates.fold(false, |fits, given| fits | bool::from(given.ct_eq(&expected)))
                }
                KeyKind::Ed25519(key) => {
                    let mut candidates = given.iter().filter_map(Given::ed25519).peekable();
                    if candidates.peek().is_none() {
                        continue;
                    }
                    let message = message.concat();
                    candidates.any(|given| key.verify_strict(&message, given).is_ok())
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
