// A key-value store on files with the interface of those of edge workers: `get`, and `put` with `expirationTtl`. Like
// them it knows no transaction and no "only if absent".

import { createHash, randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Stores at the edge take no shorter time, in seconds. */
const SHORTEST_TTL = 60;

export class FileKV {
  constructor(folder) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  async get(key, type = "text") {
    const entry = await readFile(this.#path(key), "utf8").then(JSON.parse, (error) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    if (!entry || (entry.expiresAt !== null && entry.expiresAt <= Date.now())) return null;
    return type === "json" ? JSON.parse(entry.value) : entry.value;
  }

  async put(key, value, { expirationTtl } = {}) {
    if (expirationTtl < SHORTEST_TTL) throw new RangeError(`expirationTtl must be at least ${SHORTEST_TTL} s`);
    const expiresAt = expirationTtl === undefined ? null : Date.now() + expirationTtl * 1000;
    // Written aside and renamed, so that nobody reads the half of it.
    const aside = join(this.folder, `${randomUUID()}.new`);
    await writeFile(aside, JSON.stringify({ key, value, expiresAt }));
    await rename(aside, this.#path(key));
  }

  /** A key may hold signs that a name of a file may not. */
  #path(key) {
    return join(this.folder, `${createHash("sha256").update(key).digest("hex")}.json`);
  }
}
