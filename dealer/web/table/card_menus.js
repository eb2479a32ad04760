/** The dialogs of a pile and of a player: their cards, and what can be done with them. */

import { cardElement, cardName } from "../cards.js";
import { element } from "../dom.js";
import { table as texts } from "../texts/table.js";
import { BETWEEN_SHUFFLES, actionForDrop } from "./actions.js";
import { dialog } from "./dialogs.js";
import { cardsIn, handOf, isAllowed, nameAt, pileName } from "./selectors.js";

/** A pile: its cards, the top one first, as far as this player may see them. */
export async function openPile(page, stack) {
  const { table } = page;
  const cards = cardsIn(table.state, stack).toReversed();
  const pictures = cards.map((card) => element("li", {}, cardElement(card.card)));
  const name = pileName(stack);
  const chosen = await dialog(texts.pileTitle(name), (close) => [
    element("p", { class: "muted" }, texts.pileContents(cards.length)),
    element("ul", { class: "spread" }, ...pictures),
    element("div", { class: "choices" }, ...choices(close, [
      ["takeTop", isAllowed(table, "pile") && table.seat !== null && cards.length > 0],
      ["turnTop", isAllowed(table, "turn") && cards.length > 0 && !cards[0].shown],
      ["shufflePile", isAllowed(table, "shuffle") && cards.length > 1],
      ["pileToDeck", isAllowed(table, "pile") && cards.length > 0],
    ])),
  ]);
  const run = {
    takeTop: () => actionForDrop(page, stack, handOf(table.seat), []).run(),
    turnTop: () => table.pileTurn(name),
    shufflePile: () => table.shuffle({ pile: name }),
    pileToDeck: () => table.pileMove(stack, { to: "deck", count: cards.length }),
  }[chosen];
  if (run !== undefined) await page.attempt({ conditions: BETWEEN_SHUFFLES, run, asks: null });
}

/** A player: their presence and their cards. */
export async function openSeat(page, seat) {
  const { table } = page;
  const cards = cardsIn(table.state, handOf(seat));
  const taken = table.seats.has(seat);
  const presence = table.presence.get(seat);
  const chosen = await dialog(nameAt(table, seat), (close) => [
    element("p", { class: "muted" }, texts.seatDetails(seat, taken, presence)),
    element("p", {}, texts.handContents(cards.map((card) => card.card).map(cardName))),
    element("div", { class: "choices" }, ...choices(close, [
      ["dealTo", taken && isAllowed(table, "deal")],
      ["collectHand", isAllowed(table, "collect") && cards.length > 0],
    ])),
  ]);
  const action = {
    dealTo: () => actionForDrop(page, "deck", handOf(seat), []),
    collectHand: () => actionForDrop(page, handOf(seat), "pile:discard", []),
  }[chosen];
  if (action !== undefined) await page.attempt(action());
}

/** A button for each of `[name, possible]` that is possible. */
function choices(close, offers) {
  return offers.filter(([, possible]) => possible).map(([name], index) => element("button", {
    type: "button", autofocus: index === 0, onclick: () => close(name),
  }, texts.cardMenu[name]));
}
