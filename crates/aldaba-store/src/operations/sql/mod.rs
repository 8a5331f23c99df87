//! Between structs and rows: the transaction of a backend, columns, codes, and pages of lists.

pub(crate) mod codes;
pub(crate) mod column;
pub(crate) mod filters;
pub(crate) mod lists;
pub(crate) mod names;
pub(crate) mod stored;
pub(crate) mod transaction;
