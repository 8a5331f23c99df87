import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene, backwards, client, pages, sorted, unique } from "./stage.mjs";

test("application: what was created is read back", async () => {
  const svix = client();
  const uid = unique("customer");
  const made = await svix.application.create({ name: "Customer", uid, metadata: { plan: "gold" } });
  assert.match(made.id, /^app_[0-9A-Za-z]{27}$/);
  assert.deepEqual([made.name, made.uid, made.metadata], ["Customer", uid, { plan: "gold" }]);
  assert.ok(made.createdAt instanceof Date && !Number.isNaN(made.createdAt.valueOf()));
  for (const key of [made.id, uid]) assert.deepEqual(await svix.application.get(key), made);
});

test("application: get-or-create makes one only", async () => {
  const svix = client();
  const uid = unique("customer");
  const first = await svix.application.getOrCreate({ name: "First", uid });
  const second = await svix.application.getOrCreate({ name: "Second", uid });
  assert.deepEqual([second.id, second.name], [first.id, "First"]);
});

test("application: an update replaces every field, or creates", async () => {
  const svix = client();
  const uid = unique("customer");
  const made = await svix.application.upsert(uid, { name: "Old", uid, metadata: { a: "1" } });
  const changed = await svix.application.upsert(uid, { name: "New", uid });
  assert.deepEqual([changed.id, changed.name, changed.metadata], [made.id, "New", {}]);
});

test("application: a patch changes only what is given", async () => {
  const svix = client();
  const made = await svix.application.create({ name: "Old", uid: unique("customer"), metadata: { a: "1" } });
  const named = await svix.application.patch(made.id, { name: "New" });
  assert.deepEqual([named.name, named.uid, named.metadata], ["New", made.uid, { a: "1" }]);
  const bare = await svix.application.patch(made.id, { uid: null });
  assert.deepEqual([bare.name, bare.uid ?? null], ["New", null]);
});

test("application: a deleted one is gone and its uid is free", async () => {
  const svix = client();
  const uid = unique("customer");
  const made = await svix.application.create({ name: "Short-lived", uid });
  await svix.application.delete(made.id);
  assert.notEqual((await svix.application.create({ name: "Again", uid })).id, made.id);
});

test("application: pages lead there and back", async () => {
  const { svix } = await Scene.open("Pages");
  const made = sorted(await Promise.all([1, 2, 3, 4, 5].map((n) => svix.application.create({ name: `Page ${n}` }))));
  const ask = (iterator) => svix.application.list({ limit: 3, iterator });
  const there = await pages(ask);
  const listed = there.flatMap((page) => page.data.map((app) => app.id));
  assert.deepEqual(listed, listed.toSorted());
  assert.deepEqual(listed.filter((id) => made.includes(id)), made);
  const back = [there.at(-1), ...(await backwards(ask, there.at(-1)))].reverse();
  assert.deepEqual(back.flatMap((page) => page.data.map((app) => app.id)), listed);
  const newest = await svix.application.list({ limit: 250, order: "descending" });
  assert.deepEqual(newest.data.map((app) => app.id), listed.toReversed().slice(0, 250));
});
