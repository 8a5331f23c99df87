import assert from "node:assert/strict";
import { test } from "node:test";
import { Webhook } from "svix";
import { Scene, client, eventually, hook, lowercased, refused, unique } from "./stage.mjs";

test("errors: 401, 404, 409 and 422 come as the SDK's exceptions", async () => {
  const scene = await Scene.open("Errors");
  const { svix } = scene;
  await refused(client("nobody").application.list(), 401, "authentication_failed");
  await refused(svix.application.get("app_nobody"), 404, "not_found");
  await refused(svix.endpoint.get(scene.app, "ep_nobody"), 404, "not_found");
  await refused(svix.message.get(scene.app, "msg_nobody"), 404, "not_found");
  const uid = unique("customer");
  await svix.application.create({ name: "First", uid });
  await refused(svix.application.create({ name: "Second", uid }), 409, "conflict");
  const { detail } = await refused(svix.endpoint.create(scene.app, { url: "nothing", throttleRate: 0 }), 422);
  assert.deepEqual(detail.map((problem) => problem.loc).toSorted(), [["body", "throttleRate"], ["body", "url"]]);
  assert.ok(detail.every((problem) => problem.msg && problem.type));
});

test("portal: a token reaches its own application only, until it logs out", async () => {
  const scene = await Scene.open("Portal");
  const { token } = await scene.svix.authentication.appPortalAccess(scene.app, {});
  const portal = client(token);
  assert.deepEqual((await portal.endpoint.list(scene.app)).data, []);
  const other = await Scene.open("Another");
  await refused(portal.endpoint.list(other.app), 404);
  await refused(portal.application.list(), 403);
  await portal.authentication.logout();
  await refused(portal.endpoint.list(scene.app), 401);
});

test("portal: all tokens of an application can be ended", async () => {
  const scene = await Scene.open("Ended");
  const { token } = await scene.svix.authentication.appPortalAccess(scene.app, {});
  await scene.svix.authentication.expireAll(scene.app, { expiry: 0 });
  await refused(client(token).endpoint.list(scene.app), 401);
});

test("operational webhooks: an endpoint for them is made, changed, told and removed", async () => {
  const scene = await Scene.open("Operations");
  const operational = scene.svix.operationalWebhook.endpoint;
  const there = hook();
  const made = await operational.create({ url: there.url, uid: unique("operations") });
  try {
    assert.deepEqual(await operational.get(made.uid), made);
    assert.ok((await operational.list()).data.some((one) => one.id === made.id));
    await operational.setHeaders(made.id, { headers: { "X-Team": "a" } });
    assert.deepEqual(lowercased((await operational.getHeaders(made.id)).headers), { "x-team": "a" });
    await operational.upsert(made.id, { url: there.url, uid: made.uid, description: "Ours" });
    await operational.rotateSecret(made.id, {});
    const { key } = await operational.getSecret(made.id);
    const endpoint = await scene.endpoint();
    const told = await eventually(async () => {
      const came = await there.next();
      new Webhook(key).verify(came.body, came.headers);
      return came.json().data.endpointId === endpoint.id && came.json();
    }, `the news of ${endpoint.id}`);
    assert.deepEqual([told.type, told.data.appId], ["endpoint.created", scene.app]);
  } finally {
    await operational.delete(made.id);
  }
});
