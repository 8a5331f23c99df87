//! A shop that hears of payments by webhook, with actix-web and SQLite. Each payment marks its order as paid once, however
//! often its webhook comes and wherever the program is killed.

mod shop;
mod webhooks;

use actix_web::{App, HttpServer, rt, web};
use aldaba_receiver::inbound::{Inspector, Recipe, Secret};
use aldaba_receiver::transactional::SqliteLedger;
use aldaba_receiver::{Cleanup, DEFAULT_MAX_BODY, Receiver};
use std::error::Error;
use std::time::Duration;

/// How long handlers may go on after the server has stopped.
const LAST_HANDLERS: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    rt::System::new().block_on(serve())
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let database = setting("DATABASE", "shop.db");
    shop::open(&database)?;
    let ledger = SqliteLedger::open(&database)?;
    ledger.migrate().await?;
    let secret = std::env::var("WEBHOOK_SECRET").map_err(|_| "set WEBHOOK_SECRET (whsec_…)")?;
    let recipe = Recipe::standard();
    let secret = Secret::parse_for(&recipe, &secret).map_err(|error| format!("WEBHOOK_SECRET: {error}"))?;
    let inspector = Inspector::new(recipe, [secret])?;
    let receiver = Receiver::new(inspector, ledger);
    let _cleanup = Cleanup::of(&receiver).start();

    let shared = web::Data::new(receiver.clone());
    let server = HttpServer::new(move || {
        App::new()
            .app_data(shared.clone())
            .app_data(web::PayloadConfig::new(DEFAULT_MAX_BODY))
            // All methods: the receiver refuses those that are not POST.
            .route("/webhooks", web::to(webhooks::receive))
    })
    .bind(setting("LISTEN", "127.0.0.1:8080"))?;
    for address in server.addrs() {
        println!("listening on {address}");
    }
    server.run().await?;
    // A handler goes on when its sender has gone, so the server does not know of all of them.
    receiver.finish(LAST_HANDLERS).await;
    Ok(())
}

fn setting(name: &str, otherwise: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| otherwise.to_owned())
}
