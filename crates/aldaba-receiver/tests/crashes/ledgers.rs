use crate::trials::{Trial, Work};
use aldaba_receiver::transactional::{PostgresLedger, SqliteLedger};
use rusqlite::Connection;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use test_servers::Postgres;
use tokio_postgres::{Client, NoTls};

/// No key and no constraint: a double is a double.
const TABLES: &str = "CREATE TABLE effects (event_id TEXT NOT NULL);
    CREATE TABLE counter (total BIGINT NOT NULL); INSERT INTO counter VALUES (0)";

pub(crate) struct InPostgres {
    url: String,
    client: Client,
}

/// It lives as long as the process, and all trials share it.
fn server() -> Arc<Postgres> {
    static SERVER: OnceLock<Arc<Postgres>> = OnceLock::new();
    Arc::clone(SERVER.get_or_init(Postgres::shared))
}

impl Trial for InPostgres {
    const NAME: &'static str = "postgres";

    type Ledger = PostgresLedger;

    async fn set() -> Self {
        let url = tokio::task::spawn_blocking(|| server().database()).await.unwrap();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(TABLES).await.unwrap();
        PostgresLedger::connect(&url).unwrap().migrate().await.unwrap();
        Self { url, client }
    }

    fn place(&self) -> String {
        self.url.clone()
    }

    async fn open(place: &str) -> PostgresLedger {
        PostgresLedger::connect(place).unwrap()
    }

    async fn write(work: &mut Work<Self>, event_id: &str) {
        work.execute("INSERT INTO effects VALUES ($1)", &[&event_id]).await.unwrap();
    }

    async fn count(work: &mut Work<Self>) {
        work.execute("UPDATE counter SET total = total + 1", &[]).await.unwrap();
    }

    async fn effects(&self, event_id: &str) -> u64 {
        let query = "SELECT count(*) FROM effects WHERE event_id = $1";
        self.client.query_one(query, &[&event_id]).await.unwrap().get::<_, i64>(0) as u64
    }

    async fn counted(&self) -> u64 {
        self.client.query_one("SELECT total FROM counter", &[]).await.unwrap().get::<_, i64>(0) as u64
    }
}

pub(crate) struct InSqlite(TempDir);

impl InSqlite {
    fn connection(&self) -> Connection {
        let connection = Connection::open(self.place()).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection
    }
}

impl Trial for InSqlite {
    const NAME: &'static str = "sqlite";

    type Ledger = SqliteLedger;

    async fn set() -> Self {
        let trial = Self(tempfile::tempdir().unwrap());
        SqliteLedger::open(trial.place()).unwrap().migrate().await.unwrap();
        trial.connection().execute_batch(TABLES).unwrap();
        trial
    }

    fn place(&self) -> String {
        self.0.path().join("shop.db").to_str().unwrap().to_owned()
    }

    async fn open(place: &str) -> SqliteLedger {
        SqliteLedger::open(place).unwrap()
    }

    async fn write(work: &mut Work<Self>, event_id: &str) {
        let event_id = event_id.to_owned();
        let written =
            work.run(move |connection| connection.execute("INSERT INTO effects VALUES (?1)", [event_id]));
        written.await.unwrap();
    }

    async fn count(work: &mut Work<Self>) {
        let counted = work.run(|connection| connection.execute("UPDATE counter SET total = total + 1", []));
        counted.await.unwrap();
    }

    async fn effects(&self, event_id: &str) -> u64 {
        let query = "SELECT count(*) FROM effects WHERE event_id = ?1";
        self.connection().query_row(query, [event_id], |row| row.get::<_, i64>(0)).unwrap() as u64
    }

    async fn counted(&self) -> u64 {
        let total = "SELECT total FROM counter";
        self.connection().query_row(total, [], |row| row.get::<_, i64>(0)).unwrap() as u64
    }
}
