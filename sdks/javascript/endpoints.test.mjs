import assert from "node:assert/strict";
import { test } from "node:test";
import { Webhook, WebhookVerificationError } from "svix";
import { Scene, backwards, eventually, hook, lowercased, minutesAgo, pages, refused, sorted, unique } from "./stage.mjs";

test("endpoint: what was created is read back", async () => {
  const scene = await Scene.open("Endpoints");
  const [uid, kind] = [unique("hook"), await scene.eventType()];
  const given = { uid, description: "Theirs", throttleRate: 20, disabled: true, channels: ["project_1"] };
  const made = await scene.endpoint(undefined, { ...given, eventTypes: [kind], metadata: { team: "a" } });
  assert.match(made.id, /^ep_[0-9A-Za-z]{27}$/);
  for (const [name, value] of Object.entries(given)) assert.deepEqual(made[name], value, name);
  assert.deepEqual([made.eventTypes, made.metadata], [[kind], { team: "a" }]);
  for (const key of [made.id, uid]) assert.deepEqual(await scene.svix.endpoint.get(scene.app, key), made);
});

test("endpoint: an update replaces every field, or creates", async () => {
  const scene = await Scene.open("Updates");
  const uid = unique("hook");
  const made = await scene.svix.endpoint.upsert(scene.app, uid, { url: "https://example.com/", uid, channels: ["a"] });
  const secret = await scene.secret(made);
  const changed = await scene.svix.endpoint.upsert(scene.app, uid, { url: "https://example.com/new" });
  assert.deepEqual([changed.id, changed.url], [made.id, "https://example.com/new"]);
  // The name in the path stays its name, or the same request would make another one the next time.
  assert.deepEqual([changed.channels ?? null, changed.uid], [null, uid]);
  assert.equal(await scene.secret(changed), secret);
});

test("endpoint: a patch changes only what is given", async () => {
  const scene = await Scene.open("Patches");
  const made = await scene.endpoint(undefined, { description: "Old", channels: ["a"], throttleRate: 5 });
  const changed = await scene.svix.endpoint.patch(scene.app, made.id, { description: "New" });
  assert.deepEqual([changed.description, changed.channels, changed.throttleRate], ["New", ["a"], 5]);
  const bare = await scene.svix.endpoint.patch(scene.app, made.id, { channels: null, throttleRate: null });
  assert.deepEqual([bare.channels ?? null, bare.throttleRate ?? null], [null, null]);
});

test("endpoint: a deleted one gets nothing more", async () => {
  const scene = await Scene.open("Deletions");
  const there = hook();
  const made = await scene.endpoint(there);
  await scene.svix.endpoint.delete(scene.app, made.id);
  await scene.send();
  await there.staysSilent();
});

test("endpoint: pages lead there and back", async () => {
  const scene = await Scene.open("Pages");
  const made = sorted(await Promise.all([1, 2, 3, 4, 5].map(() => scene.endpoint())));
  const ask = (iterator) => scene.svix.endpoint.list(scene.app, { limit: 2, order: "ascending", iterator });
  const there = await pages(ask);
  assert.deepEqual(there.map((page) => page.data.map((endpoint) => endpoint.id)), [made.slice(0, 2), made.slice(2, 4), made.slice(4)]);
  const back = await backwards(ask, there.at(-1));
  assert.deepEqual(back.map((page) => page.data.map((endpoint) => endpoint.id)), [made.slice(2, 4), made.slice(0, 2)]);
});

test("headers: they are set, shown, sent, changed and deleted", async () => {
  const scene = await Scene.open("Headers");
  const there = hook();
  const { id } = await scene.endpoint(there);
  await scene.svix.endpoint.setHeaders(scene.app, id, { headers: { "X-Team": "a", "X-Old": "1", Authorization: "Basic c2VjcmV0" } });
  await scene.svix.endpoint.patchHeaders(scene.app, id, { headers: { "X-Team": "b" }, deleteHeaders: ["X-Old"] });
  const shown = await scene.svix.endpoint.getHeaders(scene.app, id);
  assert.deepEqual(lowercased(shown.headers), { "x-team": "b" });
  assert.deepEqual(shown.sensitive.map((name) => name.toLowerCase()), ["authorization"]);
  await scene.send();
  const { headers } = await there.next();
  assert.deepEqual([headers["x-team"], headers.authorization, headers["x-old"]], ["b", "Basic c2VjcmV0", undefined]);
});

test("secret: during the grace period old and new key both verify", async () => {
  const scene = await Scene.open("Rotation");
  const there = hook();
  const endpoint = await scene.endpoint(there);
  const old = await scene.secret(endpoint);
  await scene.svix.endpoint.rotateSecret(scene.app, endpoint.id, { gracePeriodSeconds: 3600 });
  const fresh = await scene.secret(endpoint);
  assert.notEqual(fresh, old);
  await scene.send();
  const came = await there.next();
  for (const secret of [old, fresh]) new Webhook(secret).verify(came.body, came.headers);
});

test("secret: without a grace period only the new key verifies", async () => {
  const scene = await Scene.open("Hard rotation");
  const there = hook();
  const endpoint = await scene.endpoint(there);
  const old = await scene.secret(endpoint);
  const key = `whsec_${Buffer.from("another key of exactly 32 bytes!").toString("base64")}`;
  await scene.svix.endpoint.rotateSecret(scene.app, endpoint.id, { key, gracePeriodSeconds: 0 });
  await scene.send();
  const came = await there.next();
  new Webhook(key).verify(came.body, came.headers);
  assert.throws(() => new Webhook(old).verify(came.body, came.headers), WebhookVerificationError);
});

test("endpoint: statistics count attempts", async () => {
  const scene = await Scene.open("Statistics");
  const [works, fails] = [await scene.endpoint(hook()), await scene.quickEndpoint(hook(400))];
  const message = await scene.send();
  await Promise.all([scene.attempt(message, 0), scene.attempt(message, 2)]);
  const counted = async (endpoint, success, fail) => {
    const stats = await scene.svix.endpoint.getStats(scene.app, endpoint.id, { since: minutesAgo(60) });
    return stats.success === success && stats.fail === fail;
  };
  await eventually(() => counted(works, 1, 0), "one success in the statistics");
  await eventually(() => counted(fails, 0, 1), "one failure in the statistics");
});

test("endpoint: an example is sent to that endpoint only", async () => {
  const scene = await Scene.open("Examples");
  const eventType = await scene.eventType({ schemas: { 1: { type: "object", examples: [{ invoice: 7 }] } } });
  const [here, elsewhere] = [hook(), hook()];
  const endpoint = await scene.endpoint(here);
  await scene.endpoint(elsewhere);
  await scene.svix.endpoint.sendExample(scene.app, endpoint.id, { eventType });
  assert.deepEqual((await here.next()).json(), { invoice: 7 });
  await elsewhere.staysSilent();
});

test("endpoint: a filter on an unknown event type is refused", async () => {
  const scene = await Scene.open("Unknown types");
  await refused(scene.endpoint(undefined, { eventTypes: [unique("nobody-made-this")] }), 422);
});
