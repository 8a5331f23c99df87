//! One moment of a database, read from another process than the server's, or while there is none. Nothing is changed: neither
//! the log is copied nor the folder locked, and a server may start meanwhile.

use crate::operations::setting;
use crate::sqlite::lock::{FolderLock, MAX_POLLS, POLL_DELAY, is_locked};
use crate::sqlite::opening::{judge, size};
use crate::sqlite::reader::newest_moment;
use crate::sqlite::transaction::SqliteTransaction;
use crate::sqlite::watermark::Watermark;
use crate::sqlite::{Loss, OpenError, commits, connect, files, migrations, program};
use aldaba_delivery::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Problems that a check of the whole database lists at most.
const MAX_PROBLEMS: usize = 20;

/// A read transaction on the database of a folder. While it lives, the write-ahead log cannot start over.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) connection: Connection,
    pub(super) folder: PathBuf,
    schema: i64,
    commit: u64,
    loss: Option<Loss>,
    /// Whether a server may write the database meanwhile.
    is_live: bool,
}

/// What waits to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingCounts {
    /// All of it.
    pub waiting: u64,
    /// Those of them that no endpoint which is off, blocked or given up keeps back.
    pub sendable: u64,
    /// The sendable ones that are due.
    pub due: u64,
    /// The due time of the first of them.
    pub first_due: Option<Timestamp>,
}

/// What the system says of a data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderState {
    /// A server, or a command, holds it.
    pub is_locked: bool,
    pub database_bytes: u64,
    pub log_bytes: u64,
    /// Files that others than the owner can read, with their modes; the folder itself is `.`.
    pub open_to_others: Vec<(String, u32)>,
}

impl FolderState {
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mode = |path: &Path| Ok::<_, io::Error>(path.metadata()?.permissions().mode() & 0o7777);
        let mut open_to_others = Vec::new();
        let mut note = |name: String, mode: u32| {
            if mode & 0o077 != 0 {
                open_to_others.push((name, mode));
            }
        };
        note(".".into(), mode(folder)?);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            names.push(entry?.file_name());
        }
        names.sort();
        for name in names {
            // It may go away meanwhile, as the log does at a stop.
            if let Ok(mode) = mode(&folder.join(&name)) {
                note(name.to_string_lossy().into_owned(), mode);
            }
        }
        Ok(Self {
            is_locked: FolderLock::is_held(folder)?,
            database_bytes: size(&folder.join(files::DATABASE))?,
            log_bytes: size(&folder.join(files::LOG))?,
            open_to_others,
        })
    }
}

impl Snapshot {
    /// Begins to read. Not for a process that has the store open: the locks of a process on a file end with its first handle.
    pub fn begin(folder: &Path) -> Result<Self, OpenError> {
        connect::check_version()?;
        let failed = |source| OpenError::Folder { folder: folder.to_owned(), source };
        let file = folder.join(files::DATABASE);
        // Before the database: a server that writes meanwhile is only ever ahead of what is read here.
        let watermark = Watermark::read(&folder.join(files::WATERMARK)).map_err(failed)?;
        if size(&file).map_err(failed)? == 0 {
            return Err(failed(io::Error::new(
                io::ErrorKind::NotFound,
                "it has no aldaba.db, or an empty one",
            )));
        }
        let in_file = connect::file_alone(&file).ok().and_then(|alone| commits::in_file(&alone));
        let connection = connect::reader_of_another(&file)?;
        let unreadable = |error: rusqlite::Error| OpenError::database(&file, &error);
        connection.execute_batch("BEGIN").map_err(unreadable)?;
        let schema = migrations::version(&connection, &file)?;
        let commit = commits::last(&connection).map_err(unreadable)?;
        let has_log = size(&folder.join(files::LOG)).map_err(failed)? > 0;
        let loss = judge(watermark, Some(commit), in_file, has_log).err();
        Ok(Self { connection, folder: folder.to_owned(), schema, commit, loss, is_live: true })
    }

    /// Begins to read a copy that nobody writes, and that has no log.
    pub fn of_copy(file: &Path) -> Result<Self, OpenError> {
        connect::check_version()?;
        let unreadable = |error: rusqlite::Error| OpenError::database(file, &error);
        let connection = connect::file_alone(file).map_err(unreadable)?;
        let schema = migrations::version(&connection, file)?;
        let commit = commits::last(&connection).map_err(unreadable)?;
        let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
        Ok(Self { connection, folder, schema, commit, loss: None, is_live: false })
    }

    /// How many steps of the schema the database has run.
    pub fn schema(&self) -> i64 {
        self.schema
    }

    /// The version of this program that last wrote the database.
    pub fn program(&self) -> Option<String> {
        program::last(&self.connection)
    }

    /// The number of the last commit.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// How the database has gone back behind its watermark, if it has.
    pub fn loss(&self) -> Option<Loss> {
        self.loss
    }

    pub fn setting(&self, name: &str) -> Result<Option<Vec<u8>>, OpenError> {
        // One without a schema has been made, and nothing more.
        if self.schema == 0 {
            return Ok(None);
        }
        setting::read(&SqliteTransaction::new(&self.connection), name)
            .map_err(|error| OpenError::unreadable(&self.file(), &error))
    }

    /// When something last happened, by the clock of that time.
    pub fn newest_moment(&self) -> Result<Option<Timestamp>, OpenError> {
        if self.schema == 0 {
            return Ok(None);
        }
        newest_moment(&self.connection).map_err(|error| OpenError::unreadable(&self.file(), &error))
    }

    /// What waits to be delivered.
    pub fn pending(&self, now: Timestamp) -> Result<PendingCounts, OpenError> {
        if self.schema == 0 {
            return Ok(PendingCounts::default());
        }
        let count = |text: &str, due: &[i64]| {
            self.connection.query_row(text, rusqlite::params_from_iter(due), |row| {
                Ok((unsigned(row.get(0)?), unsigned(row.get(1)?), row.get::<_, Option<i64>>(2)?))
            })
        };
        let all = count("SELECT count(*), 0, NULL FROM delivery WHERE state = 0", &[]);
        let sendable = count(
            "SELECT count(*), count(CASE WHEN due_at <= ?1 THEN 1 END), min(CASE WHEN due_at <= ?1 THEN due_at END)
             FROM delivery CROSS JOIN endpoint ON endpoint.id = delivery.endpoint
             WHERE delivery.state = 0 AND deleted = 0 AND disabled = 0 AND health_status = 0",
            &[now.millis()],
        );
        let counted = all.and_then(|(waiting, ..)| Ok((waiting, sendable?)));
        let (waiting, (sendable, due, first_due)) =
            counted.map_err(|error| OpenError::database(&self.file(), &error))?;
        Ok(PendingCounts { waiting, sendable, due, first_due: first_due.map(Timestamp::from_millis) })
    }

    /// Reads the whole database and returns what is wrong with it. `thorough`: compares the indexes with their tables, too.
    pub fn problems(&self, thorough: bool) -> Result<Vec<String>, OpenError> {
        let _mark = self.mark();
        let pragma = if thorough { "integrity_check" } else { "quick_check" };
        let check = || -> rusqlite::Result<Vec<String>> {
            let mut check = self.connection.prepare(&format!("PRAGMA {pragma}({MAX_PROBLEMS})"))?;
            check.query_map((), |row| row.get(0))?.collect()
        };
        let found = check().map_err(|error| OpenError::database(&self.file(), &error))?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    /// The tables and indexes, as they were made.
    pub fn definitions(&self) -> Result<Vec<String>, OpenError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let text = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
            self.connection.prepare(text)?.query_map((), |row| row.get(0))?.collect()
        };
        read().map_err(|error| OpenError::database(&self.file(), &error))
    }

    /// How many rows each table has. `None`: it could not be counted in this time.
    pub fn rows(&self, limit: Duration) -> Result<Vec<(String, Option<u64>)>, OpenError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let text = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
            self.connection.prepare(text)?.query_map((), |row| row.get(0))?.collect()
        };
        let tables = read().map_err(|error| OpenError::database(&self.file(), &error))?;
        let _mark = self.mark();
        Ok(tables.into_iter().map(|table| (table.clone(), self.count_within(&table, limit))).collect())
    }

    fn count_within(&self, table: &str, limit: Duration) -> Option<u64> {
        let interrupt = self.connection.get_interrupt_handle();
        let (over, wait) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if wait.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                    interrupt.interrupt();
                }
            });
            let text = format!("SELECT count(*) FROM \"{table}\"");
            let counted = self.connection.query_row(&text, (), |row| row.get(0)).optional();
            drop(over);
            counted.ok().flatten().map(unsigned)
        })
    }

    fn file(&self) -> PathBuf {
        self.folder.join(files::DATABASE)
    }

    /// How large the database is.
    pub fn bytes(&self) -> Result<u64, OpenError> {
        let number =
            |pragma| self.connection.pragma_query_value(None, pragma, |row| Ok(unsigned(row.get(0)?)));
        let bytes = number("page_count").and_then(|pages| Ok(pages * number("page_size")?));
        bytes.map_err(|error| OpenError::database(&self.file(), &error))
    }

    /// Keeps the writer of a running server from waiting for a long read.
    fn mark(&self) -> Option<CopyMark> {
        let runs = self.is_live && FolderLock::is_held(&self.folder).unwrap_or(false);
        if runs { CopyMark::take(&self.folder).ok().flatten() } else { None }
    }

    /// Bytes of the log of the folder as it is now.
    pub(super) fn log_bytes(&self) -> u64 {
        size(&self.folder.join(files::LOG)).unwrap_or(0)
    }
}

/// Counts and sizes are never negative.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Whether a copy of the database of this folder is being made.
pub(in crate::sqlite) fn is_being_copied(folder: &Path) -> bool {
    is_locked(&folder.join(files::COPYING)).unwrap_or(false)
}

/// Tells the server's writer that a copy reads: it must not wait for that.
#[derive(Debug)]
pub(super) struct CopyMark {
    #[expect(dead_code, reason = "held, never read")]
    file: File,
}

impl CopyMark {
    /// `None`: another process reads for long already.
    pub(super) fn take(folder: &Path) -> io::Result<Option<Self>> {
        let file = files::open_private(&folder.join(files::COPYING))?;
        // Where root makes the copy, the server's user must be able to make the next one.
        if let Ok(owner) = folder.join(files::DATABASE).metadata() {
            let _ = fchown(&file, Some(owner.uid()), Some(owner.gid()));
        }
        for _ in 0..MAX_POLLS {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { file })),
                // The server's writer may only be looking.
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_DELAY),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }
}
