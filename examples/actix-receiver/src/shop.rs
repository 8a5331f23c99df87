//! The business: what a payment does to an order.

use aldaba_receiver::transactional::SqliteLedger;
use aldaba_receiver::{Event, Failure, Held};
use rusqlite::{Connection, OptionalExtension};
use serde::Deserialize;
use std::convert::Infallible;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS orders (
        id TEXT PRIMARY KEY,
        status TEXT NOT NULL DEFAULT 'pending',
        amount INTEGER NOT NULL,
        customer_name TEXT NOT NULL,
        updated_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
    );
    CREATE TABLE IF NOT EXISTS payments (
        id INTEGER PRIMARY KEY,
        transaction_id TEXT NOT NULL,
        order_id TEXT NOT NULL
    );
    INSERT OR IGNORE INTO orders (id, amount, customer_name) VALUES
        ('order-1', 1999, 'Ann'), ('order-2', 4500, 'Bert');";

#[derive(Deserialize)]
struct Payment {
    order: String,
    transaction: String,
    email: String,
}

/// Makes the shop's tables, with two orders to be paid.
pub(crate) fn open(path: &str) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.execute_batch(TABLES)
}

/// Called once for each payment that is committed. Everything in `work` is committed with the event's mark, or not at
/// all: there is nothing to commit here, and nothing to undo.
pub(crate) async fn paid(event: Event, mut work: Held<SqliteLedger>) -> Result<(), Failure> {
    if event.event_type != "payment.success" {
        // Not for us. That, too, is an event that was handled.
        return Ok(());
    }
    let payment: Payment = serde_json::from_slice(&event.body)
        .map_err(|error| Failure::telling(format!("no payment: {error}")))?;
    let Payment { order, transaction, email } = payment;
    let known = work.run(move |shop| record(shop, &order, &transaction)).await?;
    if !known {
        // The order may come later. The payment is rolled back, and its webhook comes again.
        return Err(Failure::telling("there is no such order yet"));
    }
    // A mail cannot be rolled back, so it waits for the commit.
    event.after_commit(async move {
        println!("receipt for {email}");
        Ok::<(), Infallible>(())
    });
    Ok(())
}

/// Says whether there is such an order.
fn record(shop: &Connection, order: &str, transaction: &str) -> rusqlite::Result<bool> {
    shop.execute("INSERT INTO payments (transaction_id, order_id) VALUES (?1, ?2)", (transaction, order))?;
    let status: Option<String> =
        shop.query_row("SELECT status FROM orders WHERE id = ?1", [order], |row| row.get(0)).optional()?;
    let paid = "UPDATE orders SET status = 'paid', updated_at = CURRENT_TIMESTAMP WHERE id = ?1 AND status != 'paid'";
    shop.execute(paid, [order])?;
    Ok(status.is_some())
}
