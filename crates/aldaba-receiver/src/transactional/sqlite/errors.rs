//! Errors of SQLite as ledger errors.

use crate::LedgerError;
use rusqlite::ErrorCode;
use tokio::task::JoinError;

pub(super) fn unavailable(error: &rusqlite::Error) -> LedgerError {
    LedgerError::Unavailable(error.to_string().into())
}

pub(super) fn lost(error: &rusqlite::Error) -> LedgerError {
    LedgerError::Lost(error.to_string().into())
}

/// For statements of the ledger, which fail if the table is missing.
pub(super) fn in_table(error: &rusqlite::Error) -> LedgerError {
    let words = error.to_string();
    if words.contains("no such table") {
        return LedgerError::Unavailable(
            format!("{words}; call `migrate`, or create the table with the migration").into(),
        );
    }
    LedgerError::Unavailable(words.into())
}

/// The thread panicked, or the runtime is ending.
pub(super) fn stopped(error: &JoinError) -> LedgerError {
    LedgerError::Unavailable(error.to_string().into())
}

/// Whether another connection has the write lock.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
