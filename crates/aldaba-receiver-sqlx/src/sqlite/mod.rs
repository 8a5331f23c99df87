//! The ledger in SQLite.

mod open;

use crate::errors::{in_table, unavailable};
use crate::lent::Lent;
use crate::task::{STATEMENT_TIMEOUT, to_its_end, with_event_lock};
use aldaba_receiver::transactional::{
    Deadline, EventLock, EventLocks, InvalidTable, Keep, Payload, SqliteStatements, Table,
};
use aldaba_receiver::{Claim, DuplicateRate, Event, FailedEvent, Guarantee, Ledger, LedgerError, Work};
use open::OpenTransaction;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, Connection, Executor, SqlSafeStr, Sqlite, SqliteConnection, SqlitePool, Transaction,
};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// Connections of a ledger that is built from a path: one writes, the others read.
const CONNECTIONS: u32 = 5;

/// How long SQLite waits for another process before the ledger checks its deadline.
const BUSY_TIMEOUT: Duration = Duration::from_millis(250);

/// The delay before a busy database is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// Marks that one statement removes.
const CLEANUP_BATCH: i64 = 500;

/// The maximum age of marks in a cleanup: a century.
const MAX_AGE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How long cleanups and migrations wait for the write lock.
const UPKEEP_TIMEOUT: Duration = Duration::from_secs(30);

/// `SQLITE_BUSY` and `SQLITE_LOCKED`: the lower byte of extended codes.
const BUSY: [i32; 2] = [5, 6];

/// Marks events in a SQLite table, in the transaction of the handler: what the handler writes there has its effect exactly
/// once.
///
/// SQLite has one write lock for each file, and a handler holds it until it returns. So handlers of new events run one after
/// another, including those of other processes on the same file. A handler should be short. Duplicates are answered without
/// the lock.
///
/// The ledger cannot tell whether another process handles the same event: a claim that waits for another process beyond the
/// wait timeout is answered as in progress.
#[derive(Clone)]
pub struct SqlxSqliteLedger {
    pool: SqlitePool,
    /// Writers wait here and not in SQLite, which does not serve them in order.
    writer: Arc<Mutex<()>>,
    locks: EventLocks,
    statements: Arc<SqliteStatements>,
    keep: Keep,
}

/// The transaction in which an event is marked and its handler works. The receiver commits it when the handler succeeds. In
/// SQLite a failed statement is rolled back alone: a handler that continues commits the rest of its work. Some errors end the
/// whole transaction: a full disk, `OR ROLLBACK`, `RAISE(ROLLBACK)`; dropping the future of a `begin()` does too. After that
/// every write fails, and nothing is committed.
#[derive(Debug)]
pub struct SqlxSqliteTransaction {
    lent: Lent<OpenTransaction>,
    find: String,
    event_id: String,
    _lock: EventLock,
}

impl SqlxSqliteLedger {
    /// A ledger over the program's pool: at least two connections, on a file with a write-ahead log (WAL). A claim can exceed
    /// its wait timeout by the pool's `busy_timeout`.
    pub fn new(pool: SqlitePool) -> Self {
        Self {
            pool,
            writer: Arc::default(),
            locks: EventLocks::default(),
            statements: Arc::new(SqliteStatements::of(&Table::default())),
            keep: Keep::default(),
        }
    }

    /// A ledger in this file, which is created if it is missing. It is switched to a write-ahead log (WAL).
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            return Err(LedgerError::Unavailable(
                "a ledger in SQLite needs a file: with `:memory:` each connection would have its own database"
                    .into(),
            ));
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // An answered commit survives a power failure.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
        Ok(Self::new(pool.map_err(|error| unavailable(&error))?))
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
        let ledger = self.clone();
        to_its_end(UPKEEP_TIMEOUT + STATEMENT_TIMEOUT, async move {
            let (mut transaction, _writer) = ledger.begin_upkeep().await?;
            let made = async {
                let statements = &ledger.statements;
                sqlx::raw_sql(AssertSqlSafe(statements.migrate.clone())).execute(&mut *transaction).await?;
                // An existing table may have other columns, or ids that are not unique.
                transaction.prepare(AssertSqlSafe(statements.mark.clone()).into_sql_str()).await?;
                transaction.commit().await
            };
            made.await.map_err(|error| unavailable(&error))
        })
        .await
    }

    /// Removes old marks or old failures; returns their number.
    async fn clean_all(&self, statement: &str, modifier: &str) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            let slice = self.clean_batch(statement.to_owned(), modifier.to_owned()).await?;
            removed += slice;
            if slice < CLEANUP_BATCH as u64 {
                return Ok(removed);
            }
        }
    }

    async fn clean_batch(&self, statement: String, modifier: String) -> Result<u64, LedgerError> {
        let ledger = self.clone();
        to_its_end(UPKEEP_TIMEOUT + STATEMENT_TIMEOUT, async move {
            let (mut transaction, _writer) = ledger.begin_upkeep().await?;
            let clean = sqlx::query(AssertSqlSafe(statement)).bind(modifier).bind(CLEANUP_BATCH);
            let removed = clean.execute(&mut *transaction).await.map_err(|error| in_table(&error))?;
            transaction.commit().await.map_err(|error| unavailable(&error))?;
            Ok(removed.rows_affected())
        })
        .await
    }

    async fn begin_upkeep(&self) -> Result<(Transaction<'static, Sqlite>, OwnedMutexGuard<()>), LedgerError> {
        let deadline = Deadline::after(UPKEEP_TIMEOUT);
        let writer = self.writer(&deadline).await?;
        match self.begin(&deadline).await? {
            Some(transaction) => Ok((transaction, writer)),
            None => Err(LedgerError::Unavailable("another process holds the write lock".into())),
        }
    }
}

impl Ledger for SqlxSqliteLedger {
    type Work = SqlxSqliteTransaction;

    const GUARANTEE: Guarantee = Guarantee::ExactlyOnceEffect;

    const KEEPS_COUNTS: bool = true;

    async fn claim(
        &self,
        event: &Event,
        wait_timeout: Duration,
    ) -> Result<Claim<SqlxSqliteTransaction>, LedgerError> {
        let ledger = self.clone();
        with_event_lock(&self.locks, event, wait_timeout, |event, deadline, lock| async move {
            ledger.claim_locked(&event, &deadline, lock).await
        })
        .await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let modifier = format!("-{:.3} seconds", older_than.min(MAX_AGE).as_secs_f64());
        let removed = self.clean_all(&self.statements.clean, &modifier).await?;
        // A table that another program has created may have no table for failures beside it.
        drop(self.clean_all(&self.statements.clean_failures, &modifier).await);
        let clean_counts = sqlx::query(AssertSqlSafe(self.statements.clean_counts.clone()));
        drop(self.upkeep(clean_counts.bind(modifier)).await);
        Ok(removed)
    }

    async fn count(&self, seen: DuplicateRate) -> Result<(), LedgerError> {
        let [new, duplicates] = seen.stored();
        let count = sqlx::query(AssertSqlSafe(self.statements.count.clone()));
        self.upkeep(count.bind(new).bind(duplicates)).await
    }

    async fn counts(&self, within: Duration) -> Result<DuplicateRate, LedgerError> {
        let counts = sqlx::query_as(AssertSqlSafe(self.statements.counts.clone()));
        let counts = counts.bind(format!("-{:.3} seconds", within.min(MAX_AGE).as_secs_f64()));
        let (new, duplicates) = counts.fetch_one(&self.pool).await.map_err(|error| in_table(&error))?;
        Ok(DuplicateRate::from_stored([new, duplicates]))
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        let (ledger, id, error) = (self.clone(), event.id.clone(), error.to_owned());
        let event_type = Table::event_type(&event.event_type).to_owned();
        to_its_end(UPKEEP_TIMEOUT + STATEMENT_TIMEOUT, async move {
            let (mut transaction, _writer) = ledger.begin_upkeep().await?;
            let note = sqlx::query(AssertSqlSafe(ledger.statements.note_failure.clone()));
            let noted = note.bind(id).bind(event_type).bind(error).execute(&mut *transaction).await;
            noted.map_err(|error| in_table(&error))?;
            transaction.commit().await.map_err(|error| unavailable(&error))
        })
        .await
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        let find = sqlx::query_as(AssertSqlSafe(self.statements.failure.clone())).bind(event_id);
        let found: Option<(String, String, String)> =
            find.fetch_optional(&self.pool).await.map_err(|error| in_table(&error))?;
        Ok(found.map(|(event_type, error, failed_at)| FailedEvent { event_type, error, failed_at }))
    }
}

impl SqlxSqliteLedger {
    /// Runs a short statement with the write lock, to its end.
    async fn upkeep(
        &self,
        statement: sqlx::query::Query<'static, Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<(), LedgerError> {
        let ledger = self.clone();
        to_its_end(UPKEEP_TIMEOUT + STATEMENT_TIMEOUT, async move {
            let (mut transaction, _writer) = ledger.begin_upkeep().await?;
            statement.execute(&mut *transaction).await.map_err(|error| in_table(&error))?;
            transaction.commit().await.map_err(|error| unavailable(&error))
        })
        .await
    }

    async fn claim_locked(
        &self,
        event: &Event,
        deadline: &Deadline,
        lock: EventLock,
    ) -> Result<Claim<SqlxSqliteTransaction>, LedgerError> {
        let payload = Payload::new(&event.body, self.keep);
        // Duplicates are found without the write lock, which a handler may hold.
        if let Some(claim) = self.seen(event, &payload).await? {
            return Ok(claim);
        }
        let writer = self.writer(deadline).await?;
        let Some(mut transaction) = self.begin(deadline).await? else { return Ok(Claim::InProgress) };
        let mark = sqlx::query(AssertSqlSafe(self.statements.mark.clone()))
            .bind(&event.id)
            .bind(Table::event_type(&event.event_type))
            .bind(&*payload.kept());
        let marked = mark.execute(&mut *transaction).await.map_err(|error| in_table(&error))?;
        if marked.rows_affected() == 1 {
            return Ok(Claim::New(SqlxSqliteTransaction {
                lent: Lent::new(OpenTransaction::guard(transaction, writer).await?),
                find: self.statements.find.clone(),
                event_id: event.id.clone(),
                _lock: lock,
            }));
        }
        drop(transaction.rollback().await);
        // Another process has just marked it.
        Ok(self.seen(event, &payload).await?.unwrap_or(Claim::InProgress))
    }

    /// The claim of a marked event; `None` if it is not marked.
    async fn seen(
        &self,
        event: &Event,
        payload: &Payload,
    ) -> Result<Option<Claim<SqlxSqliteTransaction>>, LedgerError> {
        let find = sqlx::query_scalar(AssertSqlSafe(self.statements.find.clone())).bind(&event.id);
        let stored: Option<Option<String>> =
            find.fetch_optional(&self.pool).await.map_err(|error| in_table(&error))?;
        // A mark of another program may have no payload; then the id decides.
        let is_same = |stored: Option<String>| stored.is_none_or(|stored| payload.is_kept_as(&stored));
        Ok(stored.map(|stored| if is_same(stored) { Claim::Duplicate } else { Claim::OtherBody }))
    }

    async fn writer(&self, deadline: &Deadline) -> Result<OwnedMutexGuard<()>, LedgerError> {
        let writer = Arc::clone(&self.writer).lock_owned();
        tokio::time::timeout_at(deadline.at(), writer).await.map_err(|_| {
            LedgerError::Unavailable(
                "the handler of another event holds the write lock; a handler should be short".into(),
            )
        })
    }

    /// Begins a transaction; `None` if another process holds the write lock until the deadline.
    async fn begin(&self, deadline: &Deadline) -> Result<Option<Transaction<'static, Sqlite>>, LedgerError> {
        loop {
            match self.pool.begin_with("BEGIN IMMEDIATE").await {
                Ok(transaction) => return Ok(Some(transaction)),
                Err(error) if is_busy(&error) && deadline.is_over() => return Ok(None),
                // The program's pool may have no busy timeout.
                Err(error) if is_busy(&error) => tokio::time::sleep(RETRY_DELAY).await,
                Err(sqlx::Error::InvalidSavePointStatement) if !deadline.is_over() => self.weed_out().await?,
                Err(error) => return Err(unavailable(&error)),
            }
        }
    }

    /// Closes a connection with a transaction that sqlx wrongly counts as open. SQLite ends some transactions itself, such
    /// as on a full disk; if the work was dropped, sqlx does not know.
    async fn weed_out(&self) -> Result<(), LedgerError> {
        let connection = self.pool.acquire().await.map_err(|error| unavailable(&error))?;
        if connection.is_in_transaction() {
            connection.close().await.map_err(|error| unavailable(&error))?;
        }
        Ok(())
    }
}

fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.and_then(|code| code.parse::<i32>().ok()).is_some_and(|code| BUSY.contains(&(code & 0xff)))
}

impl SqlxSqliteTransaction {
    /// The transaction. Its `begin()` sets a savepoint.
    pub fn transaction(&mut self) -> &mut Transaction<'static, Sqlite> {
        &mut self.lent.open().transaction
    }

    /// The connection, on which statements are executed.
    pub fn connection(&mut self) -> &mut SqliteConnection {
        self.transaction()
    }
}

impl Work for SqlxSqliteTransaction {
    async fn complete(self) -> Result<(), LedgerError> {
        let Self { mut lent, find, event_id, _lock } = self;
        match lent.open().commit(&find, &event_id).await {
            Ok(()) => {
                lent.give_back().await;
                Ok(())
            }
            Err(error) => {
                lent.roll_back().await;
                Err(error)
            }
        }
    }

    async fn abandon(self) {
        self.lent.roll_back().await;
    }
}

impl fmt::Debug for SqlxSqliteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlxSqliteLedger").field("connections", &self.pool.size()).finish_non_exhaustive()
    }
}
