//! The business: what a payment does to an order and to the stock.

use crate::mail::Mails;
use aldaba_receiver::axum::EventJson;
use aldaba_receiver::transactional::{PostgresLedger, PostgresTransaction};
use aldaba_receiver::{Event, Failure, Transaction};
use axum::extract::State;
use serde::Deserialize;

/// What the shop hears of. The type is that in the body, because the body is always signed.
#[derive(Deserialize)]
#[serde(tag = "type")]
pub(crate) enum Notice {
    #[serde(rename = "payment.success")]
    Payment(Payment),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Payment {
    payment_link: PaymentLink,
    transaction: Paid,
    customer: Option<Customer>,
}

#[derive(Deserialize)]
struct PaymentLink {
    /// In cents.
    amount: i64,
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    order_id: String,
    product_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Paid {
    id: String,
    completed_at: String,
    payment_method: Option<String>,
}

#[derive(Deserialize)]
struct Customer {
    email: Option<String>,
}

/// Called once for each event that is new. What it does in the transaction is committed with the event's mark if it returns
/// `Ok`, and not at all otherwise: there is nothing to commit here, and nothing to undo.
pub(crate) async fn handle(
    event: Event,
    transaction: Transaction<PostgresLedger>,
    State(mails): State<Mails>,
    EventJson(notice): EventJson<Notice>,
) -> Result<(), Failure> {
    // What is not for us is an event that was handled, too.
    let Notice::Payment(payment) = notice else { return Ok(()) };
    pay(&transaction, &payment).await?;
    // A mail cannot be rolled back, so it waits for the commit. The answer does not wait for it.
    if let Some(email) = payment.customer.and_then(|customer| customer.email) {
        let (order, amount) = (payment.payment_link.metadata.order_id, payment.payment_link.amount);
        event.after_commit(async move { mails.confirm(&email, &order, amount).await });
    }
    Ok(())
}

async fn pay(transaction: &PostgresTransaction, payment: &Payment) -> Result<(), Failure> {
    let Metadata { order_id: order, product_id: product } = &payment.payment_link.metadata;
    let paid = &payment.transaction;
    if paid.id.is_empty() {
        return Err(Failure::new("the payment's transaction has no id"));
    }
    // The guard holds where the same payment comes as two events, which no mark can see.
    let update = "UPDATE orders SET status = 'paid', paid_at = $2::text::timestamptz, transaction_id = $3, \
                  payment_method = $4, updated_at = NOW() WHERE id = $1 AND status != 'paid'";
    let updated =
        transaction.execute(update, &[order, &paid.completed_at, &paid.id, &paid.payment_method]).await?;
    if updated == 0 {
        // It may still be on its way into the table: then the webhook comes again.
        let known = transaction.query_opt("SELECT FROM orders WHERE id = $1", &[order]).await?;
        return known.map(drop).ok_or_else(|| Failure::new(format!("there is no order {order:?}")));
    }
    match product {
        Some(product) => take_from_stock(transaction, order, product).await,
        None => Ok(()),
    }
}

async fn take_from_stock(
    transaction: &PostgresTransaction,
    order: &str,
    product: &str,
) -> Result<(), Failure> {
    let update = "UPDATE products SET stock = stock - 1 WHERE id = $1 AND stock > 0";
    if transaction.execute(update, &[&product]).await? == 0 {
        let known = transaction.query_opt("SELECT FROM products WHERE id = $1", &[&product]).await?;
        known.ok_or_else(|| Failure::new(format!("there is no product {product:?}")))?;
        // The money has come, so that the order stays paid: somebody must look at it.
        tracing::error!(order, product, "an order is paid, and its product is sold out");
    }
    Ok(())
}
