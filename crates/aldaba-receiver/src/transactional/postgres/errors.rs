//! Errors of PostgreSQL as ledger errors.

use crate::LedgerError;
use deadpool_postgres::PoolError;
use std::error::Error;
use tokio_postgres::error::SqlState;

/// Includes the causes: an error of tokio-postgres says only `db error`.
pub(super) fn unavailable(error: &(dyn Error + 'static)) -> LedgerError {
    LedgerError::Unavailable(with_causes(error).into())
}

pub(super) fn lost(error: &(dyn Error + 'static)) -> LedgerError {
    LedgerError::Lost(with_causes(error).into())
}

pub(super) fn no_connection(error: &PoolError) -> LedgerError {
    match error {
        PoolError::Backend(error) => unavailable(error),
        other => unavailable(other),
    }
}

/// For statements of the ledger, which fail if the table is missing.
pub(super) fn in_table(error: &tokio_postgres::Error) -> LedgerError {
    if error.code() == Some(&SqlState::UNDEFINED_TABLE) {
        let hint = "call `migrate`, or create the table with the migration";
        return LedgerError::Unavailable(format!("{}; {hint}", with_causes(error)).into());
    }
    unavailable(error)
}

fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut beneath = error.source();
    while let Some(error) = beneath {
        words = format!("{words}: {error}");
        beneath = error.source();
    }
    words
}
