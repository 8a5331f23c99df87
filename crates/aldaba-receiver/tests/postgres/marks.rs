//! The contents of the table.

use crate::stage::{Database, WAIT_TIMEOUT, event, event_with};
use crate::suite::polling::wait_until;
use aldaba_receiver::transactional::{Keep, Payload, PostgresLedger};
use aldaba_receiver::{Claim, Event, Ledger, LedgerError, Work};
use bytes::Bytes;
use http::HeaderMap;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::time::Duration;

async fn stored(database: &Database, event_id: &str) -> (String, String) {
    let query = "SELECT event_type, payload::text FROM webhook_events WHERE event_id = $1";
    let row = database.row(query, &[&event_id]).await;
    (row.get(0), row.get(1))
}

async fn handle(database: &Database, event: &Event) {
    database.claim_new(event).await.complete().await.unwrap();
}

#[tokio::test]
async fn a_mark_holds_the_type_and_the_payload() {
    let database = Database::set().await;
    handle(&database, &event_with("evt_1", r#"{"b": 1,  "a": [null]}"#)).await;
    assert_eq!(
        stored(&database, "evt_1").await,
        ("payment.success".into(), r#"{"a": [null], "b": 1}"#.into())
    );
    let times =
        "SELECT timezone('utc', now()) - processed_at < interval '1 minute', processed_at = created_at
        FROM webhook_events";
    let row = database.row(times, &[]).await;
    assert!(row.get::<_, bool>(0) && row.get::<_, bool>(1));
}

#[tokio::test]
async fn a_body_that_jsonb_cannot_hold_is_kept_as_base64() {
    let database = Database::set().await;
    let bodies: [&[u8]; 6] = [b"a=1&b=2", b"", b"\xff\xfe", br#"{"a":"\u0000"}"#, b"1e99999", br#""\ud800""#];
    for (number, body) in bodies.into_iter().enumerate() {
        let event = Event::new(format!("evt_{number}"), "", body, HeaderMap::new());
        handle(&database, &event).await;
        let (event_type, payload) = stored(&database, &event.id).await;
        assert!(event_type.is_empty() && payload.starts_with(r#"{"base64": ""#), "{payload}");
        assert!(matches!(database.claim(&event).await, Claim::Duplicate));
        let other = Event::new(event.id, "", [body, b" "].concat(), HeaderMap::new());
        assert!(matches!(database.claim(&other).await, Claim::OtherBody));
    }
}

#[tokio::test]
async fn a_copy_whose_json_is_spelled_differently_is_a_duplicate() {
    let database = Database::set().await;
    handle(&database, &event_with("evt_1", r#"{"amount": 100, "text": "é"}"#)).await;
    let same = event_with("evt_1", r#"{"text":"\u00e9","amount":1.0e2}"#);
    assert!(matches!(database.claim(&same).await, Claim::Duplicate));
    let other = event_with("evt_1", r#"{"amount": 100.01, "text": "é"}"#);
    assert!(matches!(database.claim(&other).await, Claim::OtherBody));
}

#[tokio::test]
async fn a_digest_is_all_that_is_kept_where_that_was_chosen() {
    let database = Database::set_with(|ledger| ledger.keeping(Keep::Digest)).await;
    let secret = event_with("evt_1", r#"{"card": "4111"}"#);
    handle(&database, &secret).await;
    let (_, payload) = stored(&database, "evt_1").await;
    assert!(payload.starts_with(r#"{"sha256": ""#) && !payload.contains("4111"), "{payload}");
    assert!(matches!(database.claim(&secret).await, Claim::Duplicate));
    let other = event_with("evt_1", r#"{"card": "4112"}"#);
    assert!(matches!(database.claim(&other).await, Claim::OtherBody));
    // A ledger with payloads recognizes a mark with a digest, and vice versa.
    let keeps_all = database.another_ledger();
    assert!(matches!(keeps_all.claim(&secret, WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
    let second = event_with("evt_2", r#"{"card": "4113"}"#);
    crate::stage::new(keeps_all.claim(&second, WAIT_TIMEOUT).await).complete().await.unwrap();
    assert!(matches!(database.claim(&second).await, Claim::Duplicate));
}

#[tokio::test]
async fn a_long_type_is_cut_and_a_long_id_refused() {
    let database = Database::set().await;
    let long = Event::new("ñ".repeat(255), "é".repeat(300), "{}", HeaderMap::new());
    handle(&database, &long).await;
    assert_eq!(stored(&database, &long.id).await.0, "é".repeat(100));
    let too_long = event(&"ñ".repeat(256));
    assert!(matches!(
        database.ledger.claim(&too_long, WAIT_TIMEOUT).await,
        Err(LedgerError::Unavailable(why)) if why.to_string().contains("255")
    ));
}

#[tokio::test]
async fn json_as_deep_and_numbers_as_long_as_is_allowed_are_taken() {
    let database = Database::set().await;
    let deep = format!("{}{}", "[{\"a\":".repeat(250), "}]".repeat(250)).replace(":}", ":1}");
    let bodies = [deep, format!("1{}e1000", "0".repeat(390)), format!("-0.{}1E-1000", "0".repeat(390))];
    for (number, body) in bodies.iter().enumerate() {
        let event = event_with(&format!("evt_{number}"), body);
        handle(&database, &event).await;
        assert!(!stored(&database, &event.id).await.1.contains("base64"));
        assert!(matches!(database.claim(&event).await, Claim::Duplicate));
    }
}

/// Another program's table may allow it. Its word that the event was handled is all there is.
#[tokio::test]
async fn a_mark_without_a_payload_is_a_mark() {
    let database = Database::set().await;
    let bare = "ALTER TABLE webhook_events ALTER COLUMN payload DROP NOT NULL;
        INSERT INTO webhook_events (event_id, event_type) VALUES ('evt_1', '')";
    database.run(bare).await;
    assert!(matches!(database.claim(&event("evt_1")).await, Claim::Duplicate));
}

#[tokio::test]
async fn text_is_never_executed_as_sql() {
    let database = Database::set().await;
    let event = Event::new("'; DROP TABLE webhook_events; --", "\\'$1", r#"["';--"]"#, HeaderMap::new());
    handle(&database, &event).await;
    assert!(matches!(database.claim(&event).await, Claim::Duplicate));
}

fn json() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON has no other", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?",
        "-?(0|[1-9])(\\.0{1,3})?([eE][+-]?[0-9]{3,6})?",
    ];
    let text = prop_oneof![
        "[a-cé\u{1f600}]{0,3}".prop_map(|text| format!("\"{text}\"")),
        r#"(\\u00[0-7][0-9a-f]|\\ud83d\\ude0[0-9]|\\[bfnrt/"\\]|\\ud[89]00|[a-c]){0,3}"#
            .prop_map(|text| format!("\"{text}\"")),
    ];
    let leaf = prop_oneof![number, text, Just("null".to_owned()), Just("true".to_owned())];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = prop_oneof!["[ab]{1,2}", r"\\u006[1-2]"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(" ,\n"))),
            prop::collection::vec((key, inner), 0..4).prop_map(|fields| {
                let fields: Vec<_> =
                    fields.into_iter().map(|(key, value)| format!("\"{key}\" : {value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

/// What `Payload` decides in Rust is what the database would have decided.
#[tokio::test]
async fn rust_and_postgres_agree_on_what_is_json_and_what_is_equal() {
    let database = Database::set().await;
    let client = database.client().await;
    let mut runner = TestRunner::deterministic();
    let (mut whole, mut equal) = (0, 0);
    let mut previous = String::from("{}");
    for _ in 0..1500 {
        let text = json().new_tree(&mut runner).unwrap().current();
        let payload = Payload::new(&Bytes::from(text.clone()), Keep::Payload);
        let kept = payload.kept().into_owned();
        whole += usize::from(kept == text);
        // Every body can be stored.
        let query = "SELECT $1::text::jsonb = $2::text::jsonb, ($1::text::jsonb)::text";
        let row = client.query_one(query, &[&kept, &previous]).await.unwrap_or_else(|error| {
            panic!("PostgreSQL does not take {kept}: {error:?}");
        });
        assert_eq!(payload.is_kept_as(&previous), row.get::<_, bool>(0), "{kept}\n{previous}");
        // The stored JSON is spelled differently, and equal.
        let returned: String = row.get(1);
        assert!(payload.is_kept_as(&returned), "{kept}\n{returned}");
        equal += usize::from(returned != kept);
        previous = returned;
    }
    assert!(whole > 500 && whole < 1500 && equal > 300, "{whole} {equal}");
}

#[tokio::test]
async fn events_of_two_senders_have_tables_of_their_own() {
    let database = Database::set().await;
    let ledger = PostgresLedger::connect(&database.url).unwrap().with_table("stripe_events").unwrap();
    ledger.migrate().await.unwrap();
    let event = event("evt_1");
    handle(&database, &event).await;
    crate::stage::new(ledger.claim(&event, WAIT_TIMEOUT).await).complete().await.unwrap();
    assert!(matches!(ledger.claim(&event, WAIT_TIMEOUT).await.unwrap(), Claim::Duplicate));
    assert_eq!(database.count("stripe_events", "evt_1").await, 1);
    assert_eq!(ledger.clean(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(database.count("webhook_events", "evt_1").await, 1);
}

#[tokio::test]
async fn e6_old_marks_go_in_slices_by_the_index() {
    let database = Database::set().await;
    let fill = "INSERT INTO webhook_events SELECT 'evt_' || n, '', '{}',
            NOW() - (CASE WHEN n <= 2500 THEN 40 ELSE 1 END) * interval '1 day', NOW()
        FROM generate_series(1, 30000) AS n; ANALYZE webhook_events";
    database.run(fill).await;
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    let scans =
        "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'idx_webhook_events_processed_at'";
    assert_eq!(database.row(scans, &[]).await.get::<_, i64>(0), 0);
    assert_eq!(database.ledger.clean(Duration::MAX).await.unwrap(), 0);
    assert_eq!(database.ledger.clean(month).await.unwrap(), 2500);
    assert_eq!(database.ledger.clean(month).await.unwrap(), 0);
    let left = database.row("SELECT count(*) FROM webhook_events", &[]).await.get::<_, i64>(0);
    assert_eq!(left, 27_500);
    // The server counts a scan with a delay.
    wait_until("the index is used", async || database.row(scans, &[]).await.get::<_, i64>(0) >= 5).await;
}

#[tokio::test]
async fn two_who_clean_at_once_do_not_wait_for_each_other() {
    let database = Database::set().await;
    database
        .run("INSERT INTO webhook_events SELECT 'evt_' || n, '', '{}' FROM generate_series(1, 5000) AS n")
        .await;
    let other = database.another_ledger();
    let (one, two) = tokio::join!(database.ledger.clean(Duration::ZERO), other.clean(Duration::ZERO));
    assert_eq!(one.unwrap() + two.unwrap(), 5000);
}
