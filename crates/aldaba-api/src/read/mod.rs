//! Reading bodies at the server's door: all that is wrong is collected, and nothing is built that is not asked for.

pub mod bounded_json;
mod fields;
pub mod form;
mod kind;
mod moment;
mod parsed;
mod problem;
mod raw;
mod repeats;
pub mod schema;

pub use fields::{Fields, UnknownFields};
pub use kind::*;
pub use moment::{is_moment, moment_millis};
pub use parsed::{ApiBody, ApiRequest, Parsed, parse};
pub use problem::{Problem, Problems};
pub use schema::{DeclaredField, Described, Form, KindSchema, Variant};
