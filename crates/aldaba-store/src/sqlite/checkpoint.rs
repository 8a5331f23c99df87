//! From the write-ahead log into the database file.
//!
//! SQLite can do this by itself, but then an error on the way, a failed fsync too, is swallowed and
//! the fsync is tried again later, when the kernel may have dropped the pages. So the writer does
//! it, between two commits, and an error of the disk ends the store.

use super::failure::explain;
use crate::Error;
use rusqlite::Connection;

/// When to do it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoints {
    /// Pages that are in the log only.
    pub(super) pages: u32,
    /// Pages in the log at which the writer waits for the readers, so that it can start over.
    pub(super) longest_log: u32,
}

/// What SQLite says about its log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    pub(super) pages: u32,
    copied: u32,
}

impl Checkpoints {
    pub(super) fn after_commit(self, connection: &Connection) -> Result<Log, Error> {
        let mut log = run(connection, "PRAGMA wal_checkpoint(NOOP)")?;
        if log.pages - log.copied.min(log.pages) >= self.pages {
            log = run(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        }
        if log.pages >= self.longest_log {
            // A read ends within its limit, so this wait is short.
            log = run(connection, "PRAGMA wal_checkpoint(RESTART)")?;
        }
        Ok(log)
    }
}

/// At the end: everything into the database file, an empty log.
pub(super) fn last(connection: &Connection) -> Result<Log, Error> {
    run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
}

fn run(connection: &Connection, pragma: &str) -> Result<Log, Error> {
    let read = |row: &rusqlite::Row<'_>| {
        // Without a log both are −1.
        let pages = |column| row.get::<_, i64>(column).map(|pages| u32::try_from(pages).unwrap_or(0));
        Ok(Log { pages: pages(1)?, copied: pages(2)? })
    };
    connection
        .prepare_cached(pragma)
        .and_then(|mut checkpoint| checkpoint.query_row((), read))
        .map_err(|error| explain(&error))
}
