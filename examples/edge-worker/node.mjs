// The worker on Node.js, as a platform runs it: a request of the web standard and an object of bindings go in, a response
// comes out, and what was left to `waitUntil` goes on beside the answer. Its key-value store is on files.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { FileKV } from "../hono-receiver/kv.mjs";
import { verifier } from "./signature.mjs";
import worker from "./worker.mjs";

const { WEBHOOK_SECRET, WEBHOOK_BRAND, BACKEND_URL, KV_FOLDER = "kv", PORT = "9000" } = process.env;
if (!WEBHOOK_SECRET || !BACKEND_URL) throw new Error("set WEBHOOK_SECRET and BACKEND_URL");
// A secret that is none is said now, and not with the first event.
verifier(WEBHOOK_SECRET, WEBHOOK_BRAND);

const env = { WEBHOOK_SECRET, WEBHOOK_BRAND, BACKEND_URL, WEBHOOK_KV: new FileKV(KV_FOLDER) };
const ctx = {
  waitUntil: (promise) => void promise.catch((error) => console.error("what was left for later failed:", error)),
  passThroughOnException: () => {},
};

const server = createServer(async (incoming, outgoing) => {
  const hasBody = incoming.method !== "GET" && incoming.method !== "HEAD";
  const request = new Request(new URL(incoming.url, `http://127.0.0.1:${PORT}`), {
    method: incoming.method,
    headers: Object.entries(incoming.headersDistinct).flatMap(([name, values]) => values.map((value) => [name, value])),
    body: hasBody ? Readable.toWeb(incoming) : null,
    duplex: "half",
  });
  const response = await worker.fetch(request, env, ctx);
  const content = Buffer.from(await response.arrayBuffer());
  // A body that was not read to its end is not the next request.
  const rest = incoming.complete ? {} : { Connection: "close" };
  outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), ...rest });
  outgoing.end(content);
});

server.listen(Number(PORT), "127.0.0.1", () => console.log(`receiving on http://127.0.0.1:${PORT}/webhooks`));
process.once("SIGTERM", () => server.close());
