//! What the server says of itself.

pub(crate) mod access;
pub(crate) mod metrics;
pub(crate) mod scrapes;
