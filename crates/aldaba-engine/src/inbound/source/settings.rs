//! Settings and secrets of a source.

use super::types;
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// The settings that may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceSettings {
    /// Locations of the event id; the first with a value counts. Empty: those of the source's type.
    pub event_id_from: Vec<String>,
    pub event_type_from: Vec<String>,
    /// Only events of these types; empty: all.
    pub filter_types: Vec<String>,
    /// All conditions must hold.
    pub filter_headers: Vec<HeaderCondition>,
    /// Headers to forward unchanged; `None`: those of the source's type.
    pub forward_headers: Option<Vec<String>>,
    /// The answer to the sender once an event is stored.
    pub answer: Option<SourceAnswer>,
    /// How far a signed timestamp may be from the current time.
    pub tolerance_seconds: Option<u32>,
    /// How long an event id is remembered.
    pub duplicate_window_days: Option<u16>,
    /// Treat another body under a known event id as a duplicate, not as a conflict.
    pub other_body_is_duplicate: bool,
    /// For the type `branded`.
    pub brand: Option<String>,
    /// For the type `hmac`.
    pub hmac: Option<HmacSettings>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderCondition {
    pub name: String,
    /// Allowed values; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceAnswer {
    pub status: u16,
    pub content_type: String,
    pub body: String,
}

/// How a sender without a type of its own signs. The default is hexadecimal HMAC-SHA256 of the body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HmacSettings {
    /// The header with the signature.
    pub header: String,
    pub prefix: Option<String>,
    pub algorithm: Option<String>,
    pub encoding: Option<String>,
    /// The signed content: `{id}`, `{timestamp}` and `{body}` with text between.
    pub signed: Option<String>,
    pub timestamp_header: Option<String>,
    pub timestamp_unit: Option<String>,
    /// How the secret is encoded.
    pub secret_form: Option<String>,
}

impl SourceSettings {
    pub const MAX_LOCATIONS: usize = 10;
    pub const MAX_FILTER_TYPES: usize = 100;
    pub const MAX_CONDITIONS: usize = 10;
    pub const MAX_VALUES: usize = 50;
    /// Bytes of a value that a header is compared with.
    pub const MAX_VALUE_BYTES: usize = 1024;
    /// Bytes of the body of an answer.
    pub const MAX_ANSWER_BYTES: usize = 4096;
    pub const MAX_TOLERANCE_SECONDS: u64 = 24 * 3600;
    /// Days.
    pub const MAX_WINDOW_DAYS: u64 = 366;
    /// Days.
    pub const DEFAULT_WINDOW_DAYS: u16 = 30;

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers serialise")
    }

    /// Parses stored settings. `None`: they cannot be parsed.
    pub fn read(written: &str) -> Option<Self> {
        serde_json::from_str(written).ok()
    }
}

/// The secrets, which are never shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSecrets {
    /// The sender's signing secrets, or its public keys.
    pub secrets: Vec<Zeroizing<String>>,
    /// The token that Meta sends in its verification request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_token: Option<Zeroizing<String>>,
    /// The newest token, which is generated.
    #[serde(default)]
    pub(crate) token: Zeroizing<String>,
}

impl SourceSecrets {
    /// Whether senders to a source of this type must authenticate with these secrets.
    pub fn verify(&self, kind: &str) -> bool {
        types::verifies(kind, !self.secrets.is_empty())
    }

    /// The keys that are public.
    pub fn public_keys(&self) -> Vec<&str> {
        self.secrets.iter().map(|secret| secret.as_str()).filter(|text| text.starts_with("whpk_")).collect()
    }
}

impl fmt::Debug for SourceSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceSecrets")
    }
}

/// A problem of a source, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceProblem {
    pub place: Vec<String>,
    pub why: String,
}

impl SourceProblem {
    pub(crate) fn new(place: &[&str], why: impl Into<String>) -> Self {
        Self { place: place.iter().map(|part| (*part).to_owned()).collect(), why: why.into() }
    }
}
