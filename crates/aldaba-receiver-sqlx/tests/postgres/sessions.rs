//! Connections that go back after something went wrong, and the program that uses them next.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event, new, pool};
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use aldaba_receiver_sqlx::SqlxPostgresLedger;
use sqlx::PgPool;
use std::sync::Arc;
use std::time::Duration;
use test_servers::Postgres;

const A_MOMENT: Duration = Duration::from_millis(50);

/// Longer than a moment, and then it fails.
const FAILS_LATE: &str = "DO 'BEGIN PERFORM pg_sleep(0.3); RAISE EXCEPTION ''late''; END'";

/// As the program itself writes, without a transaction and with one.
async fn writes(pool: &PgPool, when: &str) {
    for _ in 0..3 {
        let written = sqlx::query("DELETE FROM effects").execute(pool).await;
        written.unwrap_or_else(|error| panic!("{when}: {error}"));
    }
    let mut transaction = pool.begin().await.unwrap();
    sqlx::query("INSERT INTO effects VALUES ('the program')").execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();
}

/// sqlx reports an unread error to the next statement.
#[tokio::test]
async fn a_connection_writes_as_before_after_a_statement_that_was_given_up_and_failed() {
    let database = Database::set().await;
    let pool = pool(&database.url, 1).await;
    let ledger = SqlxPostgresLedger::new(pool.clone());
    for end in ["complete", "abandon", "drop"] {
        let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
        effect(&mut work, "evt_1").await.unwrap();
        let given_up = sqlx::raw_sql(FAILS_LATE).execute(work.connection());
        tokio::time::timeout(A_MOMENT, given_up).await.unwrap_err();
        match end {
            "complete" => assert!(matches!(work.complete().await, Err(LedgerError::Lost(_)))),
            "abandon" => work.abandon().await,
            _ => drop(work),
        }
        writes(&pool, end).await;
        assert_eq!(database.count("webhook_events", "evt_1").await, 0, "{end}");
    }
}

/// A receiver waits 10 s for that, and a statement can take longer.
#[tokio::test]
async fn a_connection_works_after_a_rollback_that_nobody_awaited() {
    let database = Database::set().await;
    let pool = pool(&database.url, 1).await;
    let ledger = SqlxPostgresLedger::new(pool.clone());
    for end in ["complete", "abandon"] {
        let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
        let given_up = sqlx::raw_sql("SELECT pg_sleep(0.5)").execute(work.connection());
        tokio::time::timeout(A_MOMENT, given_up).await.unwrap_err();
        if end == "complete" {
            tokio::time::timeout(A_MOMENT, work.complete()).await.unwrap_err();
        } else {
            tokio::time::timeout(A_MOMENT, work.abandon()).await.unwrap_err();
        }
        writes(&pool, end).await;
        database.run("DELETE FROM webhook_events").await;
    }
}

/// A standby begins no transaction that writes. Promoted, it goes on with the connections that it has.
#[tokio::test(flavor = "multi_thread")]
async fn connections_to_a_standby_write_once_it_is_promoted() {
    let server = Arc::new(tokio::task::spawn_blocking(Postgres::start).await.unwrap());
    let database = Database::on(&server).await;
    let restarted = Arc::clone(&server);
    let restart = move || {
        restarted.kill();
        restarted.restart_as_standby();
    };
    tokio::task::spawn_blocking(restart).await.unwrap();
    let pool = pool(&database.url, 1).await;
    let ledger = SqlxPostgresLedger::new(pool.clone());
    for _ in 0..3 {
        let refused = ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await;
        assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{refused:?}");
    }
    database.run("SELECT pg_promote()").await;
    writes(&pool, "promoted").await;
    let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    effect(&mut work, "evt_1").await.unwrap();
    work.complete().await.unwrap();
    writes(&pool, "later").await;
    assert!(matches!(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
}

#[tokio::test]
async fn a_handler_that_forgets_all_prepared_statements_keeps_no_later_event_away() {
    let database = Database::set().await;
    let ledger = SqlxPostgresLedger::new(pool(&database.url, 1).await);
    for number in 0..3 {
        let id = format!("evt_{number}");
        let mut work = new(ledger.claim(&event(&id), WAIT_TIMEOUT).await);
        sqlx::raw_sql("DEALLOCATE ALL").execute(work.connection()).await.unwrap();
        work.complete().await.unwrap();
        assert!(matches!(ledger.claim(&event(&id), WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
    }
}

#[test]
fn work_dropped_without_a_runtime_is_rolled_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, pool, work) = runtime.block_on(async {
        let database = Database::set().await;
        let pool = pool(&database.url, 1).await;
        let ledger = SqlxPostgresLedger::new(pool.clone());
        let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
        effect(&mut work, "evt_1").await.unwrap();
        (database, pool, work)
    });
    drop(work);
    runtime.block_on(async {
        writes(&pool, "dropped").await;
        assert_eq!(database.count("webhook_events", "evt_1").await, 0);
    });
}

#[tokio::test]
async fn a_mark_without_a_payload_is_a_mark() {
    let database = Database::set().await;
    let bare = "ALTER TABLE webhook_events ALTER COLUMN payload DROP NOT NULL;
        INSERT INTO webhook_events (event_id, event_type) VALUES ('evt_1', '')";
    database.run(bare).await;
    let claim = database.ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await;
    assert!(matches!(claim, Ok(Claim::Duplicate)), "{claim:?}");
}

/// A careful administrator may set that. Marks are still written.
#[tokio::test]
async fn a_database_with_read_only_transactions_by_default_works() {
    let database = Database::set().await;
    let (_, name) = database.url.rsplit_once('/').unwrap();
    database
        .run(&format!(
            "DROP TABLE webhook_events; ALTER DATABASE {name} SET default_transaction_read_only = on"
        ))
        .await;
    let ledger = SqlxPostgresLedger::new(pool(&database.url, 2).await);
    ledger.migrate().await.unwrap();
    new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await).complete().await.unwrap();
    assert!(matches!(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
    assert_eq!(ledger.clean(Duration::ZERO).await.unwrap(), 1);
}
