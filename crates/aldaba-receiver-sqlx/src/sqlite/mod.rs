//! The ledger in SQLite.

mod open;

use crate::lent::Lent;
use crate::task::{ANSWER_TIME, in_turn, to_its_end};
use crate::trouble::{in_table, unavailable};
use aldaba_receiver::transactional::{
    Deadline, InvalidTable, Keep, Payload, SqliteStatements, Table, Turn, Turns,
};
use aldaba_receiver::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError, Work};
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

/// How many connections a ledger has that was made from a path: one writes, the others read.
const CONNECTIONS: u32 = 5;

/// How long SQLite waits for another process before the ledger looks at its patience again.
const SHORT_WAIT: Duration = Duration::from_millis(250);

/// How long it rests before it tries again.
const PAUSE: Duration = Duration::from_millis(10);

/// How many marks one statement removes.
const SLICE: i64 = 500;

/// The oldest marks that can be asked for: a century.
const OLDEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How long the removal of old marks and the migration wait for the write lock.
const UPKEEP_PATIENCE: Duration = Duration::from_secs(30);

/// `SQLITE_BUSY` and `SQLITE_LOCKED`, in the lower byte of codes that say more.
const BUSY: [i32; 2] = [5, 6];

/// Marks in a table of SQLite, each in the transaction of its event's work. That transaction is the handler's: whatever
/// it writes there has its effect exactly once.
///
/// SQLite has one write lock for each file, and a handler holds it from its first line to the answer: handlers of new
/// events run one after the other, also those of other processes on the same file. So a handler should be short.
/// Repeats are answered without the lock.
///
/// Work of another process is not told from work on another event: a claim that waits longer than its patience for
/// another process is answered as in progress.
#[derive(Clone)]
pub struct SqlxSqliteLedger {
    pool: SqlitePool,
    /// Those who want to write wait here and not in SQLite, which knows no order.
    writer: Arc<Mutex<()>>,
    turns: Turns,
    statements: Arc<SqliteStatements>,
    keep: Keep,
}

/// The transaction in which an event was marked, and in which its handler works. The receiver commits it, once the handler
/// has succeeded. A statement that fails is taken back alone, as a rule of SQLite: a handler that goes on after one commits
/// the rest of its work. Some errors end the whole transaction: a full disk, `OR ROLLBACK`, `RAISE(ROLLBACK)`; and so does
/// sqlx, if the future of a `begin()` is dropped. After that every write fails, and nothing is committed.
#[derive(Debug)]
pub struct SqlxSqliteTransaction {
    lent: Lent<OpenTransaction>,
    find: String,
    event_id: String,
    _turn: Turn,
}

impl SqlxSqliteLedger {
    /// Over connections that the program has: two at least, on a file with a write-ahead log (WAL). How long a claim can
    /// wait beyond its patience is their `busy_timeout`.
    pub fn new(pool: SqlitePool) -> Self {
        Self {
            pool,
            writer: Arc::default(),
            turns: Turns::default(),
            statements: Arc::new(SqliteStatements::of(&Table::default())),
            keep: Keep::default(),
        }
    }

    /// In this file, which is made if it is not there. It gets a write-ahead log (WAL), if it has none.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() || path == Path::new(":memory:") {
            return Err(LedgerError::Unavailable(
                "a ledger in SQLite needs a file: its connections would each have a memory of their own"
                    .into(),
            ));
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was answered survives a loss of power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(SHORT_WAIT);
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await;
        Ok(Self::new(pool.map_err(|error| unavailable(&error))?))
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
        let ledger = self.clone();
        to_its_end(UPKEEP_PATIENCE + ANSWER_TIME, async move {
            let (mut transaction, _writer) = ledger.begin_upkeep().await?;
            let made = async {
                let statements = &ledger.statements;
                sqlx::raw_sql(AssertSqlSafe(statements.migrate.clone())).execute(&mut *transaction).await?;
                // A table that was there already may have other columns, or ids that are not unique.
                transaction.prepare(AssertSqlSafe(statements.mark.clone()).into_sql_str()).await?;
                transaction.commit().await
            };
            made.await.map_err(|error| unavailable(&error))
        })
        .await
    }

    /// Of marks or of failures; how many there were.
    async fn clean_all(&self, statement: &str, modifier: &str) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            let slice = self.clean_slice(statement.to_owned(), modifier.to_owned()).await?;
            removed += slice;
            if slice < SLICE as u64 {
                return Ok(removed);
            }
        }
    }

    async fn clean_slice(&self, statement: String, modifier: String) -> Result<u64, LedgerError> {
        let ledger = self.clone();
        to_its_end(UPKEEP_PATIENCE + ANSWER_TIME, async move {
            let (mut transaction, _writer) = ledger.begin_upkeep().await?;
            let clean = sqlx::query(AssertSqlSafe(statement)).bind(modifier).bind(SLICE);
            let removed = clean.execute(&mut *transaction).await.map_err(|error| in_table(&error))?;
            transaction.commit().await.map_err(|error| unavailable(&error))?;
            Ok(removed.rows_affected())
        })
        .await
    }

    async fn begin_upkeep(&self) -> Result<(Transaction<'static, Sqlite>, OwnedMutexGuard<()>), LedgerError> {
        let deadline = Deadline::after(UPKEEP_PATIENCE);
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

    async fn claim(
        &self,
        event: &Event,
        patience: Duration,
    ) -> Result<Claim<SqlxSqliteTransaction>, LedgerError> {
        let ledger = self.clone();
        in_turn(&self.turns, event, patience, |event, deadline, turn| async move {
            ledger.claim_in_turn(&event, &deadline, turn).await
        })
        .await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let modifier = format!("-{:.3} seconds", older_than.min(OLDEST).as_secs_f64());
        let removed = self.clean_all(&self.statements.clean, &modifier).await?;
        // A table of marks that somebody else has made may be without one for failures.
        drop(self.clean_all(&self.statements.clean_failures, &modifier).await);
        Ok(removed)
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        let (ledger, id, error) = (self.clone(), event.id.clone(), error.to_owned());
        let event_type = Table::event_type(&event.event_type).to_owned();
        to_its_end(UPKEEP_PATIENCE + ANSWER_TIME, async move {
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
    async fn claim_in_turn(
        &self,
        event: &Event,
        deadline: &Deadline,
        turn: Turn,
    ) -> Result<Claim<SqlxSqliteTransaction>, LedgerError> {
        let payload = Payload::new(&event.body, self.keep);
        // A repeat is told from what is stored, without the write lock, which somebody's handler may hold.
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
                _turn: turn,
            }));
        }
        drop(transaction.rollback().await);
        // It was marked just now, in another process.
        Ok(self.seen(event, &payload).await?.unwrap_or(Claim::InProgress))
    }

    /// `None`, if it is not marked.
    async fn seen(
        &self,
        event: &Event,
        payload: &Payload,
    ) -> Result<Option<Claim<SqlxSqliteTransaction>>, LedgerError> {
        let find = sqlx::query_scalar(AssertSqlSafe(self.statements.find.clone())).bind(&event.id);
        let stored: Option<Option<String>> =
            find.fetch_optional(&self.pool).await.map_err(|error| in_table(&error))?;
        // A mark of another program may hold no payload: its word that the event was handled is all there is.
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

    /// `None`, if another process holds the write lock for longer than the patience.
    async fn begin(&self, deadline: &Deadline) -> Result<Option<Transaction<'static, Sqlite>>, LedgerError> {
        loop {
            match self.pool.begin_with("BEGIN IMMEDIATE").await {
                Ok(transaction) => return Ok(Some(transaction)),
                Err(error) if is_busy(&error) && deadline.is_over() => return Ok(None),
                // A pool of the program's may not wait at all.
                Err(error) if is_busy(&error) => tokio::time::sleep(PAUSE).await,
                Err(sqlx::Error::InvalidSavePointStatement) if !deadline.is_over() => self.weed_out().await?,
                Err(error) => return Err(unavailable(&error)),
            }
        }
    }

    /// Closes a connection that sqlx takes for one with a transaction. SQLite ends some by itself, such as on a disk that
    /// is full; where the work was dropped then, nobody has told sqlx.
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
    /// Its `begin()` sets a savepoint.
    pub fn transaction(&mut self) -> &mut Transaction<'static, Sqlite> {
        &mut self.lent.open().transaction
    }

    /// What statements are executed on.
    pub fn connection(&mut self) -> &mut SqliteConnection {
        self.transaction()
    }
}

impl Work for SqlxSqliteTransaction {
    async fn complete(self) -> Result<(), LedgerError> {
        let Self { mut lent, find, event_id, _turn } = self;
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
