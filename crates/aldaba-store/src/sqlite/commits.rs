//! The number of the last commit, in the database itself.
//!
//! The row shares its page with the number of waiting deliveries, which most commits change anyway. A second row holds the
//! negated number: together they tell a page that a loss of power has left half written from a whole one.

use rusqlite::{Connection, OptionalExtension};

/// Makes sure that commits are counted from here on. A folder of a former version, or one that was mended by hand, has
/// no number yet: without it the watermark would run ahead of the database.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO total (name, value) VALUES ('commits', 0) ON CONFLICT DO NOTHING", ())?;
    connection
        .execute(
            "INSERT INTO total (name, value) SELECT 'commits_negated', -value FROM total WHERE name = 'commits'
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE value <> excluded.value",
            (),
        )
        .map(drop)
}

/// Counts the batch that is about to be committed. `changes`: the connection's total before the batch. One that has
/// changed nothing is not counted: its commit does not touch the disk.
pub(super) fn count(connection: &Connection, changes: u64) -> rusqlite::Result<()> {
    if connection.total_changes() == changes {
        return Ok(());
    }
    // One row each: a list of names would make SQLite build a table of them for every commit.
    for text in [
        "UPDATE total SET value = value + 1 WHERE name = 'commits'",
        "UPDATE total SET value = value - 1 WHERE name = 'commits_negated'",
    ] {
        connection.prepare_cached(text)?.execute(())?;
    }
    Ok(())
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

/// The number that the database file has by itself, without its log. `None`: it cannot be told, as after a loss of power
/// while the log was copied: then the pages of the file are of different ages, or torn, and only the log makes them whole.
pub(super) fn in_file(file_alone: &Connection) -> Option<u64> {
    let number = |name| {
        let mut find = file_alone.prepare("SELECT value FROM total WHERE name = ?1").ok()?;
        find.query_row((name,), |row| row.get::<_, i64>(0)).ok()
    };
    let (number, negated) = (number("commits")?, number("commits_negated")?);
    let is_whole = number.checked_neg() == Some(negated);
    u64::try_from(number).ok().filter(|_| is_whole)
}
