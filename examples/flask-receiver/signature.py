"""Whether a request comes from the sender that has the secret, and what the event is called.

Nothing else of a request is looked at before this. The body is taken as the bytes that came: JSON that was parsed and written
again has another signature.
"""

import base64
import hashlib
import hmac
import re
import time

from standardwebhooks import Webhook, WebhookVerificationError

# How far a signature's time may lie from now, in seconds. The library has the same.
TOLERANCE = 5 * 60

# What an id may look like: it must fit its column, and stand in a log.
ID = re.compile(r"[\x21-\x7e]{1,255}")


class Refused(Exception):
    """A request that is not taken, with the status that says why."""

    def __init__(self, status, message, retry_after=None):
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


def standard(secret):
    """Standard Webhooks (Aldaba's default), checked by the public library. The id is signed too."""
    # The library takes an empty key, and leaves out what is no base64.
    key_of(secret)
    webhook = Webhook(secret)

    def verify(headers, body):
        event_id = headers.get("webhook-id")
        if not event_id and headers.get("webhook-signature"):
            raise Refused(400, "the header webhook-id is missing")
        try:
            webhook.verify(body, dict(headers), json_parse=False)
        # A signature without a comma, or no base64, is a ValueError of the library.
        except (WebhookVerificationError, ValueError):
            raise Refused(401, "the signature is missing, wrong, or too old") from None
        return checked(event_id)

    return verify


def branded(secret, brand):
    """Aldaba's profile `branded`: `<Brand>-Signature: t=<seconds>,v1=<hex>` over `<seconds>.<body>`.

    No public library reads it. The id is not signed: whoever has seen a request can send it again under another id for five
    minutes, and then only the guards in shop.py hold. Where you can choose, choose Standard Webhooks.
    """
    key = key_of(secret)

    def verify(headers, body):
        parts = [part.partition("=") for part in headers.get(f"{brand}-signature", "").split(",")]
        sent = next((value for name, _, value in parts if name == "t"), "")
        fresh = re.fullmatch("[0-9]{1,12}", sent) and abs(time.time() - int(sent)) <= TOLERANCE
        wanted = hmac.new(key, f"{sent}.".encode() + body, hashlib.sha256).hexdigest().encode()
        # While a secret is being replaced there is a signature of each.
        signed = any(name == "v1" and hmac.compare_digest(value.encode(), wanted) for name, _, value in parts)
        if not (fresh and signed):
            raise Refused(401, "the signature is missing, wrong, or too old")
        event_id = headers.get(f"{brand}-event-id")
        if not event_id:
            raise Refused(400, f"the header {brand}-event-id is missing")
        return checked(event_id)

    return verify


def key_of(secret):
    """Without `validate` Python leaves out what is no base64, and with an empty key anybody could sign."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise ValueError("WEBHOOK_SECRET must be whsec_ and base64, as Aldaba shows it")
    return key


def checked(event_id):
    if not ID.fullmatch(event_id):
        raise Refused(400, "the event's id must be 1 to 255 visible ASCII characters")
    return event_id
