/**
 * The JavaScript client, played by a test: each line on standard input is { id, js, args }, an
 * async function's body over `client` (the module), `its` (what earlier lines left there) and
 * `args`; each line on standard output is { id, result } or { id, error }.
 */

import { createInterface } from "node:readline";

if (process.argv.includes("plain")) {
  Object.defineProperty(globalThis.crypto, "subtle", { value: undefined });
}
const client = await import("../../../dealer/web/client.js");

const AsyncFunction = (async () => {}).constructor;
const its = {};

const plain = (_, value) => (value instanceof Map ? Object.fromEntries(value) : value);

function write(line) {
  process.stdout.write(`${JSON.stringify(line, plain)}\n`);
}

async function play({ id, js, args }) {
  try {
    const result = await new AsyncFunction("client", "its", "args", js)(client, its, args);
    write({ id, result: result ?? null });
  } catch (error) {
    const { name, message, reason, code, check, evidence } = error;
    write({ id, error: { name, message, reason, code, check, evidence } });
  }
}

for await (const line of createInterface({ input: process.stdin })) play(JSON.parse(line));
process.exit(0);
