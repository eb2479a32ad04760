/** What a touched pile or player offers: their cards, and what can be done with them. */

import { cardElement, cardName } from "../cards.js";
import { make } from "../make.js";
import { table as texts } from "../texts/table.js";
import { BETWEEN_SHUFFLES, dropped } from "./actions.js";
import { dialog } from "./asking.js";
import { cardsIn, entitled, handOf, nameAt, pileName } from "./reading.js";

/** A pile: all its cards that one may see, the top one first, and what one may do with them. */
export async function openPile(game, stack) {
  const { table } = game;
  const cards = cardsIn(table.state, stack).toReversed();
  const name = pileName(stack);
  const chosen = await dialog(texts.pileCalled(name), (close) => [
    make("p", { class: "soft" }, texts.pileHolds(cards.length)),
    make("ul", { class: "spread" }, ...cards.map((card) => make("li", {}, cardElement(card.card)))),
    make("div", { class: "choices" }, ...choices(close, [
      ["takeTop", entitled(table, "pile") && table.seat !== null && cards.length > 0],
      ["turnTop", entitled(table, "turn") && cards.length > 0 && !cards[0].shown],
      ["shufflePile", entitled(table, "shuffle") && cards.length > 1],
      ["pileToDeck", entitled(table, "pile") && cards.length > 0],
    ])),
  ]);
  const run = {
    takeTop: () => dropped(game, stack, handOf(table.seat), []).run(),
    turnTop: () => table.pileTurn(name),
    shufflePile: () => table.shuffle({ pile: name }),
    pileToDeck: () => table.pileMove(stack, { to: "deck", count: cards.length }),
  }[chosen];
  if (run !== undefined) await game.attempt({ conditions: BETWEEN_SHUFFLES, run, asks: null });
}

/** A player: since when they are here or away, and what one may do with their hand. */
export async function openSeat(game, seat) {
  const { table } = game;
  const cards = cardsIn(table.state, handOf(seat));
  const taken = table.seats.has(seat);
  const presence = table.presence.get(seat);
  const chosen = await dialog(nameAt(table, seat), (close) => [
    make("p", { class: "soft" }, texts.seatSays(seat, taken, presence)),
    make("p", {}, texts.holds(cards.map((card) => card.card).map(cardName))),
    make("div", { class: "choices" }, ...choices(close, [
      ["dealTo", taken && entitled(table, "deal")],
      ["collectHand", entitled(table, "collect") && cards.length > 0],
    ])),
  ]);
  const action = {
    dealTo: () => dropped(game, "deck", handOf(seat), []),
    collectHand: () => dropped(game, handOf(seat), "pile:discard", []),
  }[chosen];
  if (action !== undefined) await game.attempt(action());
}

function choices(close, offers) {
  return offers.filter(([, offered]) => offered).map(([name], at) => make("button", {
    type: "button", autofocus: at === 0, onclick: () => close(name),
  }, texts.sheet[name]));
}
