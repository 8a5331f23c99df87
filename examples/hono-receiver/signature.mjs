// Whether a request comes from the sender that has the secret, and what the event is called. It uses what every platform has:
// no modules of Node.js.
//
// Nothing else of a request is looked at before this. The body is taken as the bytes that came: JSON that was parsed and
// written again has another signature.

import { Webhook } from "standardwebhooks";

/** How far a signature's time may lie from now, in seconds. The library has the same. */
const TOLERANCE = 5 * 60;

/** What an id may look like: it must fit into a key, and stand in a log. */
const ID = /^[\x21-\x7e]{1,255}$/;

/** A request that is not taken, with the status that says why. */
export class Refused extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** What checks a request: Standard Webhooks, or the profile `branded` where there is a brand. Throws where the secret is none. */
export function verifier(secret, brand) {
  return brand ? branded(secret, brand) : standard(secret);
}

/** Standard Webhooks (Aldaba's default), checked by the public library. The id is signed too. */
function standard(secret) {
  keyOf(secret);
  const webhook = new Webhook(secret);
  return async (headers, body) => {
    const id = headers.get("webhook-id");
    if (!id && headers.get("webhook-signature")) throw new Refused(400, "the header webhook-id is missing");
    try {
      // With its byte order mark, if it has one: that is signed too.
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
      webhook.verify(text, Object.fromEntries(headers), { jsonParse: false });
    } catch {
      throw new Refused(401, "the signature is missing, wrong, or too old");
    }
    return checked(id);
  };
}

/**
 * Aldaba's profile `branded`: `<Brand>-Signature: t=<seconds>,v1=<hex>` over `<seconds>.<body>`. No public library reads
 * it. The id is not signed: whoever has seen a request can send it again under another id for five minutes. Where you can
 * choose, choose Standard Webhooks.
 */
function branded(secret, brand) {
  const bytes = keyOf(secret);
  const hmac = { name: "HMAC", hash: "SHA-256" };
  return async (headers, body) => {
    const parts = (headers.get(`${brand}-signature`) ?? "").split(",").map((part) => part.split("=", 2));
    const time = parts.find(([name]) => name === "t")?.[1] ?? "";
    const fresh = /^\d{1,12}$/.test(time) && Math.abs(Date.now() / 1000 - Number(time)) <= TOLERANCE;
    const key = await crypto.subtle.importKey("raw", bytes, hmac, false, ["verify"]);
    const head = new TextEncoder().encode(`${time}.`);
    const content = new Uint8Array(head.length + body.length);
    content.set(head);
    content.set(body, head.length);
    // While a secret is being replaced there is a signature of each. `verify` compares in constant time.
    const given = parts.filter(([name, value]) => name === "v1" && /^[0-9a-f]{64}$/.test(value ?? ""));
    const checks = given.slice(0, 10).map(([, value]) => crypto.subtle.verify(hmac, key, fromHex(value), content));
    const signed = (await Promise.all(checks)).includes(true);
    if (!fresh || !signed) throw new Refused(401, "the signature is missing, wrong, or too old");
    const id = headers.get(`${brand}-event-id`);
    if (!id) throw new Refused(400, `the header ${brand}-event-id is missing`);
    return checked(id);
  };
}

/** The library takes an empty key, with which anybody could sign. */
function keyOf(secret) {
  try {
    const bytes = Uint8Array.from(atob(secret.replace(/^whsec_/, "")), (c) => c.charCodeAt(0));
    if (bytes.length > 0) return bytes;
  } catch {
    // No base64.
  }
  throw new Error("WEBHOOK_SECRET must be whsec_ and base64, as Aldaba shows it");
}

function checked(id) {
  if (!ID.test(id)) throw new Refused(400, "the event's id must be 1 to 255 visible ASCII characters");
  return id;
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16));
}
