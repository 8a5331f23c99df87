use crate::suite::Stage;
use aldaba_receiver::{Claim, Event, Failure, Ledger, LedgerError};
use aldaba_receiver_sqlx::{SqlxPostgresLedger, SqlxPostgresTransaction};
use http::HeaderMap;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use test_servers::Postgres;

/// How long a test's claim waits unless the wait is what it is about.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

const CONNECTIONS: u32 = 16;

pub(crate) type OurPool = PgPool;
pub(crate) type OurLedger = SqlxPostgresLedger;
pub(crate) type OurTransaction = SqlxPostgresTransaction;

/// Ends the transaction, after a while.
pub(crate) const FAILS: &str = "DO 'BEGIN PERFORM pg_sleep(0.01); RAISE EXCEPTION ''late''; END'";

pub(crate) const TAKES_LONG: &str = "SELECT pg_sleep(0.03)";

/// A separate database, with a ledger and a table that counts the handlers' effects.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) ledger: SqlxPostgresLedger,
}

/// It lives as long as the process: if the last test dropped it, the next one would start another server.
fn server() -> Arc<Postgres> {
    static SERVER: OnceLock<Arc<Postgres>> = OnceLock::new();
    Arc::clone(SERVER.get_or_init(Postgres::shared))
}

pub(crate) async fn pool(url: &str, connections: u32) -> PgPool {
    PgPoolOptions::new().max_connections(connections).connect(url).await.unwrap()
}

impl Database {
    /// On the server that all tests share.
    pub(crate) async fn set() -> Self {
        Self::on(&tokio::task::spawn_blocking(server).await.unwrap()).await
    }

    pub(crate) async fn on(server: &Arc<Postgres>) -> Self {
        let server = Arc::clone(server);
        let url = tokio::task::spawn_blocking(move || server.database()).await.unwrap();
        let ledger = SqlxPostgresLedger::new(pool(&url, CONNECTIONS).await);
        ledger.migrate().await.unwrap();
        let database = Self { url, ledger };
        database.run("CREATE TABLE effects (event_id TEXT NOT NULL)").await;
        database
    }

    pub(crate) async fn pool(&self, connections: u32) -> PgPool {
        pool(&self.url, connections).await
    }

    /// A connection outside of the ledger's pool.
    pub(crate) async fn run(&self, statements: &str) {
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut connection).await.unwrap();
    }

    pub(crate) async fn count(&self, table: &str, event_id: &str) -> u64 {
        let mut connection = PgConnection::connect(&self.url).await.unwrap();
        let query = format!("SELECT count(*) FROM {table} WHERE event_id = $1");
        let count: i64 =
            sqlx::query_scalar(AssertSqlSafe(query)).bind(event_id).fetch_one(&mut connection).await.unwrap();
        count as u64
    }

    pub(crate) async fn claim_new(&self, event: &Event) -> SqlxPostgresTransaction {
        new(self.ledger.claim(event, WAIT_TIMEOUT).await)
    }

    /// Executes a statement on another connection.
    async fn administer(&self, statement: impl Fn(&str) -> String) {
        let (server, name) = self.url.rsplit_once('/').unwrap();
        let mut connection = PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement(name))).execute(&mut connection).await.unwrap();
    }
}

pub(crate) fn event(id: &str) -> Event {
    event_with(id, r#"{"type": "payment.success"}"#)
}

pub(crate) fn event_with(id: &str, body: &str) -> Event {
    Event::new(id, "payment.success", body.to_owned(), HeaderMap::new())
}

#[track_caller]
pub(crate) fn new(claim: Result<Claim<SqlxPostgresTransaction>, LedgerError>) -> SqlxPostgresTransaction {
    match claim {
        Ok(Claim::New(work)) => work,
        other => panic!("not new: {other:?}"),
    }
}

/// Writes one effect.
pub(crate) async fn effect(work: &mut SqlxPostgresTransaction, event_id: &str) -> sqlx::Result<()> {
    let insert = sqlx::query("INSERT INTO effects (event_id) VALUES ($1)").bind(event_id);
    insert.execute(work.connection()).await.map(drop)
}

impl Stage for Database {
    type Ledger = SqlxPostgresLedger;

    fn ledger(&self) -> SqlxPostgresLedger {
        self.ledger.clone()
    }

    async fn work(&self, event: &Event, work: &mut SqlxPostgresTransaction) -> Result<(), Failure> {
        Ok(effect(work, &event.id).await?)
    }

    async fn effects(&self, event_id: &str) -> u64 {
        self.count("effects", event_id).await
    }

    async fn marks(&self, event_id: &str) -> u64 {
        self.count("webhook_events", event_id).await
    }

    /// The server stays up for other tests; this database accepts no connections.
    async fn take_down(&self) {
        self.administer(|name| format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await;
        self.administer(|name| {
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        })
        .await;
    }

    async fn bring_back(&self) {
        self.administer(|name| format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true")).await;
    }
}
