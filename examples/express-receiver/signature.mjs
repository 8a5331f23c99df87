// Whether a request comes from the sender that has the secret, and what the event is called.
//
// Nothing else of a request is looked at before this. The body is taken as the bytes that came: JSON that was parsed and
// written again has another signature.

import { createHmac, timingSafeEqual } from "node:crypto";
import { Webhook } from "standardwebhooks";

/** How far a signature's time may lie from now, in seconds. The library has the same. */
const TOLERANCE = 5 * 60;

/** What an id may look like: it must fit its column, and stand in a log. */
const ID = /^[\x21-\x7e]{1,255}$/;

/** A request that is not taken, with the status that says why. */
export class Refused extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Standard Webhooks (Aldaba's default), checked by the public library. The id is signed too. */
export function standard(secret) {
  const webhook = new Webhook(checkedSecret(secret));
  return (headers, body) => {
    const id = headers["webhook-id"];
    if (!id && headers["webhook-signature"]) throw new Refused(400, "the header webhook-id is missing");
    try {
      webhook.verify(body, headers, { jsonParse: false });
    } catch {
      throw new Refused(401, "the signature is missing, wrong, or too old");
    }
    return checked(id);
  };
}

/**
 * Aldaba's profile `branded`: `<Brand>-Signature: t=<seconds>,v1=<hex>` over `<seconds>.<body>`. No public library reads
 * it. The id is not signed: whoever has seen a request can send it again under another id for five minutes, and then
 * only the guards in shop.mjs hold. Where you can choose, choose Standard Webhooks.
 */
export function branded(secret, brand) {
  const key = keyOf(checkedSecret(secret));
  const prefix = brand.toLowerCase();
  return (headers, body) => {
    const parts = (headers[`${prefix}-signature`] ?? "").split(",").map((part) => part.split("=", 2));
    const time = parts.find(([name]) => name === "t")?.[1] ?? "";
    const fresh = /^\d{1,12}$/.test(time) && Math.abs(Date.now() / 1000 - Number(time)) <= TOLERANCE;
    const wanted = createHmac("sha256", key).update(`${time}.`).update(body).digest("hex");
    // While a secret is being replaced there is a signature of each.
    const signed = parts.some(([name, value]) => name === "v1" && equal(value ?? "", wanted));
    if (!fresh || !signed) throw new Refused(401, "the signature is missing, wrong, or too old");
    const id = headers[`${prefix}-event-id`];
    if (!id) throw new Refused(400, `the header ${prefix}-event-id is missing`);
    return checked(id);
  };
}

/** Neither Node.js nor the library minds an empty key, with which anybody could sign, nor what is no base64. */
function checkedSecret(secret) {
  const key = keyOf(secret);
  if (key.length === 0 || key.toString("base64").replace(/=+$/, "") !== secret.replace(/^whsec_/, "").replace(/=+$/, "")) {
    throw new Error("WEBHOOK_SECRET must be whsec_ and base64, as Aldaba shows it");
  }
  return secret;
}

function keyOf(secret) {
  return Buffer.from(secret.replace(/^whsec_/, ""), "base64");
}

function checked(id) {
  if (!ID.test(id)) throw new Refused(400, "the event's id must be 1 to 255 visible ASCII characters");
  return id;
}

/** In a time that does not tell where they differ. */
function equal(one, other) {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
