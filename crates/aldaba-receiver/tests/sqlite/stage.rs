use crate::suite::Stage;
use aldaba_receiver::transactional::{SqliteLedger, SqliteTransaction};
use aldaba_receiver::{Claim, Event, Failure, Ledger, LedgerError};
use http::HeaderMap;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// How long a test's claim waits unless the wait is what it is about.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A file, with a ledger and a table in which the handlers' effects are counted.
pub(crate) struct Database {
    pub(crate) ledger: Arc<SqliteLedger>,
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

impl Database {
    pub(crate) async fn set() -> Self {
        Self::set_with(|ledger| ledger).await
    }

    pub(crate) async fn set_with(options: impl FnOnce(SqliteLedger) -> SqliteLedger) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.db");
        let ledger = options(SqliteLedger::open(&path).unwrap());
        ledger.migrate().await.unwrap();
        let database = Self { ledger: Arc::new(ledger), path, _folder: folder };
        database.run("CREATE TABLE effects (event_id TEXT NOT NULL)");
        database
    }

    /// As another process would have it.
    pub(crate) fn another_ledger(&self) -> Arc<SqliteLedger> {
        Arc::new(SqliteLedger::open(&self.path).unwrap())
    }

    /// A connection outside of the ledger's pool.
    pub(crate) fn connection(&self) -> Connection {
        let connection = Connection::open(&self.path).unwrap();
        connection.busy_timeout(WAIT_TIMEOUT).unwrap();
        connection
    }

    pub(crate) fn run(&self, statements: &str) {
        self.connection().execute_batch(statements).unwrap();
    }

    pub(crate) fn count(&self, table: &str, event_id: &str) -> u64 {
        let query = format!("SELECT count(*) FROM {table} WHERE event_id = ?1");
        self.connection().query_row(&query, [event_id], |row| row.get::<_, i64>(0)).unwrap() as u64
    }

    pub(crate) async fn claim(&self, event: &Event) -> Claim<SqliteTransaction> {
        self.ledger.claim(event, WAIT_TIMEOUT).await.unwrap()
    }

    pub(crate) async fn claim_new(&self, event: &Event) -> SqliteTransaction {
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
pub(crate) fn new(claim: Result<Claim<SqliteTransaction>, LedgerError>) -> SqliteTransaction {
    match claim {
        Ok(Claim::New(work)) => work,
        other => panic!("not new: {other:?}"),
    }
}

/// Writes one effect.
pub(crate) async fn effect(work: &mut SqliteTransaction, event_id: &str) -> rusqlite::Result<()> {
    let event_id = event_id.to_owned();
    work.run(move |connection| {
        connection.execute("INSERT INTO effects (event_id) VALUES (?1)", [event_id]).map(drop)
    })
    .await
}

impl Stage for Database {
    type Ledger = Arc<SqliteLedger>;

    const SIDE_BY_SIDE: bool = false;

    fn ledger(&self) -> Arc<SqliteLedger> {
        Arc::clone(&self.ledger)
    }

    async fn work(&self, event: &Event, work: &mut SqliteTransaction) -> Result<(), Failure> {
        Ok(effect(work, &event.id).await?)
    }

    async fn effects(&self, event_id: &str) -> u64 {
        self.count("effects", event_id)
    }

    async fn marks(&self, event_id: &str) -> u64 {
        self.count("webhook_events", event_id)
    }

    async fn take_down(&self) {
        self.run("ALTER TABLE webhook_events RENAME TO away");
    }

    async fn bring_back(&self) {
        self.run("ALTER TABLE away RENAME TO webhook_events");
    }
}
