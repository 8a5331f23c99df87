// A receiver in one file: axum, SQLite, and a payment that is recorded once however often it comes.
//
// `WEBHOOK_SECRET=whsec_… cargo run --release -p aldaba-receiver --features axum,sqlite --example quick_start -- [ADDRESS]`

use aldaba_receiver::axum::EventJson;
use aldaba_receiver::inbound::{Inspector, Recipe, Secret};
use aldaba_receiver::transactional::SqliteLedger;
use aldaba_receiver::{Failure, Receiver, Transaction};
use axum::{Router, routing::post};
use std::error::Error;
use std::process::ExitCode;
use tokio::net::TcpListener;

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

const USAGE: &str = "usage: WEBHOOK_SECRET=whsec_… quick_start [ADDRESS]   (an address and a port; 127.0.0.1:8080 if left out)";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let address = match arguments.as_slice() {
        [] => "127.0.0.1:8080",
        [address] if !address.starts_with('-') => address,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match receive(address).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// A listener, or what to do about an address that cannot be had.
async fn listen(address: &str) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| format!("cannot listen on {address}: {error}. Name another address:\n{USAGE}"))
}

async fn receive(address: &str) -> Result<(), Box<dyn Error>> {
    let secret =
        std::env::var("WEBHOOK_SECRET").map_err(|_| "set WEBHOOK_SECRET to the sender's secret, whsec_…")?;
    let listener = listen(address).await?;
    rusqlite::Connection::open("payments.db")?
        .execute_batch("CREATE TABLE IF NOT EXISTS payments (order_id TEXT NOT NULL)")?;
    let app = app("payments.db", &secret).await?;
    println!("receiving on http://{}/webhooks", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}
