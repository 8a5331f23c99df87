use rusqlite::{Connection, OpenFlags};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a statement waits for a lock by default.
const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Retries of the switch to the write-ahead log, which needs exclusive access once.
const WAL_RETRY_DELAY: Duration = Duration::from_millis(20);
const MAX_WAL_RETRIES: usize = 250;

/// The program's setup of each new connection.
pub(super) type Setup = Arc<dyn Fn(&Connection) -> rusqlite::Result<()> + Send + Sync>;

/// The database file and its connections.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) setup: Option<Setup>,
    /// Idle read-only connections.
    readers: Mutex<Vec<Connection>>,
}

impl File {
    pub(super) fn new(path: PathBuf, setup: Option<Setup>) -> Self {
        Self { path, setup, readers: Mutex::default() }
    }

    pub(super) fn open(&self) -> rusqlite::Result<Connection> {
        // Without `SQLITE_OPEN_URI`: the path is never a URI.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(DEFAULT_BUSY_TIMEOUT)?;
        use_write_ahead_log(&connection)?;
        // An answered commit survives a power failure.
        connection.pragma_update(None, "synchronous", "FULL")?;
        if let Some(setup) = &self.setup {
            setup(&connection)?;
        }
        Ok(connection)
    }

    /// Reads concurrently with the writer.
    pub(super) fn read<T>(
        &self,
        what: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let at_rest = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let reader = match at_rest {
            Some(reader) => reader,
            None => {
                let reader = self.open()?;
                reader.pragma_update(None, "query_only", true)?;
                reader
            }
        };
        let read = what(&reader)?;
        // A connection is used again only after a success.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        Ok(read)
    }
}

/// Retries, because SQLite does not wait when two processes switch at once.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let mut tries = 0;
    loop {
        let mode = connection
            .pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0))
            .and_then(|mode| match mode.as_str() {
                "wal" => Ok(mode),
                _ => connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)),
            });
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Err(error) if super::errors::is_busy(&error) && tries < MAX_WAL_RETRIES => {
                tries += 1;
                std::thread::sleep(WAL_RETRY_DELAY);
            }
            Ok(_) => return Err(no_write_ahead_log()),
            Err(error) => return Err(error),
        }
    }
}

fn no_write_ahead_log() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
        Some("the database has no write-ahead log; it must be a file on a local disk".to_owned()),
    )
}
