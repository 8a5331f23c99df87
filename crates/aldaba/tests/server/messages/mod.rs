//! Messages from acceptance to removal.

pub(crate) mod batches;
pub(crate) mod dead_letter;
pub(crate) mod delays;
pub(crate) mod delivery;
pub(crate) mod discard;
pub(crate) mod dispatch;
pub(crate) mod event_types;
pub(crate) mod expunging;
pub(crate) mod fan_out;
pub(crate) mod history;
pub(crate) mod jobs;
pub(crate) mod openapi_import;
pub(crate) mod replays;
pub(crate) mod retention;
pub(crate) mod schemas;
pub(crate) mod statistics;
