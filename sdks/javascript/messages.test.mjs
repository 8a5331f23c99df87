import assert from "node:assert/strict";
import { test } from "node:test";
import { Webhook, WebhookVerificationError, messageInRaw } from "svix";
import { Scene, aldaba, backwards, client, hook, minutesAgo, pages, refused, sorted, unique } from "./stage.mjs";

test("message: what was created is read back", async () => {
  const scene = await Scene.open("Messages");
  const eventId = unique("event");
  const made = await scene.send({ eventId, channels: ["project_1"], tags: ["first"] });
  assert.match(made.id, /^msg_[0-9A-Za-z]{27}$/);
  assert.deepEqual([made.eventId, made.eventType, made.channels, made.tags], [eventId, "invoice.paid", ["project_1"], ["first"]]);
  for (const key of [made.id, eventId]) {
    const read = await scene.svix.message.get(scene.app, key, { withContent: true });
    assert.deepEqual([read.id, read.payload], [made.id, { invoice: 42 }]);
  }
  await refused(scene.send({ eventId }), 409, "conflict");
});

test("message: one idempotency key is one message", async () => {
  const { svix, app } = await Scene.open("Once");
  const idempotencyKey = unique("once");
  const message = { eventType: "invoice.paid", payload: {} };
  const first = await svix.message.create(app, message, { idempotencyKey });
  const second = await svix.message.create(app, message, { idempotencyKey });
  assert.equal(first.id, second.id);
});

test("message: an application can be made along with it", async () => {
  const svix = client();
  const uid = unique("customer");
  await svix.message.create(uid, { eventType: "a.b", payload: {}, application: { name: "Made along", uid } });
  assert.equal((await svix.application.get(uid)).name, "Made along");
});

test("message: pages lead there and back", async () => {
  const scene = await Scene.open("Pages");
  const made = sorted(await Promise.all([1, 2, 3, 4, 5].map(() => scene.send()))).reverse();
  const ask = (iterator) => scene.svix.message.list(scene.app, { limit: 2, iterator });
  const there = await pages(ask);
  assert.deepEqual(there.flatMap((page) => page.data.map((message) => message.id)), made);
  const back = await backwards(ask, there.at(-1));
  assert.deepEqual(back.map((page) => page.data.map((message) => message.id)), [made.slice(2, 4), made.slice(0, 2)]);
});

test("message: lists can be filtered", async () => {
  const scene = await Scene.open("Filters");
  const paid = await scene.send({ channels: ["one"], tags: ["red"] });
  const sent = await scene.send({ eventType: "invoice.sent", channels: ["two"] });
  const both = sorted([paid, sent]).reverse();
  for (const [options, expected] of [
    [{}, both],
    [{ eventTypes: ["invoice.paid"] }, [paid.id]],
    [{ eventTypes: ["invoice.paid", "invoice.sent"] }, both],
    [{ channel: "two" }, [sent.id]],
    [{ tag: "red" }, [paid.id]],
    [{ after: minutesAgo(60) }, both],
    [{ before: minutesAgo(60) }, []],
  ]) {
    const found = await scene.svix.message.list(scene.app, options);
    assert.deepEqual(found.data.map((message) => message.id), expected, JSON.stringify(options));
  }
});

test("message: a payload can be expunged", async () => {
  const scene = await Scene.open("Expunged");
  const made = await scene.send();
  await scene.svix.message.expungeContent(scene.app, made.id);
  const read = await scene.svix.message.get(scene.app, made.id, { withContent: true });
  assert.deepEqual(read.payload, { expired: true });
});

test("message: a raw payload goes out as it is", async () => {
  const scene = await Scene.open("Raw");
  const there = hook();
  await scene.endpoint(there);
  const text = '{ "spaces":   "stay", "n": 1.0 }';
  await scene.svix.message.create(scene.app, messageInRaw("invoice.paid", text));
  assert.equal((await there.next()).body, text);
});

for (const [profile, prefix] of [["svix", "svix"], ["standard", "webhook"]]) {
  test(`delivery: the SDK verifies what it is sent with ${prefix} headers`, async () => {
    const scene = await Scene.open("Signatures");
    const there = hook();
    const endpoint = await scene.endpoint(there);
    await aldaba("PATCH", `/app/${scene.app}/endpoint/${endpoint.id}`, { profile });
    const payload = { invoice: 42, text: "ñandú 🚪" };
    const message = await scene.send({ payload });
    const came = await there.next();
    assert.equal(came.headers[`${prefix}-id`], message.id);
    const webhook = new Webhook(await scene.secret(endpoint));
    webhook.verify(came.body, came.headers);
    assert.deepEqual(came.json(), payload);
    assert.throws(() => webhook.verify(`${came.body} `, came.headers), WebhookVerificationError);
  });
}

test("delivery: an endpoint gets the channels that it listens to", async () => {
  const scene = await Scene.open("Channels");
  const there = hook();
  await scene.endpoint(there, { channels: ["one"] });
  await scene.send({ payload: { to: "two" }, channels: ["two"] });
  await scene.send({ payload: { to: "one" }, channels: ["one"] });
  assert.deepEqual((await there.next()).json(), { to: "one" });
  await there.staysSilent();
});
