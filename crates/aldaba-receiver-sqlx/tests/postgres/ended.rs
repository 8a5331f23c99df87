//! Transactions that end before the receiver ends them, under handlers that go on.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event, new, pool};
use aldaba_receiver::{Ledger, LedgerError, Work};
use aldaba_receiver_sqlx::{SqlxPostgresLedger, SqlxPostgresTransaction};
use futures_util::FutureExt;
use sqlx::Acquire;

/// Cancels a part while it begins.
fn drop_a_begin(work: &mut SqlxPostgresTransaction) {
    // If the server answers too fast, the part succeeds, and the next one is tried.
    for _ in 0..1000 {
        if work.transaction().begin().now_or_never().is_none() {
            return;
        }
    }
    panic!("every part began at once");
}

#[tokio::test]
async fn nothing_is_written_after_a_part_was_given_up_while_it_began() {
    let database = Database::set().await;
    for _ in 0..3 {
        let mut work = database.claim_new(&event("evt_1")).await;
        drop_a_begin(&mut work);
        for _ in 0..2 {
            effect(&mut work, "evt_1").await.unwrap_err();
        }
        let mut part = work.transaction().begin().await.unwrap();
        sqlx::query("INSERT INTO effects VALUES ('evt_1')").execute(&mut *part).await.unwrap_err();
        drop(part);
        assert!(matches!(work.complete().await, Err(LedgerError::Lost(_))));
    }
    let marks = database.count("webhook_events", "evt_1").await;
    assert_eq!((marks, database.count("effects", "evt_1").await), (0, 0));
}

/// The program's own statements use the same connections.
#[tokio::test]
async fn a_connection_writes_as_before_when_it_goes_back() {
    let database = Database::set().await;
    let pool = pool(&database.url, 1).await;
    let ledger = SqlxPostgresLedger::new(pool.clone());
    for given_up in [false, true] {
        for end in ["complete", "abandon", "drop", "duplicate", "fails"] {
            if end == "duplicate" {
                new(ledger.claim(&event("evt_2"), WAIT_TIMEOUT).await).complete().await.unwrap();
                drop(ledger.claim(&event("evt_2"), WAIT_TIMEOUT).await.unwrap());
            } else {
                let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
                if end == "fails" {
                    sqlx::query("SELECT 1 / 0").execute(work.connection()).await.unwrap_err();
                }
                if given_up {
                    drop_a_begin(&mut work);
                }
                match end {
                    "abandon" => work.abandon().await,
                    "drop" => drop(work),
                    _ => drop(work.complete().await),
                }
            }
            // Without a transaction, and then in its own.
            sqlx::query("DELETE FROM webhook_events").execute(&pool).await.unwrap();
            let mut transaction = pool.begin().await.unwrap();
            sqlx::query("DELETE FROM effects").execute(&mut *transaction).await.unwrap();
            transaction.commit().await.unwrap();
        }
    }
}
