//! Who may do what, and the audit log.

pub(crate) mod api_keys;
pub(crate) mod audit;
pub(crate) mod audit_values;
pub(crate) mod portal;
pub(crate) mod tokens;
