// Go Fish by two programs: `node go_fish.mjs Ada`, and with the id that it prints `… Bob ID`.
//
// Turns, questions and answers are notes, which are in the log as every move is. Each program reads
// all events in their order, and acts when one concerns it.

import { connect } from "../../web/client.js";

const URL = "ws://localhost:8080/ws";

const [name, tableId] = process.argv.slice(2);
const house = await connect(URL, { name });
const opened = tableId ?? (await house.open({ deck: "52", seats: 2, name: "Go Fish" }));
const table = await house.join(opened, { bot: true });
const other = 3 - table.seat;
const events = table.events(); // before the first move, so that none is missed
if (!tableId) {
  console.log(table.id);
  await table.until(({ seats }) => seats.size === 2);
  await table.roundOpen();
  await table.shuffle();
  await table.deal(7);
  await table.note("turn", "1");
}
const books = { "pile:books:1": 0, "pile:books:2": 0 }; // cards in books, by pile
for await (const { version, type, public: about } of events) {
  if (type === "CardMoved" && about.to in books) {
    books[about.to] += 1;
    if (books["pile:books:1"] + books["pile:books:2"] === 52) break;
  } else if (type === "NoteAdded") {
    if (about.seat === other) console.log(`${version}: ${about.kind} ${about.text}`);
    await react(about);
  }
}
console.log(`Books: ${books["pile:books:1"] / 4} to ${books["pile:books:2"] / 4}`);
if (table.seat === 1) await table.close();
await table.until(({ closed }) => closed, { timeout: 60_000 });
console.log("doubts:", table.doubts);
await house.close();

async function react({ seat, kind, text }) {
  if (kind === "turn" && Number(text) === table.seat) {
    await ask();
  } else if (kind === "ask" && seat === other) {
    const cards = table.hand.filter(([rank]) => rank === text);
    if (cards.length) await table.give(cards, { to: other });
    await table.note("answer", cards.length ? "here you are" : "go fish");
  } else if (kind === "answer" && seat === other) {
    const over = text === "go fish";
    if (over && table.deckCount) await table.draw();
    await ask(over);
  }
}

/** Lay down books, and ask for a rank that is in the hand, or let the other one ask. */
async function ask(over = false) {
  if (!table.hand.length && table.deckCount && !over) await table.draw();
  for (const rank of new Set(table.hand.map((card) => card[0]))) {
    const book = table.hand.filter((card) => card[0] === rank);
    if (book.length === 4) await table.play(book, { pile: `books:${table.seat}` });
  }
  const laid = [...table.piles.values()].reduce((sum, cards) => sum + cards.length, 0);
  if (table.round === null || laid === 52) return; // that was the last book
  if (table.hand.length && !over) {
    await table.note("ask", table.hand[Math.floor(Math.random() * table.hand.length)][0]);
  } else {
    await table.note("turn", String(other));
  }
}
