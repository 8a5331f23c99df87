"""What the events are for: put your own business here."""

import logging
import os
import smtplib
from email.message import EmailMessage
from urllib.parse import urlsplit

# How long a mail server may be silent, in seconds.
MAIL_TIMEOUT = 10

SMTP = urlsplit(os.environ.get("SMTP_URL", ""))
if SMTP.scheme not in ("", "smtp") or SMTP.username:
    raise ValueError("SMTP_URL: this sample sends through smtp://host:port alone, without a password and without TLS")


def handle(db, event):
    """The part that must come true with the mark: everything goes through `db`, which is in the event's transaction.

    Whatever is raised here rolls back both, and the sender tries again.
    """
    if not is_payment(event):
        return
    link, transaction = event["paymentLink"], event["transaction"]
    order, product = text(link["metadata"], "orderId"), link["metadata"].get("productId")

    # The guard holds where the same payment comes as two events, which no mark can see.
    paid = db.execute(
        """UPDATE orders SET status = 'paid', paid_at = %s, transaction_id = %s, payment_method = %s,
               updated_at = NOW()
           WHERE id = %s AND status != 'paid'""",
        (text(transaction, "completedAt"), text(transaction, "id"), transaction.get("paymentMethod"), order),
    )
    if paid.rowcount == 0:
        # It may still be on its way into the table.
        if db.execute("SELECT FROM orders WHERE id = %s", (order,)).rowcount == 0:
            raise LookupError(f"there is no order {order!r}")
        return
    if product is None:
        return
    taken = db.execute("UPDATE products SET stock = stock - 1 WHERE id = %s AND stock > 0", (product,))
    if taken.rowcount == 0:
        if db.execute("SELECT FROM products WHERE id = %s", (product,)).rowcount == 0:
            raise LookupError(f"there is no product {product!r}")
        # The money has come, so that the order stays paid: somebody must look at it.
        logging.error("order %r is paid, and %r is sold out", order, product)


def after_commit(event_id, event):
    """The part that may fail: it runs after the commit, in a thread of its own, and the answer does not wait for it.

    A crash in between loses it. What must not get lost is written into the transaction as a row that a worker sends off.
    """
    if not is_payment(event) or not SMTP.hostname:
        return
    try:
        mail = EmailMessage()
        mail["From"] = os.environ.get("MAIL_FROM", "shop@example.com")
        # This refuses line breaks, with which a mail would get more headers.
        mail["To"] = text(event["customer"], "email")
        mail["Subject"] = f"Your order {event['paymentLink']['metadata']['orderId']}"
        mail.set_content(f"Thank you. We have received your payment of {event['paymentLink']['amount'] / 100:.2f}.\n")
        with smtplib.SMTP(SMTP.hostname, SMTP.port or 25, timeout=MAIL_TIMEOUT) as server:
            server.send_message(mail)
    except Exception:
        logging.exception("event %s: no mail", event_id)


def is_payment(event):
    return isinstance(event, dict) and event.get("type") == "payment.success"


def text(fields, name):
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is no text")
    return value
