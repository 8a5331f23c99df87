//! The values of fields.

mod json;
mod secret;
mod shape;
pub mod words;

pub use json::Json;
pub use secret::Secret;
pub use shape::{Absent, GivenValue, Metadata, Set, Timestamp, absent, shown};
