//! What a handler can do with its transaction, and copies that meet.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event, event_with, new, pool};
use crate::suite::polling::still_waits;
use aldaba_receiver::transactional::Keep;
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use aldaba_receiver_sqlx::{SqlxIsolation, SqlxPostgresLedger};
use futures_util::future::join_all;
use sqlx::Acquire;
use std::time::Duration;

const A_WHILE: Duration = Duration::from_millis(300);

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
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    sqlx::query("SELECT 1 / 0").execute(work.connection()).await.unwrap_err();
    let why = lost(work.complete().await);
    assert!(why.contains("savepoint"), "{why}");
    assert_eq!(database.count("effects", "evt_1").await, 0);
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
}

#[tokio::test]
async fn a_transaction_that_the_handler_ended_is_not_committed() {
    let database = Database::set().await;
    for (number, by_hand) in
        ["COMMIT", "ROLLBACK", "ROLLBACK; BEGIN", "COMMIT; BEGIN"].into_iter().enumerate()
    {
        let mut work = database.claim_new(&event(&format!("evt_{number}"))).await;
        sqlx::raw_sql(by_hand).execute(work.connection()).await.unwrap();
        let why = lost(work.complete().await);
        assert!(why.contains("the handler ended it"), "{why}");
    }
    let mut work = database.claim_new(&event("evt_next")).await;
    effect(&mut work, "evt_next").await.unwrap();
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_next").await, 1);
}

#[tokio::test]
async fn a_savepoint_lets_a_part_fail_without_the_rest() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    let mut part = work.transaction().begin().await.unwrap();
    sqlx::query("INSERT INTO effects VALUES ('taken back')").execute(&mut *part).await.unwrap();
    sqlx::query("SELECT 1 / 0").execute(&mut *part).await.unwrap_err();
    drop(part);
    let mut part = work.transaction().begin().await.unwrap();
    sqlx::query("INSERT INTO effects VALUES ('kept')").execute(&mut *part).await.unwrap();
    part.commit().await.unwrap();
    work.complete().await.unwrap();
    for (row, count) in [("evt_1", 1), ("kept", 1), ("taken back", 0)] {
        assert_eq!(database.count("effects", row).await, count, "{row}");
    }
}

#[tokio::test]
async fn a_handler_waits_for_locks_as_its_connection_does() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    for (setting, value) in [("SHOW lock_timeout", "0"), ("SHOW transaction_isolation", "read committed")] {
        let shown: String = sqlx::query_scalar(setting).fetch_one(work.connection()).await.unwrap();
        assert_eq!(shown, value);
    }
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_and_its_connection_used_again() {
    let database = Database::set().await;
    let pool = pool(&database.url, 1).await;
    let ledger = SqlxPostgresLedger::new(pool.clone());
    for _ in 0..3 {
        let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
        effect(&mut work, "evt_1").await.unwrap();
    }
    let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    effect(&mut work, "evt_1").await.unwrap();
    work.complete().await.unwrap();
    assert_eq!((database.count("effects", "evt_1").await, pool.size()), (1, 1));
}

#[tokio::test]
async fn a_claim_that_is_dropped_leaves_nothing_claimed() {
    let database = Database::set().await;
    let ledger = SqlxPostgresLedger::new(pool(&database.url, 2).await);
    for pause in 0..40 {
        let event = event(&format!("evt_{pause}"));
        let claim = ledger.claim(&event, WAIT_TIMEOUT);
        drop(tokio::time::timeout(Duration::from_micros(pause * 50), claim).await);
        let work = new(ledger.claim(&event, WAIT_TIMEOUT).await);
        work.complete().await.unwrap();
        assert_eq!(database.count("webhook_events", &event.id).await, 1);
    }
}

#[tokio::test]
async fn copies_that_wait_leave_the_pool_to_other_events() {
    let database = Database::set().await;
    let ledger = SqlxPostgresLedger::new(pool(&database.url, 2).await);
    // One is handled in this process, the other one elsewhere.
    for (id, holder) in [("evt_1", ledger.clone()), ("evt_2", database.ledger.clone())] {
        let work = new(holder.claim(&event(id), WAIT_TIMEOUT).await);
        let copies = (0..64).map(|_| {
            let ledger = ledger.clone();
            tokio::spawn(async move { ledger.claim(&event(id), WAIT_TIMEOUT).await.unwrap() })
        });
        let copies: Vec<_> = copies.collect();
        still_waits(&copies[0]).await;
        let other = event(&format!("{id}_other"));
        let other = tokio::time::timeout(A_WHILE * 5, ledger.claim(&other, WAIT_TIMEOUT)).await.unwrap();
        new(other).complete().await.unwrap();
        work.complete().await.unwrap();
        for copy in join_all(copies).await {
            assert!(matches!(copy.unwrap(), Claim::Duplicate));
        }
    }
}

#[tokio::test]
async fn a_copy_in_another_process_waits_for_the_end() {
    let database = Database::set().await;
    let other = SqlxPostgresLedger::new(pool(&database.url, 2).await);
    let waiting = |id: &'static str, wait_timeout| {
        let other = other.clone();
        tokio::spawn(async move { other.claim(&event(id), wait_timeout).await })
    };
    let work = database.claim_new(&event("evt_1")).await;
    let (hasty, copy) = (waiting("evt_1", A_WHILE).await.unwrap(), waiting("evt_1", WAIT_TIMEOUT));
    assert!(matches!(hasty.unwrap(), Claim::InProgress));
    assert!(!copy.is_finished());
    work.complete().await.unwrap();
    assert!(matches!(copy.await.unwrap().unwrap(), Claim::Duplicate));

    let work = database.claim_new(&event("evt_2")).await;
    let copy = waiting("evt_2", WAIT_TIMEOUT);
    still_waits(&copy).await;
    work.abandon().await;
    new(copy.await.unwrap()).complete().await.unwrap();
}

#[tokio::test]
async fn without_a_free_connection_the_ledger_is_not_available() {
    let database = Database::set().await;
    let ledger = SqlxPostgresLedger::new(pool(&database.url, 1).await);
    let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    let refused = ledger.claim(&event("evt_2"), A_WHILE).await;
    assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{refused:?}");
    work.complete().await.unwrap();
    new(ledger.claim(&event("evt_2"), WAIT_TIMEOUT).await).complete().await.unwrap();
}

#[tokio::test]
async fn serializable_copies_wait_for_each_other_too() {
    let database = Database::set().await;
    let ledger = database.ledger.clone().with_isolation(SqlxIsolation::Serializable);
    let other =
        SqlxPostgresLedger::new(pool(&database.url, 2).await).with_isolation(SqlxIsolation::Serializable);
    let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    let shown: String =
        sqlx::query_scalar("SHOW transaction_isolation").fetch_one(work.connection()).await.unwrap();
    assert_eq!(shown, "serializable");
    let copy = tokio::spawn(async move { other.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap() });
    still_waits(&copy).await;
    work.complete().await.unwrap();
    assert!(matches!(copy.await.unwrap(), Claim::Duplicate));
}

#[tokio::test]
async fn bodies_are_kept_and_compared_as_by_the_other_ledger() {
    let database = Database::set().await;
    let digests = database.ledger.clone().keeping(Keep::Digest);
    for (number, body) in [r#"{"a": 1}"#, "a=1", "", r#""\u0000""#, "1e9999"].into_iter().enumerate() {
        for ledger in [&database.ledger, &digests] {
            let id = format!("evt_{number}_{ledger:p}");
            new(ledger.claim(&event_with(&id, body), WAIT_TIMEOUT).await).complete().await.unwrap();
            for ledger in [&database.ledger, &digests] {
                let repeat = ledger.claim(&event_with(&id, body), WAIT_TIMEOUT).await.unwrap();
                assert!(matches!(repeat, Claim::Duplicate), "{body}");
                let other = ledger.claim(&event_with(&id, "[]"), WAIT_TIMEOUT).await.unwrap();
                assert!(matches!(other, Claim::OtherBody), "{body}");
            }
        }
    }
}

#[tokio::test]
async fn concurrent_migrations_work_and_a_wrong_table_is_an_error() {
    let database = Database::set().await;
    database.run("DROP TABLE webhook_events").await;
    let missing = database.ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap_err();
    assert!(missing.to_string().contains("migrate"), "{missing}");
    for result in join_all((0..8).map(|_| database.ledger.migrate())).await {
        result.unwrap();
    }
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
    database.run("ALTER TABLE webhook_events DROP CONSTRAINT webhook_events_pkey").await;
    let wrong = database.ledger.migrate().await.unwrap_err();
    assert!(wrong.to_string().contains("unique"), "{wrong}");
    let stripe = database.ledger.clone().with_table("stripe_events").unwrap();
    stripe.migrate().await.unwrap();
    new(stripe.claim(&event("evt_1"), WAIT_TIMEOUT).await).complete().await.unwrap();
    assert_eq!(database.count("stripe_events", "evt_1").await, 1);
    assert_eq!(stripe.clean(Duration::MAX).await.unwrap(), 0);
    assert_eq!(stripe.clean(Duration::ZERO).await.unwrap(), 1);
}
