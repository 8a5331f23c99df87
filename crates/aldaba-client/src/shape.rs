//! Macros for the types of bodies: one line for each field, and one rule for fields that are left out.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// A time in RFC 3339, such as `2025-01-15T10:30:00Z`. It is a string, so that any date library can read it.
pub type Timestamp = String;

/// Names and values that the caller chooses.
pub type Metadata = BTreeMap<String, String>;

/// A field of a change: kept, cleared, or set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Set<T> {
    /// Keeps the value.
    #[default]
    Keep,
    /// Clears the value: null.
    Clear,
    /// Sets this value.
    To(T),
}

impl<T> Set<T> {
    /// Sets this value.
    pub fn to(value: impl Into<T>) -> Self {
        Self::To(value.into())
    }
}

impl<T> From<T> for Set<T> {
    fn from(value: T) -> Self {
        Self::To(value)
    }
}

impl<T: Serialize> Serialize for Set<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::To(value) => value.serialize(serializer),
            Self::Keep | Self::Clear => serializer.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Set<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::To))
    }
}

/// Whether a field is left out of what is sent.
pub(crate) trait Absent {
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T> Absent for Set<T> {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

impl<K, V> Absent for BTreeMap<K, V> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }
}

impl Absent for String {}
impl Absent for bool {}
impl Absent for serde_json::Value {}
impl Absent for crate::Json {}
impl Absent for crate::Secret {}
impl<T> Absent for Vec<T> {}

pub(crate) fn absent(field: &impl Absent) -> bool {
    field.is_absent()
}

/// Defines a body that is sent. Absent fields are left out.
macro_rules! input {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$doc])* #[serde(skip_serializing_if = "crate::shape::absent")] pub $field: $kind,)*
        }
    };
}

/// Defines a body of an answer. Unknown fields are ignored.
macro_rules! answer {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $field: $kind,)*
        }
    };
}

pub(crate) use {answer, input};

#[cfg(test)]
mod tests {
    #![expect(unreachable_pub, reason = "what the macro makes is public")]

    use super::*;

    input! {
        /// A change.
        Change { name: Option<String>, uid: Set<String>, rate: Set<u32>, tags: BTreeMap<String, String>, }
    }

    #[test]
    fn kept_fields_are_omitted_and_cleared_fields_are_null() {
        let text = |change: &Change| serde_json::to_string(change).unwrap();
        assert_eq!(text(&Change::default()), "{}");
        let change = Change { uid: Set::Clear, rate: 3_u32.into(), ..Change::default() };
        assert_eq!(text(&change), r#"{"uid":null,"rate":3}"#);
        assert_eq!(serde_json::from_str::<Change>(&text(&change)).unwrap(), change);
    }
}
