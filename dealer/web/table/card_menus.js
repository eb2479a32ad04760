/** The menus of the deck, a pile and a player: their cards, and what can be done with them. */

import { cardElement, cardName, cardSign } from "../cards.js";
import { element } from "../dom.js";
import { table as texts } from "../texts/table.js";
import {
  BETWEEN_SHUFFLES, actionForMove, actionNamed, disabledReason, isVisible,
} from "./actions.js";
import { choices, dialog } from "./dialogs.js";
import { cardsIn, cardsShown, handOf, isAllowed, nameAt, pileName } from "./selectors.js";

/**
 * @typedef {object} Offer
 * @property {boolean} possible
 * @property {string} label
 * @property {"public" | "final" | null} [mark]
 * @property {() => any} action what is attempted, or a promise of it; null if nothing is
 */

const OF_DECK = ["draw", "deal", "burn", "cut", "shuffle"];

/** The deck: what can be done with as many of its cards as are set. */
export async function openDeck(page) {
  const { table, count } = page;
  const labels = texts.deckMenu;
  const to = (stack, face) => actionForMove(table, { from: "deck", to: stack, count, face });
  const isPossible = (one) => disabledReason(one, page) === null;
  const canTurn = isPossible(to("pile:table", "up"));
  await menu(page, texts.deck, [
    element("p", { class: "muted" }, texts.deckContents(cardsIn(table.state, "deck").length)),
  ], [
    ...OF_DECK.map(actionNamed).map((one) => ({
      possible: isVisible(one, table) && isPossible(one),
      label: labels[one.name](count),
      action: () => one,
    })),
    {
      possible: canTurn, label: labels.turnOnto(count), mark: "public",
      action: () => to("pile:table", "up"),
    },
    { possible: canTurn, label: labels.putOnto(count), action: () => movedToPile(page, to) },
  ], { count });
}

/** A pile: its cards, the top one first, as far as this player may see them. */
export async function openPile(page, stack) {
  const { table } = page;
  const cards = cardsShown(table.state, stack).toReversed();
  const [top = null] = cards;
  const labels = texts.cardMenu;
  const name = pileName(stack);
  const sign = top === null || top.card === null ? null : cardSign(top.card);
  const may = (rule, least = 1) =>
    table.round !== null && isAllowed(table, rule) && cards.length >= least;
  // What the menu shows must still be so.
  const isSame = () => (cardsIn(table.state, stack).at(-1)?.id === top?.id ? null : texts.changed);
  const step = (run) => () => ({ conditions: [...BETWEEN_SHUFFLES, isSame], run, asks: null });
  const to = (target, face) => {
    const action = actionForMove(table, { from: stack, to: target, face });
    return action && { ...action, conditions: [...action.conditions, isSame] };
  };
  await menu(page, stack === "deck" ? texts.deck : texts.pileTitle(name), [
    element("p", { class: "muted" }, texts.pileContents(cards.length)),
    element("ul", { class: "spread" },
      ...cards.map((card) => element("li", {}, cardElement(card.card)))),
  ], [
    {
      possible: may("pile") && table.seat !== null, label: labels.takeTop(sign),
      action: () => to(handOf(table.seat)),
    },
    {
      possible: may("turn") && !top.shown, label: labels.turnTop, mark: "public",
      action: step(() => table.pileTurn(name)),
    },
    {
      possible: may("pile", 2) && table.seat !== null, label: labels.takeAll,
      action: step(() => table.pileDraw(name, null, { all: true })),
    },
    {
      possible: may("turn", 2) && cards.some(({ shown }) => !shown), label: labels.turnAll,
      mark: "public", action: step(() => table.pileTurn(name, null, { all: true })),
    },
    { possible: may("pile"), label: labels.moveTop(sign), action: () => movedToPile(page, to) },
    {
      possible: may("shuffle", 2), label: labels.shufflePile,
      action: step(() => table.shuffle({ pile: name })),
    },
    {
      possible: may("pile"), label: labels.pileToDeck,
      action: step(() => table.pileMove(stack, { to: "deck", count: cards.length })),
    },
  ]);
}

/** A player: their presence and their cards. */
export async function openSeat(page, seat) {
  const { table, count } = page;
  const cards = cardsShown(table.state, handOf(seat));
  const taken = table.seats.has(seat);
  const labels = texts.cardMenu;
  await menu(page, nameAt(table, seat), [
    element("p", { class: "muted" }, texts.seatDetails(seat, taken, table.presence.get(seat))),
    element("p", {}, texts.handContents(cards.map((card) => card.card).map(cardName))),
  ], [
    {
      possible: taken && isAllowed(table, "deal"), label: labels.dealTo(count),
      action: () => actionForMove(table, { from: "deck", to: handOf(seat), count }),
    },
    {
      possible: table.round !== null && isAllowed(table, "collect") && cards.length > 0,
      label: labels.collectHand,
      action: () => actionForMove(table, { from: handOf(seat), to: "pile:discard" }),
    },
  ], { count });
}

/**
 * Show a menu, and attempt what is chosen.
 *
 * @param {any} page
 * @param {string} title
 * @param {Node[]} intro
 * @param {Offer[]} offers
 * @param {{ count?: number }} [options] of the attempt
 */
async function menu(page, title, intro, offers, options = {}) {
  const chosen = await dialog(title, (close) => [
    ...intro,
    choices(offers.filter(({ possible }) => possible).map(
      ({ label, mark, action }) => ({ label, mark, onclick: () => close(action) }))),
  ]);
  const action = await chosen?.();
  if (action) await page.attempt(action, options);
}

/** The action of moving cards to a pile that the player chooses; null if they choose none. */
async function movedToPile(page, to) {
  const answer = await page.ask.pile(texts.putWhere, texts.putThere);
  return answer === null ? null : to(`pile:${answer.pile}`, answer.face);
}
