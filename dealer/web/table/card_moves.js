/** What drags, taps and long presses on the felt mean: the callbacks of `Dragging`. */

import { table as texts } from "../texts.js";
import { seatOf } from "../verify.js";
import {
  actionForMove, actionNamed, defaultFace, disabledReason, trickTo,
} from "./actions.js";
import { openDeck, openPile } from "./card_menus.js";
import { hasTricks } from "./game.js";
import { Ghost } from "./ghost.js";
import { playedBy } from "./history.js";
import { seatMenu } from "./menu.js";
import { cardsIn, handOf, isTrick, passing, pilesShown } from "./selectors.js";

const FELT = "felt"; // in place of a stack: the felt beside all stacks
const MAIN = "pile:table"; // where cards are played
const UNKNOWN = "?"; // drawn for a card that will be turned up

/** @typedef {import("./dragging.js").Dragged} Dragged */

/**
 * @returns {import("./dragging.js").DragTarget & {
 *   tap: (slot: number, byPointer: boolean) => void,
 * }} also `tap`: a card of the hand was clicked
 */
export function cardMoves(page) {
  const own = () => (page.table.seat === null ? null : handOf(page.table.seat));
  const isReorder = ({ from }, to) => from === to && from === own();
  /** The stack of a place; of the felt itself it is the main pile, for cards of the hand. */
  const stackOf = ({ from }, to) =>
    (to === FELT ? (from === own() && hasMainPile(page.table) ? MAIN : null) : to);
  const actionOf = ({ from, slots, count, trick }, to) => {
    if (to === null) return null;
    if (trick && seatOf(to) !== null) return trickTo(seatOf(to));
    return actionForMove(page.table, { from, to, slots, count });
  };

  return {
    pickUp(source, picture) {
      if (page.table.round === null) return null;
      const { slot, drag } = source.dataset;
      if (slot !== undefined) return handDragged(page, own(), Number(slot));
      return drag === undefined ? null : stackDragged(page, drag, { source, picture });
    },

    accepts(dragged, place) {
      const to = stackOf(dragged, place);
      if (isReorder(dragged, to)) return true;
      const action = actionOf(dragged, to);
      const { table, stopped } = page;
      const context = { table, stopped, slots: dragged.slots, count: dragged.count };
      return action !== null && disabledReason(action, context) === null;
    },

    preview(dragged, place) {
      const { from, slots, cards, trick } = dragged;
      const to = stackOf(dragged, place);
      if (trick && seatOf(to ?? "") !== null) return cards.map(() => null);
      const run = slots.length > 1 && from !== own(); // it keeps its faces
      return cards.map((card) => codeIn(run ? null : to, card, from === own()));
    },

    ghost: (codes, touch) => new Ghost(codes, touch),

    over(dragged, to, x) {
      page.hand.markPlace(to !== null && isReorder(dragged, to) ? x : null, dragged.slots);
    },

    drop(dragged, place, x) {
      const { slots, count } = dragged;
      const to = stackOf(dragged, place);
      if (isReorder(dragged, to)) {
        page.order.move(page.hand.slots, slots, page.hand.slotAfter(x, slots));
        page.draw();
        return;
      }
      const action = actionOf(dragged, to);
      if (action === null) return;
      if (isUnchanged(page.table, dragged)) page.attempt(action, { slots, count });
      else page.showToast(texts.changed);
    },

    flick(dragged) {
      this.drop(dragged, FELT, 0);
    },

    /** A second tap or click plays the card, if it is the only one selected, and none are passed. */
    tap(slot, byPointer) {
      if (page.table.round === null) return;
      const again = byPointer && page.slots.length === 1 && page.selected.has(slot);
      const plays = again && hasMainPile(page.table) && passing(page.table) === null;
      if (plays) page.attempt(actionNamed("play"));
      else page.hand.toggle(slot);
    },

    menu(source) {
      const { slot, stack } = source.dataset;
      if (slot !== undefined) {
        page.attempt(actionNamed("more"), { slots: page.hand.together(Number(slot)) });
      } else if (stack === "deck" && page.table.round !== null) openDeck(page);
      else if (seatOf(stack) === null) openPile(page, stack);
      else seatMenu().then(({ openSeat }) => openSeat(page, seatOf(stack)));
    },
  };
}

/** Whether cards are played onto the table: not in a game that has other piles for that. */
const hasMainPile = ({ state }) => pilesShown(state).includes(MAIN);

/** A card of the hand, and all selected ones if it is one of them. */
function handDragged(page, own, slot) {
  const slots = page.hand.together(slot);
  const all = cardsIn(page.table.state, own);
  return {
    from: own, slots, count: slots.length, trick: false,
    cards: slots.map((one) => all.find((card) => card.slot === one)),
    pictures: slots.map((one) => document.querySelector(`#hand [data-slot="${one}"] .card`)),
  };
}

/**
 * Cards of a stack: the set number from the top of the deck, and otherwise the card that was pressed
 * with all that lie on it, or the top one if none was. In a trick each card is its player's: only
 * the reader's own one moves, and the pile's menu has the rest. Without a game, a whole trick moves.
 */
function stackDragged(page, from, { source, picture }) {
  const all = cardsIn(page.table.state, from);
  const pictures = Array.from(source.querySelectorAll(".card"));
  if (from === MAIN && hasTricks()) return ownOfTrick(page.table, all, pictures, picture);
  const trick = from === MAIN && isTrick(page.table);
  const top = from === "deck" ? page.count : trick ? all.length : 1;
  const above = picture === null || trick ? 1 : pictures.length - pictures.indexOf(picture);
  const count = Math.max(top, above);
  const cards = all.slice(-count);
  return {
    from, count, trick, slots: above > 1 ? cards.map(({ slot }) => slot) : [],
    cards: above > 1 ? cards : cards.toReversed(), pictures: pictures.slice(-count),
  };
}

/** The reader's own card of a trick, if it was pressed; null for another one. */
function ownOfTrick(table, all, pictures, picture) {
  const card = picture === null ? undefined : all.slice(-pictures.length)[pictures.indexOf(picture)];
  if (card === undefined || playedBy(table, card.slot)?.seat !== table.seat) return null;
  return {
    from: MAIN, count: 1, trick: false, slots: [card.slot], cards: [card], pictures: [picture],
  };
}

/** Whether the cards that were picked up are still where they were; those of the deck are equal. */
function isUnchanged({ state }, { from, slots, cards }) {
  if (from === "deck") return true;
  const here = cardsIn(state, from);
  if (seatOf(from) !== null || (from === MAIN && hasTricks())) {
    return slots.every((slot) => here.some((card) => card.slot === slot));
  }
  const top = new Set(here.slice(-cards.length).map(({ id }) => id));
  return cards.every(({ id }) => top.has(id));
}

/** The code that this player will see of a card in `to`, or sees of it now; null for a back. */
function codeIn(to, { card, shown }, isOwn) {
  if (to === null) return isOwn || shown ? card : null;
  if (seatOf(to) !== null) return card;
  return defaultFace(to) === "down" ? null : card ?? UNKNOWN;
}
