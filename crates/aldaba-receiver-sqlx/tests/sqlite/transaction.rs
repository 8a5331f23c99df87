//! What a handler can do with its transaction, and copies that meet.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event, event_with, new};
use crate::suite::polling::still_waits;
use aldaba_receiver::transactional::Keep;
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use futures_util::future::join_all;
use sqlx::Acquire;
use std::time::Duration;

const A_WHILE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_transaction_that_the_handler_ended_is_not_committed() {
    let database = Database::set().await;
    let by_hand = ["COMMIT", "COMMIT; BEGIN", "ROLLBACK", "ROLLBACK; BEGIN"];
    for (number, by_hand) in by_hand.into_iter().enumerate() {
        let mut work = database.claim_new(&event(&format!("evt_{number}"))).await;
        let ended = sqlx::raw_sql(by_hand).execute(work.connection()).await;
        assert_eq!(ended.is_ok(), by_hand.starts_with("ROLLBACK"), "{by_hand}: {ended:?}");
        let completed = work.complete().await;
        assert!(matches!(completed, Err(LedgerError::Lost(_))), "{by_hand}: {completed:?}");
    }
    let mut work = database.claim_new(&event("evt_next")).await;
    effect(&mut work, "evt_next").await.unwrap();
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_next").await, 1);
}

/// SQLite ends a transaction by itself on some errors, and sqlx does not know.
#[tokio::test]
async fn a_transaction_that_has_ended_by_itself_does_not_damage_the_connection() {
    let database = Database::set().await;
    for (number, drops) in [true, false, true].into_iter().enumerate() {
        let mut work = database.claim_new(&event(&format!("evt_{number}"))).await;
        sqlx::raw_sql("ROLLBACK").execute(work.connection()).await.unwrap();
        if drops {
            drop(work);
        } else {
            work.abandon().await;
        }
    }
    for number in 0..8 {
        let mut work = database.claim_new(&event(&format!("evt_{number}"))).await;
        effect(&mut work, "evt").await.unwrap();
        work.complete().await.unwrap();
    }
    assert_eq!(database.count("effects", "evt").await, 8);
}

#[tokio::test]
async fn a_savepoint_lets_a_part_fail_without_the_rest() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    let mut part = work.transaction().begin().await.unwrap();
    sqlx::query("INSERT INTO effects VALUES ('taken back')").execute(&mut *part).await.unwrap();
    drop(part);
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1").await, 1);
    assert_eq!(database.count("effects", "taken back").await, 0);
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back() {
    let database = Database::set().await;
    for _ in 0..3 {
        let mut work = database.claim_new(&event("evt_1")).await;
        effect(&mut work, "evt_1").await.unwrap();
    }
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1").await, 1);
}

#[tokio::test]
async fn a_claim_that_is_dropped_leaves_nothing_claimed() {
    let database = Database::set().await;
    for pause in 0..40 {
        let event = event(&format!("evt_{pause}"));
        let claim = database.ledger.claim(&event, WAIT_TIMEOUT);
        drop(tokio::time::timeout(Duration::from_micros(pause * 20), claim).await);
        database.claim_new(&event).await.complete().await.unwrap();
        assert_eq!(database.count("webhook_events", &event.id).await, 1);
    }
}

#[tokio::test]
async fn repeats_are_answered_while_a_handler_holds_the_write_lock() {
    let database = Database::set().await;
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
    let _work = database.claim_new(&event("evt_2")).await;
    for ledger in [database.ledger.clone(), database.another_ledger().await] {
        let repeat = tokio::time::timeout(A_WHILE * 3, ledger.claim(&event("evt_1"), WAIT_TIMEOUT)).await;
        assert!(matches!(repeat.unwrap().unwrap(), Claim::Duplicate));
        let other = ledger.claim(&event_with("evt_1", "[]"), WAIT_TIMEOUT).await;
        assert!(matches!(other.unwrap(), Claim::OtherBody));
    }
}

#[tokio::test]
async fn a_copy_in_another_process_waits_for_the_end() {
    let database = Database::set().await;
    let other = database.another_ledger().await;
    for (id, commits) in [("evt_1", true), ("evt_2", false)] {
        let work = database.claim_new(&event(id)).await;
        assert!(matches!(other.claim(&event(id), A_WHILE).await.unwrap(), Claim::InProgress));
        let ledger = other.clone();
        let copy = tokio::spawn(async move { ledger.claim(&event(id), WAIT_TIMEOUT).await });
        still_waits(&copy).await;
        if commits {
            work.complete().await.unwrap();
            assert!(matches!(copy.await.unwrap().unwrap(), Claim::Duplicate));
        } else {
            work.abandon().await;
            new(copy.await.unwrap()).complete().await.unwrap();
        }
    }
}

#[tokio::test]
async fn handlers_of_two_events_run_one_after_another() {
    let database = Database::set().await;
    let first = database.claim_new(&event("evt_1")).await;
    let refused = database.ledger.claim(&event("evt_2"), A_WHILE).await;
    assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{refused:?}");
    first.complete().await.unwrap();
    database.claim_new(&event("evt_2")).await.complete().await.unwrap();
}

#[tokio::test]
async fn bodies_are_kept_and_compared_as_by_the_other_ledger() {
    let database = Database::set().await;
    let digests = database.ledger.clone().keeping(Keep::Digest);
    for (number, body) in [r#"{"a": 1}"#, "a=1", "", r#""\u0000""#, "12"].into_iter().enumerate() {
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
    let ledgers = join_all((0..6).map(|_| database.another_ledger())).await;
    for result in join_all(ledgers.iter().map(|ledger| ledger.migrate())).await {
        result.unwrap();
    }
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
    let stripe = database.ledger.clone().with_table("stripe_events").unwrap();
    stripe.migrate().await.unwrap();
    new(stripe.claim(&event("evt_1"), WAIT_TIMEOUT).await).complete().await.unwrap();
    assert_eq!(database.count("stripe_events", "evt_1").await, 1);
    assert_eq!(stripe.clean(Duration::MAX).await.unwrap(), 0);
    assert_eq!(stripe.clean(Duration::ZERO).await.unwrap(), 1);
    database.run("DROP TABLE webhook_events; CREATE TABLE webhook_events (event_id TEXT)").await;
    assert!(matches!(database.ledger.migrate().await, Err(LedgerError::Unavailable(_))));
}
