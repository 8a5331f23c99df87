//! What goes wrong, in words.

use crate::LedgerError;
use rusqlite::ErrorCode;
use tokio::task::JoinError;

pub(super) fn unavailable(error: &rusqlite::Error) -> LedgerError {
    LedgerError::Unavailable(error.to_string().into())
}

pub(super) fn lost(error: &rusqlite::Error) -> LedgerError {
    LedgerError::Lost(error.to_string().into())
}

/// For a statement of the ledger's own, which fails like this where nobody has made the table.
pub(super) fn in_table(error: &rusqlite::Error) -> LedgerError {
    let words = error.to_string();
    if words.contains("no such table") {
        return LedgerError::Unavailable(
            format!("{words}; call `migrate`, or make the table as the migration does").into(),
        );
    }
    LedgerError::Unavailable(words.into())
}

/// The thread did not come to its end: it panicked, or the runtime is ending.
pub(super) fn stopped(error: &JoinError) -> LedgerError {
    LedgerError::Unavailable(error.to_string().into())
}

/// Somebody else holds the write lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
