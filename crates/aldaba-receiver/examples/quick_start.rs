// A receiver in one file: axum, SQLite, and a payment that is recorded once however often it comes.
//
// `WEBHOOK_SECRET=whsec_… cargo run -p aldaba-receiver --features axum,sqlite --example quick_start`

use aldaba_receiver::axum::EventJson;
use aldaba_receiver::inbound::{Inspector, Recipe, Secret};
use aldaba_receiver::transactional::SqliteLedger;
use aldaba_receiver::{Failure, Receiver, Transaction};
use axum::{Router, routing::post};
use std::error::Error;

#[derive(serde::Deserialize)]
struct Payment {
    order: String,
}

// docs/receiving.md shows what is between these lines. { ---
async fn paid(
    EventJson(payment): EventJson<Payment>,
    mut tx: Transaction<SqliteLedger>,
) -> Result<(), Failure> {
    tx.run(move |db| db.execute("INSERT INTO payments (order_id) VALUES (?1)", [payment.order])).await?;
    Ok(()) // the payment and the event's mark are committed together, then the sender gets its 200
}

async fn app(database: &str, secret: &str) -> Result<Router, Box<dyn Error>> {
    let ledger = SqliteLedger::open(database)?;
    ledger.migrate().await?; // makes the table `webhook_events`
    let recipe = Recipe::standard(); // or Recipe::stripe(), Recipe::github(), …
    let secret = Secret::parse_for(&recipe, secret)?; // as that sender shows it
    let receiver = Receiver::new(Inspector::new(recipe, [secret])?, ledger);
    Ok(Router::new().route("/webhooks", post(paid).layer(receiver.layer())))
}
// } ---

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    rusqlite::Connection::open("payments.db")?
        .execute_batch("CREATE TABLE IF NOT EXISTS payments (order_id TEXT NOT NULL)")?;
    let secret =
        std::env::var("WEBHOOK_SECRET").map_err(|_| "set WEBHOOK_SECRET to the sender's secret, whsec_…")?;
    let app = app("payments.db", &secret).await.map_err(|error| error.to_string())?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    println!("receiving on http://127.0.0.1:8080/webhooks");
    Ok(axum::serve(listener, app).await?)
}
