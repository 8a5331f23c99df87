//! Copies of a database: one moment of it, read while a server writes ([`Snapshot`]), written elsewhere (`copy.rs`), and made a
//! data folder again ([`Restoring`]).

mod copy;
mod restore;
mod snapshot;
#[cfg(test)]
mod tests;

pub use super::migrations::known_schema;
pub use copy::{CopyError, CopyLimits, CopyProgress, finish_copy};
pub use restore::{Restored, Restoring, RestoringError};
pub(super) use snapshot::is_being_copied;
pub use snapshot::{FolderState, PendingCounts, Snapshot};
