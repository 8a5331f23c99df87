//! What a source is told about its sender, and about what to do with what that sends.

use super::kind;
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// What may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceSettings {
    /// Where the id of an event is, the first place that has one; empty: where the type of the source says.
    pub event_id_from: Vec<String>,
    pub event_type_from: Vec<String>,
    /// Only events of these types; empty: all.
    pub filter_types: Vec<String>,
    /// All must hold.
    pub filter_headers: Vec<HeaderCondition>,
    /// The names of headers that go out as they came; `None`: those that the type of the source has.
    pub forward_headers: Option<Vec<String>>,
    /// What the sender hears once an event is safe.
    pub answer: Option<Answer>,
    /// How far a signed time may be from now.
    pub tolerance_seconds: Option<u32>,
    /// How long an event id is remembered.
    pub duplicate_window_days: Option<u16>,
    /// Another body under the id of a former event is a repeat of that one, not a conflict.
    pub other_body_is_duplicate: bool,
    /// Of the type `branded`.
    pub brand: Option<String>,
    /// Of the type `hmac`.
    pub hmac: Option<HmacSettings>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderCondition {
    pub name: String,
    /// One of these; empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub body: String,
}

/// How a sender signs that has no type of its own. What is absent is usual: hexadecimal SHA-256 of the body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HmacSettings {
    /// The header with the signature.
    pub header: String,
    pub prefix: Option<String>,
    pub algorithm: Option<String>,
    pub encoding: Option<String>,
    /// What is signed: `{id}`, `{timestamp}` and `{body}` with text between.
    pub signed: Option<String>,
    pub timestamp_header: Option<String>,
    pub timestamp_unit: Option<String>,
    /// How the secret is written.
    pub secret_form: Option<String>,
}

impl SourceSettings {
    pub const MOST_PLACES: usize = 10;
    pub const MOST_FILTER_TYPES: usize = 100;
    pub const MOST_CONDITIONS: usize = 10;
    pub const MOST_VALUES: usize = 50;
    /// Bytes of a value that a header is compared with.
    pub const LONGEST_VALUE: usize = 1024;
    /// Bytes of the body of an answer.
    pub const LONGEST_ANSWER: usize = 4096;
    pub const LONGEST_TOLERANCE: u64 = 24 * 3600;
    /// Days.
    pub const LONGEST_WINDOW: u64 = 366;
    /// Days.
    pub const DEFAULT_WINDOW: u16 = 30;

    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers serialise")
    }

    /// What a server has written. What cannot be read is none.
    pub fn read(written: &str) -> Option<Self> {
        serde_json::from_str(written).ok()
    }
}

/// What may not be shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSecrets {
    /// What the sender signs with, or its public keys.
    pub secrets: Vec<Zeroizing<String>>,
    /// What Meta says when it asks whether this is its receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify_token: Option<Zeroizing<String>>,
    /// The newest token. It is made, not given.
    #[serde(default)]
    pub(crate) token: Zeroizing<String>,
}

impl SourceSecrets {
    /// Whether whoever sends to a source of this type, with these, must show that it is the sender.
    pub fn verify(&self, kind: &str) -> bool {
        kind::verifies(kind, !self.secrets.is_empty())
    }

    /// Those that are no secrets.
    pub fn public_keys(&self) -> Vec<&str> {
        self.secrets.iter().map(|secret| secret.as_str()).filter(|text| text.starts_with("whpk_")).collect()
    }
}

impl fmt::Debug for SourceSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceSecrets")
    }
}

/// What is wrong with a source, and where.
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
