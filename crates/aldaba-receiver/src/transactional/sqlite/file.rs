use rusqlite::{Connection, OpenFlags};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a statement waits for a lock when nobody says otherwise.
const USUAL_WAIT: Duration = Duration::from_secs(5);

/// A file is switched to its write-ahead log once, which needs it for a moment alone.
const SWITCH_PAUSE: Duration = Duration::from_millis(20);
const SWITCH_TRIES: usize = 250;

/// What the program does with each new connection.
pub(super) type Setup = Arc<dyn Fn(&Connection) -> rusqlite::Result<()> + Send + Sync>;

/// The database, and how connections to it are made.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) setup: Option<Setup>,
    /// Connections that only read, and are at rest.
    readers: Mutex<Vec<Connection>>,
}

impl File {
    pub(super) fn new(path: PathBuf, setup: Option<Setup>) -> Self {
        Self { path, setup, readers: Mutex::default() }
    }

    pub(super) fn open(&self) -> rusqlite::Result<Connection> {
        // Without `SQLITE_OPEN_URI`: a path is a path, whatever it is called.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(USUAL_WAIT)?;
        use_write_ahead_log(&connection)?;
        // What was answered survives a loss of power.
        connection.pragma_update(None, "synchronous", "FULL")?;
        if let Some(setup) = &self.setup {
            setup(&connection)?;
        }
        Ok(connection)
    }

    /// Reads beside the one who writes.
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
        // Only one with which all is well is used again.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        Ok(read)
    }
}

/// SQLite does not wait by itself where two processes switch at once.
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
            Err(error) if super::trouble::is_busy(&error) && tries < SWITCH_TRIES => {
                tries += 1;
                std::thread::sleep(SWITCH_PAUSE);
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
