//! Copies that meet, within a process and between two.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event, event_with, new};
use crate::suite::polling::still_waits;
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::IsolationLevel;

const A_WHILE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn copies_that_wait_leave_the_pool_to_other_events() {
    let database = Database::set().await;
    let (pool, ledger) = database.ledger_over(2);
    let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    let copies: Vec<_> = (0..64)
        .map(|_| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move { ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap() })
        })
        .collect();
    still_waits(&copies[0]).await;
    assert_eq!(pool.status().waiting, 0);
    for number in 2..6 {
        let other = event(&format!("evt_{number}"));
        let work = tokio::time::timeout(A_WHILE * 5, ledger.claim(&other, WAIT_TIMEOUT)).await.unwrap();
        new(work).complete().await.unwrap();
    }
    work.complete().await.unwrap();
    for copy in join_all(copies).await {
        assert!(matches!(copy.unwrap(), Claim::Duplicate));
    }
}

/// Also where the copies are in another process: one of them waits in the database, the rest in memory.
#[tokio::test]
async fn copies_that_wait_for_another_process_take_one_connection() {
    let database = Database::set().await;
    let (pool, ledger) = database.ledger_over(2);
    let work = database.claim_new(&event("evt_1")).await;
    let copies: Vec<_> = (0..64)
        .map(|_| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move { ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap() })
        })
        .collect();
    still_waits(&copies[0]).await;
    assert_eq!(pool.status().waiting, 0);
    let other = tokio::time::timeout(A_WHILE * 5, ledger.claim(&event("evt_2"), WAIT_TIMEOUT)).await.unwrap();
    new(other).complete().await.unwrap();
    work.complete().await.unwrap();
    for copy in join_all(copies).await {
        assert!(matches!(copy.unwrap(), Claim::Duplicate));
    }
}

#[tokio::test]
async fn a_copy_in_another_process_waits_for_the_commit_and_is_a_duplicate() {
    let database = Database::set().await;
    for (id, body, same) in [("evt_1", r#"{"type": "payment.success"}"#, true), ("evt_2", "[]", false)] {
        let work = database.claim_new(&event(id)).await;
        let (other, copy) = (database.another_ledger(), event_with(id, body));
        let copy = tokio::spawn(async move { other.claim(&copy, WAIT_TIMEOUT).await.unwrap() });
        still_waits(&copy).await;
        work.complete().await.unwrap();
        let copy = copy.await.unwrap();
        assert!(matches!((copy, same), (Claim::Duplicate, true) | (Claim::OtherBody, false)));
    }
}

#[tokio::test]
async fn a_copy_in_another_process_takes_over_after_a_rollback() {
    let database = Database::set().await;
    let work = database.claim_new(&event("evt_1")).await;
    effect(&work, "evt_1").await;
    let other = database.another_ledger();
    let copy = tokio::spawn(async move { other.claim(&event("evt_1"), WAIT_TIMEOUT).await });
    still_waits(&copy).await;
    work.abandon().await;
    let work = new(copy.await.unwrap());
    effect(&work, "evt_1").await;
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1").await, 1);
}

#[tokio::test]
async fn past_the_wait_timeout_work_of_another_process_is_in_progress() {
    let database = Database::set().await;
    let _work = database.claim_new(&event("evt_1")).await;
    let other = database.another_ledger();
    for wait_timeout in [A_WHILE, Duration::ZERO] {
        assert!(matches!(other.claim(&event("evt_1"), wait_timeout).await.unwrap(), Claim::InProgress));
    }
    assert!(matches!(database.ledger.claim(&event("evt_1"), A_WHILE).await.unwrap(), Claim::InProgress));
    // With a zero wait timeout a free event is still new.
    new(other.claim(&event("evt_2"), Duration::ZERO).await).complete().await.unwrap();
}

#[tokio::test]
async fn without_a_free_connection_the_ledger_is_not_available() {
    let database = Database::set().await;
    let (pool, ledger) = database.ledger_over(1);
    let work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    let refused = ledger.claim(&event("evt_2"), A_WHILE).await;
    assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{refused:?}");
    work.complete().await.unwrap();
    new(ledger.claim(&event("evt_2"), A_WHILE).await).complete().await.unwrap();
    assert_eq!(pool.status().size, 1);
}

#[tokio::test]
async fn serializable_copies_wait_for_each_other_too() {
    let serializable = |ledger: aldaba_receiver::transactional::PostgresLedger| {
        ledger.with_isolation(IsolationLevel::Serializable)
    };
    let database = Database::set_with(serializable).await;
    let other = aldaba_receiver::transactional::PostgresLedger::connect(&database.url).unwrap();
    let other = Arc::new(serializable(other));
    let work = database.claim_new(&event("evt_1")).await;
    assert_eq!(
        work.query_one("SHOW transaction_isolation", &[]).await.unwrap().get::<_, String>(0),
        "serializable"
    );
    let copy = tokio::spawn({
        let other = Arc::clone(&other);
        async move { other.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap() }
    });
    still_waits(&copy).await;
    work.complete().await.unwrap();
    assert!(matches!(copy.await.unwrap(), Claim::Duplicate));

    // Each reads what the other writes: one of the two must not commit.
    database.run("INSERT INTO effects VALUES ('a'), ('b')").await;
    let (one, two) =
        (database.claim_new(&event("evt_2")).await, new(other.claim(&event("evt_3"), WAIT_TIMEOUT).await));
    for (work, id) in [(&one, "evt_2"), (&two, "evt_3")] {
        work.query("SELECT * FROM effects", &[]).await.unwrap();
        effect(work, id).await;
    }
    one.complete().await.unwrap();
    let why = match two.complete().await {
        Err(LedgerError::Lost(why)) => why.to_string(),
        other => panic!("both came true: {other:?}"),
    };
    assert!(why.contains("could not serialize"), "{why}");
    assert_eq!(database.count("effects", "evt_3").await, 0);
    let again = new(other.claim(&event("evt_3"), WAIT_TIMEOUT).await);
    effect(&again, "evt_3").await;
    again.complete().await.unwrap();
}
