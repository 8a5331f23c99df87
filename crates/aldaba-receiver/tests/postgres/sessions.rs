//! What sessions differ in, and what a handler leaves in its own.

use crate::stage::{Database, WAIT_TIMEOUT, event, new};
use aldaba_receiver::transactional::PostgresLedger;
use aldaba_receiver::{Claim, Ledger, Work};
use std::time::Duration;

const AN_HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn the_age_of_a_mark_does_not_depend_on_the_zone_of_a_session() {
    let database = Database::set().await;
    let ledgers = ["America/Los_Angeles", "UTC", "Pacific/Auckland"].map(|zone| {
        let separator = if database.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{separator}options=-c%20timezone%3D{zone}", database.url);
        PostgresLedger::connect(&url).unwrap()
    });
    for (number, marks) in ledgers.iter().enumerate() {
        let id = format!("evt_{number}");
        new(marks.claim(&event(&id), WAIT_TIMEOUT).await).complete().await.unwrap();
        for cleans in &ledgers {
            assert_eq!(cleans.clean(AN_HOUR).await.unwrap(), 0);
        }
        assert!(matches!(marks.claim(&event(&id), WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
        let older = "UPDATE webhook_events SET processed_at = processed_at - interval '61 minutes'";
        database.run(older).await;
        assert_eq!(ledgers[(number + 1) % 3].clean(AN_HOUR).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_hidden_mark_is_polled_with_a_delay() {
    let database = Database::set().await;
    database
        .run(
            "CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
             CREATE SEQUENCE tries;
             CREATE FUNCTION count_tries() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN PERFORM nextval(''tries''); RETURN NULL; END';
             CREATE TRIGGER hide BEFORE INSERT ON webhook_events FOR EACH ROW EXECUTE FUNCTION hide();
             CREATE TRIGGER count BEFORE INSERT ON webhook_events FOR EACH STATEMENT EXECUTE FUNCTION count_tries()",
        )
        .await;
    let claim = database.ledger.claim(&event("evt_1"), Duration::from_millis(500)).await.unwrap();
    assert!(matches!(claim, Claim::InProgress));
    let tries: i64 = database.row("SELECT last_value FROM tries", &[]).await.get(0);
    assert!((2..=30).contains(&tries), "{tries}");
}

#[tokio::test]
async fn session_settings_of_a_handler_end_with_it() {
    let database = Database::set().await;
    database.run("CREATE SCHEMA tenant").await;
    let shadow = "CREATE TEMP TABLE webhook_events (LIKE public.webhook_events INCLUDING ALL)";
    for (number, left) in
        ["SET search_path = tenant", shadow, "SET default_transaction_read_only = on"].into_iter().enumerate()
    {
        let id = format!("evt_{number}");
        let work = database.claim_new(&event(&id)).await;
        work.batch_execute(left).await.unwrap();
        work.complete().await.unwrap();
        assert!(
            matches!(database.ledger.claim(&event(&id), WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate),
            "{left}"
        );
    }
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
    let ledger = database.another_ledger();
    ledger.migrate().await.unwrap();
    new(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await).complete().await.unwrap();
    assert!(matches!(ledger.claim(&event("evt_1"), WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
    assert_eq!(ledger.clean(Duration::ZERO).await.unwrap(), 1);
}
