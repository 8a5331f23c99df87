//! What the document says of types.

use crate::read::KindSchema;
use crate::read::schema::reference;
use crate::{Json, Secret};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// A type of the fields of answers.
pub trait TypeSchema {
    /// Its schema.
    fn schema() -> Value;

    /// The schemas that its own refers to.
    fn nested(_into: &mut Vec<(String, Value)>) {}
}

macro_rules! types {
    ($($type:ty = $schema:tt;)*) => {
        $(impl TypeSchema for $type {
            fn schema() -> Value {
                json!($schema)
            }
        })*
    };
}

types! {
    String = {"type": "string"};
    Secret = {"type": "string"};
    bool = {"type": "boolean"};
    u16 = {"type": "integer", "format": "int32", "minimum": 0};
    u32 = {"type": "integer", "format": "int32", "minimum": 0};
    u64 = {"type": "integer", "format": "int64", "minimum": 0};
    usize = {"type": "integer", "minimum": 0};
    f64 = {"type": "number", "format": "double"};
    Json = {};
    Value = {};
}

impl<T: TypeSchema> TypeSchema for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }

    fn nested(into: &mut Vec<(String, Value)>) {
        T::nested(into);
    }
}

impl<T: TypeSchema> TypeSchema for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema(), "propertyNames": {"type": "string"}})
    }

    fn nested(into: &mut Vec<(String, Value)>) {
        T::nested(into);
    }
}

/// A field that is described as its type is.
pub struct TypeField<T>(PhantomData<fn() -> T>);

impl<T> TypeField<T> {
    /// Described as its type is.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "macros alone make it")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> fmt::Debug for TypeField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypeField")
    }
}

impl<T: TypeSchema> KindSchema for TypeField<T> {
    fn input(&self) -> Value {
        T::schema()
    }

    fn output(&self) -> Value {
        T::schema()
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        T::nested(into);
    }
}

/// A whole number without a size, in answers.
#[must_use]
pub const fn size() -> TypeField<usize> {
    TypeField::new()
}

/// One of a few words, described under a name of its own.
#[derive(Clone, Copy, Debug)]
pub struct EnumField {
    name: &'static str,
    words: &'static [&'static str],
}

/// One of a few words, described under a name of its own.
#[must_use]
pub const fn one_of(name: &'static str, words: &'static [&'static str]) -> EnumField {
    EnumField { name, words }
}

impl KindSchema for EnumField {
    fn input(&self) -> Value {
        reference(self.name)
    }

    fn output(&self) -> Value {
        self.input()
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        into.push((self.name.to_owned(), json!({"type": "string", "enum": self.words})));
    }
}
