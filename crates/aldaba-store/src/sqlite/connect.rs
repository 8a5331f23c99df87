//! Connections, and proof that they are what durability needs.

use super::OpenError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Before this version a write-ahead log could be corrupted by a checkpoint at the wrong moment.
const OLDEST_SQLITE: i32 = 3_051_003;
const PAGE_BYTES: u32 = 4096;
/// SQLite looks at each slot of its cache after most commits, so that a larger one costs more than the pages that it saves reading.
pub(super) const WRITER_CACHE_KIB: i64 = 8 * 1024;
/// Enough for the inner pages of the trees. Large payloads would only push those out of more, and the system
/// keeps what was read.
const READER_CACHE_KIB: i64 = 1024;
/// What is left of the log's file when the log starts over after it has been longer.
const LOG_FILE_BYTES: i64 = 96 << 20;
/// More than the statements of this crate.
const STATEMENTS: usize = 128;
/// How long to wait for a lock that another program holds, such as a shell on the file.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The version of SQLite in this program.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

pub(super) fn check_version() -> Result<(), OpenError> {
    match rusqlite::version_number() {
        found if found >= OLDEST_SQLITE => Ok(()),
        _ => Err(OpenError::OldSqlite { found: rusqlite::version().to_owned() }),
    }
}

/// The connection that is going to write. It changes nothing yet, neither now nor when it is dropped: a log that
/// may be incomplete must not be copied into the database.
pub(super) fn unchanging(file: &Path) -> Result<Connection, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::database(file, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    prepare(&connection, WRITER_CACHE_KIB).map_err(failed)?;
    Ok(connection)
}

/// Reads the database file as it is, without its log and without a lock. To be closed before another connection to the file is
/// opened: its end takes the locks of the whole process away.
pub(super) fn file_alone(file: &Path) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for byte in file.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri, flags)
}

/// Makes it what durability needs.
pub(super) fn writer(connection: &Connection, file: &Path, largest: Option<u32>) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| OpenError::database(file, &error);
    // Before WAL mode: in it the size of a page is settled.
    connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(failed)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "full").map_err(failed)?;
    // SQLite's own checkpoints swallow errors; ours (`checkpoint.rs`) do not.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).map_err(failed)?;
    connection
        .pragma_update_and_check(None, "journal_size_limit", LOG_FILE_BYTES, |_| Ok(()))
        .map_err(failed)?;
    if let Some(pages) = largest {
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).map_err(failed)?;
    }
    expect(connection, file, "journal_mode", "wal")?;
    expect(connection, file, "synchronous", "2")
}

/// From here on the log is copied and removed when the last connection closes.
pub(super) fn copy_log_at_close(connection: &Connection, file: &Path) -> Result<(), OpenError> {
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    set.map(drop).map_err(|error| OpenError::database(file, &error))
}

pub(super) fn reader(file: &Path) -> Result<Connection, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::database(file, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags).map_err(failed)?;
    prepare(&connection, READER_CACHE_KIB).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(connection)
}

/// A connection that reads beside the server of another process. It leaves the log as it is, also when it is the last one.
pub(super) fn reader_of_another(file: &Path) -> Result<Connection, OpenError> {
    let connection = reader(file)?;
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    set.map(|_| connection).map_err(|error| OpenError::database(file, &error))
}

pub(super) fn prepare(connection: &Connection, cache_kib: i64) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Or SQLite plans every statement with `LIMIT ?` anew at each run, for what is bound to it then.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -cache_kib)
}

/// A setting that did not take, on an odd file system for example, must not go unnoticed.
fn expect(connection: &Connection, file: &Path, pragma: &'static str, wanted: &str) -> Result<(), OpenError> {
    let found: rusqlite::types::Value = connection
        .pragma_query_value(None, pragma, |row| row.get(0))
        .map_err(|error| OpenError::database(file, &error))?;
    let found = match found {
        rusqlite::types::Value::Text(text) => text,
        rusqlite::types::Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    if found == wanted {
        return Ok(());
    }
    Err(OpenError::Pragma { file: file.to_owned(), pragma, wanted: wanted.to_owned(), found })
}
