//! Small values that belong to the installation as a whole.

use crate::Changed;
use rusqlite::{Connection, OptionalExtension};

pub(super) fn read(connection: &Connection, name: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut find = connection.prepare_cached("SELECT value FROM setting WHERE name = ?1")?;
    find.query_row((name,), |row| row.get(0)).optional()
}

/// The first value stays; the one that is there afterwards is returned.
pub(super) fn settle(connection: &Connection, name: &str, value: &[u8]) -> rusqlite::Result<Vec<u8>> {
    let mut settle = connection
        .prepare_cached("INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    settle.execute((name, value))?;
    Ok(read(connection, name)?.unwrap_or_default())
}

pub(super) fn put(connection: &Connection, name: &str, value: &[u8]) -> rusqlite::Result<Changed> {
    let mut put = connection.prepare_cached(
        "INSERT INTO setting (name, value) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    )?;
    put.execute((name, value))?;
    Ok(Changed::Done { removed: Vec::new() })
}
