//! What goes wrong, in words.

use crate::LedgerError;
use deadpool_postgres::PoolError;
use std::error::Error;
use tokio_postgres::error::SqlState;

/// With everything that lies beneath it: on its own an error of tokio-postgres says `db error`.
pub(super) fn unavailable(error: &(dyn Error + 'static)) -> LedgerError {
    LedgerError::Unavailable(written(error).into())
}

pub(super) fn lost(error: &(dyn Error + 'static)) -> LedgerError {
    LedgerError::Lost(written(error).into())
}

pub(super) fn no_connection(error: &PoolError) -> LedgerError {
    match error {
        PoolError::Backend(error) => unavailable(error),
        other => unavailable(other),
    }
}

/// For a statement of the ledger's own, which fails like this where nobody has made the table.
pub(super) fn in_table(error: &tokio_postgres::Error) -> LedgerError {
    if error.code() == Some(&SqlState::UNDEFINED_TABLE) {
        let hint = "call `migrate`, or make the table as the migration does";
        return LedgerError::Unavailable(format!("{}; {hint}", written(error)).into());
    }
    unavailable(error)
}

fn written(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut beneath = error.source();
    while let Some(error) = beneath {
        words = format!("{words}: {error}");
        beneath = error.source();
    }
    words
}
