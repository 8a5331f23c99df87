//! A shop that hears of payments by webhook, with axum and PostgreSQL. Each payment has its effect once, however often its
//! webhook comes and wherever the program is killed.

mod mail;
mod shop;

use aldaba_receiver::inbound::{Inspector, Recipe, Secret};
use aldaba_receiver::transactional::PostgresLedger;
use aldaba_receiver::{Cleanup, DEFAULT_WAIT_TIMEOUT, Receiver};
use axum::Router;
use axum::routing::post;
use mail::Mails;
use std::env;
use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How long handlers and mails may go on after the server has stopped.
const LAST_HANDLERS: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let ledger = PostgresLedger::connect(&needed("DATABASE_URL")?)?;
    let receiver = Receiver::builder(inspector()?, ledger).wait_timeout(wait_timeout()?).build();
    let _cleanup = Cleanup::of(&receiver).start();

    // The receiver stands around the handler: it checks the signature, begins the transaction, and ends it.
    let webhooks = post(shop::handle).layer(receiver.layer());
    let app = Router::new().route("/webhooks", webhooks).with_state(Mails::new(setting("SMTP_URL"))?);

    let port = number("PORT", 9000)?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("receiving on http://{}/webhooks", listener.local_addr()?);
    let mut terminate = signal(SignalKind::terminate())?;
    let end = async move {
        terminate.recv().await;
    };
    axum::serve(listener, app).with_graceful_shutdown(end).await?;
    // A handler goes on when its sender has gone, so the server does not know of all of them.
    receiver.finish(LAST_HANDLERS).await;
    Ok(())
}

/// Standard Webhooks, or Aldaba's profile `branded` where there is a brand. Under that one the id is not signed: whoever has
/// seen a request can send it again under another id for five minutes, and then only the guards of the shop hold.
fn inspector() -> Result<Inspector, Box<dyn Error>> {
    let secret =
        Secret::standard(&needed("WEBHOOK_SECRET")?).map_err(|error| format!("WEBHOOK_SECRET: {error}"))?;
    let recipe = setting("WEBHOOK_BRAND").map_or_else(Recipe::standard, |brand| Recipe::branded(&brand));
    Ok(Inspector::new(recipe, [secret])?)
}

/// How long a copy waits for the end of work on the same event.
fn wait_timeout() -> Result<Duration, String> {
    match number("WAIT_TIMEOUT_SECONDS", DEFAULT_WAIT_TIMEOUT.as_secs())? {
        0 => Err("WAIT_TIMEOUT_SECONDS must be a whole number from 1".into()),
        seconds => Ok(Duration::from_secs(seconds)),
    }
}

fn number<N: FromStr<Err: Display>>(name: &str, otherwise: N) -> Result<N, String> {
    setting(name).map_or(Ok(otherwise), |text| text.parse().map_err(|error| format!("{name}: {error}")))
}

fn needed(name: &str) -> Result<String, String> {
    setting(name).ok_or_else(|| format!("set {name}"))
}

fn setting(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
