//! The declarations, one file for each resource.

mod application;
mod endpoint;

pub use application::*;
pub use endpoint::*;
