use crate::trials::{Trial, Work};
use aldaba_receiver_sqlx::{SqlxPostgresLedger, SqlxSqliteLedger};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, PgPool, SqliteConnection};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use test_servers::Postgres;

/// No key and no constraint: a double is a double.
const TABLES: &str = "CREATE TABLE effects (event_id TEXT NOT NULL);
    CREATE TABLE counter (total BIGINT NOT NULL); INSERT INTO counter VALUES (0)";

const WRITE: &str = "INSERT INTO effects VALUES ($1)";
const COUNT: &str = "UPDATE counter SET total = total + 1";
const EFFECTS: &str = "SELECT count(*) FROM effects WHERE event_id = $1";
const COUNTED: &str = "SELECT total FROM counter";

pub(crate) struct InPostgres {
    url: String,
    pool: PgPool,
}

/// It lives as long as the process, and all trials share it.
fn server() -> Arc<Postgres> {
    static SERVER: OnceLock<Arc<Postgres>> = OnceLock::new();
    Arc::clone(SERVER.get_or_init(Postgres::shared))
}

impl Trial for InPostgres {
    const NAME: &'static str = "postgres";

    type Ledger = SqlxPostgresLedger;

    async fn set() -> Self {
        let url = tokio::task::spawn_blocking(|| server().database()).await.unwrap();
        let pool = PgPool::connect(&url).await.unwrap();
        sqlx::raw_sql(TABLES).execute(&pool).await.unwrap();
        SqlxPostgresLedger::new(pool.clone()).migrate().await.unwrap();
        Self { url, pool }
    }

    fn place(&self) -> String {
        self.url.clone()
    }

    async fn open(place: &str) -> SqlxPostgresLedger {
        SqlxPostgresLedger::new(PgPool::connect_lazy(place).unwrap())
    }

    async fn write(work: &mut Work<Self>, event_id: &str) {
        sqlx::query(WRITE).bind(event_id).execute(work.connection()).await.unwrap();
    }

    async fn count(work: &mut Work<Self>) {
        sqlx::query(COUNT).execute(work.connection()).await.unwrap();
    }

    async fn effects(&self, event_id: &str) -> u64 {
        sqlx::query_scalar::<_, i64>(EFFECTS).bind(event_id).fetch_one(&self.pool).await.unwrap() as u64
    }

    async fn counted(&self) -> u64 {
        sqlx::query_scalar::<_, i64>(COUNTED).fetch_one(&self.pool).await.unwrap() as u64
    }
}

pub(crate) struct InSqlite(TempDir);

impl InSqlite {
    async fn connection(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.place());
        options.busy_timeout(Duration::from_secs(10)).connect().await.unwrap()
    }
}

impl Trial for InSqlite {
    const NAME: &'static str = "sqlite";

    type Ledger = SqlxSqliteLedger;

    async fn set() -> Self {
        let trial = Self(tempfile::tempdir().unwrap());
        SqlxSqliteLedger::open(trial.place()).await.unwrap().migrate().await.unwrap();
        sqlx::raw_sql(TABLES).execute(&mut trial.connection().await).await.unwrap();
        trial
    }

    fn place(&self) -> String {
        self.0.path().join("shop.db").to_str().unwrap().to_owned()
    }

    async fn open(place: &str) -> SqlxSqliteLedger {
        SqlxSqliteLedger::open(place).await.unwrap()
    }

    async fn write(work: &mut Work<Self>, event_id: &str) {
        sqlx::query(WRITE).bind(event_id).execute(work.connection()).await.unwrap();
    }

    async fn count(work: &mut Work<Self>) {
        sqlx::query(COUNT).execute(work.connection()).await.unwrap();
    }

    async fn effects(&self, event_id: &str) -> u64 {
        let query = sqlx::query_scalar::<_, i64>(EFFECTS).bind(event_id);
        query.fetch_one(&mut self.connection().await).await.unwrap() as u64
    }

    async fn counted(&self) -> u64 {
        let query = sqlx::query_scalar::<_, i64>(COUNTED);
        query.fetch_one(&mut self.connection().await).await.unwrap() as u64
    }
}
