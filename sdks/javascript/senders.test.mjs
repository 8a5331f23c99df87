// What the libraries of senders sign is taken at the door, and nothing else.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sign } from "@octokit/webhooks-methods";
import { Webhook as Standard } from "standardwebhooks";
import Stripe from "stripe";
import { Webhook as Svix } from "svix";
import { aldaba, unique } from "./stage.mjs";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/** Past any window, in milliseconds. */
const LONG_AGO = 10 * 60 * 1000;

const seconds = (at) => Math.floor(at / 1000);

/** The headers with which each sends a body. */
const SENDERS = {
  "standard-webhooks": (id, at, body) => ({
    "webhook-id": id,
    "webhook-timestamp": `${seconds(at)}`,
    "webhook-signature": new Standard(SECRET).sign(id, new Date(at), body),
  }),
  svix: (id, at, body) => ({
    "svix-id": id,
    "svix-timestamp": `${seconds(at)}`,
    "svix-signature": new Svix(SECRET).sign(id, new Date(at), body),
  }),
  stripe: (id, at, body) => ({
    "stripe-signature": Stripe.webhooks.generateTestHeaderString({
      payload: body,
      secret: SECRET,
      timestamp: seconds(at),
    }),
  }),
  github: async (id, at, body) => ({
    "x-github-delivery": id,
    "x-github-event": "push",
    "x-hub-signature-256": await sign(SECRET, body),
  }),
};

for (const [type, headers] of Object.entries(SENDERS)) {
  test(`senders: what the library of ${type} signs is taken once, and nothing else`, async () => {
    const source = await aldaba("POST", "/ingest/source", { name: type, type, config: { secret: SECRET } });
    const send = async (body, headers) => {
      const answer = await fetch(source.ingestUrl, { method: "POST", headers, body });
      return [answer.status, await answer.json()];
    };
    const id = unique("evt");
    const body = JSON.stringify({ id, type: "invoice.paid", text: "¡Añil! 💧" });
    const signed = await headers(id, Date.now(), body);
    assert.deepEqual(await send(body, signed), [200, { received: true }]);
    assert.deepEqual(await send(body, signed), [200, { received: true, duplicate: true }]);
    assert.equal((await send(`${body} `, signed))[0], 401);
    assert.equal((await send(body, {}))[0], 401);
    const old = await headers(id, Date.now() - LONG_AGO, body);
    assert.equal((await send(body, old))[0], type === "github" ? 200 : 401, "only GitHub signs no time");
    await aldaba("DELETE", `/ingest/source/${source.id}`);
  });
}
