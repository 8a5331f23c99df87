import assert from "node:assert/strict";
import { test } from "node:test";
import { BackgroundTaskStatus, BackgroundTaskType, MessageStatus, StatusCodeClass } from "svix";
import { Scene, eventually, hook, minutesAgo } from "./stage.mjs";

/** A message that one endpoint took and another one refused. */
async function sent(scene, more) {
  scene.good ??= hook();
  scene.bad ??= hook(400);
  scene.works ??= await scene.endpoint(scene.good);
  scene.fails ??= await scene.quickEndpoint(scene.bad);
  const message = await scene.send(more);
  const [success, failure] = await Promise.all([scene.attempt(message, 0), scene.attempt(message, 2)]);
  return { message, success, failure };
}

test("attempt: it says what happened", async () => {
  const scene = await Scene.open("Attempts");
  const { message, success, failure } = await sent(scene);
  assert.deepEqual([success.msgId, success.endpointId, success.responseStatusCode], [message.id, scene.works.id, 204]);
  assert.deepEqual([failure.endpointId, failure.responseStatusCode, failure.url], [scene.fails.id, 400, scene.bad.url]);
  const read = await scene.svix.messageAttempt.get(scene.app, message.id, failure.id);
  assert.deepEqual([read.id, read.response], [failure.id, '{"seen": true}']);
  await scene.svix.messageAttempt.expungeContent(scene.app, message.id, failure.id);
  assert.equal((await scene.svix.messageAttempt.get(scene.app, message.id, failure.id)).response, "EXPUNGED");
});

test("attempt: lists can be filtered", async () => {
  const scene = await Scene.open("Filters");
  const first = await sent(scene, { channels: ["one"], tags: ["red"] });
  const second = await sent(scene, { eventType: "invoice.sent", channels: ["two"] });
  const [older, newer] = [first.message.id, second.message.id];
  for (const [options, expected] of [
    [{}, [newer, older]],
    [{ status: MessageStatus.Fail }, [newer, older]],
    [{ status: MessageStatus.Success }, []],
    [{ statusCodeClass: StatusCodeClass.Code4xx }, [newer, older]],
    [{ eventTypes: ["invoice.paid"] }, [older]],
    [{ channel: "two" }, [newer]],
    [{ tag: "red" }, [older]],
    [{ after: minutesAgo(60) }, [newer, older]],
    [{ before: minutesAgo(60) }, []],
    [{ limit: 1 }, [newer]],
  ]) {
    const found = await scene.svix.messageAttempt.listByEndpoint(scene.app, scene.fails.id, options);
    assert.deepEqual(found.data.map((attempt) => attempt.msgId), expected, JSON.stringify(options));
  }
  for (const [options, expected] of [
    [{ status: MessageStatus.Success }, [first.success.id]],
    [{ endpointId: scene.fails.id }, [first.failure.id]],
  ]) {
    const found = await scene.svix.messageAttempt.listByMsg(scene.app, older, options);
    assert.deepEqual(found.data.map((attempt) => attempt.id), expected, JSON.stringify(options));
  }
  const withMessage = await scene.svix.messageAttempt.listByEndpoint(scene.app, scene.works.id, { withMsg: true });
  assert.equal(withMessage.data[0].msg.id, newer);
});

test("attempt: an endpoint's messages and a message's destinations are listed with their state", async () => {
  const scene = await Scene.open("States");
  const { message } = await sent(scene);
  for (const [endpoint, status] of [[scene.works, MessageStatus.Success], [scene.fails, MessageStatus.Fail]]) {
    const found = await scene.svix.messageAttempt.listAttemptedMessages(scene.app, endpoint.id);
    assert.deepEqual(found.data.map((one) => [one.id, one.status]), [[message.id, status]]);
  }
  const found = await scene.svix.messageAttempt.listAttemptedDestinations(scene.app, message.id);
  const states = Object.fromEntries(found.data.map((one) => [one.id, one.status]));
  assert.deepEqual(states, { [scene.works.id]: MessageStatus.Success, [scene.fails.id]: MessageStatus.Fail });
});

test("attempt: a message is sent again by hand", async () => {
  const scene = await Scene.open("Resend");
  const { message } = await sent(scene);
  const first = await scene.bad.next();
  scene.bad.answers = [204];
  await scene.svix.messageAttempt.resend(scene.app, message.id, scene.fails.id);
  assert.equal((await scene.bad.next()).body, first.body);
  const byHand = async () => {
    const found = await scene.svix.messageAttempt.listByEndpoint(scene.app, scene.fails.id);
    return found.data.find((attempt) => attempt.triggerType === 1);
  };
  assert.equal((await eventually(byHand, "an attempt by hand")).status, MessageStatus.Success);
});

test("recovery: what has failed is sent again, as a task that ends", async () => {
  const scene = await Scene.open("Recovery");
  const { message } = await sent(scene);
  await scene.bad.next();
  scene.bad.answers = [204];
  const task = await scene.svix.endpoint.recover(scene.app, scene.fails.id, { since: minutesAgo(1) });
  assert.equal(task.task, BackgroundTaskType.EndpointRecover);
  assert.deepEqual((await scene.bad.next()).json(), { invoice: 42 });
  const ended = async () => (await scene.svix.backgroundTask.get(task.id)).status === BackgroundTaskStatus.Finished;
  await eventually(ended, `the end of ${task.id}`);
  const listed = await scene.svix.backgroundTask.list({ task: BackgroundTaskType.EndpointRecover, limit: 250 });
  assert.ok(listed.data.some((one) => one.id === task.id));
  const recovered = async () => {
    const found = await scene.svix.messageAttempt.listAttemptedDestinations(scene.app, message.id);
    return found.data.every((one) => one.status === MessageStatus.Success);
  };
  await eventually(recovered, "the recovered delivery");
});

test("recovery: a new endpoint gets what it has missed", async () => {
  const scene = await Scene.open("Missing");
  await scene.send({ payload: { missed: true } });
  const there = hook();
  const endpoint = await scene.endpoint(there);
  await scene.svix.endpoint.replayMissing(scene.app, endpoint.id, { since: minutesAgo(1) });
  assert.deepEqual((await there.next()).json(), { missed: true });
});
