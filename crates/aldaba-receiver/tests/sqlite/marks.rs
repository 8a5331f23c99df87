//! The contents of the table, and its creation.

use crate::stage::{Database, WAIT_TIMEOUT, event, event_with, new};
use aldaba_receiver::transactional::{Keep, SqliteLedger};
use aldaba_receiver::{Claim, Event, Ledger, LedgerError, Work};
use futures_util::future::join_all;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;

fn stored(database: &Database, event_id: &str) -> (String, String) {
    let query = "SELECT event_type, payload FROM webhook_events WHERE event_id = ?1";
    database.connection().query_row(query, [event_id], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

async fn handle(database: &Database, event: &Event) {
    database.claim_new(event).await.complete().await.unwrap();
}

#[tokio::test]
async fn a_mark_holds_the_type_the_payload_and_the_time_in_utc() {
    let database = Database::set().await;
    handle(&database, &event_with("evt_1", r#"{"a": 1.50}"#)).await;
    assert_eq!(stored(&database, "evt_1"), ("payment.success".into(), r#"{"a": 1.50}"#.into()));
    let young = "SELECT unixepoch('now') - unixepoch(processed_at) < 60 AND julianday(created_at) > 0
        FROM webhook_events";
    assert!(database.connection().query_row(young, [], |row| row.get::<_, bool>(0)).unwrap());
}

#[tokio::test]
async fn bodies_are_kept_and_compared_as_in_postgres() {
    let database = Database::set().await;
    let bodies: [(&[u8], &str); 4] = [
        (b"a=1&b=2", r#"{"base64": "YT0xJmI9Mg=="}"#),
        (b"\xff", r#"{"base64": "/w=="}"#),
        (b"123", "123"),
        (br#"{"a": "\u0000"}"#, r#"{"base64": "eyJhIjogIlx1MDAwMCJ9"}"#),
    ];
    for (number, (body, kept)) in bodies.into_iter().enumerate() {
        let event = Event::new(format!("evt_{number}"), "", body, HeaderMap::new());
        handle(&database, &event).await;
        assert_eq!(stored(&database, &event.id).1, kept);
        assert!(matches!(database.claim(&event).await, Claim::Duplicate));
        let other = Event::new(event.id, "", [body, b"0"].concat(), HeaderMap::new());
        assert!(matches!(database.claim(&other).await, Claim::OtherBody));
    }
    handle(&database, &event_with("evt_json", r#"{"amount": 100, "text": "é"}"#)).await;
    let same = event_with("evt_json", r#"{"text":"\u00e9","amount":1.0e2}"#);
    assert!(matches!(database.claim(&same).await, Claim::Duplicate));
}

/// Another program's table may allow it. Its word that the event was handled is all there is.
#[tokio::test]
async fn a_mark_without_a_payload_is_a_mark() {
    let database = Database::set().await;
    let bare = "DROP TABLE webhook_events;
        CREATE TABLE webhook_events (event_id TEXT PRIMARY KEY, event_type TEXT, payload TEXT, processed_at TEXT);
        INSERT INTO webhook_events (event_id) VALUES ('evt_1')";
    database.run(bare);
    assert!(matches!(database.claim(&event("evt_1")).await, Claim::Duplicate));
}

#[tokio::test]
async fn a_digest_is_all_that_is_kept_where_that_was_chosen() {
    let database = Database::set_with(|ledger| ledger.keeping(Keep::Digest)).await;
    let secret = event_with("evt_1", r#"{"card": "4111"}"#);
    handle(&database, &secret).await;
    let (_, payload) = stored(&database, "evt_1");
    assert!(payload.starts_with(r#"{"sha256": ""#) && !payload.contains("4111"), "{payload}");
    assert!(matches!(database.claim(&secret).await, Claim::Duplicate));
    assert!(matches!(
        database.another_ledger().claim(&secret, WAIT_TIMEOUT).await.unwrap(),
        Claim::Duplicate
    ));
    let other = event_with("evt_1", r#"{"card": "4112"}"#);
    assert!(matches!(database.claim(&other).await, Claim::OtherBody));
}

#[tokio::test]
async fn a_long_type_is_cut_and_a_long_id_refused() {
    let database = Database::set().await;
    let long = Event::new("ñ".repeat(255), "é".repeat(300), "{}", HeaderMap::new());
    handle(&database, &long).await;
    assert_eq!(stored(&database, &long.id).0, "é".repeat(100));
    let refused = database.ledger.claim(&event(&"ñ".repeat(256)), WAIT_TIMEOUT).await;
    assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{refused:?}");
}

#[tokio::test]
async fn many_may_open_and_migrate_at_once_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let open = |_| {
        let path = path.clone();
        tokio::task::spawn_blocking(move || Arc::new(SqliteLedger::open(path).unwrap()))
    };
    let ledgers: Vec<_> = join_all((0..8).map(open)).await.into_iter().map(Result::unwrap).collect();
    for result in join_all(ledgers.iter().map(|ledger| ledger.migrate())).await {
        result.unwrap();
    }
    new(ledgers[0].claim(&event("evt_1"), WAIT_TIMEOUT).await).complete().await.unwrap();
    ledgers[1].migrate().await.unwrap();
    assert!(matches!(ledgers[1].claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
}

#[tokio::test]
async fn an_existing_table_is_used_if_its_id_is_unique() {
    let database = Database::set().await;
    database.run(
        "DROP TABLE webhook_events;
         CREATE TABLE webhook_events (event_id VARCHAR(255) PRIMARY KEY, event_type VARCHAR(100) NOT NULL,
            payload JSONB NOT NULL, processed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
            created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
         INSERT INTO webhook_events (event_id, event_type, payload)
            VALUES ('evt_old', '', '{\"type\": \"payment.success\"}')",
    );
    database.ledger.migrate().await.unwrap();
    assert!(matches!(database.claim(&event("evt_old")).await, Claim::Duplicate));
    // A number is made one by a column of that type, and is the same number.
    handle(&database, &event_with("evt_new", "1.50")).await;
    assert!(matches!(database.claim(&event_with("evt_new", "1.50")).await, Claim::Duplicate));
    database.run("DROP TABLE webhook_events; CREATE TABLE webhook_events (event_id TEXT, event_type TEXT, payload TEXT, processed_at TEXT)");
    assert!(matches!(database.ledger.migrate().await, Err(LedgerError::Unavailable(_))));
}

#[tokio::test]
async fn the_error_of_a_missing_table_says_how_to_create_it() {
    let database = Database::set().await;
    database.run("DROP TABLE webhook_events");
    let Err(LedgerError::Unavailable(why)) = database.ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await
    else {
        panic!("there is no table")
    };
    assert!(why.to_string().contains("webhook_events") && why.to_string().contains("migrate"), "{why}");
}

#[test]
fn a_path_that_is_not_a_file_is_refused() {
    for path in ["", ":memory:", "/nowhere/at/all/shop.db", "/"] {
        assert!(matches!(SqliteLedger::open(path), Err(LedgerError::Unavailable(_))), "{path}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.db");
    std::fs::write(&path, "this is a text and no database").unwrap();
    assert!(matches!(SqliteLedger::open(&path), Err(LedgerError::Unavailable(_))));
}

#[tokio::test]
async fn e6_old_marks_go_in_slices_by_the_index() {
    let database = Database::set().await;
    database.run(
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 5000)
         INSERT INTO webhook_events SELECT 'evt_' || n, '', '{}',
            datetime('now', CASE WHEN n <= 1700 THEN '-40 days' ELSE '-1 day' END), datetime('now') FROM n",
    );
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    assert_eq!(database.ledger.clean(Duration::MAX).await.unwrap(), 0);
    assert_eq!(database.ledger.clean(month).await.unwrap(), 1700);
    assert_eq!(database.ledger.clean(month).await.unwrap(), 0);
    let plan = "EXPLAIN QUERY PLAN SELECT event_id FROM webhook_events
        WHERE processed_at >= '' AND processed_at <= strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 seconds') ORDER BY processed_at LIMIT 500";
    let plan = database.connection().query_row(plan, [], |row| row.get::<_, String>(3)).unwrap();
    assert!(plan.contains("idx_webhook_events_processed_at"), "{plan}");
}

/// Of another program, which has its own unit.
#[tokio::test]
async fn a_mark_with_a_numeric_time_is_not_cleaned() {
    let database = Database::set().await;
    database.run(
        "INSERT INTO webhook_events (event_id, event_type, payload, processed_at)
            VALUES ('evt_1', '', '{}', unixepoch() * 1000), ('evt_2', '', '{}', datetime('now', '-1 day'))",
    );
    assert_eq!(database.ledger.clean(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(database.count("webhook_events", "evt_1"), 1);
}

#[tokio::test]
async fn events_of_two_senders_have_tables_of_their_own() {
    let database = Database::set().await;
    let ledger = SqliteLedger::open(&database.path).unwrap().with_table("stripe_events").unwrap();
    ledger.migrate().await.unwrap();
    handle(&database, &event("evt_1")).await;
    new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await).complete().await.unwrap();
    assert!(matches!(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
    assert_eq!(ledger.clean(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(database.count("webhook_events", "evt_1"), 1);
}
