use super::claim::READERS;
use super::file::{File, Setup};
use super::transaction::SqliteTransaction;
use super::trouble::unavailable;
use crate::transactional::{Deadline, InvalidTable, Keep, SqliteStatements, Table, Turns};
use crate::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};

/// How many marks one statement removes.
const SLICE: i64 = 500;

/// How long the removal of old marks and the migration wait for the write lock.
const UPKEEP_PATIENCE: Duration = Duration::from_secs(30);

/// The oldest marks that can be asked for: a century.
const OLDEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Marks in a table of SQLite, each in the transaction of its event's work. That transaction is the handler's: whatever
/// it writes there has its effect exactly once.
///
/// SQLite has one write lock for each file, and a handler holds it from its first line to the answer: handlers of new
/// events run one after the other, also those of other processes on the same file. So a handler should be short.
/// Repeats are answered without the lock.
///
/// Work of another process is not told from work on another event: a claim that waits longer than its patience for
/// another process is answered as in progress.
pub struct SqliteLedger {
    pub(super) file: Arc<File>,
    pub(super) writer: Arc<Mutex<Option<Connection>>>,
    pub(super) readers: Semaphore,
    pub(super) turns: Turns,
    pub(super) statements: Arc<SqliteStatements>,
    pub(super) keep: Keep,
}

impl SqliteLedger {
    /// In this file, which is made if it is not there. It gets a write-ahead log (WAL), if it has none.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        Self::open_file(path.as_ref(), None)
    }

    /// Does something with each connection before it is used, such as `PRAGMA foreign_keys = ON`.
    pub fn open_with(
        path: impl AsRef<Path>,
        setup: impl Fn(&Connection) -> rusqlite::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, LedgerError> {
        Self::open_file(path.as_ref(), Some(Arc::new(setup)))
    }

    fn open_file(path: &Path, setup: Option<Setup>) -> Result<Self, LedgerError> {
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            return Err(LedgerError::Unavailable(
                "a ledger in SQLite needs a file: its connections would each have a memory of their own"
                    .into(),
            ));
        }
        let file = File::new(path.to_owned(), setup);
        let connection = file.open().map_err(|error| unavailable(&error))?;
        Ok(Self {
            file: Arc::new(file),
            writer: Arc::new(Mutex::new(Some(connection))),
            readers: Semaphore::new(READERS),
            turns: Turns::default(),
            statements: Arc::new(SqliteStatements::of(&Table::default())),
            keep: Keep::default(),
        })
    }

    /// With another table than `webhook_events`, such as one for each sender.
    pub fn with_table(self, name: &str) -> Result<Self, InvalidTable> {
        Ok(Self { statements: Arc::new(SqliteStatements::of(&Table::named(name)?)), ..self })
    }

    /// With marks that hold only a digest of what came. A copy whose JSON is only spelled differently counts as another
    /// body then.
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Makes the table and its index where they are missing. Several processes may do it at once, and again.
    pub async fn migrate(&self) -> Result<(), LedgerError> {
        let statements = Arc::clone(&self.statements);
        let writer = self.writer(&Deadline::after(UPKEEP_PATIENCE)).await?;
        self.write(writer, move |connection| {
            connection.busy_timeout(UPKEEP_PATIENCE)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(&statements.migrate)?;
            // A table that was there already may have other columns, or ids that are not unique.
            transaction.prepare(&statements.mark)?;
            transaction.commit()
        })
        .await
    }

    async fn clean_slice(&self, statement: String, modifier: String) -> Result<usize, LedgerError> {
        let writer = self.writer(&Deadline::after(UPKEEP_PATIENCE)).await?;
        self.write(writer, move |connection| {
            connection.busy_timeout(UPKEEP_PATIENCE)?;
            connection.execute(&statement, (modifier, SLICE))
        })
        .await
    }

    /// Of marks or of failures; how many there were.
    async fn clean_all(&self, statement: &str, modifier: &str) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            let slice = self.clean_slice(statement.to_owned(), modifier.to_owned()).await?;
            removed += slice as u64;
            if slice < SLICE as usize {
                return Ok(removed);
            }
        }
    }
}

impl Ledger for SqliteLedger {
    type Work = SqliteTransaction;

    const GUARANTEE: Guarantee = Guarantee::ExactlyOnceEffect;

    async fn claim(
        &self,
        event: &Event,
        patience: Duration,
    ) -> Result<Claim<SqliteTransaction>, LedgerError> {
        self.claim_in_turn(event, patience).await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let modifier = format!("-{:.3} seconds", older_than.min(OLDEST).as_secs_f64());
        let removed = self.clean_all(&self.statements.clean, &modifier).await?;
        // A table of marks that somebody else has made may be without one for failures.
        if let Err(error) = self.clean_all(&self.statements.clean_failures, &modifier).await {
            tracing::debug!(%error, "old failures were not removed");
        }
        Ok(removed)
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        let statements = Arc::clone(&self.statements);
        let (id, error) = (event.id.clone(), error.to_owned());
        let event_type = Table::event_type(&event.event_type).to_owned();
        let writer = self.writer(&Deadline::after(UPKEEP_PATIENCE)).await?;
        self.write(writer, move |connection| {
            connection.busy_timeout(UPKEEP_PATIENCE)?;
            connection.execute(&statements.note_failure, (id, event_type, error)).map(drop)
        })
        .await
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        let (statements, id) = (Arc::clone(&self.statements), event_id.to_owned());
        let writer = self.writer(&Deadline::after(UPKEEP_PATIENCE)).await?;
        self.write(writer, move |connection| {
            let read = |row: &Row<'_>| {
                Ok(FailedEvent { event_type: row.get(0)?, error: row.get(1)?, failed_at: row.get(2)? })
            };
            connection.query_row(&statements.failure, [id], read).optional()
        })
        .await
    }
}

impl fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLedger").field("path", &self.file.path).finish_non_exhaustive()
    }
}
