//! Decides what the end of an attempt means, and hands the record to the store.

pub(crate) mod recorder;
