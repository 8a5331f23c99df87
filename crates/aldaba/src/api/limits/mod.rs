//! Limits of memory and of request rates.

pub(crate) mod memory_budget;
pub(crate) mod rates;
