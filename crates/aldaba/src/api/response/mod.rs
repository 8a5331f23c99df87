//! What every answer shares: pages, errors, conflicts.

pub(crate) mod answer;
pub(crate) mod code;
pub(crate) mod conflict;
pub(crate) mod error;
pub(crate) mod missing;
pub(crate) mod page;
