//! JSON as it stands.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// A piece of JSON, byte by byte as it was written: the order of its fields and the digits of its numbers
/// are kept. From a [`Value`] by `into()`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// From anything that can be written as JSON.
    ///
    /// # Errors
    /// If it cannot: a map whose keys are no texts, for one.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// From a text that is JSON, kept as it is.
    ///
    /// # Errors
    /// If it is no JSON.
    pub fn from_text(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Read as something.
    ///
    /// # Errors
    /// If it is something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// As a value to look into. Numbers beyond 64 bits are rounded.
    #[must_use]
    pub fn value(&self) -> Value {
        self.read().unwrap_or_default()
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        // A value is always JSON.
        Self::of(&value).unwrap_or_default()
    }
}

impl Default for Json {
    /// `null`.
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
