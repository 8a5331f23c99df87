//! The values of fields.

mod json;
mod secret;
mod shape;
mod shows;
pub mod words;

pub use json::Json;
pub use secret::Secret;
pub use shape::{Absent, GivenValue, Metadata, Set, Span, Timestamp, absent, left_out, unshown};
pub use shows::{Shows, WriteFields};
