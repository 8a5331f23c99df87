// What the events are for: put your own business here.

import nodemailer from "nodemailer";

/** How long a mail server may be silent, in milliseconds. */
const MAIL_TIMEOUT = 10_000;

/**
 * The part that must come true with the mark: everything goes through `client`, which is in the event's transaction.
 * Whatever is thrown here rolls back both, and the sender tries again.
 */
export async function handle(client, event) {
  if (event?.type !== "payment.success") return;
  const { paymentLink, transaction } = event;
  const order = text(paymentLink?.metadata?.orderId, "paymentLink.metadata.orderId");
  const product = paymentLink.metadata.productId;
  const payment = text(transaction?.id, "transaction.id");

  // The guard holds where the same payment comes as two events, which no mark can see.
  const paid = await client.query(
    `UPDATE orders SET status = 'paid', paid_at = $2, transaction_id = $3, payment_method = $4, updated_at = NOW()
     WHERE id = $1 AND status != 'paid'`,
    [order, text(transaction.completedAt, "transaction.completedAt"), payment, transaction.paymentMethod],
  );
  if (paid.rowCount === 0) {
    const known = await client.query("SELECT FROM orders WHERE id = $1", [order]);
    // It may still be on its way into the table.
    if (known.rowCount === 0) throw new Error(`there is no order ${JSON.stringify(order)}`);
    return;
  }
  if (product === undefined) return;
  const taken = await client.query("UPDATE products SET stock = stock - 1 WHERE id = $1 AND stock > 0", [
    text(product, "paymentLink.metadata.productId"),
  ]);
  if (taken.rowCount === 0) {
    const known = await client.query("SELECT FROM products WHERE id = $1", [product]);
    if (known.rowCount === 0) throw new Error(`there is no product ${JSON.stringify(product)}`);
    // The money has come, so that the order stays paid: somebody must look at it.
    console.error(`order ${JSON.stringify(order)} is paid, and ${JSON.stringify(product)} is sold out`);
  }
}

const mails = process.env.SMTP_URL
  ? nodemailer.createTransport({
      url: process.env.SMTP_URL,
      connectionTimeout: MAIL_TIMEOUT,
      greetingTimeout: MAIL_TIMEOUT,
      socketTimeout: MAIL_TIMEOUT,
    })
  : undefined;

/**
 * The part that may fail: it runs after the commit, and the answer does not wait for it. A crash in between loses it. What
 * must not get lost is written into the transaction as a row that a worker sends off.
 */
export async function afterCommit(event) {
  if (event?.type !== "payment.success" || !mails) return;
  const to = text(event.customer?.email, "customer.email");
  const amount = (event.paymentLink.amount / 100).toFixed(2);
  await mails.sendMail({
    from: process.env.MAIL_FROM ?? "shop@example.com",
    // An object is one address, whatever signs are in it.
    to: { name: "", address: to },
    subject: `Your order ${event.paymentLink.metadata.orderId}`,
    text: `Thank you. We have received your payment of ${amount}.`,
  });
}

function text(value, name) {
  if (typeof value !== "string" || value === "") throw new Error(`${name} is no text`);
  return value;
}
