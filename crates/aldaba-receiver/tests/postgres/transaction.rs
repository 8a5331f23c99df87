//! What a handler can do with its transaction.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event, new};
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use futures_util::FutureExt;
use std::time::Duration;

#[track_caller]
fn lost(completed: Result<(), LedgerError>) -> String {
    match completed {
        Err(LedgerError::Lost(why)) => why.to_string(),
        other => panic!("not lost: {other:?}"),
    }
}

#[tokio::test]
async fn a_failed_statement_aborts_the_transaction_and_the_commit_reports_it() {
    let database = Database::set().await;
    let work = database.claim_new(&event("evt_1")).await;
    effect(&work, "evt_1").await;
    work.execute("SELECT 1 / 0", &[]).await.unwrap_err();
    // A handler that goes on as if all were well.
    let why = lost(work.complete().await);
    assert!(why.contains("savepoint"), "{why}");
    assert_eq!(database.count("effects", "evt_1").await, 0);
    let work = database.claim_new(&event("evt_1")).await;
    effect(&work, "evt_1").await;
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1").await, 1);
}

#[tokio::test]
async fn a_constraint_that_is_checked_at_the_end_fails_the_commit() {
    let database = Database::set().await;
    database.run("CREATE TABLE orders (id INT UNIQUE DEFERRABLE INITIALLY DEFERRED)").await;
    let work = database.claim_new(&event("evt_1")).await;
    work.batch_execute("INSERT INTO orders VALUES (1), (1)").await.unwrap();
    let why = lost(work.complete().await);
    assert!(why.contains("orders_id_key"), "{why}");
    assert_eq!(database.count("webhook_events", "evt_1").await, 0);
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_the_handler_ended_is_not_committed() {
    let database = Database::set().await;
    for (number, by_hand) in
        ["COMMIT", "ROLLBACK", "ROLLBACK; BEGIN", "COMMIT; BEGIN"].into_iter().enumerate()
    {
        let work = database.claim_new(&event(&format!("evt_{number}"))).await;
        work.batch_execute(by_hand).await.unwrap();
        let why = lost(work.complete().await);
        assert!(why.contains("the handler ended the transaction"), "{why}");
    }
    // The next event is not affected.
    let work = database.claim_new(&event("evt_next")).await;
    effect(&work, "evt_next").await;
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_next").await, 1);
}

#[tokio::test]
async fn a_savepoint_lets_a_part_fail_without_the_rest() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&work, "evt_1").await;
    let part = work.savepoint().await.unwrap();
    part.execute("INSERT INTO effects VALUES ('taken back')", &[]).await.unwrap();
    part.execute("SELECT 1 / 0", &[]).await.unwrap_err();
    part.roll_back().await.unwrap();
    let mut part = work.savepoint().await.unwrap();
    part.execute("INSERT INTO effects VALUES ('kept')", &[]).await.unwrap();
    let inner = part.savepoint().await.unwrap();
    inner.execute("INSERT INTO effects VALUES ('dropped')", &[]).await.unwrap();
    inner.execute("SELECT 1 / 0", &[]).await.unwrap_err();
    drop(inner);
    part.release().await.unwrap();
    work.complete().await.unwrap();
    for (row, count) in [("evt_1", 1), ("kept", 1), ("taken back", 0), ("dropped", 0)] {
        assert_eq!(database.count("effects", row).await, count, "{row}");
    }
}

/// As a timeout or a `select!` does it, after the statement was sent.
fn give_up<F: Future>(future: F) {
    assert!(future.now_or_never().is_none(), "it has ended at once");
}

#[tokio::test]
async fn a_part_that_is_given_up_while_it_begins_or_ends_takes_nothing_else_with_it() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    give_up(work.savepoint());
    effect(&work, "evt_1").await;
    let part = work.savepoint().await.unwrap();
    part.execute("INSERT INTO effects VALUES ('released')", &[]).await.unwrap();
    give_up(part.release());
    let part = work.savepoint().await.unwrap();
    part.execute("INSERT INTO effects VALUES ('taken back')", &[]).await.unwrap();
    give_up(part.roll_back());
    work.complete().await.unwrap();
    for (row, count) in [("evt_1", 1), ("released", 1), ("taken back", 0)] {
        assert_eq!(database.count("effects", row).await, count, "{row}");
    }
}

/// The release of a part that has failed takes it back, and the rest is as good as ever.
#[tokio::test]
async fn a_failed_savepoint_is_rolled_back_alone() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&work, "evt_1").await;
    let part = work.savepoint().await.unwrap();
    part.execute("SELECT 1 / 0", &[]).await.unwrap_err();
    part.release().await.unwrap_err();
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1").await, 1);
}

#[tokio::test]
async fn a_handler_waits_for_locks_as_its_connection_does() {
    let database = Database::set().await;
    // The program's pool keeps settings of its connections.
    let (_pool, ledger) = database.ledger_over(1);
    let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    assert_eq!(work.query_one("SHOW lock_timeout", &[]).await.unwrap().get::<_, String>(0), "0");
    assert_eq!(
        work.query_one("SHOW transaction_isolation", &[]).await.unwrap().get::<_, String>(0),
        "read committed"
    );
    work.batch_execute("SET lock_timeout = '1234ms'").await.unwrap();
    work.complete().await.unwrap();
    let work = new(ledger.claim(&event("evt_2"), WAIT_TIMEOUT).await);
    assert_eq!(work.query_one("SHOW lock_timeout", &[]).await.unwrap().get::<_, String>(0), "1234ms");
    let statement = work.prepare_cached("SELECT 7").await.unwrap();
    assert_eq!(work.query_one(&statement, &[]).await.unwrap().get::<_, i32>(0), 7);
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_and_its_connection_used_again() {
    let database = Database::set().await;
    let (pool, ledger) = database.ledger_over(1);
    for _ in 0..3 {
        let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
        effect(&work, "evt_1").await;
        drop(work);
    }
    let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    effect(&work, "evt_1").await;
    let backend: i32 = work.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    work.abandon().await;
    let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    assert_eq!(work.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get::<_, i32>(0), backend);
    effect(&work, "evt_1").await;
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1").await, 1);
    assert_eq!((pool.status().size, pool.status().available), (1, 1));
}

/// Otherwise a database that hangs would have more and more connections.
#[tokio::test]
async fn a_transaction_dropped_during_a_statement_counts_toward_the_pool() {
    let database = Database::set().await;
    let (pool, ledger) = database.ledger_over(1);
    let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    effect(&work, "evt_1").await;
    let sleep = work.batch_execute("SELECT pg_sleep(1)");
    tokio::time::timeout(Duration::from_millis(100), sleep).await.unwrap_err();
    drop(work);
    // In this time the connection must not become available.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!((pool.status().size, pool.status().available), (1, 0));
    // The next claim succeeds after the statement has ended.
    let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    effect(&work, "evt_1").await;
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1").await, 1);
}

#[test]
fn a_transaction_dropped_without_a_runtime_is_closed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, work) = runtime.block_on(async {
        let database = Database::set().await;
        let work = database.claim_new(&event("evt_1")).await;
        effect(&work, "evt_1").await;
        (database, work)
    });
    drop(work);
    runtime.block_on(async {
        database.claim_new(&event("evt_1")).await.complete().await.unwrap();
        assert_eq!(database.count("effects", "evt_1").await, 0);
        assert!(matches!(database.claim(&event("evt_1")).await, Claim::Duplicate));
    });
}

/// The layer drops the future of a claim when its sender disconnects, with `WhenSenderLeaves::Stop`.
#[tokio::test]
async fn a_claim_that_is_dropped_leaves_nothing_claimed() {
    let database = Database::set().await;
    let (pool, ledger) = database.ledger_over(2);
    for pause in 0..40 {
        let event = event(&format!("evt_{pause}"));
        let claim = ledger.claim(&event, WAIT_TIMEOUT);
        // Somewhere between its first statement and its last.
        let dropped = tokio::time::timeout(Duration::from_micros(pause * 50), claim).await;
        drop(dropped);
        let work = new(ledger.claim(&event, WAIT_TIMEOUT).await);
        work.complete().await.unwrap();
        assert_eq!(database.count("webhook_events", &event.id).await, 1);
    }
    assert!(pool.status().size <= 2);
}
