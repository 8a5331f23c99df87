// Prints the name of the installed SDK, and its methods: "METHOD /path resource.method".

import { Svix } from "svix";
import about from "svix/package.json" with { type: "json" };

const REQUEST = /new SvixRequest\("(\w+)", "([^"]+)"/;

function walk(thing, prefix) {
  const parts = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(thing));
  for (const [name, { get, value }] of Object.entries(parts)) {
    if (get) walk(thing[name], `${prefix}${name}.`);
    const request = name !== "constructor" && REQUEST.exec(value);
    if (request) console.log(request[1], request[2], prefix + name);
  }
}

console.log(`JavaScript ${about.version}`);
walk(new Svix("token"), "");
