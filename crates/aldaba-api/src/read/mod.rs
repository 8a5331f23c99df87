//! Reading bodies at the server's door: all that is wrong is collected, and nothing is built that is not asked for.

pub mod bounded_json;
mod fields;
pub mod form;
mod kind;
mod parsed;
mod problem;
pub mod schema;

pub use fields::{Fields, MAX_METADATA_BYTES, UnknownFields};
pub use kind::{
    BodyField, ChoiceField, CountField, FieldKind, NamesField, NumberField, ObjectField, SecretField,
    StringsField, TextField, ToggleField, choice, count, kind_for, moment, name, names, nested, number,
    object, secret, short_strings, strings, text, toggle, uid,
};
pub use parsed::{ApiBody, ApiRequest, Parsed, parse, parse_or_none};
pub use problem::{Problem, Problems};
