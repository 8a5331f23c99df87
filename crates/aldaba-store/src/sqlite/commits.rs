//! The number of the last commit, in the database itself.
//!
//! The row shares its page with the number of waiting deliveries, which most commits change anyway.

use rusqlite::{Connection, OptionalExtension};

/// Counts the batch that is about to be committed.
pub(super) fn count(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE total SET value = value + 1 WHERE name = 'commits'")?
        .execute(())
        .map(drop)
}

/// The number of the last commit; 0 in a database that does not count them yet.
pub(super) fn last(connection: &Connection) -> rusqlite::Result<u64> {
    let has_totals = connection
        .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'total'")?
        .exists(())?;
    if !has_totals {
        return Ok(0);
    }
    let mut find = connection.prepare("SELECT value FROM total WHERE name = 'commits'")?;
    let number: Option<i64> = find.query_row((), |row| row.get(0)).optional()?;
    Ok(number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0))
}
