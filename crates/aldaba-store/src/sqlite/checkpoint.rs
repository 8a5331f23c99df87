//! From the write-ahead log into the database file.
//!
//! SQLite can do this by itself, but then an error on the way, a failed fsync too, is swallowed and
//! the fsync is tried again later, when the kernel may have dropped the pages. So the writer does
//! it, between two commits, and an error of the disk ends the store.

use super::connect;
use crate::Error;
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use std::time::Duration;

/// How long the writer waits for readers before it empties a log that must start over.
const MAX_READER_WAIT: Duration = Duration::from_millis(50);

/// When to do it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoints {
    pages: u32,
    longest_log: u32,
    restart_at: u32,
    /// The log holds pages that are to be forgotten.
    must_start_over: bool,
}

/// What SQLite says about its log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    pub(super) pages: u32,
    copied: u32,
    /// All of it is in the database file, which is synced: SQLite counts the last pages as copied only after that.
    pub(super) is_copied: bool,
}

impl Log {
    /// Where it is not known, both numbers are −1.
    fn new(pages: i64, copied: i64) -> Self {
        let is_copied = pages >= 0 && copied == pages;
        Self {
            pages: u32::try_from(pages).unwrap_or(0),
            copied: u32::try_from(copied).unwrap_or(0),
            is_copied,
        }
    }
}

impl Checkpoints {
    /// `pages`: how many may be in the log only. `longest_log`: how many may be in it at all before
    /// the writer waits for the readers, so that it can start over.
    pub(super) fn new(pages: u32, longest_log: u32) -> Self {
        Self { pages, longest_log, restart_at: longest_log, must_start_over: false }
    }

    /// An erasure is over: what it has removed stands in the log until that starts over.
    pub(super) fn start_over(&mut self) {
        self.must_start_over = true;
    }

    /// `is_copied_elsewhere`: whether a backup reads the database.
    pub(super) fn after_commit(
        &mut self,
        connection: &Connection,
        is_copied_elsewhere: impl Fn() -> bool,
    ) -> Result<Log, Error> {
        // A backup reads for long: the log starts over when it has ended.
        if self.must_start_over && !is_copied_elsewhere() {
            let log = truncate_soon(connection)?;
            self.must_start_over = log.pages > 0;
            return Ok(log);
        }
        let mut log = state(connection)?;
        if log.pages - log.copied.min(log.pages) >= self.pages {
            log = run(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        }
        if log.pages < self.longest_log {
            self.restart_at = self.longest_log;
        } else if log.pages >= self.restart_at {
            // A read of ours ends within its limit, so the wait is short. Another program may read
            // for longer: then the writer does not wait for it after every commit, and for a backup never.
            if !is_copied_elsewhere() {
                log = run(connection, "PRAGMA wal_checkpoint(RESTART)")?;
            }
            self.restart_at = log.pages.saturating_add(self.longest_log / 4);
        }
        Ok(log)
    }
}

/// Empties the log, unless a read still needs it after a moment: then the next commit tries again.
fn truncate_soon(connection: &Connection) -> Result<Log, Error> {
    connection.busy_timeout(MAX_READER_WAIT)?;
    let log = last(connection);
    connection.busy_timeout(connect::BUSY_TIMEOUT)?;
    log
}

/// At the end: everything into the database file, an empty log.
pub(super) fn last(connection: &Connection) -> Result<Log, Error> {
    run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
}

/// How long the log is. This is asked after every commit; as a pragma it would be prepared every time, because SQLite lets a
/// prepared pragma run only once.
fn state(connection: &Connection) -> Result<Log, Error> {
    match connection.wal_checkpoint_v2(Some("main"), CheckpointMode::NOOP) {
        Ok((pages, copied)) => Ok(Log::new(pages.into(), copied.into())),
        // The pragma knows what is an error and what is only busy.
        Err(_) => run(connection, "PRAGMA wal_checkpoint(NOOP)"),
    }
}

fn run(connection: &Connection, pragma: &str) -> Result<Log, Error> {
    let read = |row: &rusqlite::Row<'_>| Ok(Log::new(row.get(1)?, row.get(2)?));
    connection
        .prepare_cached(pragma)
        .and_then(|mut checkpoint| checkpoint.query_row((), read))
        .map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::limits::Limit;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether the writer was about to wait for a reader.
    static WAITS: AtomicBool = AtomicBool::new(false);

    #[test]
    fn the_writer_waits_for_readers_of_a_long_log_but_not_for_a_backup() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Connection::open(folder.path().join("a.db")).unwrap();
        let (mut connection, reader) = (open(), open());
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE a (b);").unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM a;").unwrap();
        connection.execute_batch("INSERT INTO a VALUES (1);").unwrap();
        let give_up = |_| {
            WAITS.store(true, Ordering::SeqCst);
            false
        };
        connection.busy_handler(Some(give_up)).unwrap();
        let waits = |is_copied_elsewhere: bool| {
            WAITS.store(false, Ordering::SeqCst);
            Checkpoints::new(1, 2).after_commit(&connection, || is_copied_elsewhere).unwrap();
            WAITS.load(Ordering::SeqCst)
        };
        assert!(!waits(true));
        assert!(waits(false));
    }

    #[test]
    fn the_length_of_the_log_is_known_without_a_statement_that_is_prepared() {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("a.db")).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE a (b);").unwrap();
        // Now nothing can be prepared.
        connection.set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, 1).unwrap();
        assert!(run(&connection, "PRAGMA wal_checkpoint(NOOP)").is_err());
        let log = state(&connection).unwrap();
        assert!(log.pages > 0 && log.copied == 0, "{log:?}");
    }
}
