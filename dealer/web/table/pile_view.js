/** One pile as an element: its cards, its name and their number; in the middle, or before a seat. */

import { cardElement, cardName, drawCard } from "../cards.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { putBeforePlayers } from "../places.js";
import { table as texts } from "../texts.js";
import { hasTricks, isColumn, spreadInGame } from "./game.js";
import { playedBy } from "./history.js";
import { cardsShown, pileName, seatOfPile, seatsInOrder, wonBy } from "./selectors.js";
import { leadText, leadingCard } from "./trick.js";
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
  if (column) {
    const down = cards.slice(0, -1).filter((card) => !card.shown).length;
    item.style.setProperty("--downs", String(down));
    item.style.setProperty("--ups", String(Math.max(1, cards.length - 1 - down)));
  }
  const trick = isTrickPile(name);
  item.classList.toggle("trick", trick);
  item.classList.toggle("open", spread && !column && !trick);
  const shuffling = state.round?.shuffle?.stack === name;
  const shown = cards.slice(column ? -MAX_COLUMN : spread ? -MAX_SPREAD : shuffling ? -3 : -1);
  item.style.setProperty("--n", String(Math.max(2, shown.length)));
  setAttribute(item, "data-thick", Math.min(3, Math.ceil(cards.length / 18)));
  setAttribute(item, "data-shuffling", shuffling);
  setAttribute(item, "data-drag", state.round !== null && cards.length > 0 ? name : null);
  const leading = trick ? leadingCard(page.table) : null;
  const leads = trick ? leadText(page.table) : null;
  setAttribute(title, "data-sign", leads);
  setText(title, leads !== null ? "" : name === "deck" ? texts.deck : pileTitle(pileName(name)));
  const tricks = hasTricks() && wonBy(name) !== null ? cards.length / state.seats.length : 0;
  const isCounted = tricks > 0 && Number.isInteger(tricks);
  setAttribute(count, "data-sign", isCounted ? `×${tricks}` : String(cards.length));
  setAttribute(button, "aria-label", labelOf(name, cards, shown, state.round !== null));
  reconcile(pictures, shown, {
    key: ({ id }) => id,
    create: (card) => cardElement(shuffling ? null : shownFace(card)),
    update: (picture, card) => {
      const face = shuffling ? null : shownFace(card);
      if ((picture.dataset.card ?? null) !== face) drawCard(picture, face);
      if (trick) setAttribute(picture, "data-leads", card.slot === leading?.slot);
    },
  });
  if (!trick) return;
  const owners = shown.map(({ slot }) => playedBy(page.table, slot)?.seat ?? null);
  putBeforePlayers([...pictures.children], owners, seatsInOrder(page.table));
}

/** Draw the piles before a seat as the children of `container`. */
export function drawSeatPiles(container, page, piles) {
  container.hidden = piles.length === 0;
  reconcile(container, piles, {
    key: (name) => name,
    create: (name) => pileElement(name, (event) => page.onPileTap(name, event), "span"),
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
export function isSpread(name) {
  const inGame = name === "deck" ? null : spreadInGame(pileName(name));
  return inGame ?? !NOT_SPREAD.test(name);
}

/** Whether a stack is the trick, whose cards lie before their players. */
export const isTrickPile = (name) => name === "pile:table" && hasTricks();

/** The code of a face-up card. A face-down card is drawn as such even if the player knows it. */
function shownFace({ card, shown }) {
  return shown ? card : null;
}
