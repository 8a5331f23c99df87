import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { Webhook } from "svix";
import { Scene, hook, refused, unique } from "./stage.mjs";

const SOURCE = { name: "From them", type: "github", config: { secret: "a secret" } };

test("ingest: a source is made, read back, changed and deleted", async () => {
  const { svix } = await Scene.open("Sources");
  const uid = unique("door");
  const made = await svix.ingest.source.create({ ...SOURCE, uid, metadata: { a: "1" } });
  assert.deepEqual([made.uid, made.name, made.type, made.metadata], [uid, "From them", "github", { a: "1" }]);
  assert.ok(!JSON.stringify(made).includes("a secret"));
  assert.deepEqual(await svix.ingest.source.get(uid), made);
  const changed = await svix.ingest.source.upsert(made.id, { ...SOURCE, name: "From others" });
  assert.deepEqual([changed.id, changed.name, changed.ingestUrl], [made.id, "From others", made.ingestUrl]);
  const rotated = await svix.ingest.source.rotateToken(made.id);
  assert.notEqual(rotated.ingestUrl, made.ingestUrl);
  await svix.ingest.source.delete(made.id);
  await refused(svix.ingest.source.get(made.id), 404);
});

test("ingest: what a sender signs is forwarded once", async () => {
  const { svix } = await Scene.open("Doors");
  const there = hook();
  const source = await svix.ingest.source.create(SOURCE);
  const endpoint = await svix.ingest.endpoint.create(source.id, { url: there.url });
  assert.deepEqual(await svix.ingest.endpoint.get(source.id, endpoint.id), endpoint);
  const body = '{"ref": "refs/heads/main"}';
  const headers = {
    "x-github-event": "push",
    "x-github-delivery": unique("delivery"),
    "x-hub-signature-256": `sha256=${createHmac("sha256", "a secret").update(body).digest("hex")}`,
  };
  const send = async () => (await fetch(source.ingestUrl, { method: "POST", headers, body })).json();
  assert.deepEqual([await send(), await send()], [{ received: true }, { received: true, duplicate: true }]);
  const came = await there.next();
  assert.equal(String(came.body), body);
  assert.equal(came.headers["x-github-event"], "push");
  const { key } = await svix.ingest.endpoint.getSecret(source.id, endpoint.id);
  new Webhook(key).verify(came.body, came.headers);
  await svix.ingest.source.delete(source.id);
});
