use super::connection::Connection;
use super::transaction::PostgresTransaction;
use super::trouble::{in_table, unavailable};
use crate::transactional::{InvalidTable, Keep, PostgresStatements, Table, Turns};
use crate::{Claim, Event, FailedEvent, Guarantee, Ledger, LedgerError};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use std::fmt;
use std::time::Duration;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, IsolationLevel, NoTls};

/// How many connections a ledger has that was made from an address.
const CONNECTIONS: usize = 16;

/// How many marks one statement removes.
const SLICE: i64 = 1000;

/// The oldest marks that can be asked for: a century.
const OLDEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Marks in a table of PostgreSQL, each in the transaction of its event's work. That transaction is the handler's:
/// whatever it writes there has its effect exactly once.
///
/// A transaction holds a connection of the pool for as long as its handler runs, so the pool is the limit on handlers at
/// once; without a free connection the answer is 503. Copies of an event that is being handled hold none, but for one
/// in each process.
///
/// Transactions are READ COMMITTED. With SERIALIZABLE ([`with_isolation`](Self::with_isolation)) the database may refuse
/// a commit because of what others did meanwhile: the work is abandoned then, the answer is 503, and the sender's next
/// try begins anew.
pub struct PostgresLedger {
    pub(super) pool: Pool,
    pub(super) turns: Turns,
    pub(super) statements: PostgresStatements,
    pub(super) isolation: IsolationLevel,
    pub(super) keep: Keep,
}

impl PostgresLedger {
    /// Over connections that the program has anyway, or that need TLS. What a handler sets for its session, such as a
    /// `search_path`, stays for the next one unless the pool recycles with `RecyclingMethod::Clean`.
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            turns: Turns::default(),
            statements: PostgresStatements::of(&Table::default()),
            isolation: IsolationLevel::ReadCommitted,
            keep: Keep::default(),
        }
    }

    /// Over 16 connections of its own, without TLS, such as `postgres://user:password@host/database`. It connects
    /// when it must: a database that is down now may be up later.
    pub fn connect(url: &str) -> Result<Self, LedgerError> {
        let config: Config = url.parse().map_err(|error| unavailable(&error))?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(LedgerError::Unavailable(
                "the address demands TLS; make a pool that can, and give it to `PostgresLedger::new`".into(),
            ));
        }
        // What one handler sets for its session is not the next one's.
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Clean };
        let pool = Pool::builder(Manager::from_config(config, NoTls, recycling))
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| unavailable(&error))?;
        Ok(Self::new(pool))
    }

    /// With another table than `webhook_events`, such as one for each sender.
    pub fn with_table(self, name: &str) -> Result<Self, InvalidTable> {
        Ok(Self { statements: PostgresStatements::of(&Table::named(name)?), ..self })
    }

    /// With transactions of another isolation than READ COMMITTED.
    pub fn with_isolation(self, isolation: IsolationLevel) -> Self {
        Self { isolation, ..self }
    }

    /// With marks that hold only a digest of what came. A copy whose JSON is only spelled differently counts as another
    /// body then.
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Makes the table and its index where they are missing. Several processes may do it at once, and again.
    pub async fn migrate(&self) -> Result<(), LedgerError> {
        let connection = Connection::take(&self.pool).await?;
        connection.batch_execute(&self.statements.migrate).await.map_err(|error| unavailable(&error))?;
        connection.batch_execute(&self.statements.check).await.map_err(|error| unavailable(&error))?;
        connection.give_back();
        Ok(())
    }

    async fn clean_slice(&self, statement: &str, seconds: f64) -> Result<u64, LedgerError> {
        let parameters = [(&seconds as _, Type::FLOAT8), (&SLICE as _, Type::INT8)];
        self.execute(statement, &parameters).await
    }

    /// Of marks or of failures; how many there were.
    async fn clean_all(&self, statement: &str, seconds: f64) -> Result<u64, LedgerError> {
        let mut removed = 0;
        loop {
            let slice = self.clean_slice(statement, seconds).await?;
            removed += slice;
            if slice < SLICE as u64 {
                return Ok(removed);
            }
        }
    }

    /// One statement of the ledger's own, with a commit of its own; how many rows it was about.
    async fn execute(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<u64, LedgerError> {
        let connection = Connection::take(&self.pool).await?;
        let done = async {
            // Transactions of this database may only read by themselves.
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

    async fn claim(
        &self,
        event: &Event,
        patience: Duration,
    ) -> Result<Claim<PostgresTransaction>, LedgerError> {
        self.claim_in_turn(event, patience).await
    }

    async fn clean(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let seconds = older_than.min(OLDEST).as_secs_f64();
        let removed = self.clean_all(&self.statements.clean, seconds).await?;
        // A table of marks that somebody else has made may be without one for failures.
        if let Err(error) = self.clean_all(&self.statements.clean_failures, seconds).await {
            tracing::debug!(%error, "old failures were not removed");
        }
        Ok(removed)
    }

    async fn note_failure(&self, event: &Event, error: &str) -> Result<(), LedgerError> {
        // PostgreSQL keeps no zeros in its texts.
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
    // Its pool knows a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLedger").field("pool", &self.pool.status()).finish_non_exhaustive()
    }
}
