// What every test here works with: the SDK as a client, and a receiver of webhooks.
//
// `ALDABA_URL` and `ALDABA_TOKEN` say which server, and as whom.

import { createServer } from "node:http";
import { after } from "node:test";
import { inspect } from "node:util";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import assert from "node:assert/strict";
import { ApiException, Svix } from "svix";

const URL = process.env.ALDABA_URL;
const TOKEN = process.env.ALDABA_TOKEN;

// An answer that no test expected is shown whole.
inspect.defaultOptions.depth = 6;

/** How long anything may take that the server does by itself, in milliseconds. */
const WAIT_TIMEOUT = 15_000;

/** No retries: a 5xx must fail a test, not be hidden by the next try. */
export const client = (token = TOKEN) => new Svix(token, { serverUrl: URL, retryScheduleInMs: [] });

export const unique = (prefix) => `${prefix}-${randomUUID().slice(0, 13)}`;

/** A request without the SDK, for what only Aldaba has. */
export async function aldaba(method, path, body) {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const answer = await fetch(`${URL}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.json().catch(() => undefined);
}

/** What `look` finds, as soon as it finds something. */
export async function eventually(look, what) {
  for (const until = Date.now() + WAIT_TIMEOUT; Date.now() < until; await sleep(20)) {
    const found = await look();
    if (found) return found;
  }
  assert.fail(`never seen: ${what}`);
}

/** The error that the server must answer with. */
export async function refused(promise, status, code) {
  const error = await promise.then(() => assert.fail(`not refused; ${status} was expected`), (error) => error);
  assert.ok(error instanceof ApiException, String(error));
  assert.equal(error.code, status, JSON.stringify(error.body));
  if (code) assert.equal(error.body.code, code);
  return error.body;
}

/** A path of the receiver. It answers with each of its answers once, then always with the last one. */
class Hook {
  constructor(url, answers) {
    this.url = url;
    this.answers = answers;
    this.requests = [];
  }

  async next() {
    await eventually(() => this.requests.length > 0, `a webhook at ${this.url}`);
    return this.requests.shift();
  }

  async staysSilent(milliseconds = 500) {
    await sleep(milliseconds);
    assert.deepEqual(this.requests.map((one) => one.body), [], "a webhook came that should not");
  }

  answer(request) {
    this.requests.push(request);
    return this.answers.length > 1 ? this.answers.shift() : this.answers[0];
  }
}

const hooks = new Map();
const server = createServer(async (request, response) => {
  const parts = await Array.fromAsync(request);
  const body = Buffer.concat(parts).toString();
  const hook = hooks.get(request.url);
  const status = hook?.answer({ headers: request.headers, body, json: () => JSON.parse(body) }) ?? 404;
  response.writeHead(status).end(status === 204 ? "" : '{"seen": true}');
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
after(() => {
  server.closeAllConnections();
  server.close();
});

export function hook(...answers) {
  const path = `/${randomUUID()}`;
  const made = new Hook(`http://127.0.0.1:${server.address().port}${path}`, answers.length ? answers : [204]);
  hooks.set(path, made);
  return made;
}

/** An application of one test, and what it does there. */
export class Scene {
  static async open(name) {
    const scene = new Scene();
    scene.svix = client();
    scene.app = (await scene.svix.application.create({ name })).id;
    return scene;
  }

  endpoint(hook, more = {}) {
    return this.svix.endpoint.create(this.app, { url: hook?.url ?? "https://example.com/", ...more });
  }

  /** Under this policy a 4xx ends a delivery at once. */
  async quickEndpoint(hook) {
    const endpoint = await this.endpoint(hook);
    await aldaba("PATCH", `/app/${this.app}/endpoint/${endpoint.id}`, { policy: "quick" });
    return endpoint;
  }

  async secret(endpoint) {
    return (await this.svix.endpoint.getSecret(this.app, endpoint.id)).key;
  }

  send(more = {}) {
    return this.svix.message.create(this.app, { eventType: "invoice.paid", payload: { invoice: 42 }, ...more });
  }

  async eventType(more = {}) {
    const name = unique("invoice");
    await this.svix.eventType.create({ name, description: "An invoice", ...more });
    return name;
  }

  /** Waits until an attempt of the message has ended so, and returns it. */
  attempt(message, status = 0) {
    const look = async () => {
      const found = await this.svix.messageAttempt.listByMsg(this.app, message.id);
      return found.data.find((attempt) => attempt.status === status);
    };
    return eventually(look, `an attempt of ${message.id} with status ${status}`);
  }
}

/** Ids in the order of lists: what is made within 4 ms is in no order of its own. */
export const sorted = (things) => things.map((thing) => thing.id).toSorted();

/** Every page, first to last. */
export async function pages(ask) {
  const found = [await ask(undefined)];
  while (!found.at(-1).done) found.push(await ask(found.at(-1).iterator));
  return found;
}

/** The pages before `last`, nearest first. */
export async function backwards(ask, last) {
  const found = [];
  let page = last;
  do {
    page = await ask(page.prevIterator);
    if (page.data.length) found.push(page);
  } while (!page.done && page.prevIterator);
  return found;
}

export const lowercased = (headers) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

export const minutesAgo = (minutes) => new Date(Date.now() - minutes * 60_000);
