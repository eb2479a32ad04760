/**
 * The JavaScript client at one seat of each table, and its history on standard output, an operation
 * a line.
 *
 *     node player.mjs URL TABLES OPERATIONS SEED
 *
 * TABLES is JSON: [{ table, seat }]. The client connects again and repeats a command by itself;
 * an operation that it gives up has no known outcome.
 */

import { connect, memoryStore } from "../../dealer/web/client.js";

const [url, tables, operations, seed] = process.argv.slice(2);
let chance = Number(seed) >>> 0;
function random() {
  chance = (Math.imul(chance, 1664525) + 1013904223) >>> 0;
  return chance / 2 ** 32;
}

const now = () => Number(process.hrtime.bigint());
const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function attempt(place, op, method, params) {
  const { table, seat } = place;
  const line = { table, seat, client: "js", op, count: 1, call: now() };
  try {
    const { version, slots } = await place.remote.call(method, params);
    Object.assign(line, { out: { version, slots }, return: now() });
    place.held.push(...(slots ?? []));
  } catch (error) {
    if (error.name === "HouseCheated") {
      write({ cheated: true });
      return false;
    }
    const known = error.reason !== undefined && !["unavailable", "overloaded"].includes(error.reason);
    if (known) Object.assign(line, { out: { refused: error.reason }, return: now() });
  }
  write(line);
  return true;
}

async function play(place, count) {
  for (let n = 0; n < count; n += 1) {
    const discards = place.held.length > 4 && random() < 0.6;
    const goes = discards
      ? await attempt(place, "discard", "hand.discard", { cards: [place.held.pop()] })
      : await attempt(place, "draw", "deck.draw", { count: 1 });
    if (!goes) return;
  }
}

const patience = { backoff: 20, backoffMax: 200, away: 60_000, answer: 3_000 };
const house = await connect(url, { store: memoryStore(), retry: patience });
const places = [];
for (const place of JSON.parse(tables)) {
  const remote = await house.join(place.table, { name: "Judy", seat: place.seat });
  places.push({ ...place, remote, held: [] });
}
write({ ready: true });
process.stdin.once("data", async () => {
  await Promise.all(places.map((place) => play(place, Math.ceil(operations / places.length))));
  for (const { remote } of places) {
    for (const note of remote.checkpoints) write({ head: note });
  }
  process.stdout.end(() => process.exit(0));
});
