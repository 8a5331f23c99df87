// The worker on Node.js, with files for its key-value store.

import { serve } from "@hono/node-server";
import { FileKV } from "./kv.mjs";
import { verifier } from "./signature.mjs";
import app from "./worker.mjs";

const { WEBHOOK_SECRET, WEBHOOK_BRAND, BACKEND_URL, KV_FOLDER = "kv", PORT = "9000" } = process.env;
if (!WEBHOOK_SECRET || !BACKEND_URL) throw new Error("set WEBHOOK_SECRET and BACKEND_URL");
// A secret that is none is said now, and not with the first event.
verifier(WEBHOOK_SECRET, WEBHOOK_BRAND);

const bindings = { WEBHOOK_SECRET, WEBHOOK_BRAND, BACKEND_URL, WEBHOOK_KV: new FileKV(KV_FOLDER) };

const server = serve(
  { fetch: (request) => app.fetch(request, bindings), hostname: "127.0.0.1", port: Number(PORT) },
  ({ port }) => console.log(`receiving on http://127.0.0.1:${port}/webhooks`),
);
process.once("SIGTERM", () => server.close());
