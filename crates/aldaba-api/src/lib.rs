//! The bodies of Aldaba's API, each [declared](crate::resource) once. A declaration makes the types that a client sends and gets,
//! and, with the feature `server`, what [reads](read), checks and describes them.

#![warn(missing_docs)]

mod bodies;
#[doc(hidden)]
pub mod declare;
mod depth;
pub mod duration_text;
pub mod names;
pub mod nearest;
#[cfg(feature = "server")]
pub mod read;
pub mod status_range;
#[doc(hidden)]
pub mod value;

pub use bodies::*;
pub use depth::{MAX_PAYLOAD_DEPTH, is_too_deep};
pub use duration_text::{format_duration, parse_duration};
pub use status_range::{format_status_range, parse_status_range};
pub use value::{Json, Metadata, Secret, Set, Span, Timestamp};
