use crate::suite::Stage;
use aldaba_receiver::{Claim, Event, Failure, Ledger, LedgerError};
use aldaba_receiver_sqlx::{SqlxSqliteLedger, SqlxSqliteTransaction};
use http::HeaderMap;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, SqliteConnection, SqlitePool};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// How long a test's claim waits unless the wait is what it is about.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) type OurPool = SqlitePool;
pub(crate) type OurLedger = SqlxSqliteLedger;
pub(crate) type OurTransaction = SqlxSqliteTransaction;

/// Ends the transaction.
pub(crate) const FAILS: &str = "INSERT OR ROLLBACK INTO orders VALUES ('sold')";

pub(crate) const TAKES_LONG: &str =
    "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 100000)
    SELECT max(n) FROM number";

/// A file, with a ledger and a table in which the handlers' effects are counted.
pub(crate) struct Database {
    pub(crate) ledger: SqlxSqliteLedger,
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

impl Database {
    pub(crate) async fn set() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.db");
        let ledger = SqlxSqliteLedger::open(&path).await.unwrap();
        ledger.migrate().await.unwrap();
        let database = Self { ledger, path, _folder: folder };
        database.run("CREATE TABLE effects (event_id TEXT NOT NULL)").await;
        database
    }

    /// As another process would have it.
    pub(crate) async fn another_ledger(&self) -> SqlxSqliteLedger {
        SqlxSqliteLedger::open(&self.path).await.unwrap()
    }

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new().filename(&self.path).busy_timeout(WAIT_TIMEOUT)
    }

    pub(crate) async fn pool(&self, connections: u32) -> SqlitePool {
        SqlitePoolOptions::new().max_connections(connections).connect_with(self.options()).await.unwrap()
    }

    async fn connection(&self) -> SqliteConnection {
        self.options().connect().await.unwrap()
    }

    /// On a connection outside of the ledger's pool.
    pub(crate) async fn run(&self, statements: &'static str) {
        sqlx::raw_sql(statements).execute(&mut self.connection().await).await.unwrap();
    }

    pub(crate) async fn count(&self, table: &str, event_id: &str) -> u64 {
        let query = format!("SELECT count(*) FROM {table} WHERE event_id = ?1");
        let query = sqlx::query_scalar::<_, i64>(AssertSqlSafe(query)).bind(event_id);
        query.fetch_one(&mut self.connection().await).await.unwrap() as u64
    }

    pub(crate) async fn claim_new(&self, event: &Event) -> SqlxSqliteTransaction {
        new(self.ledger.claim(event, WAIT_TIMEOUT).await)
    }
}

pub(crate) fn event(id: &str) -> Event {
    event_with(id, r#"{"type": "payment.success"}"#)
}

pub(crate) fn event_with(id: &str, body: &str) -> Event {
    Event::new(id, "payment.success", body.to_owned(), HeaderMap::new())
}

#[track_caller]
pub(crate) fn new(claim: Result<Claim<SqlxSqliteTransaction>, LedgerError>) -> SqlxSqliteTransaction {
    match claim {
        Ok(Claim::New(work)) => work,
        other => panic!("not new: {other:?}"),
    }
}

/// Writes one effect.
pub(crate) async fn effect(work: &mut SqlxSqliteTransaction, event_id: &str) -> sqlx::Result<()> {
    let insert = sqlx::query("INSERT INTO effects (event_id) VALUES (?1)").bind(event_id);
    insert.execute(work.connection()).await.map(drop)
}

impl Stage for Database {
    type Ledger = SqlxSqliteLedger;

    const SIDE_BY_SIDE: bool = false;

    fn ledger(&self) -> SqlxSqliteLedger {
        self.ledger.clone()
    }

    async fn work(&self, event: &Event, work: &mut SqlxSqliteTransaction) -> Result<(), Failure> {
        Ok(effect(work, &event.id).await?)
    }

    async fn effects(&self, event_id: &str) -> u64 {
        self.count("effects", event_id).await
    }

    async fn marks(&self, event_id: &str) -> u64 {
        self.count("webhook_events", event_id).await
    }

    async fn take_down(&self) {
        self.run("ALTER TABLE webhook_events RENAME TO away").await;
    }

    async fn bring_back(&self) {
        self.run("ALTER TABLE away RENAME TO webhook_events").await;
    }
}
