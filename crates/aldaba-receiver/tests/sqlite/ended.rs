//! Transactions that SQLite ends by itself, under handlers that go on.

use crate::stage::{Database, effect, event};
use aldaba_receiver::{LedgerError, Work};

const ENDINGS: [&str; 3] = [
    "INSERT OR ROLLBACK INTO orders VALUES ('sold')",
    "UPDATE stock SET pieces = pieces - 1",
    "PRAGMA max_page_count = 20; INSERT INTO effects VALUES (hex(zeroblob(200000)))",
];

async fn database() -> Database {
    let database = Database::set().await;
    database.run(
        "CREATE TABLE orders (id TEXT UNIQUE); INSERT INTO orders VALUES ('sold');
         CREATE TABLE stock (pieces INTEGER); INSERT INTO stock VALUES (0);
         CREATE TRIGGER sold BEFORE UPDATE ON stock BEGIN SELECT RAISE(ROLLBACK, 'sold out'); END",
    );
    database
}

/// Neither in a further part nor in the same one, nor in a new transaction.
#[tokio::test]
async fn nothing_is_written_after_an_error_that_ends_the_transaction() {
    const WRITES: [&str; 5] = [
        "INSERT INTO effects VALUES ('evt_1')",
        "SAVEPOINT part; INSERT INTO effects VALUES ('evt_1')",
        "SAVEPOINT part; INSERT INTO effects VALUES ('evt_1'); RELEASE part",
        "CREATE TABLE effect (event_id TEXT)",
        "PRAGMA user_version = 7",
    ];
    for ending in ENDINGS {
        for write in WRITES {
            let database = database().await;
            for _ in 0..2 {
                let mut work = database.claim_new(&event("evt_1")).await;
                let part = work.run(move |connection| {
                    connection.execute_batch(ending).unwrap_err();
                    let _ = connection.execute_batch(write);
                    Ok::<_, rusqlite::Error>(())
                });
                part.await.unwrap();
                let _ = work.run(move |connection| connection.execute_batch(write)).await;
                let completed = work.complete().await;
                assert!(matches!(completed, Err(LedgerError::Lost(_))), "{ending}; {write}: {completed:?}");
            }
            let connection = database.connection();
            let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'effect'";
            let tables: i64 = connection.query_row(tables, [], |row| row.get(0)).unwrap();
            let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
            let marks = database.count("webhook_events", "evt_1");
            let effects = database.count("effects", "evt_1");
            assert_eq!((tables, version, marks, effects), (0, 0, 0, 0), "{ending}; {write}");
        }
    }
}

#[tokio::test]
async fn a_part_after_the_end_of_the_transaction_fails() {
    let database = database().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    work.run(|connection| connection.execute_batch(ENDINGS[0])).await.unwrap_err();
    assert!(effect(&mut work, "evt_1").await.unwrap_err().to_string().contains("has ended"));
}

#[tokio::test]
async fn the_connection_is_as_good_as_new_after_an_error_that_ends_the_transaction() {
    let database = database().await;
    for ending in &ENDINGS[..2] {
        let mut work = database.claim_new(&event("evt_1")).await;
        work.run(|connection| connection.execute_batch(ending)).await.unwrap_err();
        work.abandon().await;
    }
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    work.complete().await.unwrap();
    assert_eq!((database.count("effects", "evt_1"), database.count("webhook_events", "evt_1")), (1, 1));
}

#[tokio::test]
async fn work_whose_mark_the_handler_has_removed_is_not_committed() {
    let database = database().await;
    let mut work = database.claim_new(&event("evt_1")).await;
    effect(&mut work, "evt_1").await.unwrap();
    work.run(|connection| connection.execute("DELETE FROM webhook_events", [])).await.unwrap();
    assert!(matches!(work.complete().await, Err(LedgerError::Lost(_))));
    assert_eq!(database.count("effects", "evt_1"), 0);
}
