//! The declarations, one file for each resource.

mod application;
mod endpoint;
mod event_type;
mod message;
mod source;

pub use application::*;
pub use endpoint::*;
pub use event_type::*;
pub use message::*;
pub use source::*;
