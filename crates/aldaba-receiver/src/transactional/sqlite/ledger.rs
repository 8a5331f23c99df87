use super::claim::READERS;
use super::errors::unavailable;
use super::file::{File, Setup};
use super::transaction::SqliteTransaction;
use crate::transactional::{Deadline, EventLocks, InvalidTable, Keep, SqliteStatements, Table};
use crate::{Claim, DuplicateRate, Event, FailedEvent, Guarantee, Ledger, LedgerError};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore};

/// Marks that one statement removes.
const CLEANUP_BATCH: i64 = 500;

/// How long cleanups and migrations wait for the write lock.
const UPKEEP_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum age of marks in a cleanup: a century.
const MAX_AGE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Marks events in a SQLite table, in the transaction of the handler: what the handler writes there has its effect exactly
/// once.
///
/// SQLite has one write lock for each file, and a handler holds it until it returns. So handlers of new events run one after
/// another, including those of other processes on the same file. A handler should be short. Duplicates are answered without
/// the lock.
///
/// The ledger cannot tell whether another process handles the same event: a claim that waits for another process beyond the
/// wait timeout is answered as in progress.
pub struct SqliteLedger {
    pub(super) file: Arc<File>,
    pub(super) writer: Arc<Mutex<Option<Connection>>>,
    pub(super) readers: Semaphore,
    pub(super) locks: EventLocks,
    pub(super) statements: Arc<SqliteStatements>,
    pub(super) keep: Keep,
}

impl SqliteLedger {
    /// A ledger in this file, which is created if it is missing. It is switched to a write-ahead log (WAL).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        Self::open_file(path.as_ref(), None)
    }

    /// Like [`open`](Self::open), with a setup of each new connection, such as `PRAGMA foreign_keys = ON`.
    pub fn open_with(
        path: impl AsRef<Path>,
        setup: impl Fn(&Connection) -> rusqlite::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, LedgerError> {
        Self::open_file(path.as_ref(), Some(Arc::new(setup)))
    }

    fn open_file(path: &Path, setup: Option<Setup>) -> Result<Self, LedgerError> {
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            return Err(LedgerError::Unavailable(
                "a ledger in SQLite needs a file: with `:memory:` each connection would have its own database"
                    .into(),
            ));
        }
        let file = File::new(path.to_owned(), setup);
        let connection = file.open().map_err(|error| unavailable(&error))?;
        Ok(Self {
            file: Arc::new(file),
            writer: Arc::new(Mutex::new(Some(connection))),
            readers: Semaphore::new(READERS),
            locks: EventLocks::default(),
            statements: Arc::new(SqliteStatements::of(&Table::default())),
            keep: Keep::default(),
        })
    }

    /// Uses another table than `webhook_events`, such as one for each sender.
    pub fn with_table(self, name: &str) -> Result<Self, InvalidTable> {
        Ok(Self { statements: Arc::new(SqliteStatements::of(&Table::named(name)?)), ..self })
    }

    /// Sets what a mark keeps of a body. With a digest, a copy whose JSON differs only in spelling counts as another body.
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Creates the table and its index if they are missing. Several processes may call it at once, and repeatedly.
    pub async fn migrate(&self) -> Result<(), LedgerError> {
        let statements = Arc::clone(&self.statements);
        let writer = self.writer(&Deadline::after(UPKEEP_TIMEOUT)).await?;
        self.write(writer, move |connection| {
            connection.busy_timeout(UPKEEP_TIMEOUT)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(&statements.migrate)?;
            // An existing table may have other columns, or ids that are not unique.
            transaction.prepare(&statements.mark)?;
            transaction.commit()
        })
        .await
    }

    async fn clean_batch(&self, statement: String, modifier: String) -> Result<usize, LedgerError> {
        let writer = self.writer(&Deadline::after(UPKEEP_TIMEOUT)).await?;
        self.write(writer, move |connection| {
            connection.busy_timeout(UPKEEP_TIMEOUT)?;
            connection.execute(&statement, (modifier, CLEANUP_BATCH))
        })
        .await
    }

    /// Runs a short statement with the write lock.
    async fn upkeep<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, LedgerError> {
        let writer = self.writer(&Deadline::after(UPKEEP_TIMEOUT)).await?;
        self.write(writer, move |connection| {
            connection.busy_timeout(UPKEEP_TIMEOUT)?;
            run(connection)
        })
        .await
    }

    /// Removes old marks or old failures; returns their number.
    async fn clean_all(&self, statement: &str, modifier: &str) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            let slice = self.clean_batch(statement.to_owned(), modifier.to_owned()).await?;
            removed += slice as u64;
            if slice < CLEANUP_BATCH as usize {
                return Ok(removed);
            }
        }
    }
}

impl Ledger for SqliteLedger {
    type Work = SqliteTransaction;

    const GUARANTEE: Guarantee = Guarantee::ExactlyOnceEffect;

    const KEEPS_COUNTS: bool = true;

    async fn claim(
        &self,
        event: &Event,
        wait_timeout: Duration,
    ) -> Result<Claim<SqliteTransaction>, LedgerError> {
        self.claim_locked(event, wait_timeout).await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let modifier = format!("-{:.3} seconds", older_than.min(MAX_AGE).as_secs_f64());
        let removed = self.clean_all(&self.statements.clean, &modifier).await?;
        // A table that another program has created may have no table for failures beside it.
        if let Err(error) = self.clean_all(&self.statements.clean_failures, &modifier).await {
            tracing::debug!(%error, "old failures were not removed");
        }
        let clean = self.statements.clean_counts.clone();
        if let Err(error) = self.upkeep(move |connection| connection.execute(&clean, [modifier])).await {
            tracing::debug!(%error, "old counts were not removed");
        }
        Ok(removed)
    }

    async fn count(&self, seen: DuplicateRate) -> Result<(), LedgerError> {
        let count = self.statements.count.clone();
        self.upkeep(move |connection| connection.execute(&count, seen.stored())).await.map(drop)
    }

    async fn counts(&self, within: Duration) -> Result<DuplicateRate, LedgerError> {
        let counts = self.statements.counts.clone();
        let modifier = format!("-{:.3} seconds", within.min(MAX_AGE).as_secs_f64());
        self.upkeep(move |connection| {
            connection.query_row(&counts, [modifier], |row| Ok([row.get(0)?, row.get(1)?]))
        })
        .await
        .map(DuplicateRate::from_stored)
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        let statements = Arc::clone(&self.statements);
        let (id, error) = (event.id.clone(), error.to_owned());
        let event_type = Table::event_type(&event.event_type).to_owned();
        let writer = self.writer(&Deadline::after(UPKEEP_TIMEOUT)).await?;
        self.write(writer, move |connection| {
            connection.busy_timeout(UPKEEP_TIMEOUT)?;
            connection.execute(&statements.note_failure, (id, event_type, error)).map(drop)
        })
        .await
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        let (statements, id) = (Arc::clone(&self.statements), event_id.to_owned());
        let writer = self.writer(&Deadline::after(UPKEEP_TIMEOUT)).await?;
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
