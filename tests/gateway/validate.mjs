// Reads a document from standard input and prints the faults that its standard parser finds.
//
//     node validate.mjs asyncapi | openrpc  < document.json      (NODE_PATH finds the parsers)

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(import.meta.url);
const text = readFileSync(0, "utf8");
const faults = process.argv[2] === "asyncapi" ? await asyncapi() : await openrpc();
process.stdout.write(JSON.stringify(faults));

async function asyncapi() {
  const { Parser } = require("@asyncapi/parser");
  const { document, diagnostics } = await new Parser().parse(text);
  const faults = diagnostics.map(({ severity, code, message, path }) => {
    return `${severity} ${code} at ${path.join(".")}: ${message}`;
  });
  return document ? faults : [...faults, "there is no document"];
}

async function openrpc() {
  const { parseOpenRPCDocument } = require("@open-rpc/schema-utils-js");
  try {
    await parseOpenRPCDocument(JSON.parse(text), { validate: true, dereference: true });
    return [];
  } catch (error) {
    return [error.message];
  }
}
