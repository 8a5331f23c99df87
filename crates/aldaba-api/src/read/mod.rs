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
    BodiesField, BodyField, ChoiceField, CountField, FieldKind, InnerField, NamesField, NumberField,
    ObjectField, PartField, SecretField, StringsField, TextField, TextsField, ToggleField, VersionField,
    any_object, bodies, body, choice, count, kind_for, moment, name, names, nested, number, object, part,
    secret, short_strings, strings, text, texts, toggle, uid, version,
};
pub use parsed::{ApiBody, ApiRequest, Parsed, parse, parse_or_none};
pub use problem::{Problem, Problems};
