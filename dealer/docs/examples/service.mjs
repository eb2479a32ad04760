// A service in JavaScript: a table, tickets for two users, every event in a file. Node 20 or later.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";

const { HOUSE, KEY } = process.env;
const headers = { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json" };

async function call(method, params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(`${HOUSE}/rpc`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(await answer.text());
  const { result, error } = await answer.json();
  if (error) throw new Error(error.message);
  return result;
}

const rules = { join: "invite" };
const { table } = await call("table.open", { ref: "match-17", seats: 2, rules });
for (const name of ["Ada", "Bob"]) {
  const { ticket } = await call("seat.ticket", { table, name, subject: name });
  console.log(`${name}: ${HOUSE}/tables/${table}#ticket=${ticket}`);
}
appendFileSync("events.jsonl", "");
const whole = readFileSync("events.jsonl", "utf8").split("\n").slice(0, -1);
writeFileSync("events.jsonl", whole.map((line) => `${line}\n`).join("")); // without half a line
let after = whole.length ? JSON.parse(whole.at(-1)).position : "start";
for (;;) {
  const answer = await fetch(`${HOUSE}/feed?after=${after}`, { headers }).catch(() => null);
  if ([401, 403, 410].includes(answer?.status)) throw new Error(await answer.text());
  let rest = "";
  try {
    for await (const part of answer?.ok ? answer.body.pipeThrough(new TextDecoderStream()) : []) {
      const lines = (rest + part).split("\n");
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) {
        appendFileSync("events.jsonl", `${line}\n`);
        after = JSON.parse(line).position;
      }
    }
  } catch {
    // The connection was lost.
  }
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
