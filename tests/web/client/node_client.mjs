/**
 * Runs JavaScript of a test with the client. Each line on standard input is { id, js, args }: the
 * body of an async function of `client` (the module), `its` (an object that lasts for the whole
 * process) and `args`. Each line on standard output is { id, result } or { id, error }.
 */

import { createInterface } from "node:readline";

if (process.argv.includes("plain")) {
  Object.defineProperty(globalThis.crypto, "subtle", { value: undefined });
}
const client = await import("../../../dealer/web/client.js");

const AsyncFunction = (async () => {}).constructor;
const its = {};

const mapsAsObjects = (_, value) => (value instanceof Map ? Object.fromEntries(value) : value);

function write(line) {
  process.stdout.write(`${JSON.stringify(line, mapsAsObjects)}\n`);
}

async function run({ id, js, args }) {
  try {
    const result = await new AsyncFunction("client", "its", "args", js)(client, its, args);
    write({ id, result: result ?? null });
  } catch (error) {
    const { name, message, reason, code, check, evidence } = error;
    write({ id, error: { name, message, reason, code, check, evidence } });
  }
}

for await (const line of createInterface({ input: process.stdin })) run(JSON.parse(line));
process.exit(0);
