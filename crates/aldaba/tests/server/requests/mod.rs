//! What all routes share: errors, strict input, repeats, the document.

pub(crate) mod all_problems;
pub(crate) mod bad_input;
pub(crate) mod docs;
pub(crate) mod document_examples;
pub(crate) mod document_snapshot;
pub(crate) mod errors;
mod forwarded;
pub(crate) mod idempotency;
pub(crate) mod known_fields;
pub(crate) mod matrix;
pub(crate) mod pages;
pub(crate) mod parameters;
pub(crate) mod put_and_delete;
pub(crate) mod raw_payload;
pub(crate) mod replacing;
pub(crate) mod request_keys;
pub(crate) mod resources;
pub(crate) mod sending_back;
pub(crate) mod unknown_fields;
