//! Kinds of fields: how a value is read, checked and described.

mod list;
mod number;
mod object;
mod text;
mod typed;

pub use list::{BodiesField, NamesField, PartsField, TextsField, bodies, names, parts, statuses, texts};
pub use number::{
    NumberChoiceField, NumberField, ToggleField, choice_of, count, number, toggle, whole_number,
};
pub use object::{
    AnyField, InnerField, MAX_METADATA_BYTES, ObjectField, PartField, StringsField, StringsItem, any,
    any_object, body, object, part, short_strings, strings, strings_or_nulls,
};
pub use text::{
    ChoiceField, SecretField, TextField, catalog_name, choice, moment, name, secret, span, text, uid, version,
};
pub use typed::{EnumField, TypeField, TypeSchema, one_of, size};

use super::fields::Fields;
use super::schema::KindSchema;

/// How the values of a field are read and checked.
pub trait FieldKind: KindSchema {
    /// What is read.
    type Value: Clone + PartialEq;
    /// Whether the field cannot be given under two names at once.
    const IS_EXCLUSIVE: bool = false;
    /// Whether null is a value.
    const TAKES_NULL: bool = false;

    /// In the words of a message: "expected …, not null".
    fn expected(&self) -> &'static str;

    /// What there is to choose from, for who leaves it out.
    fn hint(&self) -> &'static str {
        ""
    }

    /// The names in a value that is an object.
    fn inner(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads a value; `None` if it is null, or wrong.
    fn read(&self, fields: &mut Fields, name: &str) -> Option<Self::Value>;

    /// Checks a value that was not read from a body.
    ///
    /// # Errors
    /// Says what is wrong with it.
    fn check(&self, _value: &Self::Value) -> Result<(), String> {
        Ok(())
    }

    /// What the field has if it is left out.
    fn default(&self) -> Self::Value;
}

/// A kind for values of this type.
#[doc(hidden)]
pub fn kind_for<T, K: FieldKind<Value = T>>(kind: K) -> K {
    kind
}
