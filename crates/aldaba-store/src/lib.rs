//! Where Aldaba keeps what it promised.
//!
//! This crate is a contract ([`Store`]), the rules behind it ([`operations`]), a backend that runs them ([`sqlite`]) and one suite
//! (`conformance`) that every backend passes. Simulations wrap faults around the real one.
//!
//! # Writes
//!
//! A write is handed over together with what to do once its fate is known ([`Done`]). The rules
//! that the engine builds on:
//!
//! 1. One call is one transaction, and its operations each have a result of their own: neither a conflict nor a value that
//!    the database refuses fails a neighbour.
//! 2. `Done` is called exactly once, after the commit is on disk (or the write has failed).
//! 3. **`Done` calls come in the order of the commits of an application.** A lane relies on it: news of a row always
//!    reaches it before news of that row's next change. A call that is about several applications is ordered with each of
//!    them, and one that names none (an organization's policies, settings, retention, due times) with all. Those of
//!    different applications may come in any order.
//! 4. `Done` must not block: it runs on the backend's writer.
//! 5. A read that starts after a `Done` was called sees that write.
//!
//! Reads are snapshots: they may lag behind writes that commit while they run.

mod backend;
mod contract;
mod opening;
pub mod operations;
mod restarts;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
#[cfg(any(test, feature = "conformance"))]
pub mod postgres;
pub mod sqlite;

pub use backend::{Backend, BackendReads};
pub use contract::*;
pub use opening::{Opening, StoreOptions, has_database, open};
pub use operations::{
    COMMIT_MICROS, COMMIT_OPERATIONS, CommitCounts, CommitWatcher, LiveCounts, Monotonic, RetentionWalk,
};
pub use restarts::{RestartedTask, Restarts, panic_message};
pub use sqlite::{
    CopyError, CopyLimits, CopyProgress, FolderState, Loss, OpenError, PendingCounts, Restored, Restoring,
    RestoringError, Snapshot, finish_copy, known_schema, sqlite_version,
};
