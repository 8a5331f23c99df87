"""Receives webhooks so that each has its effect once: verify, mark and work in one transaction, answer.

What to copy is `receive` and `mark`. The order of their steps is what makes them right.
"""

import base64
import hashlib
import json
import logging
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import psycopg
from flask import Flask, jsonify, request
from werkzeug.exceptions import HTTPException

from shop import after_commit, handle
from signature import Refused, branded, standard

# The longest body that is taken, in bytes.
MAX_BODY = 1024 * 1024

# When a sender should come again, in seconds.
RETRY_AFTER = "5"

# How long a copy waits for the end of work on the same event, in seconds. To PostgreSQL 0 would mean for ever.
WAIT_TIMEOUT = int(os.environ.get("WAIT_TIMEOUT_SECONDS", "10"))
if WAIT_TIMEOUT < 1:
    raise ValueError("WAIT_TIMEOUT_SECONDS must be a whole number from 1")

# A handler that hangs does not hold its event for ever.
SESSION = f"-c lock_timeout={WAIT_TIMEOUT}s -c statement_timeout={WAIT_TIMEOUT + 5}s -c idle_in_transaction_session_timeout=60s"

# Those times are kept by PostgreSQL, and one that hangs keeps none. So a connection is cut after this one, in seconds, whatever is
# done on it: work that takes longer needs more.
LONGEST = WAIT_TIMEOUT + 10

SECRET, BRAND = os.environ["WEBHOOK_SECRET"], os.environ.get("WEBHOOK_BRAND")
verify = branded(SECRET, BRAND) if BRAND else standard(SECRET)

mails = ThreadPoolExecutor(max_workers=4, thread_name_prefix="mail")
notes = ThreadPoolExecutor(max_workers=2, thread_name_prefix="note")

app = Flask(__name__)
app.config["MAX_CONTENT_LENGTH"] = MAX_BODY


@app.post("/webhooks", provide_automatic_options=False)
def receive():
    body = request.get_data()
    event_id = verify(request.headers, body)
    text, event = read(body)
    # It commits at its end, and rolls back when anything is raised in it.
    try:
        with transaction() as db:
            is_new = mark(db, event_id, event, text, body)
            if is_new:
                handle(db, event)
    except Exception as error:
        if not isinstance(error, Refused):
            notes.submit(note, event_id, event, error)
        raise
    if not is_new:
        return jsonify(received=True, duplicate=True)
    mails.submit(after_commit, event_id, event)
    return jsonify(received=True)


def mark(db, event_id, event, text, body):
    """Marks the event as handled; False if it was before. The mark comes true with the work, at the commit.

    Where another transaction is at the same event, the INSERT waits for its end: after a commit this is a duplicate, after
    a rollback it is ours.
    """
    event_type = event.get("type") if isinstance(event, dict) else None
    try:
        marked = db.execute(
            """INSERT INTO webhook_events (event_id, event_type, payload, processed_at)
               VALUES (%s, %s, %s, timezone('utc', now()))
               ON CONFLICT (event_id) DO NOTHING""",
            (event_id, event_type[:100] if isinstance(event_type, str) else "", text),
        )
        if marked.rowcount == 1:
            return True
        # The library may have kept a digest of the body, or its bytes.
        known = db.execute(
            """SELECT payload IN (%s, jsonb_build_object('sha256', %s::text), jsonb_build_object('base64', %s::text))
               FROM webhook_events WHERE event_id = %s""",
            (text, hashlib.sha256(body).hexdigest(), base64.b64encode(body).decode(), event_id),
        ).fetchone()
    except psycopg.Error as error:
        state = error.sqlstate or ""
        if state == "55P03":
            raise Refused(409, "this event is still being handled; send it again later", RETRY_AFTER) from None
        # Text that JSONB cannot hold, such as \u0000.
        if state.startswith(("22", "54")) or isinstance(error, psycopg.DataError):
            raise Refused(400, "the body cannot be stored as JSON") from None
        raise unavailable(error) from None
    if known == (False,):
        logging.critical("ALARM: event %s came again with another body; it was refused", event_id)
        raise Refused(409, "an event with this id was received with another body")
    return False


def note(event_id, event, error):
    """Notes why an event failed, beside its transaction and its answer. It is no mark: the next copy is handled."""
    event_type = event.get("type") if isinstance(event, dict) else None
    why = f"{type(error).__name__}: {error}".replace("\0", "")[:4096]
    try:
        with transaction() as db:
            db.execute(
                """INSERT INTO webhook_events_failures (event_id, event_type, error, failed_at)
                   VALUES (%s, %s, %s, timezone('utc', now()))
                   ON CONFLICT (event_id) DO UPDATE
                   SET event_type = EXCLUDED.event_type, error = EXCLUDED.error, failed_at = EXCLUDED.failed_at""",
                (event_id, event_type[:100] if isinstance(event_type, str) else "", why),
            )
    except Exception as lost:
        logging.error("the failure of event %s could not be noted: %s", event_id, lost)


@contextmanager
def transaction():
    """A database that is away, hangs or ends is not the event's fault: that is 503, and work that fails is 500."""
    try:
        db = psycopg.connect(os.environ["DATABASE_URL"], connect_timeout=5, options=SESSION)
        with cut_off(db), db:
            yield db
    except psycopg.OperationalError as error:
        raise unavailable(error) from None


@contextmanager
def cut_off(db):
    """Ends the connection under whoever waits for it too long, by a second hand on its socket."""
    hand = socket.socket(fileno=os.dup(db.fileno()))
    timer = threading.Timer(LONGEST, hang_up, [hand])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        hand.close()


def hang_up(hand):
    # It may have ended by itself in this moment.
    with suppress(OSError):
        hand.shutdown(socket.SHUT_RDWR)


def read(body):
    try:
        text = body.decode()
        return text, json.loads(text)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is no JSON") from None


def unavailable(error):
    logging.error("the database does not answer: %s", error)
    return Refused(503, "events cannot be accepted now; send this one again", RETRY_AFTER)


# A failure is never a 2xx: the sender would take the event for delivered and forget it.
@app.errorhandler(Exception)
def failed(error):
    if isinstance(error, Refused):
        headers = {"Retry-After": error.retry_after} if error.retry_after else {}
        return jsonify(received=False, error=str(error)), error.status, headers
    if isinstance(error, HTTPException):
        answer = error.get_response()
        answer.data, answer.content_type = json.dumps({"received": False, "error": error.name}), "application/json"
        return answer
    logging.exception("an event could not be processed")
    # Its text is not for strangers: a database's names tables and hosts.
    return jsonify(received=False, error="the event could not be processed"), 500


if __name__ == "__main__":
    import waitress

    port = int(os.environ.get("PORT", "9000"))
    print(f"receiving on http://127.0.0.1:{port}/webhooks", flush=True)
    # What is longer is refused before it lies in memory or on disk; a body of the very limit counts as longer here.
    waitress.serve(app, listen=f"127.0.0.1:{port}", threads=32, max_request_body_size=MAX_BODY + 1)
