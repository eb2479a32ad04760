/** One pile as an element: its cards, its name and their number; in the middle, or before a seat. */

import { cardElement, cardName, drawCard } from "../cards.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts/table.js";
import { cardsShown, pileName, seatOfPile } from "./selectors.js";

const MAX_SPREAD = 12; // cards of a spread pile that are drawn
const NOT_SPREAD = /^(deck$|pile:(discard$|burn$|won:|pass:))/;

/**
 * @param {string} name a stack
 * @param {(event: Event) => void} onclick
 * @param {string} [tag] of the element
 * @returns {HTMLElement}
 */
export function pileElement(name, onclick, tag = "li") {
  const spread = !NOT_SPREAD.test(name);
  return element(tag, {
    "data-drop": name, "data-stack": name, "data-spread": spread, class: spread ? "open" : null,
  }, element(
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
  const shown = cards.slice(item.dataset.spread === undefined ? -1 : -MAX_SPREAD);
  setAttribute(item, "data-thick", Math.min(3, Math.ceil(cards.length / 18)));
  setAttribute(item, "data-shuffling", state.round?.shuffle?.stack === name);
  setAttribute(item, "data-drag", state.round !== null && cards.length > 0 ? name : null);
  setText(title, name === "deck" ? texts.deck : texts.pileTitle(pileName(name)));
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
  if (name === "deck" && open) return texts.deckLabel(cards.length);
  const names = shown.map(shownFace).filter((code) => code !== null).map(cardName);
  const seat = seatOfPile(name);
  const label = texts.pileLabel(pileName(name), cards.length, names);
  return seat === null ? label : texts.atSeat(label, seat);
}

/** The code of a face-up card. A face-down card is drawn as such even if the player knows it. */
function shownFace({ card, shown }) {
  return shown ? card : null;
}
