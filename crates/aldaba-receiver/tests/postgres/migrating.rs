//! Making the table.

use crate::stage::{Database, WAIT_TIMEOUT, connect, event, new};
use aldaba_receiver::transactional::PostgresLedger;
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use futures_util::future::join_all;

/// As the guide to idempotent webhooks has it.
const BY_HAND: &str = "
    CREATE TABLE webhook_events (
        event_id VARCHAR(255) PRIMARY KEY,
        event_type VARCHAR(100) NOT NULL,
        payload JSONB NOT NULL,
        processed_at TIMESTAMP NOT NULL DEFAULT NOW(),
        created_at TIMESTAMP NOT NULL DEFAULT NOW()
    );";

const SHAPE: &str = "SELECT string_agg(concat_ws(' ', column_name, data_type, character_maximum_length, is_nullable,
        column_default), ', ' ORDER BY ordinal_position)
        || (SELECT string_agg(indexdef, ', ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'webhook_events')
    FROM information_schema.columns WHERE table_name = 'webhook_events'";

/// A database without the table.
async fn bare() -> Database {
    let database = Database::set().await;
    database.run("DROP TABLE webhook_events").await;
    database
}

async fn shape(database: &Database) -> String {
    database.row(SHAPE, &[]).await.get(0)
}

#[tokio::test]
async fn e11_the_table_is_the_one_of_the_guide() {
    let (ours, theirs) = (Database::set().await, bare().await);
    let index = "CREATE INDEX idx_webhook_events_processed_at ON webhook_events (processed_at)";
    // But for the zone: the guide has the session's.
    let by_hand = BY_HAND.replace("NOW()", "timezone('utc', now())");
    theirs.run(&format!("{by_hand} {index}")).await;
    assert_eq!(shape(&ours).await, shape(&theirs).await);
}

#[tokio::test]
async fn many_may_migrate_at_once_and_again() {
    let database = bare().await;
    let ledgers: Vec<_> = (0..8).map(|_| database.another_ledger()).collect();
    for result in join_all(ledgers.iter().map(|ledger| ledger.migrate())).await {
        result.unwrap();
    }
    let before = shape(&database).await;
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
    database.ledger.migrate().await.unwrap();
    assert_eq!(shape(&database).await, before);
    assert_eq!(database.count("webhook_events", "evt_1").await, 1);
}

#[tokio::test]
async fn an_existing_table_is_used_and_gets_its_index() {
    let database = bare().await;
    database.run(BY_HAND).await;
    database.run("INSERT INTO webhook_events VALUES ('evt_old', 'payment.success', '{\"type\": \"payment.success\"}')").await;
    database.ledger.migrate().await.unwrap();
    assert!(shape(&database).await.contains("idx_webhook_events_processed_at"));
    assert!(matches!(database.claim(&event("evt_old")).await, Claim::Duplicate));
    database.claim_new(&event("evt_new")).await.complete().await.unwrap();
}

#[tokio::test]
async fn times_with_a_zone_and_json_as_text_do_as_well() {
    let database = bare().await;
    let variant = BY_HAND.replace("TIMESTAMP", "TIMESTAMPTZ").replace("JSONB", "JSON");
    database.run(&variant).await;
    database.ledger.migrate().await.unwrap();
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
    assert!(matches!(database.claim(&event("evt_1")).await, Claim::Duplicate));
    assert_eq!(database.ledger.clean(std::time::Duration::ZERO).await.unwrap(), 1);
}

#[tokio::test]
async fn a_table_without_a_unique_id_is_refused() {
    let database = bare().await;
    database.run(&BY_HAND.replace("PRIMARY KEY", "NOT NULL")).await;
    let Err(LedgerError::Unavailable(why)) = database.ledger.migrate().await else { panic!("it was taken") };
    assert!(why.to_string().contains("unique"), "{why}");
    database.run("DROP TABLE webhook_events; CREATE TABLE webhook_events (event_id TEXT PRIMARY KEY, processed_at TIMESTAMP)").await;
    let Err(LedgerError::Unavailable(why)) = database.ledger.migrate().await else { panic!("it was taken") };
    assert!(why.to_string().contains("event_type"), "{why}");
}

#[tokio::test]
async fn the_error_of_a_missing_table_says_how_to_create_it() {
    let database = bare().await;
    let Err(LedgerError::Unavailable(why)) = database.ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await
    else {
        panic!("there is no table")
    };
    assert!(why.to_string().contains("webhook_events") && why.to_string().contains("migrate"), "{why}");
    database.ledger.migrate().await.unwrap();
    new(database.ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await).complete().await.unwrap();
}

#[tokio::test]
async fn a_database_that_is_down_at_the_start_may_come_up_later() {
    let database = Database::alone().await;
    let server = std::sync::Arc::clone(&database.server);
    tokio::task::spawn_blocking(move || server.kill()).await.unwrap();
    let ledger = PostgresLedger::connect(&database.url).unwrap();
    assert!(matches!(ledger.migrate().await, Err(LedgerError::Unavailable(_))));
    assert!(matches!(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await, Err(LedgerError::Unavailable(_))));
    let server = std::sync::Arc::clone(&database.server);
    tokio::task::spawn_blocking(move || server.restart()).await.unwrap();
    ledger.migrate().await.unwrap();
    new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await).complete().await.unwrap();
    drop(connect(&database.url).await);
}

#[tokio::test]
async fn an_address_that_needs_more_than_it_can_is_refused_without_its_password() {
    for url in ["postgres://me:hunter2@127.0.0.1/shop?sslmode=require", "postgres://me:hunter2@[::1"] {
        let Err(error) = PostgresLedger::connect(url) else { panic!("{url} was taken") };
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
    let ledger = PostgresLedger::connect("postgres://me:hunter2@127.0.0.1:1/shop").unwrap();
    let error = ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap_err();
    assert!(!format!("{ledger:?} {error} {error:?}").contains("hunter2"), "{error}");
}
