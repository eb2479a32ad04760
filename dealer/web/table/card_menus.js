/** The menus of the deck and of a pile: their cards, and what can be done with them. */

import { cardElement, cardSign } from "../cards.js";
import { minuteOf } from "../clock.js";
import { element, safeText } from "../dom.js";
import { fill, table as texts } from "../texts.js";
import {
  BETWEEN_SHUFFLES, actionForMove, actionNamed, disabledReason, isVisible, trickTo,
} from "./actions.js";
import { playedBy } from "./history.js";
import { menu } from "./menu.js";
import { cardsIn, cardsShown, handOf, isAllowed, nameAt, pileName } from "./selectors.js";
import { pileTitle } from "./wording.js";

const NUMBERS = new URL("./numbers.js", import.meta.url).href;
const OF_DECK = ["draw", "deal", "burn", "cut", "shuffle"];

/** The deck: what can be done with as many of its cards as are set. */
export async function openDeck(page) {
  const { table, count } = page;
  const labels = texts.deckMenu;
  const to = (stack, face) => actionForMove(table, { from: "deck", to: stack, count, face });
  const isPossible = (one) => disabledReason(one, page) === null;
  const canTurn = isPossible(to("pile:table", "up"));
  await menu(page, texts.deck, [
    element("p", { class: "muted" },
      texts.deckContents({ cards: cardsIn(table.state, "deck").length })),
  ], [
    ...OF_DECK.map(actionNamed).map((one) => ({
      possible: isVisible(one, table) && isPossible(one),
      label: fill(labels[one.name], { count }),
      action: () => one,
    })),
    {
      possible: canTurn, label: labels.turnOnto({ count }), mark: "public",
      action: () => to("pile:table", "up"),
    },
    { possible: canTurn, label: labels.putOnto({ count }), action: () => movedToPile(page, to) },
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
    return action && addCondition(action, isSame);
  };
  await menu(page, stack === "deck" ? texts.deck : pileTitle(name), [
    element("p", { class: "muted" }, texts.pileContents({ cards: cards.length })),
    element("ul", { class: "spread" },
      ...cards.map((card) => element("li", {}, cardElement(card.card), playerOf(table, card)))),
  ], [
    {
      possible: may("pile") && table.seat !== null, label: labels.takeTop({ sign }),
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
      possible: may("pile", 2) && table.seat !== null, label: texts.tricks.takeSome,
      action: async () => {
        const { askNumber } = await import(NUMBERS);
        const answer = await askNumber(texts.tricks.takeSome, 2, { min: 1, max: cards.length });
        return answer && step(() => table.pileDraw(name, answer.number))();
      },
    },
    {
      possible: may("pile") && table.state.seats.length > 0, label: texts.tricks.toPlayer,
      action: async () => {
        const seat = await page.ask.anySeat(texts.tricks.toWhom);
        return seat === null ? null : addCondition(trickTo(seat, stack), isSame);
      },
    },
    {
      possible: may("turn", 2) && cards.some(({ shown }) => !shown), label: labels.turnAll,
      mark: "public", action: step(() => table.pileTurn(name, null, { all: true })),
    },
    { possible: may("pile"), label: labels.moveTop({ sign }), action: () => movedToPile(page, to) },
    {
      possible: may("shuffle", 2), label: labels.shufflePile,
      action: step(() => table.shuffle({ pile: name })),
    },
    {
      possible: may("pile"), label: labels.pileToDeck,
      action: step(() => table.move(stack, { to: "deck", count: cards.length })),
    },
  ]);
}

/** The action of moving cards to a pile that the player chooses; null if they choose none. */
async function movedToPile(page, to) {
  const answer = await page.ask.pile(texts.putWhere, texts.putThere);
  return answer === null ? null : to(`pile:${answer.pile}`, answer.face);
}

const addCondition = (action, condition) =>
  ({ ...action, conditions: [...action.conditions, condition] });

/** Who played a card of a pile, and when; null if it came in another way. */
function playerOf(table, { slot }) {
  const played = playedBy(table, slot);
  if (played === null) return null;
  return element("span", { class: "muted" },
    texts.tricks.played({
      name: safeText(played.name ?? nameAt(table, played.seat)), time: minuteOf(played.at),
    }));
}
