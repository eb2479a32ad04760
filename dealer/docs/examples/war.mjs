// War, played by two programs: `node war.mjs Ada`, and with the id that it prints `… Bob ID`.
//
// Who wins the most cards in one pass through both hands has won. Each program reads all events in
// their order: the table may be further, and a trick on it be taken before a program looks.

import { connect } from "../../web/client.js";

const URL = "ws://localhost:8080/ws";
const RANKS = "23456789TJQKA";

const [name, tableId] = process.argv.slice(2);
const house = await connect(URL, { name });
const opened = tableId ?? (await house.open({ deck: "52", seats: 2, name: "War" }));
const table = await house.join(opened, { bot: true });
const events = table.events(); // before the first move, so that none is missed
if (!tableId) {
  console.log(table.id);
  await table.until(({ seats }) => seats.size === 2);
  await table.roundOpen();
  await table.shuffle();
  await table.deal(26);
}
await table.until(({ hand }) => hand.length >= 26, { timeout: 600_000 });
await play();
console.log("doubts:", table.doubts);
await house.close();

async function play() {
  const won = { "pile:won:1": 0, "pile:won:2": 0 };
  const owner = new Map(); // the seat of each card in the pile, by the card's slot
  let up = {}; // the card with which each seat fights
  await table.play(table.hand[0], { pile: "war" });
  for await (const { version, type, public: about } of events) {
    if (type === "CardMoved" && about.to === "pile:war") {
      owner.set(about.slot, Number(about.from.slice("hand:".length)));
    } else if (type === "CardShown") {
      up[owner.get(about.slot)] = about.card;
      if (!up[1] || !up[2]) continue;
      console.log(`${version}: ${up[1]} against ${up[2]}`);
      const lead = RANKS.indexOf(up[1][0]) - RANKS.indexOf(up[2][0]);
      up = {};
      if (lead === 0 && !table.hand.length) break;
      if (lead === 0) {
        // War: up to three cards face down, and one face up.
        const down = table.hand.slice(0, Math.min(3, table.hand.length - 1));
        if (down.length) await table.play(down, { pile: "war", face: "down" });
        await table.play(table.hand[0], { pile: "war" });
      } else if ((lead > 0 ? 1 : 2) === table.seat) {
        await table.move("war", { to: `won:${table.seat}`, all: true });
      }
    } else if (type === "CardMoved" && about.from === "pile:war") {
      won[about.to] += 1;
      owner.delete(about.slot);
      if (owner.size > 0) continue; // the whole trick is taken card by card
      if (!table.hand.length) break;
      await table.play(table.hand[0], { pile: "war" });
    }
  }
  console.log(`Cards: ${won["pile:won:1"]} to ${won["pile:won:2"]}`);
  if (table.seat === 1) await table.close();
  await table.until(({ closed }) => closed, { timeout: 60_000 });
}
