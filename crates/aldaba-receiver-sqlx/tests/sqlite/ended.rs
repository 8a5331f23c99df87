//! Transactions that end before the receiver ends them, under handlers that go on.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event};
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use aldaba_receiver_sqlx::{SqlxSqliteLedger, SqlxSqliteTransaction};
use futures_util::FutureExt;
use sqlx::Acquire;
use std::time::Duration;

const A_MOMENT: Duration = Duration::from_millis(50);

/// A second or so.
const LONG: &str =
    "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 4000000)
    SELECT max(n) FROM number";

const ENDINGS: [&str; 3] = [
    "INSERT OR ROLLBACK INTO orders VALUES ('sold')",
    "UPDATE stock SET pieces = pieces - 1",
    "PRAGMA max_page_count = 20; INSERT INTO effects VALUES (hex(zeroblob(200000)))",
];

const WRITES: [&str; 4] = [
    "INSERT INTO effects VALUES ('evt_1')",
    "SAVEPOINT part; INSERT INTO effects VALUES ('evt_1')",
    "SAVEPOINT part; INSERT INTO effects VALUES ('evt_1'); RELEASE part",
    "BEGIN; INSERT INTO effects VALUES ('evt_1'); COMMIT",
];

async fn database() -> Database {
    let database = Database::set().await;
    let tables = "CREATE TABLE orders (id TEXT UNIQUE); INSERT INTO orders VALUES ('sold');
        CREATE TABLE stock (pieces INTEGER); INSERT INTO stock VALUES (0);
        CREATE TRIGGER sold BEFORE UPDATE ON stock BEGIN SELECT RAISE(ROLLBACK, 'sold out'); END";
    database.run(tables).await;
    database
}

/// Cancels a part while it begins, unless the other thread is too fast.
fn drop_a_begin(work: &mut SqlxSqliteTransaction) {
    drop(work.transaction().begin().now_or_never());
}

async fn nothing_has_happened(database: &Database, what: &str) {
    let marks = database.count("webhook_events", "evt_1").await;
    assert_eq!((marks, database.count("effects", "evt_1").await), (0, 0), "{what}");
}

#[tokio::test]
async fn nothing_is_written_after_an_error_that_ends_the_transaction() {
    for ending in ENDINGS {
        for write in WRITES {
            let database = database().await;
            for _ in 0..2 {
                let mut work = database.claim_new(&event("evt_1")).await;
                sqlx::raw_sql(ending).execute(work.connection()).await.unwrap_err();
                let _ = sqlx::raw_sql(write).execute(work.connection()).await;
                let completed = work.complete().await;
                assert!(matches!(completed, Err(LedgerError::Lost(_))), "{ending}; {write}: {completed:?}");
            }
            nothing_has_happened(&database, &format!("{ending}; {write}")).await;
        }
    }
}

#[tokio::test]
async fn nothing_is_written_after_a_part_was_given_up_while_it_began() {
    let database = database().await;
    for write in WRITES.repeat(10) {
        let mut work = database.claim_new(&event("evt_1")).await;
        drop_a_begin(&mut work);
        let _ = sqlx::raw_sql(write).execute(work.connection()).await;
        // sqlx may have rolled back no more than the part: then the rest is as good as ever.
        match work.complete().await {
            Ok(()) => {
                assert_eq!(database.count("webhook_events", "evt_1").await, 1, "{write}");
                database.run("DELETE FROM webhook_events; DELETE FROM effects").await;
            }
            Err(_) => nothing_has_happened(&database, write).await,
        }
    }
}

#[tokio::test]
async fn no_connection_goes_back_with_an_open_transaction_or_a_ban_on_commits() {
    let database = database().await;
    for end in ["complete", "abandon", "drop"] {
        for write in [None, Some(WRITES[0]), Some(WRITES[1]), Some("BEGIN")] {
            for ending in [None, Some(ENDINGS[0])] {
                let mut work = database.claim_new(&event("evt_2")).await;
                match ending {
                    None => drop_a_begin(&mut work),
                    Some(ending) => {
                        sqlx::raw_sql(ending).execute(work.connection()).await.unwrap_err();
                    }
                }
                if let Some(write) = write {
                    let _ = sqlx::raw_sql(write).execute(work.connection()).await;
                }
                match end {
                    "complete" => drop(work.complete().await),
                    "abandon" => work.abandon().await,
                    _ => drop(work),
                }
                database.run("DELETE FROM webhook_events").await;
                for number in 0..6 {
                    let other = format!("other_{number}");
                    let mut work = database.claim_new(&event(&other)).await;
                    effect(&mut work, &other).await.unwrap();
                    work.complete().await.unwrap();
                    assert_eq!(database.count("effects", &other).await, 1, "{end} {write:?} {ending:?}");
                }
                database.run("DELETE FROM webhook_events; DELETE FROM effects").await;
            }
        }
    }
}

/// The receiver waits 10 s for that, and a statement can take longer.
#[tokio::test]
async fn a_connection_commits_again_after_a_rollback_that_nobody_awaited() {
    let mut database = database().await;
    let pool = database.pool(2).await;
    database.ledger = SqlxSqliteLedger::new(pool.clone());
    for end in ["complete", "abandon"] {
        let mut work = database.claim_new(&event("evt_1")).await;
        let given_up = sqlx::raw_sql(LONG).execute(work.connection());
        tokio::time::timeout(A_MOMENT, given_up).await.unwrap_err();
        if end == "complete" {
            tokio::time::timeout(A_MOMENT, work.complete()).await.unwrap_err();
        } else {
            tokio::time::timeout(A_MOMENT, work.abandon()).await.unwrap_err();
        }
        // The program's own statements, in each of its connections.
        let mut connections = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
        for connection in &mut connections {
            let written = sqlx::query("DELETE FROM webhook_events").execute(&mut **connection).await;
            written.unwrap_or_else(|error| panic!("{end}: {error}"));
        }
    }
}

async fn all_connections_commit(database: &Database, when: &str) {
    for number in 0..6 {
        let other = format!("other_{number}");
        let mut work = database.claim_new(&event(&other)).await;
        effect(&mut work, &other).await.unwrap();
        work.complete().await.unwrap_or_else(|error| panic!("{when}: {error}"));
    }
}

#[tokio::test]
async fn a_constraint_that_is_checked_at_the_end_fails_the_commit() {
    let database = database().await;
    database.run("CREATE TABLE lines (item TEXT REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)").await;
    for _ in 0..3 {
        let mut work = database.claim_new(&event("evt_1")).await;
        effect(&mut work, "evt_1").await.unwrap();
        sqlx::raw_sql("INSERT INTO lines VALUES ('none')").execute(work.connection()).await.unwrap();
        let completed = work.complete().await;
        assert!(matches!(completed, Err(LedgerError::Lost(_))), "{completed:?}");
        nothing_has_happened(&database, "deferred").await;
    }
    all_connections_commit(&database, "deferred").await;
}

#[test]
fn work_dropped_without_a_runtime_is_rolled_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, work) = runtime.block_on(async {
        let database = database().await;
        let mut work = database.claim_new(&event("evt_1")).await;
        effect(&mut work, "evt_1").await.unwrap();
        (database, work)
    });
    drop(work);
    runtime.block_on(async {
        all_connections_commit(&database, "dropped").await;
        nothing_has_happened(&database, "dropped").await;
    });
}

/// Another program's table may allow it. Its word that the event was handled is all there is.
#[tokio::test]
async fn a_mark_without_a_payload_is_a_mark() {
    let database = database().await;
    let bare = "DROP TABLE webhook_events;
        CREATE TABLE webhook_events (event_id TEXT PRIMARY KEY, event_type TEXT, payload TEXT, processed_at TEXT);
        INSERT INTO webhook_events (event_id) VALUES ('evt_1')";
    database.run(bare).await;
    let claim = database.ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await;
    assert!(matches!(claim, Ok(Claim::Duplicate)), "{claim:?}");
}

#[tokio::test]
async fn a_ledger_without_a_file_is_refused() {
    for path in ["", ":memory:"] {
        let refused = SqlxSqliteLedger::open(path).await;
        assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{path}");
    }
    let database = database().await;
    assert!(database.ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.is_ok());
}
