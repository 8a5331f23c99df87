//! What a handler can do with its transaction.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event, new};
use aldaba_receiver::transactional::SqliteLedger;
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use std::time::Duration;

#[tokio::test]
async fn a_handler_cannot_end_the_transaction() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    for by_hand in ["COMMIT", "ROLLBACK", "END", "BEGIN"] {
        let ended = work.run(move |connection| connection.execute_batch(by_hand)).await;
        assert!(ended.unwrap_err().to_string().contains("not authorized"), "{by_hand}");
    }
    effect(&mut work, "evt_1").await.unwrap();
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1"), 1);
    // Nor is the ledger kept from doing so.
    database.claim_new(&event("evt_2")).await.complete().await.unwrap();
}

#[tokio::test]
async fn savepoints_work_and_a_failed_statement_is_taken_back_alone() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    work.run(|connection| {
        connection.execute_batch(
            "SAVEPOINT part; INSERT INTO effects VALUES ('taken back'); ROLLBACK TO part; RELEASE part",
        )
    })
    .await
    .unwrap();
    work.run(|connection| connection.execute("INSERT INTO effects VALUES (NULL)", [])).await.unwrap_err();
    work.complete().await.unwrap();
    assert_eq!((database.count("effects", "evt_1"), database.count("effects", "taken back")), (1, 0));
}

#[tokio::test]
async fn a_part_that_panics_takes_the_transaction_with_it() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    let panicked = tokio::spawn(async move {
        let part = work.run(|_| -> rusqlite::Result<()> { panic!("a panic that the test has ordered") });
        part.await
    });
    assert!(panicked.await.unwrap_err().is_panic());
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1"), 1);
}

#[tokio::test]
async fn a_part_that_is_dropped_takes_the_transaction_with_it() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    let part = work.run(|connection| {
        connection.execute("INSERT INTO effects VALUES ('evt_1')", [])?;
        // Longer than the part is awaited.
        std::thread::sleep(Duration::from_millis(300));
        Ok::<_, rusqlite::Error>(())
    });
    tokio::time::timeout(Duration::from_millis(50), part).await.unwrap_err();
    assert!(effect(&mut work, "evt_1").await.unwrap_err().to_string().contains("has ended"));
    assert!(matches!(work.complete().await, Err(LedgerError::Lost(_))));
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1"), 0);
}

#[tokio::test]
async fn a_dropped_transaction_is_rolled_back() {
    let database = Database::set().await;
    for _ in 0..3 {
        let mut work = database.claim_new(&event("evt_1")).await;
        effect(&mut work, "evt_1").await.unwrap();
        drop(work);
    }
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    work.complete().await.unwrap();
    assert_eq!(database.count("effects", "evt_1"), 1);
}

#[test]
fn a_transaction_dropped_without_a_runtime_is_rolled_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, work) = runtime.block_on(async {
        let database = Database::set().await;
        let mut work = database.claim_new(&event("evt_1")).await;
        effect(&mut work, "evt_1").await.unwrap();
        (database, work)
    });
    drop(work);
    runtime.block_on(async {
        database.claim_new(&event("evt_1")).await.complete().await.unwrap();
        assert_eq!(database.count("effects", "evt_1"), 0);
        assert!(matches!(database.claim(&event("evt_1")).await, Claim::Duplicate));
    });
}

#[tokio::test]
async fn a_claim_that_is_dropped_leaves_nothing_claimed() {
    let database = Database::set().await;
    for pause in 0..40 {
        let event = event(&format!("evt_{pause}"));
        let claim = database.ledger.claim(&event, WAIT_TIMEOUT);
        drop(tokio::time::timeout(Duration::from_micros(pause * 20), claim).await);
        database.claim_new(&event).await.complete().await.unwrap();
        assert_eq!(database.count("webhook_events", &event.id), 1);
    }
}

#[tokio::test]
async fn connection_settings_of_a_handler_end_with_it() {
    let database = Database::set().await;
    let extra = database.path.with_extension("extra");
    let attach = format!("ATTACH '{}' AS extra", extra.display());
    let settings = ["CREATE TEMP TABLE scratch (n INTEGER)", &attach, "PRAGMA query_only = ON"];
    for (number, setting) in settings.into_iter().enumerate() {
        for end in ["complete", "abandon", "drop"] {
            let id = format!("evt_{number}_{end}");
            let mut work = database.claim_new(&event(&id)).await;
            effect(&mut work, &id).await.unwrap();
            let setting = setting.to_owned();
            work.run(move |connection| connection.execute_batch(&setting)).await.unwrap();
            match end {
                "complete" => work.complete().await.unwrap(),
                "abandon" => work.abandon().await,
                _ => drop(work),
            }
            assert_eq!(database.count("effects", &id), u64::from(end == "complete"), "{id}");
        }
    }
}

#[tokio::test]
async fn each_connection_is_set_up_by_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::open_with(folder.path().join("shop.db"), |connection| {
        connection.execute_batch("PRAGMA foreign_keys = ON")
    })
    .unwrap();
    ledger.migrate().await.unwrap();
    let mut work = new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await);
    let settings = work
        .run(|connection| {
            let read = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            Ok::<_, rusqlite::Error>((read("foreign_keys")?, read("synchronous")?))
        })
        .await;
    assert_eq!(settings.unwrap(), (1, 2));
}

/// A disk that is full, as SQLite sees one: the file may not grow any more.
#[tokio::test]
async fn a_full_disk_fails_the_work_and_rolls_it_back() {
    let database = Database::set().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    let filled = work
        .run(|connection| {
            connection.execute_batch("PRAGMA max_page_count = 20")?;
            connection.execute("INSERT INTO effects VALUES (hex(zeroblob(200000)))", [])
        })
        .await;
    assert!(filled.unwrap_err().to_string().contains("full"));
    work.abandon().await;
    assert_eq!(database.count("webhook_events", "evt_1"), 0);
}
