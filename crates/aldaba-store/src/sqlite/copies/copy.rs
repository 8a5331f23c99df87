//! Writes a snapshot into another file, a few pages at a time.
//!
//! The source is read in one transaction, so the copy is of one moment however long it takes. Commits do not wait for it; but the
//! log cannot start over meanwhile, so the copy ends with an error before the log takes too much room. What is written is synced
//! in small pieces: otherwise the commits of a server on the same disk would wait for all of it at once.

use super::snapshot::{CopyMark, Snapshot};
use crate::sqlite::failure::describe;
use crate::sqlite::files;
use crate::sqlite::lock::FolderLock;
use rusqlite::backup::{Backup, Progress, StepResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Pages of one step: 256 KiB.
const STEP_PAGES: i32 = 64;
/// Pages that are written between two syncs beside a server: 512 KiB. A commit on the same disk waits for one of them at most.
const SYNC_PAGES: i32 = 128;
/// The same while there is no server.
const SYNC_PAGES_ALONE: i32 = 4096;
/// How long a copy beside a server rests after each sync, so that others come to the disk.
const REST: Duration = Duration::from_millis(6);
/// What SQLite keeps of the copy before it writes it.
const CACHE_KIB: i64 = 1024;

/// When a copy ends by itself, so that the server does not suffer.
#[derive(Clone, Copy, Debug)]
pub struct CopyLimits {
    /// How many bytes the log may grow meanwhile.
    pub log_growth: u64,
    /// Free bytes that the disk of the data folder must keep.
    pub free_bytes: u64,
}

/// How far a copy is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    pub copied: u64,
    pub of: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("another backup, or `aldaba doctor`, reads the database now; try again when it has ended")]
    Another,
    #[error("it was told to stop")]
    Stopped,
    #[error("the disk of the copy is full")]
    Full,
    #[error("{0}")]
    Write(#[from] io::Error),
    #[error("{0}")]
    Database(String),
    #[error(
        "the server's log grew by {grown} bytes meanwhile, more than the {limit} that it may: the target is too slow. Copy to a \
         local disk first"
    )]
    LogGrew { grown: u64, limit: u64 },
    #[error(
        "the disk of the data folder has only {free} bytes left, because the server's log cannot start over meanwhile: free some \
         space first"
    )]
    LowSpace { free: u64 },
}

impl From<rusqlite::Error> for CopyError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            _ => Self::Database(describe(&error)),
        }
    }
}

impl Snapshot {
    /// Writes the database into a new file, which is on disk when this returns. `go_on` hears now and then how far it is, and
    /// says whether it goes on.
    pub fn copy_to(
        &self,
        target: &Path,
        limits: CopyLimits,
        mut go_on: impl FnMut(CopyProgress) -> bool,
    ) -> Result<(), CopyError> {
        let unmarked = |error| CopyError::Database(format!("cannot write to the data folder: {error}"));
        let _mark = CopyMark::take(&self.folder).map_err(unmarked)?.ok_or(CopyError::Another)?;
        drop(files::open_private(target)?);
        let log_before = self.log_bytes();
        let (sync_pages, rest) = match FolderLock::is_held(&self.folder) {
            Ok(false) => (SYNC_PAGES_ALONE, Duration::ZERO),
            _ => (SYNC_PAGES, REST),
        };
        let mut copy = Connection::open_with_flags(target, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // A copy that is not finished is thrown away, so nothing of it needs to be undone.
        for (pragma, value) in [("journal_mode", "off"), ("synchronous", "off")] {
            copy.pragma_update_and_check(None, pragma, value, |_| Ok(())).or_else(ignore_no_row)?;
        }
        copy.pragma_update(None, "cache_size", -CACHE_KIB)?;
        // SQLite's locks on the file end with this handle, and nobody else has the file.
        let file = File::open(target)?;
        let of = self.bytes().map_err(|error| CopyError::Database(error.to_string()))?;
        {
            let backup = Backup::new(&self.connection, &mut copy)?;
            let mut unsynced = 0;
            loop {
                match backup.step(STEP_PAGES)? {
                    StepResult::Done => break,
                    StepResult::More => unsynced += STEP_PAGES,
                    // Nobody else writes into the copy, and a snapshot waits for nobody.
                    other => return Err(CopyError::Database(format!("the copy does not go on: {other:?}"))),
                }
                if unsynced >= sync_pages {
                    unsynced = 0;
                    file.sync_data()?;
                    self.check(limits, log_before)?;
                    let Progress { remaining, pagecount } = backup.progress();
                    let pages = |number: i32| u64::try_from(number).unwrap_or(0);
                    let copied = of / pages(pagecount).max(1) * pages(pagecount - remaining);
                    if !go_on(CopyProgress { copied, of }) {
                        return Err(CopyError::Stopped);
                    }
                    std::thread::sleep(rest);
                }
            }
        }
        copy.close().map_err(|(_, error)| error)?;
        file.sync_all()?;
        Ok(files::sync_folder_of(target)?)
    }

    fn check(&self, limits: CopyLimits, log_before: u64) -> Result<(), CopyError> {
        let grown = self.log_bytes().saturating_sub(log_before);
        if grown > limits.log_growth {
            return Err(CopyError::LogGrew { grown, limit: limits.log_growth });
        }
        let disk = rustix::fs::statvfs(&self.folder).map_err(io::Error::from)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if grown > 0 && free < limits.free_bytes {
            return Err(CopyError::LowSpace { free });
        }
        Ok(())
    }
}

/// Makes a copy one file without a log, with these settings. It is on disk when this returns.
pub fn finish_copy(file: &Path, settings: &[(&str, &[u8])]) -> Result<(), CopyError> {
    let connection = alone(file)?;
    for (name, value) in settings {
        connection.execute(
            "INSERT INTO setting (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )?;
    }
    connection.close().map_err(|(_, error)| error)?;
    File::open(file)?.sync_all()?;
    Ok(files::sync_folder_of(file)?)
}

/// The bytes of a database's head that say how it is written and read: 1 without a log, 2 with one.
const MODE_OFFSET: u64 = 18;
const WITHOUT_LOG: [u8; 2] = [1, 1];

/// Opens a copy that nobody else has, without any file beside it: the disk of the copy may be full, or of a kind on which a log
/// does not work. A copy whose change has failed is thrown away.
pub(super) fn alone(file: &Path) -> Result<Connection, CopyError> {
    let head = File::options().write(true).open(file)?;
    head.write_all_at(&WITHOUT_LOG, MODE_OFFSET)?;
    drop(head);
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    for (pragma, value) in [("journal_mode", "memory"), ("synchronous", "off")] {
        connection.pragma_update_and_check(None, pragma, value, |_| Ok(())).or_else(ignore_no_row)?;
    }
    Ok(connection)
}

/// Some pragmas answer with their value and others with nothing.
fn ignore_no_row(error: rusqlite::Error) -> rusqlite::Result<()> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        error => Err(error),
    }
}
