/** The other players around the table: names, card backs, and presence. */

import { cardElement, drawCard } from "../cards.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts.js";
import { handOf, seatsAround } from "./selectors.js";

const MAX_FAN = 13; // cards that are drawn; a number beside them says how many there are

export class Seats {
  #page;
  #list = element("ul", { class: "seats", "aria-label": texts.players });

  constructor(container, page) {
    this.#page = page;
    container.append(this.#list);
  }

  draw() {
    const around = seatsAround(this.#page.table);
    this.#list.style.setProperty("--seats", around.length);
    reconcile(this.#list, around.map((one, index) => ({ ...one, index, of: around.length })), {
      key: ({ seat }) => seat,
      create: ({ seat }) => this.#create(seat),
      update: (item, one) => this.#update(item, one),
    });
  }

  #create(seat) {
    const button = element(
      "button", { class: "seat", type: "button", onclick: () => this.#page.onSeatTap(seat) },
      element("span", { class: "backs", "aria-hidden": "true" }),
      element("span", { class: "who" },
        element("span", { class: "dot", "aria-hidden": "true" }),
        element("span", { class: "name", dir: "auto" })),
      element("span", { class: "count muted" }),
    );
    return element("li", { "data-drop": handOf(seat), "data-stack": handOf(seat) }, button);
  }

  #update(item, { seat, name, taken, here, cards, index, of }) {
    const button = item.firstElementChild;
    const [backs, who, count] = button.children;
    const presence = taken ? { true: "here", false: "away", null: "unknown" }[here] : "left";
    setAttribute(item, "data-presence", presence);
    // The seats form an arc around the far side of the table: those in the middle are highest.
    const offset = of === 1 ? 0 : (2 * index) / (of - 1) - 1;
    item.style.setProperty("--off", String(offset * offset));
    setText(who.lastElementChild, name);
    setText(count, texts.seatSummary({ cards: cards.length, presence }));
    const label = texts.seatLabel({ name, seat, cards: cards.length, presence });
    setAttribute(button, "aria-label", label);
    drawFan(backs, cards);
  }
}

/** Draw the cards of a hand; those that this player has seen are on top. */
function drawFan(container, cards) {
  const seen = cards.filter(({ card }) => card !== null);
  const others = cards.filter(({ card }) => card === null);
  reconcile(container, [...others, ...seen].slice(-MAX_FAN), {
    key: ({ id }) => id,
    create: ({ card }) => cardElement(card),
    update: (picture, { card }) => {
      if ((picture.dataset.card ?? null) !== card) drawCard(picture, card);
    },
  });
}
