// Receives webhooks in an edge worker, without a framework and without a package. The platform runs the object that is
// exported by default, with the bindings WEBHOOK_KV, WEBHOOK_SECRET, BACKEND_URL and, if wanted, WEBHOOK_BRAND.
//
// THE MARK IS NOT ATOMIC. Between the look at `event:<id>` and the mark lies the whole work, and a key-value store has no
// transaction and no "only if absent". So each event is handled at least once: a copy that comes after the mark is a
// duplicate, one that comes before it runs too. What the work does must bear that, here by the key that the backend gets.
//
// The mark is made after the work. Made before it, a failure or a crash in between would lose the event: the next copy would
// be called a duplicate of something that never happened.

import { Refused, verifier } from "./signature.mjs";

/** The longest body that is taken, in bytes. */
const MAX_BODY = 1024 * 1024;

/** How long a mark is kept, in seconds: longer than the sender tries, and than anybody sends by hand. */
const KEEP = 30 * 24 * 60 * 60;

/** How long a record of work in progress counts, in milliseconds. An older one was left behind by a crash. */
const LEASE = 5 * 60 * 1000;

/** How long the backend may take, in milliseconds. It should be shorter than the sender's timeout. */
const BACKEND_TIMEOUT = 10_000;

/** How long the key-value store may take, in milliseconds. */
const STORE_TIMEOUT = 5_000;

/** When a sender should come again, in seconds. */
const RETRY_AFTER = "5";

export default {
  async fetch(request, env, ctx) {
    try {
      if (new URL(request.url).pathname !== "/webhooks") throw new Refused(404, "webhooks are taken at /webhooks");
      if (request.method !== "POST") {
        return answer(405, { received: false, error: "webhooks are sent with POST" }, { Allow: "POST" });
      }
      return await receive(request, env, ctx);
    } catch (error) {
      // A failure is never a 2xx: the sender would take the event for delivered and forget it.
      if (error instanceof Refused) {
        const headers = error.retryAfter ? { "Retry-After": error.retryAfter } : {};
        return answer(error.status, { received: false, error: error.message }, headers);
      }
      console.error("an event could not be processed:", error);
      return answer(500, { received: false, error: "the event could not be processed" });
    }
  },
};

async function receive(request, env, ctx) {
  const body = await bytesOf(request);
  const id = await verifier(env.WEBHOOK_SECRET, env.WEBHOOK_BRAND)(request.headers, body);
  const event = read(body);
  const [key, digest] = [`event:${id}`, await sha256(body)];
  const record = { type: event?.type ?? "", digest };
  const keep = (more) => within(STORE_TIMEOUT, env.WEBHOOK_KV.put(key, JSON.stringify({ ...record, ...more }), { expirationTtl: KEEP }));

  const mark = await within(STORE_TIMEOUT, env.WEBHOOK_KV.get(key)).then(recorded, (error) => {
    console.error("the key-value store does not answer:", error.message);
    throw new Refused(503, "events cannot be accepted now; send this one again", RETRY_AFTER);
  });
  if (mark.status !== "failed" && isDigest(mark.digest) && mark.digest !== digest) {
    console.error(`ALARM: event ${id} came again with another body; it was refused`);
    throw new Refused(409, "an event with this id was received with another body");
  }
  if (mark.status === "processing" && Date.now() - Date.parse(mark.receivedAt) < LEASE) {
    throw new Refused(409, "this event is still being handled; send it again later", RETRY_AFTER);
  }
  if (mark.status === "processed") return answer(200, { received: true, duplicate: true });

  try {
    await handle(id, event, body, env);
  } catch (error) {
    const noting = note(env.WEBHOOK_KV, key, keep, error).catch((lost) => {
      console.error(`the failure of event ${id} could not be noted:`, lost.message);
    });
    // It comes to its end though the sender hangs up. The answer comes after it, so that it cannot overtake the next copy.
    ctx.waitUntil(noting);
    await noting;
    throw error;
  }

  // The work is done. To answer with an error now would only make it run again.
  await keep({ status: "processed", processedAt: new Date().toISOString() }).catch((error) => {
    console.error(`event ${id} was handled and could not be marked; a copy of it would run again:`, error.message);
  });
  return answer(200, { received: true });
}

/** What the events are for: put your own business here. What is thrown makes the sender try again. */
async function handle(id, event, body, env) {
  if (event?.type !== "payment.success") return;
  const response = await fetch(env.BACKEND_URL, {
    method: "POST",
    // Copies that run beside each other have the same key, so that the backend can tell.
    headers: { "content-type": "application/json", "idempotency-key": id },
    body,
    signal: AbortSignal.timeout(BACKEND_TIMEOUT),
  });
  if (!response.ok) throw new Error(`the backend answered ${response.status}`);
}

/** Notes what went wrong. It is no mark: the next copy is handled. A mark that a copy has made meanwhile stays. */
async function note(kv, key, keep, error) {
  const mark = recorded(await within(STORE_TIMEOUT, kv.get(key)));
  if (mark.status === "processed") return;
  await keep({ status: "failed", failedAt: new Date().toISOString(), error: error.message });
}

/** The body, no longer than it may be: what comes after that is not read. */
async function bytesOf(request) {
  const tooLong = () => new Refused(413, `the body is longer than ${MAX_BODY} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > MAX_BODY) throw tooLong();
  const [parts, reader] = [[], request.body?.getReader()];
  let length = 0;
  for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
    length += part.value.length;
    if (length > MAX_BODY) {
      await reader.cancel();
      throw tooLong();
    }
    parts.push(part.value);
  }
  const body = new Uint8Array(length);
  let end = 0;
  for (const part of parts) {
    body.set(part, end);
    end += part.length;
  }
  return body;
}

/**
 * What stands under a key. The library keeps its leases under the same, with a status: an event that failed is anybody's
 * again, and one that is being handled is no duplicate yet. Anything else is a mark, whoever has written it.
 */
function recorded(text) {
  if (text === null) return { status: "failed" };
  let record;
  try {
    record = JSON.parse(text);
  } catch {
    // Of another program.
  }
  const known = record?.status === "failed" || record?.status === "processing";
  return { status: known ? record.status : "processed", receivedAt: record?.receivedAt, digest: record?.digest };
}

/** What other programs write there says nothing of bodies. */
function isDigest(text) {
  return typeof text === "string" && /^[0-9a-f]{64}$/.test(text);
}

/** Nobody waits for ever for a store that hangs. */
function within(time, promise) {
  let timer;
  const late = new Promise((_, refuse) => {
    timer = setTimeout(() => refuse(new Error(`no answer within ${time} ms`)), time);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function read(body) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new Refused(400, "the body is no JSON");
  }
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function answer(status, content, headers = {}) {
  return Response.json(content, { status, headers });
}
