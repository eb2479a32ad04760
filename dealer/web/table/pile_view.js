/** One pile as an element: its cards, its name and their number; in the middle, or before a seat. */

import { cardElement, cardName, drawCard } from "../cards.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts.js";
import { spreadInGame } from "./game.js";
import { cardsShown, pileName, seatOfPile } from "./selectors.js";
import { pileLabel, pileTitle } from "./wording.js";

const MAX_SPREAD = 12; // cards of a spread pile that are drawn
const MAX_COLUMN = 24; // of a column
const NOT_SPREAD = /^(deck$|pile:(discard$|burn$|won:|pass:))/;

/**
 * @param {string} name a stack
 * @param {(event: Event) => void} onclick
 * @param {string} [tag] of the element
 * @returns {HTMLElement}
 */
export function pileElement(name, onclick, tag = "li") {
  return element(tag, { "data-drop": name, "data-stack": name }, element(
    "button", { class: "stack", type: "button", onclick },
    element("span", { class: "cards", "aria-hidden": "true" }),
    element("span", { class: "name" }), element("span", { class: "count muted" }),
  ));
}

/**
 * @param {any} item from `pileElement`
 * @param {any} page
 */
export function updatePile(item, page) {
  const name = item.dataset.stack;
  const { state } = page.table;
  const cards = cardsShown(state, name);
  const button = item.firstElementChild;
  const [pictures, title, count] = button.children;
  const [column, spread] = [isColumn(name), isSpread(name)];
  setAttribute(item, "data-column", column);
  setAttribute(item, "data-spread", spread && !column);
  item.classList.toggle("open", spread && !column);
  const shown = cards.slice(column ? -MAX_COLUMN : spread ? -MAX_SPREAD : -1);
  setAttribute(item, "data-thick", Math.min(3, Math.ceil(cards.length / 18)));
  setAttribute(item, "data-shuffling", state.round?.shuffle?.stack === name);
  setAttribute(item, "data-drag", state.round !== null && cards.length > 0 ? name : null);
  setText(title, name === "deck" ? texts.deck : pileTitle(pileName(name)));
  setText(count, String(cards.length));
  setAttribute(button, "aria-label", labelOf(name, cards, shown, state.round !== null));
  reconcile(pictures, shown, {
    key: ({ id }) => id,
    create: (card) => cardElement(shownFace(card)),
    update: (picture, card) => {
      if ((picture.dataset.card ?? null) !== shownFace(card)) drawCard(picture, shownFace(card));
    },
  });
}

/** Draw the piles before a seat as the children of `container`. */
export function drawSeatPiles(container, page, piles) {
  container.hidden = piles.length === 0;
  reconcile(container, piles, {
    key: (name) => name,
    create: (name) => pileElement(name, () => page.onPileTap(name), "span"),
    update: (item) => updatePile(item, page),
  });
}

function labelOf(name, cards, shown, open) {
  if (name === "deck" && open) return texts.deckLabel({ cards: cards.length });
  const names = shown.map(shownFace).filter((code) => code !== null).map(cardName);
  const seat = seatOfPile(name);
  const label = pileLabel(pileName(name), cards.length, names);
  return seat === null ? label : texts.atSeat({ pile: label, seat });
}

/** Whether all cards of a stack are drawn, as far as there is room. */
function isSpread(name) {
  const inGame = name === "deck" ? null : spreadInGame(pileName(name));
  return inGame ?? !NOT_SPREAD.test(name);
}

/** Whether the cards of a stack lie in a column, the last one the lowest. */
export const isColumn = (name) => name !== "deck" && spreadInGame(pileName(name)) === "down";

/** The code of a face-up card. A face-down card is drawn as such even if the player knows it. */
function shownFace({ card, shown }) {
  return shown ? card : null;
}
