// Sends frames through generated code that was compiled, and prints which came out as another.
//
//     node generated.mjs quicktype | modelina | openrpc FOLDER  < frames.json
//
// The frames are a list of { type, frame }; for openrpc of { method, params, names, result }.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [kind, folder] = process.argv.slice(2);
const require = createRequire(join(folder, "here.cjs"));
const through = { quicktype, modelina, openrpc }[kind]();
const faults = [];
for (const one of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    await through(one);
  } catch (error) {
    faults.push(`${one.type ?? one.method}: ${error.message ?? JSON.stringify(error)}`);
  }
}
process.stdout.write(JSON.stringify(faults));

function quicktype() {
  const { Convert } = require("./dealer.js");
  const functions = new Map();
  for (const name of Object.getOwnPropertyNames(Convert)) {
    functions.set(name.toLowerCase(), Convert[name]);
  }
  return ({ type, frame }) => {
    const name = type.toLowerCase();
    const read = functions.get(`to${name}`)(JSON.stringify(frame));
    assert.deepEqual(JSON.parse(functions.get(`${name}tojson`)(read)), frame);
  };
}

function modelina() {
  return ({ type, frame }) => {
    const read = require(`./${type}.js`)[type].unmarshal(JSON.stringify(frame));
    assert.deepEqual(JSON.parse(read.marshal()), frame);
  };
}

function openrpc() {
  const { Dealer } = require("./index.js");
  const transport = { type: "http", host: "localhost", port: 1, path: "/rpc" };
  const client = new Dealer({ transport });
  return async ({ method, params, names, result }) => {
    let sent = null;
    client.rpc.request = async (request) => {
      sent = request;
      return result;
    };
    assert.deepEqual(await client[method](...names.map((name) => params[name])), result);
    assert.deepEqual(JSON.parse(JSON.stringify(sent)), { method, params });
  };
}
