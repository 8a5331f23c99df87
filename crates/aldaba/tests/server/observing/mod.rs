//! What the server says of itself.

pub(crate) mod access;
mod certificates;
pub(crate) mod metrics;
pub(crate) mod scrapes;
