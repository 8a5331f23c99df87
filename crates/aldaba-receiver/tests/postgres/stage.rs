use crate::suite::Stage;
use aldaba_receiver::transactional::{PostgresLedger, PostgresTransaction};
use aldaba_receiver::{Claim, Event, Failure, Ledger, LedgerError};
use deadpool_postgres::{Manager, Pool};
use http::HeaderMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use test_servers::Postgres;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row};

/// How long a test's claim waits unless the wait is what it is about.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A separate database, with a ledger and a table that counts the handlers' effects.
pub(crate) struct Database {
    pub(crate) server: Arc<Postgres>,
    pub(crate) url: String,
    pub(crate) ledger: Arc<PostgresLedger>,
}

/// It lives as long as the process: if the last test dropped it, the next one would start another server.
fn shared() -> Arc<Postgres> {
    static SERVER: OnceLock<Arc<Postgres>> = OnceLock::new();
    Arc::clone(SERVER.get_or_init(Postgres::shared))
}

impl Database {
    /// On the server that all tests share.
    pub(crate) async fn set() -> Self {
        Self::set_with(|ledger| ledger).await
    }

    pub(crate) async fn set_with(options: impl FnOnce(PostgresLedger) -> PostgresLedger) -> Self {
        Self::on(tokio::task::spawn_blocking(shared).await.unwrap(), options).await
    }

    /// On a server of its own.
    pub(crate) async fn alone() -> Self {
        let server = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
        Self::on(Arc::new(server), |ledger| ledger).await
    }

    async fn on(server: Arc<Postgres>, options: impl FnOnce(PostgresLedger) -> PostgresLedger) -> Self {
        let database = Arc::clone(&server);
        let url = tokio::task::spawn_blocking(move || database.database()).await.unwrap();
        let ledger = options(PostgresLedger::connect(&url).unwrap());
        ledger.migrate().await.unwrap();
        let database = Self { server, url, ledger: Arc::new(ledger) };
        database.run("CREATE TABLE effects (event_id TEXT NOT NULL)").await;
        database
    }

    /// As another process would have it.
    pub(crate) fn another_ledger(&self) -> Arc<PostgresLedger> {
        Arc::new(PostgresLedger::connect(&self.url).unwrap())
    }

    /// With so many connections.
    pub(crate) fn ledger_over(&self, connections: usize) -> (Pool, Arc<PostgresLedger>) {
        let manager = Manager::new(self.url.parse().unwrap(), NoTls);
        let pool = Pool::builder(manager).max_size(connections).build().unwrap();
        (pool.clone(), Arc::new(PostgresLedger::new(pool)))
    }

    /// A connection outside of the ledger's pool.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.url).await
    }

    pub(crate) async fn run(&self, statements: &str) {
        self.client().await.batch_execute(statements).await.unwrap();
    }

    pub(crate) async fn row(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Row {
        self.client().await.query_one(query, parameters).await.unwrap()
    }

    pub(crate) async fn count(&self, table: &str, event_id: &str) -> u64 {
        let query = format!("SELECT count(*) FROM {table} WHERE event_id = $1");
        self.row(&query, &[&event_id]).await.get::<_, i64>(0) as u64
    }

    pub(crate) async fn claim(&self, event: &Event) -> Claim<PostgresTransaction> {
        self.ledger.claim(event, WAIT_TIMEOUT).await.unwrap()
    }

    pub(crate) async fn claim_new(&self, event: &Event) -> PostgresTransaction {
        new(self.ledger.claim(event, WAIT_TIMEOUT).await)
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) fn event(id: &str) -> Event {
    event_with(id, r#"{"type": "payment.success"}"#)
}

pub(crate) fn event_with(id: &str, body: &str) -> Event {
    Event::new(id, "payment.success", body.to_owned(), HeaderMap::new())
}

#[track_caller]
pub(crate) fn new(claim: Result<Claim<PostgresTransaction>, LedgerError>) -> PostgresTransaction {
    match claim {
        Ok(Claim::New(work)) => work,
        other => panic!("not new: {other:?}"),
    }
}

/// Writes one effect.
pub(crate) async fn effect(work: &PostgresTransaction, event_id: &str) {
    work.execute("INSERT INTO effects (event_id) VALUES ($1)", &[&event_id]).await.unwrap();
}

impl Stage for Database {
    type Ledger = Arc<PostgresLedger>;

    fn ledger(&self) -> Arc<PostgresLedger> {
        Arc::clone(&self.ledger)
    }

    async fn work(&self, event: &Event, work: &mut PostgresTransaction) -> Result<(), Failure> {
        work.execute("INSERT INTO effects (event_id) VALUES ($1)", &[&event.id]).await?;
        Ok(())
    }

    async fn effects(&self, event_id: &str) -> u64 {
        self.count("effects", event_id).await
    }

    async fn marks(&self, event_id: &str) -> u64 {
        self.count("webhook_events", event_id).await
    }

    /// The server stays up for other tests; this database accepts no connections.
    async fn take_down(&self) {
        let (server, name) = self.url.rsplit_once('/').unwrap();
        let client = connect(&format!("{server}/postgres")).await;
        client.batch_execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).await.unwrap();
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1";
        client.execute(end, &[&name]).await.unwrap();
    }

    async fn bring_back(&self) {
        let (server, name) = self.url.rsplit_once('/').unwrap();
        let client = connect(&format!("{server}/postgres")).await;
        client.batch_execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true")).await.unwrap();
    }
}
