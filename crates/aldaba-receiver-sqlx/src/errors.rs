//! Errors of sqlx as ledger errors.

use aldaba_receiver::LedgerError;

pub(crate) fn unavailable(error: &sqlx::Error) -> LedgerError {
    LedgerError::Unavailable(error.to_string().into())
}

pub(crate) fn lost(error: &sqlx::Error) -> LedgerError {
    LedgerError::Lost(error.to_string().into())
}

/// For statements of the ledger, which fail if the table is missing.
pub(crate) fn in_table(error: &sqlx::Error) -> LedgerError {
    let words = error.to_string();
    if has_code(error, &["42P01"]) || words.contains("no such table") {
        return LedgerError::Unavailable(
            format!("{words}; call `migrate`, or create the table with the migration").into(),
        );
    }
    LedgerError::Unavailable(words.into())
}

pub(crate) fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| codes.contains(&&*code))
}
