//! The example that the guide begins with does what the guide says.

#![cfg(all(feature = "axum", feature = "sqlite"))]

include!("../examples/quick_start.rs");

use aldaba_signature::SigningKey;
use axum::body::{Body, to_bytes};
use http::Request;
use std::time::{SystemTime, UNIX_EPOCH};
use tower::Service;

const SECRET: &str = "whsec_c3VpdGUtc2VjcmV0LWZvci10ZXN0cy1vbmx5LTMyYnk=";
const EXAMPLE: &str = include_str!("../examples/quick_start.rs");
const GUIDE: &str = include_str!("../../../docs/receiving.md");

#[test]
fn the_guide_shows_the_example_as_it_is() {
    let (_, shown) = EXAMPLE.split_once("{ ---\n").unwrap();
    let (shown, _) = shown.split_once("// } ---").unwrap();
    assert!(GUIDE.contains(shown), "docs/receiving.md differs from examples/quick_start.rs:\n{shown}");
}

#[tokio::test]
async fn an_address_in_use_is_named_with_what_to_do() {
    let taken = listen("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let why = listen(&address).await.unwrap_err();
    assert!(why.starts_with(&format!("cannot listen on {address}: ")), "{why}");
    assert!(why.contains("Name another address") && why.contains("[ADDRESS]"), "{why}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
async fn a_payment_is_recorded_once_however_often_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("shop.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute_batch("CREATE TABLE payments (order_id TEXT NOT NULL)").unwrap();
    let mut app = app(database.to_str().unwrap(), SECRET).await.unwrap();
    let body = r#"{"order": "order-1"}"#;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let signature = SigningKey::parse(SECRET).unwrap().sign("evt_1", now, body.as_bytes());
    for said in [r#"{"received":true}"#, r#"{"received":true,"duplicate":true}"#] {
        let request = Request::post("/webhooks")
            .header("webhook-id", "evt_1")
            .header("webhook-timestamp", now)
            .header("webhook-signature", &signature);
        let response = app.call(request.body(Body::from(body)).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(to_bytes(response.into_body(), 1000).await.unwrap(), said);
    }
    let payments: i64 = connection.query_row("SELECT COUNT(*) FROM payments", [], |row| row.get(0)).unwrap();
    assert_eq!(payments, 1);
}
