//! The ledger in PostgreSQL.

mod open;

use crate::lent::Lent;
use crate::task::in_turn;
use crate::trouble::{has_code, in_table, lost, unavailable};
use aldaba_receiver::transactional::{
    Deadline, InvalidTable, Keep, Payload, PostgresStatements, Table, Turn, Turns,
};
use aldaba_receiver::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError, Work};
use open::OpenTransaction;
use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Transaction};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How many marks one statement removes.
const SLICE: i64 = 1000;

/// The oldest marks that can be asked for: a century.
const OLDEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Somebody else has the lock, and the patience is over.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The mark came while it was asked for, in a transaction that may not see it.
const COME_AGAIN: [&str; 2] = ["40001", "40P01"];

const FAILED_TRANSACTION: &str = "25P02";
const DIVISION_BY_ZERO: &str = "22012";

/// How long a claim waits before it looks again for a mark that came or went. A trigger or a policy may hide it for ever.
const PAUSE: Duration = Duration::from_millis(20);

/// What a transaction sees of others.
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
    /// As a transaction is begun with it.
    const fn mode(self) -> &'static str {
        match self {
            Self::ReadCommitted => "ISOLATION LEVEL READ COMMITTED READ WRITE",
            Self::RepeatableRead => "ISOLATION LEVEL REPEATABLE READ READ WRITE",
            Self::Serializable => "ISOLATION LEVEL SERIALIZABLE READ WRITE",
        }
    }
}

/// Marks in a table of PostgreSQL, each in the transaction of its event's work. That transaction is the handler's:
/// whatever it writes there has its effect exactly once.
///
/// A transaction holds a connection of the pool for as long as its handler runs, so the pool is the limit on handlers at
/// once; without a free connection the answer is 503. Copies of an event that is being handled hold none, but for one
/// in each process.
#[derive(Clone)]
pub struct SqlxPostgresLedger {
    pool: PgPool,
    turns: Turns,
    statements: Arc<PostgresStatements>,
    isolation: SqlxIsolation,
    keep: Keep,
}

/// The transaction in which an event was marked, and in which its handler works. The receiver commits it, once the handler
/// has succeeded. A statement that fails has ended the transaction, as always in PostgreSQL: then nothing is committed,
/// also if the handler goes on as if all were well. What may fail belongs into `work.transaction().begin()`, which is a
/// savepoint here.
///
/// The future of a `begin()` that is dropped ends the whole transaction: sqlx rolls it back. After that every write fails,
/// and nothing is committed.
#[derive(Debug)]
pub struct SqlxPostgresTransaction {
    lent: Lent<OpenTransaction>,
    number: i64,
    _turn: Turn,
}

/// What the database says of an event.
enum Found {
    New(Lent<OpenTransaction>, i64),
    Same,
    Other,
    /// Somebody is at it.
    Held,
    /// The mark came or went while it was asked for.
    Changed,
}

impl SqlxPostgresLedger {
    /// Over the connections that the program has.
    pub fn new(pool: PgPool) -> Self {
        Self {
            pool,
            turns: Turns::default(),
            statements: Arc::new(PostgresStatements::of(&Table::default())),
            isolation: SqlxIsolation::default(),
            keep: Keep::default(),
        }
    }

    /// With another table than `webhook_events`, such as one for each sender.
    pub fn with_table(self, name: &str) -> Result<Self, InvalidTable> {
        Ok(Self { statements: Arc::new(PostgresStatements::of(&Table::named(name)?)), ..self })
    }

    /// With transactions of another isolation than READ COMMITTED. With SERIALIZABLE the database may refuse a commit because
    /// of what others did meanwhile: the answer is 503 then, and the sender's next try begins anew.
    pub fn with_isolation(self, isolation: SqlxIsolation) -> Self {
        Self { isolation, ..self }
    }

    /// With marks that hold only a digest of what came. A copy whose JSON is only spelled differently counts as another
    /// body then.
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Makes the table and its index where they are missing. Several processes may do it at once, and again.
    pub async fn migrate(&self) -> Result<(), LedgerError> {
        let mut connection = self.pool.acquire().await.map_err(|error| unavailable(&error))?;
        for statement in [&self.statements.migrate, &self.statements.check] {
            let made = sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(&mut *connection).await;
            if let Err(error) = made {
                // It has a transaction of its own, of which sqlx knows nothing.
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

    async fn claim(
        &self,
        event: &Event,
        patience: Duration,
    ) -> Result<Claim<SqlxPostgresTransaction>, LedgerError> {
        let ledger = self.clone();
        in_turn(&self.turns, event, patience, |event, deadline, turn| async move {
            ledger.claim_in_turn(&event, &deadline, turn).await
        })
        .await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let seconds = older_than.min(OLDEST).as_secs_f64();
        let removed = self.clean_all(&self.statements.clean, seconds).await?;
        // A table of marks that somebody else has made may be without one for failures.
        drop(self.clean_all(&self.statements.clean_failures, seconds).await);
        Ok(removed)
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        let noted = async {
            let mut transaction = self.pool.begin_with("BEGIN READ WRITE").await?;
            sqlx::query(AssertSqlSafe(self.statements.note_failure.clone()))
                .persistent(false)
                .bind(&event.id)
                .bind(Table::event_type(&event.event_type))
                // PostgreSQL keeps no zeros in its texts.
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
    /// Of marks or of failures; how many there were.
    async fn clean_all(&self, statement: &str, seconds: f64) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            let slice = self.clean_slice(statement, seconds).await.map_err(|error| in_table(&error))?;
            removed += slice;
            if slice < SLICE as u64 {
                return Ok(removed);
            }
        }
    }

    async fn clean_slice(&self, statement: &str, seconds: f64) -> sqlx::Result<u64> {
        // Transactions of this database may only read by themselves.
        let mut transaction = self.pool.begin_with("BEGIN READ WRITE").await?;
        let clean = sqlx::query(AssertSqlSafe(statement.to_owned())).persistent(false);
        let removed = clean.bind(seconds).bind(SLICE).execute(&mut *transaction).await?.rows_affected();
        transaction.commit().await?;
        Ok(removed)
    }

    async fn claim_in_turn(
        &self,
        event: &Event,
        deadline: &Deadline,
        turn: Turn,
    ) -> Result<Claim<SqlxPostgresTransaction>, LedgerError> {
        loop {
            match self.find(event, deadline).await? {
                Found::New(lent, number) => {
                    return Ok(Claim::New(SqlxPostgresTransaction { lent, number, _turn: turn }));
                }
                Found::Same => return Ok(Claim::Duplicate),
                Found::Other => return Ok(Claim::OtherBody),
                Found::Held => return Ok(Claim::InProgress),
                Found::Changed if deadline.is_over() => return Ok(Claim::InProgress),
                Found::Changed => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn find(&self, event: &Event, deadline: &Deadline) -> Result<Found, LedgerError> {
        let open = OpenTransaction::begin(&self.pool, self.isolation.mode(), deadline.left()).await;
        let mut lent = Lent::new(open.map_err(|error| unavailable(&error))?);
        let payload = Payload::new(&event.body, self.keep);
        let found = match self.mark(lent.open(), event, &payload).await {
            Ok(Some(number)) => return Ok(Found::New(lent, number)),
            Ok(None) => self.compare(&mut lent.open().transaction, event, &payload).await,
            Err(error) => Err(error),
        };
        lent.roll_back().await;
        found.or_else(|error| match &error {
            error if has_code(error, &[LOCK_NOT_AVAILABLE]) => Ok(Found::Held),
            error if has_code(error, &COME_AGAIN) => Ok(Found::Changed),
            error => Err(in_table(error)),
        })
    }

    /// The number of the transaction in which it is marked now; `None`, if it was before.
    async fn mark(
        &self,
        open: &mut OpenTransaction,
        event: &Event,
        payload: &Payload,
    ) -> sqlx::Result<Option<i64>> {
        let number = sqlx::query_scalar(AssertSqlSafe(self.statements.mark.clone()))
            // As all statements here: a proxy may not know one by its name, and a handler may make the server forget it.
            .persistent(false)
            .bind(&event.id)
            .bind(Table::event_type(&event.event_type))
            .bind(&*payload.kept())
            .fetch_optional(&mut *open.transaction)
            .await?;
        open.wait_for_locks_as_usual().await?;
        Ok(number)
    }

    async fn compare(
        &self,
        connection: &mut PgConnection,
        event: &Event,
        payload: &Payload,
    ) -> sqlx::Result<Found> {
        let [one, other] = payload.forms();
        let same = sqlx::query_scalar(AssertSqlSafe(self.statements.compare.clone()))
            .persistent(false)
            .bind(&event.id)
            .bind(&*one)
            .bind(&*other)
            .fetch_optional(connection)
            .await?;
        Ok(match same {
            Some(true) => Found::Same,
            Some(false) => Found::Other,
            None => Found::Changed,
        })
    }
}

impl SqlxPostgresTransaction {
    /// Its `begin()` sets a savepoint. One whose future is dropped ends the whole transaction.
    pub fn transaction(&mut self) -> &mut Transaction<'static, Postgres> {
        &mut self.lent.open().transaction
    }

    /// What statements are executed on.
    pub fn connection(&mut self) -> &mut PgConnection {
        self.transaction()
    }
}

impl Work for SqlxPostgresTransaction {
    async fn complete(self) -> Result<(), LedgerError> {
        let Self { mut lent, number, _turn } = self;
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
        let why = "the transaction was ended before the receiver did: the handler has ended it by itself, or has dropped \
                   the future of a `begin()`";
        LedgerError::Lost(why.into())
    } else if has_code(error, &[FAILED_TRANSACTION]) {
        let why = "a statement of the handler failed, and that ended the transaction; use a savepoint around what may \
                   fail";
        LedgerError::Lost(why.into())
    } else {
        lost(error)
    }
}

impl fmt::Debug for SqlxPostgresLedger {
    // Its pool knows a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlxPostgresLedger").field("connections", &self.pool.size()).finish_non_exhaustive()
    }
}
