//! What every request shares: bodies, query strings, names, idempotency keys.

pub(crate) mod body;
pub(crate) mod history_query;
pub(crate) mod idempotency;
pub(crate) mod ids;
pub(crate) mod json;
pub(crate) mod kept;
pub(crate) mod query;
pub(crate) mod replace;
