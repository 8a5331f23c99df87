// Receives webhooks so that each has its effect once: verify, mark and work in one transaction, answer.
//
// What to copy is `receive` and `mark`. The order of their steps is what makes them right.

import { createHash } from "node:crypto";
import express from "express";
import pg from "pg";
import { branded, Refused, standard } from "./signature.mjs";
import { afterCommit, handle } from "./shop.mjs";

const { DATABASE_URL, WEBHOOK_SECRET, WEBHOOK_BRAND, PORT = "9000", WAIT_TIMEOUT_SECONDS = "10" } = process.env;
if (!DATABASE_URL || !WEBHOOK_SECRET) throw new Error("set DATABASE_URL and WEBHOOK_SECRET");

/** The longest body that is taken, in bytes. */
const MAX_BODY = 1024 * 1024;

/** When a sender should come again, in seconds. */
const RETRY_AFTER = "5";

/** How long a copy waits for the end of work on the same event, in milliseconds. To PostgreSQL 0 would mean for ever. */
const WAIT_TIMEOUT = Number(WAIT_TIMEOUT_SECONDS) * 1000;
if (!Number.isInteger(WAIT_TIMEOUT) || WAIT_TIMEOUT < 1000) throw new Error("WAIT_TIMEOUT_SECONDS must be a whole number from 1");

const verify = WEBHOOK_BRAND ? branded(WEBHOOK_SECRET, WEBHOOK_BRAND) : standard(WEBHOOK_SECRET);

const pool = new pg.Pool({
  connectionString: DATABASE_URL,
  max: 20,
  connectionTimeoutMillis: 5_000,
  lock_timeout: WAIT_TIMEOUT,
  // Kept here and not by PostgreSQL: one that hangs keeps no time.
  query_timeout: WAIT_TIMEOUT + 5_000,
  // A handler that hangs does not hold its event for ever.
  idle_in_transaction_session_timeout: 60_000,
});
// An idle connection has broken, and is replaced; unheard, this would end the process.
pool.on("error", (error) => console.error("a connection was lost:", error.message));

async function receive(request, response) {
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const id = verify(request.headers, body);
  const { text, event } = read(body);
  const connection = await pool.connect().catch(sorted);
  const client = { query: (...what) => connection.query(...what).catch(sorted) };
  let broken;
  try {
    await client.query("BEGIN");
    if (!(await mark(client, id, event, text, body))) {
      await client.query("ROLLBACK");
      return response.json({ received: true, duplicate: true });
    }
    await handle(client, event);
    const end = await client.query("COMMIT");
    // Where a statement has failed and nobody has heard it, PostgreSQL rolls back and calls it no error.
    if (end.command !== "COMMIT") throw new Error("the transaction had failed before its end");
  } catch (error) {
    // A connection that does not answer, or cannot even roll back, is thrown away, and the server rolls back by itself.
    broken = error.status === 503 ? error : await client.query("ROLLBACK").then(() => undefined, (error) => error);
    if (!(error instanceof Refused)) {
      note(id, event, error).catch((lost) => console.error(`the failure of event ${id} could not be noted:`, lost.message));
    }
    throw error;
  } finally {
    connection.release(broken);
  }
  response.json({ received: true });
  afterCommit(event).catch((error) => console.error(`event ${id}: no mail:`, error.message));
}

/**
 * Marks the event as handled; false if it was before. The mark comes true with the work, at the COMMIT. Where another
 * transaction is at the same event, the INSERT waits for its end: after a commit this is a duplicate, after a rollback it
 * is ours.
 */
async function mark(client, id, event, text, body) {
  try {
    const marked = await client.query(
      `INSERT INTO webhook_events (event_id, event_type, payload, processed_at)
       VALUES ($1, $2, $3, timezone('utc', now()))
       ON CONFLICT (event_id) DO NOTHING`,
      [id, typeof event?.type === "string" ? event.type.slice(0, 100) : "", text],
    );
    if (marked.rowCount === 1) return true;
    const known = await client.query(
      // The library may have kept a digest of the body, or its bytes.
      `SELECT payload IN ($2, jsonb_build_object('sha256', $3::text), jsonb_build_object('base64', $4::text)) AS same
       FROM webhook_events WHERE event_id = $1`,
      [id, text, createHash("sha256").update(body).digest("hex"), body.toString("base64")],
    );
    if (known.rows[0]?.same !== false) return false;
  } catch (error) {
    if (error instanceof Refused) throw error;
    if (error.code === "55P03") throw new Refused(409, "this event is still being handled; send it again later", RETRY_AFTER);
    // Text that JSONB cannot hold, such as \u0000.
    if (/^(22|54)/.test(error.code)) throw new Refused(400, "the body cannot be stored as JSON");
    throw unavailable(error);
  }
  console.error(`ALARM: event ${id} came again with another body; it was refused`);
  throw new Refused(409, "an event with this id was received with another body");
}

/** Notes why an event failed, beside its transaction and its answer. It is no mark: the next copy is handled. */
async function note(id, event, error) {
  await pool.query(
    `INSERT INTO webhook_events_failures (event_id, event_type, error, failed_at)
     VALUES ($1, $2, $3, timezone('utc', now()))
     ON CONFLICT (event_id) DO UPDATE
     SET event_type = EXCLUDED.event_type, error = EXCLUDED.error, failed_at = EXCLUDED.failed_at`,
    [id, typeof event?.type === "string" ? event.type.slice(0, 100) : "", error.message.replaceAll("\0", "").slice(0, 4096)],
  );
}

function read(body) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(body);
    return { text, event: JSON.parse(text) };
  } catch {
    throw new Refused(400, "the body is no JSON");
  }
}

/** A database that is away, hangs, ends or has no room is not the event's fault: that is 503, and work that fails is 500. */
function sorted(error) {
  const answered = error instanceof pg.DatabaseError && !/^(08|53|57)/.test(error.code);
  throw answered ? error : unavailable(error);
}

function unavailable(error) {
  console.error("the database does not answer:", error.message);
  return new Refused(503, "events cannot be accepted now; send this one again", RETRY_AFTER);
}

const app = express();
app.disable("x-powered-by");
app
  .route("/webhooks")
  .post(express.raw({ type: () => true, limit: MAX_BODY, inflate: false }), receive)
  .all((request, response) => {
    response.set("Allow", "POST").status(405).json({ received: false, error: "webhooks are sent with POST" });
  });

// Anything that went wrong. A failure is never a 2xx: the sender would take the event for delivered and forget it. Express
// knows this one by its four parameters.
app.use((error, request, response, next) => {
  const { status = 500 } = error;
  const told = status < 500 || error instanceof Refused;
  if (!told) console.error("an event could not be processed:", error);
  if (error.retryAfter) response.set("Retry-After", error.retryAfter);
  // The text of other errors is not for strangers: a database's names tables and hosts.
  response.status(status).json({ received: false, error: told ? error.message : "the event could not be processed" });
});

const server = app.listen(Number(PORT), "127.0.0.1", (error) => {
  if (error) throw error;
  console.log(`receiving on http://127.0.0.1:${server.address().port}/webhooks`);
});
process.once("SIGTERM", () => server.close(() => pool.end()));
