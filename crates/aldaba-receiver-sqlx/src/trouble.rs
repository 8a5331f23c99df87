//! What goes wrong, in words.

use aldaba_receiver::LedgerError;

pub(crate) fn unavailable(error: &sqlx::Error) -> LedgerError {
    LedgerError::Unavailable(error.to_string().into())
}

pub(crate) fn lost(error: &sqlx::Error) -> LedgerError {
    LedgerError::Lost(error.to_string().into())
}

/// For a statement of the ledger's own, which fails like this where nobody has made the table.
pub(crate) fn in_table(error: &sqlx::Error) -> LedgerError {
    let words = error.to_string();
    if has_code(error, &["42P01"]) || words.contains("no such table") {
        return LedgerError::Unavailable(
            format!("{words}; call `migrate`, or make the table as the migration does").into(),
        );
    }
    LedgerError::Unavailable(words.into())
}

pub(crate) fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| codes.contains(&&*code))
}
