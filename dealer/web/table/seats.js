/** The other players around the table: names, marks, cards, presence, and what lies before them. */

import { cardElement, cardSign, drawCard } from "../cards.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts.js";
import { bubbleElement } from "./bubbles.js";
import { drawSeatPiles } from "./pile_view.js";
import {
  chipElement, marksElement, marksOf, marksText, updateChip, updateMarks,
} from "./seat_marks.js";
import { handOf, seatsAround, shownRound } from "./selectors.js";

const MAX_BACKS = 5; // that are drawn; a number says how many cards there are
const MAX_FACES = 52;

export class Seats {
  #page;
  #around;
  #list = element("ul", { class: "seats", role: "list", "aria-label": texts.players });

  constructor(container, page) {
    this.#page = page;
    this.#around = container.parentElement;
    container.append(this.#list);
  }

  draw() {
    const around = seatsAround(this.#page.table);
    const places = placesAround(around.length);
    const sizes = {
      "--top": places.top, "--side": places.side, "--count": around.length,
      "--columns": around.length < 5 ? around.length : Math.ceil(around.length / 2),
    };
    for (const [name, size] of Object.entries(sizes)) {
      this.#around.style.setProperty(name, String(Math.max(1, size)));
    }
    reconcile(this.#list, around.map((one, index) => ({ ...one, place: places.of(index) })), {
      key: ({ seat }) => seat,
      create: ({ seat }) => this.#create(seat),
      update: (item, one) => this.#update(item, one),
    });
  }

  #create(seat) {
    const button = element(
      "button", {
        class: "seat", type: "button", "data-drop": handOf(seat), "data-stack": handOf(seat),
        onclick: () => this.#page.onSeatTap(seat),
      },
      chipElement(), element("bdi", { class: "name" }),
      element("span", { class: "holding" },
        element("span", { class: "backs", "aria-hidden": "true" }),
        element("span", { class: "count" }), marksElement()),
      element("span", { class: "faces", "aria-hidden": "true" }),
    );
    return element("li", {}, button, element("span", { class: "before" }), bubbleElement());
  }

  #update(item, { seat, name, taken, here, cards, piles, place }) {
    const [button, before, bubble] = item.children;
    const [chip, title, holding, faces] = button.children;
    const [backs, count, marks] = holding.children;
    const presence = taken ? { true: "here", false: "away", null: "unknown" }[here] : "left";
    const found = marksOf(this.#page, seat);
    setAttribute(item, "data-presence", presence);
    setAttribute(item, "data-turn", found.turn);
    setAttribute(item, "data-side", place.side);
    item.style.setProperty("--index", String(place.index));
    item.style.setProperty("--off", String(place.off));
    updateChip(chip, { seat, name });
    setAttribute(chip, "data-says", texts.absent[presence] ?? null);
    setText(title, name);
    updateMarks(marks, found);
    setText(count, String(cards.length));
    count.hidden = shownRound(this.#page.table.state) === null;
    setAttribute(button, "aria-label", texts.seatLabel({
      name, seat, cards: cards.length, presence, marks: marksText(found) || null,
    }));
    const unknown = cards.filter(({ card }) => card === null);
    drawCards(backs, unknown.slice(-MAX_BACKS));
    drawCards(faces, cards.filter(({ card }) => card !== null).slice(-MAX_FACES));
    drawSeatPiles(before, this.#page, piles);
    this.#page.bubbles.draw(bubble, seat);
  }
}

/**
 * Where each of `count` seats is on a wide screen, from the left side over the top to the right:
 * `top` of them are at the top and `side` at each side.
 */
function placesAround(count) {
  const side = count < 2 ? 0 : count < 6 ? 1 : 2;
  const top = count - 2 * side;
  const of = (index) => {
    // At the left the first one is the lowest.
    if (index < side) return { side: "left", index: side - index, off: 0 };
    if (index >= count - side) return { side: "right", index: index - (count - side) + 1, off: 0 };
    const position = index - side;
    const offset = top === 1 ? 0 : (2 * position) / (top - 1) - 1;
    return { side: "top", index: position + 1, off: offset * offset };
  };
  return { top, side, of };
}

/**
 * Draw cards of another hand. One that only this player knows, such as a card that they gave away,
 * is drawn as a back with its sign, so that it does not look shown to all.
 */
function drawCards(container, cards) {
  reconcile(container, cards, {
    key: ({ id }) => id,
    create: () => cardElement(null),
    update: (picture, { card, shown }) => {
      const state = `${card} ${shown}`;
      if (picture.dataset.state === state) return;
      picture.dataset.state = state;
      drawCard(picture, shown ? card : null);
      setAttribute(picture, "data-only-you", !shown && card !== null ? cardSign(card) : null);
      if (card !== null) setAttribute(picture, "data-card", card);
    },
  });
}
