//! Ids: 40 bits of time (4 ms steps) and 15 random bytes, written as a prefix and 27 base62
//! characters. Byte order, text order and creation order agree.

use crate::Timestamp;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;

/// The epoch of ids: 2014-05-13T16:53:20Z, so that 32 bits of seconds last until 2150.
const EPOCH_SECONDS: i64 = 1_400_000_000;
/// The last moment that fits; later ones are stored as this one, so that the order never breaks.
const LAST_MILLIS: i64 = u32::MAX as i64 * 1000 + 999;
/// The resolution of the creation time.
const STEP_MILLIS: i64 = 4;
const BYTES: usize = 20;
const CHARACTERS: usize = 27;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The kind of an id; it decides the prefix.
pub trait IdKind: 'static {
    const PREFIX: &'static str;
}

/// A typed, time-sortable id.
pub struct Id<K> {
    bytes: [u8; BYTES],
    kind: PhantomData<fn() -> K>,
}

macro_rules! id_kinds {
    ($($(#[$doc:meta])* $kind:ident, $alias:ident, $prefix:literal;)*) => {$(
        #[derive(Debug)]
        pub enum $kind {}
        impl IdKind for $kind {
            const PREFIX: &'static str = $prefix;
        }
        $(#[$doc])*
        pub type $alias = Id<$kind>;
    )*};
}

id_kinds! {
    /// The operator's account.
    OrgKind, OrgId, "org_";
    /// A customer (tenant) of an organization.
    AppKind, AppId, "app_";
    /// A URL that receives events of an application.
    EndpointKind, EndpointId, "ep_";
    /// One accepted event.
    MessageKind, MessageId, "msg_";
    /// One HTTP request for a delivery.
    AttemptKind, AttemptId, "atmpt_";
    /// A replay of messages. Clients of background tasks expect this prefix.
    ReplayKind, ReplayId, "qtask_";
    /// An erasure of an application: a background task, as a replay is.
    ErasureKind, ErasureId, "qtask_";
    /// An API key of an organization or of one of its applications.
    ApiKeyKind, ApiKeyId, "key_";
    /// One row of the audit log.
    AuditKind, AuditId, "audit_";
    /// An event type. Callers never see this id: they use event types' names.
    EventTypeKind, EventTypeId, "evtype_";
    /// An inbound source.
    SourceKind, SourceId, "src_";
    /// A rejected inbound request.
    RefusalKind, RefusalId, "log_";
    /// An alert: from when it fires until it is resolved.
    AlertKind, AlertId, "alert_";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id: expected `{prefix}` and 27 letters or digits")]
pub struct IdError {
    prefix: &'static str,
}

impl<K: IdKind> Id<K> {
    pub fn new(now: Timestamp, random: [u8; 15]) -> Self {
        let since_epoch = now.millis().saturating_sub(EPOCH_SECONDS * 1000).clamp(0, LAST_MILLIS);
        let seconds = (since_epoch / 1000) as u32;
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&seconds.to_be_bytes());
        bytes[4] = ((since_epoch % 1000) / STEP_MILLIS) as u8;
        bytes[5..].copy_from_slice(&random);
        Self::from_bytes(bytes)
    }

    /// The greatest id.
    pub const MAX: Self = Self::from_bytes([0xff; BYTES]);

    pub const fn from_bytes(bytes: [u8; BYTES]) -> Self {
        Self { bytes, kind: PhantomData }
    }

    pub fn from_slice(bytes: &[u8]) -> Result<Self, IdError> {
        bytes.try_into().map(Self::from_bytes).map_err(|_| IdError { prefix: K::PREFIX })
    }

    pub const fn as_bytes(&self) -> &[u8; BYTES] {
        &self.bytes
    }

    /// The smallest id of a moment: the start of a time range in an index.
    pub fn first_at(at: Timestamp) -> Self {
        Self::new(at, [0; 15])
    }

    /// The greatest id of a moment: the end of a time range.
    pub fn last_at(at: Timestamp) -> Self {
        Self::new(at, [0xff; 15])
    }

    /// When the id was made, to 4 ms.
    pub fn created_at(&self) -> Timestamp {
        let seconds = u32::from_be_bytes([self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]]);
        let millis = (EPOCH_SECONDS + i64::from(seconds)) * 1000 + i64::from(self.bytes[4]) * STEP_MILLIS;
        Timestamp::from_millis(millis)
    }

    /// The first and last moment at which the id can have been made.
    pub fn made_between(&self) -> (Timestamp, Timestamp) {
        let first = self.created_at();
        (first, Timestamp::from_millis(first.millis() + STEP_MILLIS - 1))
    }

    fn text(&self) -> [u8; CHARACTERS] {
        // Five 32-bit digits, divided by 62 until nothing is left.
        let mut digits = [0u32; 5];
        for (digit, chunk) in digits.iter_mut().zip(self.bytes.chunks_exact(4)) {
            *digit = u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        let mut text = [b'0'; CHARACTERS];
        for slot in text.iter_mut().rev() {
            let mut remainder = 0u64;
            for digit in &mut digits {
                let value = (remainder << 32) | u64::from(*digit);
                *digit = (value / 62) as u32;
                remainder = value % 62;
            }
            *slot = ALPHABET[remainder as usize];
        }
        text
    }
}

impl<K: IdKind> FromStr for Id<K> {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = IdError { prefix: K::PREFIX };
        let tail = text.strip_prefix(K::PREFIX).ok_or(wrong)?.as_bytes();
        if tail.len() != CHARACTERS {
            return Err(wrong);
        }
        let mut digits = [0u32; 5];
        for &character in tail {
            let mut carry = u64::from(match character {
                b'0'..=b'9' => character - b'0',
                b'A'..=b'Z' => character - b'A' + 10,
                b'a'..=b'z' => character - b'a' + 36,
                _ => return Err(wrong),
            });
            for digit in digits.iter_mut().rev() {
                let value = u64::from(*digit) * 62 + carry;
                *digit = value as u32;
                carry = value >> 32;
            }
            if carry != 0 {
                return Err(wrong);
            }
        }
        let mut bytes = [0; BYTES];
        for (chunk, digit) in bytes.chunks_exact_mut(4).zip(digits) {
            chunk.copy_from_slice(&digit.to_be_bytes());
        }
        Ok(Self::from_bytes(bytes))
    }
}

impl<K: IdKind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        f.write_str(K::PREFIX)?;
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl<K: IdKind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// Derives would require `K: Copy` and so on, though `K` is only a marker.
impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for Id<K> {}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}
impl<K> Hash for Id<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes.hash(state);
    }
}
