//! JSON that is kept byte by byte.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

/// A JSON value, kept byte by byte: the order of its fields and the digits of its numbers do not change. A
/// [`Value`] converts with `into()`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Serializes a value.
    ///
    /// # Errors
    /// If it cannot be written as JSON, such as a map whose keys are not strings.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Keeps a text that is JSON.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn from_text(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Deserializes the value.
    ///
    /// # Errors
    /// If it has another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// Parses the value. Numbers beyond 64 bits are rounded.
    #[must_use]
    pub fn value(&self) -> Value {
        self.read().unwrap_or_default()
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw)
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        // Every `Value` is valid JSON.
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
