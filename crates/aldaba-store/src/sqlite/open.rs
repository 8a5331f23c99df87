//! From a database that may be used to a running store.

use super::batch::Database;
use super::checkpoint::Checkpoints;
use super::failure::{Failure, describe};
use super::files;
use super::lock::FolderLock;
use super::program::OWN_VERSION;
use super::queue::{self, Room, WriteQueue};
use super::reader::newest_moment;
use super::readers::Readers;
use super::space::{Marks, Space};
use super::threads::Threads;
use super::transaction::SqliteTransaction;
use super::types::Types;
use super::watermark::Watermark;
use super::writer::Writer;
use super::{Loss, Monotonic, Options, SqliteStore, connect, migrations};
use crate::operations::{LiveCounts, Numbers, Rules};
use aldaba_delivery::alert::AlertRules;
use parking_lot::Mutex;
use rusqlite::Connection;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// The name of a version of this program, for people.
struct Program<'a>(Option<&'a str>);

impl fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(version) => write!(f, "Aldaba {version}"),
            None => f.write_str("the Aldaba that wrote it"),
        }
    }
}

/// A count ends after this part of the time that a read may take: one message may take long by itself.
const COUNT_SHARE: u32 = 5;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot use the data folder {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error(
        "the data folder {} is in use by another Aldaba: stop that one first, or give this one a folder \
         of its own",
        folder.display()
    )]
    Locked { folder: PathBuf },
    #[error("this program is linked to SQLite {found}, which can corrupt its log: 3.51.3 or newer is needed")]
    OldSqlite { found: String },
    #[error(
        "{} is not safe to use: {pragma} is {found} where {wanted} is needed. Is the data folder on a \
         network file system? Move it to a local disk",
        file.display()
    )]
    Pragma { file: PathBuf, pragma: &'static str, wanted: String, found: String },
    #[error(
        "{} was written by a newer version, {} (schema {found}); this is {}, which knows schemas up to {known}: run {} or \
         newer, or restore a backup from before the upgrade (docs/backup.md)",
        file.display(),
        Program(program.as_deref()),
        Program(Some(OWN_VERSION)),
        Program(program.as_deref())
    )]
    FromTheFuture { file: PathBuf, program: Option<String>, found: i64, known: i64 },
    #[error("{} could not be brought to schema {version}: {message}", file.display())]
    Migration { file: PathBuf, version: i64, message: String },
    #[error("cannot open the database {}: {message}", file.display())]
    Database { file: PathBuf, message: String },
    #[error(
        "the database in {} has gone back: {loss} Accepted messages are missing. Was aldaba.db or aldaba.db-wal \
         removed, damaged, or replaced by an older copy? Put back the files that belong together and start again. \
         Only to go on with what is there, and lose the rest: `aldaba serve --accept-older-data`, once (in a \
         program: `Builder::accept_older_data`)",
        folder.display()
    )]
    GoneBack { folder: PathBuf, loss: Loss },
    #[error(
        "aldaba.db and aldaba.db-wal in {} do not belong together: aldaba.db ends with commit number {found}, and number \
         {expected} had been copied into it. Was it replaced by an older copy? Put back the aldaba.db that belongs to the \
         log and start again. Only to go on with the older copy, and lose what came after it: move aldaba.db-wal away, \
         then `aldaba serve --accept-older-data`, once (in a program: `Builder::accept_older_data`)",
        folder.display()
    )]
    Mixed { folder: PathBuf, found: u64, expected: u64 },
    #[error(
        "a restore into {} was ended midway: run `aldaba restore` again, or remove what it has left, {}",
        folder.display(),
        folder.join(files::RESTORING).display()
    )]
    HalfRestored { folder: PathBuf },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl OpenError {
    pub(super) fn database(file: &Path, error: &rusqlite::Error) -> Self {
        Self::Database { file: file.to_owned(), message: describe(error) }
    }

    pub(super) fn unreadable(file: &Path, error: &crate::Error) -> Self {
        Self::Database { file: file.to_owned(), message: error.to_string() }
    }
}

/// Starts the threads. The log is copied and removed at the end only once all of them run.
pub(super) fn start(
    options: &Options,
    connection: Connection,
    file: &Path,
    watermark: Watermark,
    lock: &Arc<FolderLock>,
) -> Result<SqliteStore, OpenError> {
    let unreadable = |error| OpenError::unreadable(file, &error);
    let types = Arc::new(Types::restore(&connection).map_err(unreadable)?);
    let live = restore_live(&connection).map_err(unreadable)?;
    let connections =
        (0..options.store.readers.max(1)).map(|_| connect::reader(file)).collect::<Result<Vec<_>, _>>()?;

    let marks = Marks { low: options.store.low_space_bytes, reserve: options.store.reserve_bytes };
    let threads = Threads::new(options.store.clock.clone());
    let space = Space::watch(&options.store.folder, marks, &threads).map_err(OpenError::Thread)?;
    let limits = queue::Limits {
        room: Room { operations: options.store.queue_operations, bytes: options.store.queue_bytes },
        wait: options.store.queue_wait,
        batch: Room { operations: options.batch_operations, bytes: options.batch_bytes },
    };
    let queue = Arc::new(WriteQueue::new(limits, options.store.clock.clone()));
    let failure = Arc::new(Failure::none());
    let (readers, reader_threads) =
        Readers::start(connections, options.store.queue_reads, options.store.read_limit, &threads)
            .map_err(OpenError::Thread)?;
    connect::copy_log_at_close(&connection, file)?;
    let closed = watch::Sender::new(false);
    let log_pages = Arc::default();
    let writer = Writer {
        database: Database {
            connection,
            rules: Rules {
                endpoints_per_application: options.store.endpoints_per_application,
                endpoint_failures: options.store.endpoint_failures,
            },
            clock: options.store.clock.clone(),
            types: Arc::clone(&types),
            live: live.clone(),
            numbers: Numbers::default(),
            committed: 0,
        },
        checkpoints: Checkpoints::new(options.checkpoint_pages, options.longest_log_pages),
        watermark,
        queue: Arc::clone(&queue),
        failure: Arc::clone(&failure),
        log_pages: Arc::clone(&log_pages),
        readers: Arc::clone(&readers),
        reader_threads,
        lock: Arc::clone(lock),
        closed: closed.clone(),
        folder: options.store.folder.clone(),
    };
    let thread = std::thread::Builder::new()
        .name("aldaba-writer".into())
        .spawn(move || writer.run())
        .map_err(|error| {
            readers.close();
            OpenError::Thread(error)
        })?;
    Ok(SqliteStore {
        queue,
        readers,
        failure,
        log_pages,
        clock: options.store.clock.clone(),
        types,
        live,
        count_time: options.store.read_limit / COUNT_SHARE,
        closed,
        space,
        threads,
        thread: Mutex::new(Some(thread)),
    })
}

/// A database in memory with the present schema, for those who call [`Database::run_batch`] themselves.
pub fn in_memory() -> Result<Database, OpenError> {
    let name = Path::new("in memory");
    let failed = |error: rusqlite::Error| OpenError::database(name, &error);
    let connection = Connection::open_in_memory().map_err(failed)?;
    connect::prepare(&connection, connect::WRITER_CACHE_KIB).map_err(failed)?;
    migrations::migrate(&connection, name, migrations::REPORT_INTERVAL, |_| {})?;
    Ok(bare(connection))
}

/// A connection that writes, without a writer's thread.
pub(super) fn bare(connection: Connection) -> Database {
    Database {
        connection,
        rules: Rules {
            endpoints_per_application: 10_000,
            endpoint_failures: AlertRules::default().endpoint_failures(),
        },
        clock: Monotonic::default(),
        types: Arc::default(),
        live: LiveCounts::default(),
        numbers: Numbers::default(),
        committed: 0,
    }
}

/// The counts of organizations, as far as they are written.
pub(super) fn restore_live(connection: &Connection) -> crate::operations::Result<LiveCounts> {
    LiveCounts::restore(&SqliteTransaction::new(connection), newest_moment(connection)?)
}
