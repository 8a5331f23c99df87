//! Objects, and whatever is JSON.

use super::FieldKind;
use super::list::inner;
use crate::Json;
use crate::read::bounded_json::First;
use crate::read::schema::{nest, reference};
use crate::read::{ApiBody, ApiRequest, Fields, KindSchema, raw, repeats};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Any JSON, kept byte by byte.
#[derive(Clone, Copy, Debug)]
pub struct AnyField;

/// Any JSON, kept byte by byte.
#[must_use]
pub const fn any() -> AnyField {
    AnyField
}

impl FieldKind for AnyField {
    type Value = Json;
    const TAKES_NULL: bool = true;

    fn expected(&self) -> &'static str {
        "JSON"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Json> {
        fields.any(name).map(Json::from)
    }

    fn default(&self) -> Json {
        Json::default()
    }
}

impl KindSchema for AnyField {
    fn input(&self) -> Value {
        json!({})
    }

    fn output(&self) -> Value {
        self.input()
    }
}

/// A JSON object, kept byte by byte.
#[derive(Clone, Copy, Debug)]
pub struct ObjectField {
    is_checked: bool,
}

/// A JSON object, kept byte by byte. The server checks that it is one, and what is in it; no name is in it twice.
#[must_use]
pub const fn object() -> ObjectField {
    ObjectField { is_checked: false }
}

/// Any JSON object, kept byte by byte.
#[must_use]
pub const fn any_object() -> ObjectField {
    ObjectField { is_checked: true }
}

impl FieldKind for ObjectField {
    type Value = Json;
    const IS_EXCLUSIVE: bool = true;

    fn expected(&self) -> &'static str {
        "a JSON object"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<Json> {
        if self.is_checked {
            return fields.raw_object(name).map(Json::from);
        }
        let value = fields.raw(name)?;
        let value = repeats::refuse(value.get().as_bytes()).map(|()| Json::from(value));
        value.map_err(|why| fields.problem(name, why)).ok()
    }

    fn default(&self) -> Json {
        Json::default()
    }
}

impl KindSchema for ObjectField {
    fn input(&self) -> Value {
        json!({"type": "object"})
    }

    fn output(&self) -> Value {
        self.input()
    }
}

/// Bytes of JSON.
pub const MAX_METADATA_BYTES: usize = 4096;
/// More than fit into so many bytes, each with its quotes, colon and comma.
const MAX_METADATA_ITEMS: usize = MAX_METADATA_BYTES / 5;

/// An object of strings.
pub struct StringsField<T> {
    /// `None`: it is short in all.
    max: Option<usize>,
    item: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for StringsField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StringsField").field(&self.max).finish()
    }
}

/// An object of up to so many strings.
#[must_use]
pub const fn strings(max: usize) -> StringsField<String> {
    StringsField { max: Some(max), item: PhantomData }
}

/// An object of up to so many strings and nulls.
#[must_use]
pub const fn strings_or_nulls(max: usize) -> StringsField<Option<String>> {
    StringsField { max: Some(max), item: PhantomData }
}

/// An object of strings that has few bytes in all.
#[must_use]
pub const fn short_strings() -> StringsField<String> {
    StringsField { max: None, item: PhantomData }
}

/// What an object of strings may have.
pub trait StringsItem: Clone + PartialEq + serde::Serialize {
    /// Its schema.
    fn schema() -> Value;

    /// The value, or why it is none.
    ///
    /// # Errors
    /// If it has another form.
    fn read(value: &RawValue) -> Result<Self, String>;
}

impl StringsItem for String {
    fn schema() -> Value {
        json!({"type": "string"})
    }

    fn read(value: &RawValue) -> Result<Self, String> {
        raw::string(value)
    }
}

impl StringsItem for Option<String> {
    fn schema() -> Value {
        json!({"type": ["string", "null"]})
    }

    fn read(value: &RawValue) -> Result<Self, String> {
        (!raw::is_null(value)).then(|| raw::string(value)).transpose()
    }
}

impl<T: StringsItem> FieldKind for StringsField<T> {
    type Value = BTreeMap<String, T>;

    fn expected(&self) -> &'static str {
        "an object of strings"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<BTreeMap<String, T>> {
        let max = self.max.unwrap_or(MAX_METADATA_ITEMS);
        let First { items, count } = fields.entries(name, max)?;
        if count > max {
            let why = match self.max {
                Some(max) => format!("may have {max} items at most; it has {count}"),
                None => format!("may be {MAX_METADATA_BYTES} bytes of JSON at most; it has {count} items"),
            };
            fields.problem(name, why);
            return None;
        }
        let mut kept = BTreeMap::new();
        for (key, value) in items {
            match T::read(&value) {
                Ok(text) => drop(kept.insert(key, text)),
                Err(why) => fields.undecoded(&[name, &key], why),
            }
        }
        if self.max.is_none() {
            let length = serde_json::to_string(&kept).unwrap_or_default().len();
            if length > MAX_METADATA_BYTES {
                let why = format!("may be {MAX_METADATA_BYTES} bytes of JSON at most; it is {length}");
                fields.problem(name, why);
            }
        }
        Some(kept)
    }

    fn default(&self) -> BTreeMap<String, T> {
        BTreeMap::new()
    }
}

impl<T: StringsItem> KindSchema for StringsField<T> {
    fn input(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": T::schema(),
            "propertyNames": {"type": "string"},
        })
    }

    fn output(&self) -> Value {
        json!({"type": "object"})
    }
}

/// A part of a body that is a body itself.
pub struct PartField<T>(PhantomData<fn() -> T>);

/// A part of a body that the server reads later, as a body of its own.
#[must_use]
pub const fn part<T>() -> PartField<T> {
    PartField(PhantomData)
}

impl<T> fmt::Debug for PartField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PartField")
    }
}

impl<T: ApiBody + Clone + Default + PartialEq> FieldKind for PartField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a JSON object"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        fields.forget(&[name]);
        None
    }

    fn default(&self) -> T {
        T::default()
    }
}

impl<T: ApiBody> KindSchema for PartField<T> {
    fn input(&self) -> Value {
        reference(T::NAME)
    }

    fn output(&self) -> Value {
        self.input()
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        nest::<T>(into);
    }
}

/// A body within a body, read with it.
pub struct InnerField<T>(PhantomData<fn() -> T>);

/// A body within a body, read with it.
#[must_use]
pub const fn body<T>() -> InnerField<T> {
    InnerField(PhantomData)
}

impl<T> fmt::Debug for InnerField<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InnerField")
    }
}

impl<T: ApiRequest + Clone + Default + PartialEq> FieldKind for InnerField<T> {
    type Value = T;

    fn expected(&self) -> &'static str {
        "a JSON object"
    }

    fn read(&self, fields: &mut Fields, name: &str) -> Option<T> {
        let raw = fields.raw_object(name)?;
        inner(fields, &[name], &raw)
    }

    fn inner(&self) -> &'static [&'static str] {
        T::KNOWN
    }

    fn default(&self) -> T {
        T::default()
    }
}

impl<T: ApiRequest> KindSchema for InnerField<T> {
    fn input(&self) -> Value {
        reference(T::NAME)
    }

    fn output(&self) -> Value {
        T::shown()
    }

    fn nested(&self, into: &mut Vec<(String, Value)>) {
        nest::<T>(into);
    }
}
