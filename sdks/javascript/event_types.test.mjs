import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene, client, hook, pages, refused, unique } from "./stage.mjs";

const schemas = { 1: { type: "object", properties: { invoice: { type: "integer" } }, required: ["invoice"] } };

test("event type: what was created is read back, changed and archived", async () => {
  const { eventType } = client();
  const name = unique("invoice");
  const made = await eventType.create({ name, description: "Paid", schemas, groupName: "billing" });
  assert.deepEqual([made.name, made.description, made.schemas, made.groupName], [name, "Paid", schemas, "billing"]);
  assert.deepEqual(await eventType.get(name), made);
  const patched = await eventType.patch(name, { description: "Settled" });
  assert.deepEqual([patched.description, patched.schemas], ["Settled", schemas]);
  const replaced = await eventType.upsert(name, { description: "Replaced" });
  assert.deepEqual([replaced.description, replaced.schemas ?? null], ["Replaced", null]);
  const names = async (options) =>
    (await pages((iterator) => eventType.list({ limit: 250, iterator, ...options }))).flatMap((page) => page.data.map((one) => one.name));
  assert.ok((await names()).includes(name));
  await eventType.delete(name);
  assert.ok((await eventType.get(name)).archived);
  assert.ok(!(await names()).includes(name));
  assert.ok((await names({ includeArchived: true })).includes(name));
  await eventType.delete(name, { expunge: true });
  await refused(eventType.get(name), 404, "not_found");
});

test("event type: an endpoint gets what it is subscribed to", async () => {
  const scene = await Scene.open("Subscriptions");
  const [wanted, other] = [await scene.eventType(), await scene.eventType()];
  const there = hook();
  await scene.endpoint(there, { eventTypes: [wanted] });
  await scene.send({ eventType: other });
  await scene.send({ eventType: wanted, payload: { wanted: true } });
  assert.deepEqual((await there.next()).json(), { wanted: true });
  await there.staysSilent();
});
