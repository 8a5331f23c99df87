//! The ledger in PostgreSQL.

mod open;

use crate::errors::{has_code, in_table, lost, unavailable};
use crate::lent::Lent;
use crate::task::with_event_lock;
use aldaba_receiver::transactional::{
    Deadline, EventLock, EventLocks, InvalidTable, Keep, Payload, PostgresStatements, Table,
};
use aldaba_receiver::{Claim, DuplicateRate, Event, FailedEvent, Guarantee, Ledger, LedgerError, Work};
use open::OpenTransaction;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Transaction};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Marks that one statement removes.
const CLEANUP_BATCH: i64 = 1000;

/// The maximum age of marks in a cleanup: a century.
const MAX_AGE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Another transaction has the lock, and the wait has timed out.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The mark was created concurrently, and this transaction cannot see it.
const RETRYABLE: [&str; 2] = ["40001", "40P01"];

const FAILED_TRANSACTION: &str = "25P02";
const DIVISION_BY_ZERO: &str = "22012";

/// The delay before a claim is retried after a concurrent change. A trigger or a policy may hide a mark forever.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The isolation level of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SqlxIsolation {
    /// Each statement sees what was committed before it.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the first.
    RepeatableRead,
    /// As if transactions ran one after another; conflicts end one of them.
    Serializable,
}

impl SqlxIsolation {
    /// The mode in a `BEGIN` statement.
    const fn mode(self) -> &'static str {
        match self {
            Self::ReadCommitted => "ISOLATION LEVEL READ COMMITTED READ WRITE",
            Self::RepeatableRead => "ISOLATION LEVEL REPEATABLE READ READ WRITE",
            Self::Serializable => "ISOLATION LEVEL SERIALIZABLE READ WRITE",
        }
    }
}

/// Marks events in a PostgreSQL table, in the transaction of the handler: what the handler writes there has its effect
/// exactly once.
///
/// A handler uses a connection of the pool while it runs, so the pool limits concurrent handlers; without a free connection
/// the answer is 503. Of the copies that wait for an event, at most one in each process uses a connection.
#[derive(Clone)]
pub struct SqlxPostgresLedger {
    pool: PgPool,
    locks: EventLocks,
    statements: Arc<PostgresStatements>,
    isolation: SqlxIsolation,
    keep: Keep,
}

/// The transaction in which an event is marked and its handler works. The receiver commits it when the handler succeeds. As
/// always in PostgreSQL, a failed statement aborts the transaction: then nothing is committed, even if the handler succeeds.
/// Use `work.transaction().begin()`, which sets a savepoint, for statements that may fail.
///
/// Dropping the future of a `begin()` ends the whole transaction: sqlx rolls it back. After that every write fails, and
/// nothing is committed.
#[derive(Debug)]
pub struct SqlxPostgresTransaction {
    lent: Lent<OpenTransaction>,
    number: i64,
    _lock: EventLock,
}

/// The result of marking an event.
enum MarkResult {
    New(Lent<OpenTransaction>, i64),
    Same,
    Other,
    /// Another copy is being handled.
    Held,
    /// The mark was created or removed concurrently.
    Changed,
}

impl SqlxPostgresLedger {
    /// A ledger over the program's pool.
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            locks: EventLocks::default(),
            statements: Arc::new(PostgresStatements::of(&Table::default())),
            isolation: SqlxIsolation::default(),
            keep: Keep::default(),
        }
    }

    /// Uses another table than `webhook_events`, such as one for each sender.
    pub fn with_table(self, name: &str) -> Result<Self, InvalidTable> {
        Ok(Self { statements: Arc::new(PostgresStatements::of(&Table::named(name)?)), ..self })
    }

    /// Uses another isolation level than READ COMMITTED. With SERIALIZABLE the database may reject a commit after a conflict:
    /// the answer is 503, and the sender retries.
    pub fn with_isolation(self, isolation: SqlxIsolation) -> Self {
        Self { isolation, ..self }
    }

    /// Sets what a mark keeps of a body. With a digest, a copy whose JSON differs only in spelling counts as another body.
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Creates the table and its index if they are missing. Several processes may call it at once, and repeatedly.
    pub async fn migrate(&self) -> Result<(), LedgerError> {
        let mut connection = self.pool.acquire().await.map_err(|error| unavailable(&error))?;
        for statement in [&self.statements.migrate, &self.statements.check] {
            let made = sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(&mut *connection).await;
            if let Err(error) = made {
                // The statement opens its own transaction, which sqlx does not track.
                connection.close_on_drop();
                return Err(unavailable(&error));
            }
        }
        Ok(())
    }
}

impl Ledger for SqlxPostgresLedger {
    type Work = SqlxPostgresTransaction;

    const GUARANTEE: Guarantee = Guarantee::ExactlyOnceEffect;

    const KEEPS_COUNTS: bool = true;

    async fn claim(
        &self,
        event: &Event,
        wait_timeout: Duration,
    ) -> Result<Claim<SqlxPostgresTransaction>, LedgerError> {
        let ledger = self.clone();
        with_event_lock(&self.locks, event, wait_timeout, |event, deadline, lock| async move {
            ledger.claim_locked(&event, &deadline, lock).await
        })
        .await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let seconds = older_than.min(MAX_AGE).as_secs_f64();
        let removed = self.clean_all(&self.statements.clean, seconds).await?;
        // A table that another program has created may have no table for failures beside it.
        drop(self.clean_all(&self.statements.clean_failures, seconds).await);
        let clean_counts = sqlx::query(AssertSqlSafe(self.statements.clean_counts.clone())).persistent(false);
        drop(self.write(clean_counts.bind(seconds)).await);
        Ok(removed)
    }

    async fn count(&self, seen: DuplicateRate) -> Result<(), LedgerError> {
        let [new, duplicates] = seen.stored();
        let count = sqlx::query(AssertSqlSafe(self.statements.count.clone())).persistent(false);
        self.write(count.bind(new).bind(duplicates)).await.map_err(|error| in_table(&error))
    }

    async fn counts(&self, within: Duration) -> Result<DuplicateRate, LedgerError> {
        let counts = sqlx::query_as(AssertSqlSafe(self.statements.counts.clone())).persistent(false);
        let counts = counts.bind(within.min(MAX_AGE).as_secs_f64());
        let (new, duplicates) = counts.fetch_one(&self.pool).await.map_err(|error| in_table(&error))?;
        Ok(DuplicateRate::from_stored([new, duplicates]))
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        let noted = async {
            let mut transaction = self.pool.begin_with("BEGIN READ WRITE").await?;
            sqlx::query(AssertSqlSafe(self.statements.note_failure.clone()))
                .persistent(false)
                .bind(&event.id)
                .bind(Table::event_type(&event.event_type))
                // PostgreSQL cannot store NUL in text.
                .bind(error.replace('\0', ""))
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await
        };
        noted.await.map_err(|error| in_table(&error))
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        let find =
            sqlx::query_as(AssertSqlSafe(self.statements.failure.clone())).persistent(false).bind(event_id);
        let found: Option<(String, String, String)> =
            find.fetch_optional(&self.pool).await.map_err(|error| in_table(&error))?;
        Ok(found.map(|(event_type, error, failed_at)| FailedEvent { event_type, error, failed_at }))
    }
}

impl SqlxPostgresLedger {
    /// Runs a statement in its own transaction. The database may default to read-only ones.
    async fn write(
        &self,
        statement: sqlx::query::Query<'_, Postgres, sqlx::postgres::PgArguments>,
    ) -> sqlx::Result<()> {
        let mut transaction = self.pool.begin_with("BEGIN READ WRITE").await?;
        statement.execute(&mut *transaction).await?;
        transaction.commit().await
    }

    /// Removes old marks or old failures; returns their number.
    async fn clean_all(&self, statement: &str, seconds: f64) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            let slice = self.clean_batch(statement, seconds).await.map_err(|error| in_table(&error))?;
            removed += slice;
            if slice < CLEANUP_BATCH as u64 {
                return Ok(removed);
            }
        }
    }

    async fn clean_batch(&self, statement: &str, seconds: f64) -> sqlx::Result<u64> {
        // The database may default to read-only transactions.
        let mut transaction = self.pool.begin_with("BEGIN READ WRITE").await?;
        let clean = sqlx::query(AssertSqlSafe(statement.to_owned())).persistent(false);
        let removed =
            clean.bind(seconds).bind(CLEANUP_BATCH).execute(&mut *transaction).await?.rows_affected();
        transaction.commit().await?;
        Ok(removed)
    }

    async fn claim_locked(
        &self,
        event: &Event,
        deadline: &Deadline,
        lock: EventLock,
    ) -> Result<Claim<SqlxPostgresTransaction>, LedgerError> {
        loop {
            match self.find(event, deadline).await? {
                MarkResult::New(lent, number) => {
                    return Ok(Claim::New(SqlxPostgresTransaction { lent, number, _lock: lock }));
                }
                MarkResult::Same => return Ok(Claim::Duplicate),
                MarkResult::Other => return Ok(Claim::OtherBody),
                MarkResult::Held => return Ok(Claim::InProgress),
                MarkResult::Changed if deadline.is_over() => return Ok(Claim::InProgress),
                MarkResult::Changed => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    async fn find(&self, event: &Event, deadline: &Deadline) -> Result<MarkResult, LedgerError> {
        let open = OpenTransaction::begin(&self.pool, self.isolation.mode(), deadline.left()).await;
        let mut lent = Lent::new(open.map_err(|error| unavailable(&error))?);
        let payload = Payload::new(&event.body, self.keep);
        let found = match self.mark(lent.open(), event, &payload).await {
            Ok(Some(number)) => return Ok(MarkResult::New(lent, number)),
            Ok(None) => self.compare(&mut lent.open().transaction, event, &payload).await,
            Err(error) => Err(error),
        };
        lent.roll_back().await;
        found.or_else(|error| match &error {
            error if has_code(error, &[LOCK_NOT_AVAILABLE]) => Ok(MarkResult::Held),
            error if has_code(error, &RETRYABLE) => Ok(MarkResult::Changed),
            error => Err(in_table(error)),
        })
    }

    /// Marks the event and returns the number of the transaction. `None` if it was marked before.
    async fn mark(
        &self,
        open: &mut OpenTransaction,
        event: &Event,
        payload: &Payload,
    ) -> sqlx::Result<Option<i64>> {
        let number = sqlx::query_scalar(AssertSqlSafe(self.statements.mark.clone()))
            // Like all statements here: proxies may not support prepared statements, and handlers may deallocate them.
            .persistent(false)
            .bind(&event.id)
            .bind(Table::event_type(&event.event_type))
            .bind(&*payload.kept())
            .fetch_optional(&mut *open.transaction)
            .await?;
        open.restore_lock_timeout().await?;
        Ok(number)
    }

    async fn compare(
        &self,
        connection: &mut PgConnection,
        event: &Event,
        payload: &Payload,
    ) -> sqlx::Result<MarkResult> {
        let [one, other] = payload.forms();
        let same = sqlx::query_scalar(AssertSqlSafe(self.statements.compare.clone()))
            .persistent(false)
            .bind(&event.id)
            .bind(&*one)
            .bind(&*other)
            .fetch_optional(connection)
            .await?;
        Ok(match same {
            Some(true) => MarkResult::Same,
            Some(false) => MarkResult::Other,
            None => MarkResult::Changed,
        })
    }
}

impl SqlxPostgresTransaction {
    /// The transaction. Its `begin()` sets a savepoint; dropping the future of a `begin()` ends the whole transaction.
    pub fn transaction(&mut self) -> &mut Transaction<'static, Postgres> {
        &mut self.lent.open().transaction
    }

    /// The connection, on which statements are executed.
    pub fn connection(&mut self) -> &mut PgConnection {
        self.transaction()
    }
}

impl Work for SqlxPostgresTransaction {
    async fn complete(self) -> Result<(), LedgerError> {
        let Self { mut lent, number, _lock } = self;
        match lent.open().commit(number).await {
            Ok(()) => {
                lent.give_back().await;
                Ok(())
            }
            Err(error) => {
                lent.roll_back().await;
                Err(not_committed(&error))
            }
        }
    }

    async fn abandon(self) {
        self.lent.roll_back().await;
    }
}

fn not_committed(error: &sqlx::Error) -> LedgerError {
    if has_code(error, &[DIVISION_BY_ZERO]) {
        let why = "the transaction was ended before the receiver committed it: the handler ended it, or dropped the future \
                   of a `begin()`";
        LedgerError::Lost(why.into())
    } else if has_code(error, &[FAILED_TRANSACTION]) {
        let why = "a statement of the handler failed and aborted the transaction; use a savepoint for statements that may \
                   fail";
        LedgerError::Lost(why.into())
    } else {
        lost(error)
    }
}

impl fmt::Debug for SqlxPostgresLedger {
    // The options of the pool contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlxPostgresLedger").field("connections", &self.pool.size()).finish_non_exhaustive()
    }
}
