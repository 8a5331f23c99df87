use super::connection::Connection;
use super::errors::{in_table, unavailable};
use super::transaction::PostgresTransaction;
use crate::transactional::{EventLocks, InvalidTable, Keep, PostgresStatements, Table};
use crate::{Claim, DuplicateRate, Event, FailedEvent, Guarantee, Ledger, LedgerError};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use std::fmt;
use std::time::Duration;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, IsolationLevel, NoTls};

/// Connections of a ledger that is built from an address.
const CONNECTIONS: usize = 16;

/// Marks that one statement removes.
const CLEANUP_BATCH: i64 = 1000;

/// The maximum age of marks in a cleanup: a century.
const MAX_AGE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Marks events in a PostgreSQL table, in the transaction of the handler: what the handler writes there has its effect
/// exactly once.
///
/// A handler uses a connection of the pool while it runs, so the pool limits concurrent handlers; without a free connection
/// the answer is 503. Of the copies that wait for an event, at most one in each process uses a connection.
///
/// Transactions are READ COMMITTED. With SERIALIZABLE ([`with_isolation`](Self::with_isolation)) the database may reject a
/// commit after a conflict: the work is abandoned, the answer is 503, and the sender retries.
pub struct PostgresLedger {
    pub(super) pool: Pool,
    pub(super) locks: EventLocks,
    pub(super) statements: PostgresStatements,
    pub(super) isolation: IsolationLevel,
    pub(super) keep: Keep,
}

impl PostgresLedger {
    /// A ledger over the program's pool, for example with TLS. Session settings of a handler, such as a `search_path`, stay
    /// for the next one unless the pool recycles with `RecyclingMethod::Clean`.
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            locks: EventLocks::default(),
            statements: PostgresStatements::of(&Table::default()),
            isolation: IsolationLevel::ReadCommitted,
            keep: Keep::default(),
        }
    }

    /// A ledger with 16 connections of its own, without TLS, to an address such as `postgres://user:password@host/database`.
    /// It connects with the first event: the database may start later.
    pub fn connect(url: &str) -> Result<Self, LedgerError> {
        let config: Config = url.parse().map_err(|error| unavailable(&error))?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(LedgerError::Unavailable(
                "the address requires TLS: build a pool with TLS and pass it to `PostgresLedger::new`".into(),
            ));
        }
        // Session settings of one handler must not reach the next.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Clean };
        let pool = Pool::builder(Manager::from_config(config, NoTls, recycling))
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| unavailable(&error))?;
        Ok(Self::new(pool))
    }

    /// Uses another table than `webhook_events`, such as one for each sender.
    pub fn with_table(self, name: &str) -> Result<Self, InvalidTable> {
        Ok(Self { statements: PostgresStatements::of(&Table::named(name)?), ..self })
    }

    /// Uses another isolation level than READ COMMITTED.
    pub fn with_isolation(self, isolation: IsolationLevel) -> Self {
        Self { isolation, ..self }
    }

    /// Sets what a mark keeps of a body. With a digest, a copy whose JSON differs only in spelling counts as another body.
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Creates the table and its index if they are missing. Several processes may call it at once, and repeatedly.
    pub async fn migrate(&self) -> Result<(), LedgerError> {
        let connection = Connection::take(&self.pool).await?;
        connection.batch_execute(&self.statements.migrate).await.map_err(|error| unavailable(&error))?;
        connection.batch_execute(&self.statements.check).await.map_err(|error| unavailable(&error))?;
        connection.give_back();
        Ok(())
    }

    async fn clean_batch(&self, statement: &str, seconds: f64) -> Result<u64, LedgerError> {
        let parameters = [(&seconds as _, Type::FLOAT8), (&CLEANUP_BATCH as _, Type::INT8)];
        self.execute(statement, &parameters).await
    }

    /// Removes old marks or old failures; returns their number.
    async fn clean_all(&self, statement: &str, seconds: f64) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            let slice = self.clean_batch(statement, seconds).await?;
            removed += slice;
            if slice < CLEANUP_BATCH as u64 {
                return Ok(removed);
            }
        }
    }

    /// Executes one statement in its own transaction; returns the number of rows.
    async fn execute(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<u64, LedgerError> {
        let connection = Connection::take(&self.pool).await?;
        let done = async {
            // The database may default to read-only transactions.
            connection.batch_execute("BEGIN READ WRITE").await?;
            let rows = connection.execute_typed(statement, parameters).await?;
            connection.batch_execute("COMMIT").await?;
            Ok(rows)
        };
        let rows = done.await.map_err(|error| in_table(&error))?;
        connection.give_back();
        Ok(rows)
    }
}

impl Ledger for PostgresLedger {
    type Work = PostgresTransaction;

    const GUARANTEE: Guarantee = Guarantee::ExactlyOnceEffect;

    const KEEPS_COUNTS: bool = true;

    async fn claim(
        &self,
        event: &Event,
        wait_timeout: Duration,
    ) -> Result<Claim<PostgresTransaction>, LedgerError> {
        self.claim_locked(event, wait_timeout).await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let seconds = older_than.min(MAX_AGE).as_secs_f64();
        let removed = self.clean_all(&self.statements.clean, seconds).await?;
        // A table that another program has created may have no table for failures beside it.
        if let Err(error) = self.clean_all(&self.statements.clean_failures, seconds).await {
            tracing::debug!(%error, "old failures were not removed");
        }
        let age: [(&(dyn ToSql + Sync), Type); 1] = [(&seconds, Type::FLOAT8)];
        if let Err(error) = self.execute(&self.statements.clean_counts, &age).await {
            tracing::debug!(%error, "old counts were not removed");
        }
        Ok(removed)
    }

    async fn count(&self, seen: DuplicateRate) -> Result<(), LedgerError> {
        let [new, duplicates] = seen.stored();
        let parameters = [(&new as _, Type::INT8), (&duplicates as _, Type::INT8)];
        self.execute(&self.statements.count, &parameters).await.map(drop)
    }

    async fn counts(&self, within: Duration) -> Result<DuplicateRate, LedgerError> {
        let seconds = within.min(MAX_AGE).as_secs_f64();
        let connection = Connection::take(&self.pool).await?;
        let found =
            connection.query_typed_opt(&self.statements.counts, &[(&seconds as _, Type::FLOAT8)]).await;
        let found = found.map_err(|error| in_table(&error))?;
        connection.give_back();
        Ok(found.map(|row| DuplicateRate::from_stored([row.get(0), row.get(1)])).unwrap_or_default())
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        // PostgreSQL cannot store NUL in text.
        let (event_type, error) = (Table::event_type(&event.event_type), error.replace('\0', ""));
        let parameters =
            [(&event.id as _, Type::TEXT), (&event_type as _, Type::TEXT), (&error as _, Type::TEXT)];
        self.execute(&self.statements.note_failure, &parameters).await.map(drop)
    }

    async fn failure(&self, event_id: &str) -> Result<Option<FailedEvent>, LedgerError> {
        let connection = Connection::take(&self.pool).await?;
        let found =
            connection.query_typed_opt(&self.statements.failure, &[(&event_id as _, Type::TEXT)]).await;
        let found = found.map_err(|error| in_table(&error))?;
        connection.give_back();
        Ok(found.map(|row| FailedEvent { event_type: row.get(0), error: row.get(1), failed_at: row.get(2) }))
    }
}

impl fmt::Debug for PostgresLedger {
    // The configuration of the pool contains a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLedger").field("pool", &self.pool.status()).finish_non_exhaustive()
    }
}
