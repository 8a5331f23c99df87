// Whether a request comes from the sender that has the secret, and what the event is called. It uses what every platform has:
// the Web Crypto API, and no package.
//
// Nothing else of a request is looked at before this. The body is taken as the bytes that came: JSON that was parsed and
// written again has another signature.

/** How far a signature's time may lie from now, in seconds. */
const TOLERANCE = 5 * 60;

/** How many signatures of one request are checked. While a secret is being replaced there are two. */
const MAX_SIGNATURES = 10;

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

/**
 * What checks a request and returns the id of its event: Standard Webhooks, or the profile `branded` where there is a
 * brand. Throws where the secret is none.
 */
export function verifier(secret, brand) {
  const key = keyOf(secret);
  const read = brand ? branded(brand) : standard;
  return async (headers, body) => {
    const { id, idHeader, time, signed, signatures } = read(headers);
    const fresh = /^\d{1,12}$/.test(time) && Math.abs(Date.now() / 1000 - Number(time)) <= TOLERANCE;
    if (!fresh || !(await isSigned(key, signed, body, signatures))) {
      throw new Refused(401, "the signature is missing, wrong, or too old");
    }
    if (!id) throw new Refused(400, `the header ${idHeader} is missing`);
    if (!ID.test(id)) throw new Refused(400, "the event's id must be 1 to 255 visible ASCII characters");
    return id;
  };
}

/** Standard Webhooks (Aldaba's default): `v1,<base64>` over `<id>.<seconds>.<body>`. */
function standard(headers) {
  const [id, time] = [headers.get("webhook-id") ?? "", headers.get("webhook-timestamp") ?? ""];
  const given = headers.get("webhook-signature") ?? "";
  // Without an id there is nothing that could have been signed.
  if (!id && given) throw new Refused(400, "the header webhook-id is missing");
  const texts = given.split(" ").filter((text) => text.startsWith("v1,"));
  const signatures = texts.map((text) => bytesOf(text.slice(3)));
  return { id, idHeader: "webhook-id", time, signed: `${id}.${time}.`, signatures };
}

/**
 * Aldaba's profile `branded`: `t=<seconds>,v1=<hex>` over `<seconds>.<body>`. The id is not signed: whoever has seen a
 * request can send it again under another id for five minutes. Where you can choose, choose Standard Webhooks.
 */
function branded(brand) {
  return (headers) => {
    const parts = (headers.get(`${brand}-signature`) ?? "").split(",").map((part) => part.split("=", 2));
    const time = parts.find(([name]) => name === "t")?.[1] ?? "";
    const texts = parts.filter(([name, value]) => name === "v1" && /^[0-9a-f]{64}$/.test(value ?? ""));
    const signatures = texts.map(([, value]) => Uint8Array.from(value.match(/../g), (pair) => parseInt(pair, 16)));
    const idHeader = `${brand}-event-id`;
    return { id: headers.get(idHeader) ?? "", idHeader, time, signed: `${time}.`, signatures };
  };
}

/** Whether one of the signatures is that of the key. `verify` compares in constant time. */
async function isSigned(bytes, head, body, signatures) {
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes, hmac, false, ["verify"]);
  const start = new TextEncoder().encode(head);
  const content = new Uint8Array(start.length + body.length);
  content.set(start);
  content.set(body, start.length);
  const given = signatures.filter((signature) => signature !== null).slice(0, MAX_SIGNATURES);
  const checks = given.map((signature) => crypto.subtle.verify(hmac, key, signature, content));
  return (await Promise.all(checks)).includes(true);
}

/** An empty key would let anybody sign. */
function keyOf(secret) {
  const bytes = bytesOf(secret.replace(/^whsec_/, ""));
  if (!bytes?.length) throw new Error("WEBHOOK_SECRET must be whsec_ and base64, as Aldaba shows it");
  return bytes;
}

/** What base64 stands for; null where it is none. */
function bytesOf(base64) {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return null;
  }
}
