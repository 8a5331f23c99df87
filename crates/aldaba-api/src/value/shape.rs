//! Values that have a rule for being left out, and macros for bodies that are not declared with it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// A time in RFC 3339, such as `2025-01-15T10:30:00Z`. It is a string, so that any date library can read it.
pub type Timestamp = String;

/// A duration such as `500ms`, `5s`, `15m`, `2h` or `7d`.
pub type Span = String;

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
    /// The value that is set; `None`: it is kept, or cleared.
    pub fn into_option(self) -> Option<T> {
        match self {
            Self::To(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

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
#[doc(hidden)]
pub trait Absent {
    /// Whether it is left out.
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
impl Absent for u8 {}
impl Absent for u16 {}
impl Absent for u32 {}
impl Absent for serde_json::Value {}
impl Absent for crate::Json {}
impl Absent for crate::Secret {}
impl<T> Absent for Vec<T> {}

/// For `skip_serializing_if`.
#[doc(hidden)]
pub fn absent(field: &impl Absent) -> bool {
    field.is_absent()
}

/// The value of a field of a request, if it has one.
#[doc(hidden)]
pub trait GivenValue<T> {
    /// The value.
    fn given_value(&self) -> Option<&T>;
}

impl<T> GivenValue<T> for Option<T> {
    fn given_value(&self) -> Option<&T> {
        self.as_ref()
    }
}

impl<T> GivenValue<T> for Set<T> {
    fn given_value(&self) -> Option<&T> {
        match self {
            Self::To(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }
}

impl<T> GivenValue<T> for T {
    fn given_value(&self) -> Option<&T> {
        Some(self)
    }
}

/// Whether a field of a new object is left out of what is sent, by its mode.
#[doc(hidden)]
pub mod left_out {
    use super::Absent;

    /// Never.
    pub fn required<T>(_value: &T) -> bool {
        false
    }

    pub use self::required as stated;

    /// If it is empty, or not to change.
    pub fn map<T: Absent>(value: &T) -> bool {
        value.is_absent()
    }

    pub use self::map as cleared;
    pub use self::map as or_none;

    /// If there is none.
    pub fn nullable<T>(value: &Option<T>) -> bool {
        value.is_none()
    }

    pub use self::nullable as given;
    pub use self::nullable as needed;
    pub use self::nullable as omitted;
    pub use self::nullable as or_default;
    pub use self::nullable as or_kept;
    pub use self::nullable as reset;
}

/// Whether a field of an answer is left out, by its mode.
#[doc(hidden)]
pub mod unshown {
    use super::super::Shows;

    /// Never.
    pub fn required<T, S: Shows<T>>(_value: &S) -> bool {
        false
    }

    /// If there is none.
    pub fn omitted<T, S: Shows<T>>(value: &S) -> bool {
        value.is_null()
    }

    pub use self::required as given;
    pub use self::required as map;
    pub use self::required as nullable;
    pub use self::required as or_default;
    pub use self::required as or_kept;
    pub use self::required as or_none;
    pub use self::required as reset;
}

/// Defines a body that is sent. Absent fields are left out.
#[doc(hidden)]
#[macro_export]
macro_rules! input {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$doc])* #[serde(skip_serializing_if = "aldaba_api::value::absent")] pub $field: $kind,)*
        }
    };
}

/// Defines a body of an answer. Unknown fields are ignored.
#[doc(hidden)]
#[macro_export]
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
