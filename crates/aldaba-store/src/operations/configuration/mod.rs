//! What users configure: applications, endpoints, sources and what belongs to them.

pub(crate) mod api_key;
pub(crate) mod application;
pub(crate) mod endpoint;
pub(crate) mod event_type;
mod named;
pub(crate) mod policy;
pub(crate) mod profile;
pub(crate) mod setting;
pub(crate) mod source;
pub(crate) mod token;
