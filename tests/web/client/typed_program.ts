/** An example program: it must type-check strictly against client.d.ts. */

import { HouseCheated, Refused, connect, memoryStore, type TableEvent } from "./client.js";

const house = await connect("ws://localhost:8080/ws", { name: "Ada", store: memoryStore() });
const table = await house.join(await house.open({ deck: "52", rules: { preset: "shared" } }));
const stop = table.on("event", (event: TableEvent) => {
  if (event.type === "CardsSwapped") console.log(event.public.step);
});
try {
  await table.roundOpen();
  await table.shuffle();
  const drawn: string[] = await table.draw(2);
  await table.discard(drawn);
  await table.until((now) => now.version > 3 && now.deckCount === 50);
  for (const check of table.checks) console.log(check.name, check.state === "yes");
} catch (error) {
  if (error instanceof HouseCheated) console.log(error.evidence?.notes.length);
  else if (error instanceof Refused) console.log(error.reason.length, error.temporary);
}
stop();
await house.close();

const shop = await connect("ws://localhost:8080/ws", { key: "dk_…", retry: { away: 1000 } });
console.log((await shop.open({ ref: "match 1" })).id);

// @ts-expect-error a key is a text
await connect(null, { key: 1 });
// @ts-expect-error a count is a number
await table.draw("two");
// @ts-expect-error there is no such kind of notice
table.on("weather", () => undefined);
