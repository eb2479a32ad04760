/** The other players round the table: their names, their cards from behind, who is here. */

import { cardElement, drawCard } from "../cards.js";
import { keyed, make, mark, write } from "../make.js";
import { table as texts } from "../texts/table.js";
import { handOf, seatsAround } from "./reading.js";

/** More cards than these are a number beside the fan. */
const FAN = 13;

/** Draws into `place`; `touched(seat)` is called for who is tapped. */
export class Seats {
  #game;
  #list = make("ul", { class: "seats", "aria-label": texts.players });

  constructor(place, game) {
    this.#game = game;
    place.append(this.#list);
  }

  draw() {
    const around = seatsAround(this.#game.table);
    this.#list.style.setProperty("--seats", around.length);
    keyed(this.#list, around.map((one, at) => ({ ...one, at, of: around.length })), {
      key: ({ seat }) => seat,
      create: ({ seat }) => this.#create(seat),
      update: (item, one) => this.#update(item, one),
    });
  }

  #create(seat) {
    const button = make(
      "button", { class: "seat", type: "button", onclick: () => this.#game.touchedSeat(seat) },
      make("span", { class: "backs", "aria-hidden": "true" }),
      make("span", { class: "who" },
        make("span", { class: "dot", "aria-hidden": "true" }), make("span", { class: "name" })),
      make("span", { class: "count soft" }),
    );
    return make("li", { "data-drop": handOf(seat), "data-stack": handOf(seat) }, button);
  }

  #update(item, { seat, name, taken, here, cards, at, of }) {
    const [backs, who, count] = item.firstElementChild.children;
    const presence = taken ? { true: "here", false: "away", null: "unknown" }[here] : "left";
    mark(item, "data-presence", presence);
    // Round the far side of the table: the seats in the middle sit furthest away.
    const off = of === 1 ? 0 : (2 * at) / (of - 1) - 1;
    item.style.setProperty("--off", String(off * off));
    write(who.lastElementChild, name);
    write(count, texts.seatLine(cards.length, presence));
    mark(item.firstElementChild, "aria-label", texts.seatLabel(name, seat, cards.length, presence));
    drawFan(backs, cards);
  }
}

/** Cards that one has seen lie on top of those that one has not. */
function drawFan(place, cards) {
  const seen = cards.filter(({ card }) => card !== null);
  const others = cards.filter(({ card }) => card === null);
  keyed(place, [...others, ...seen].slice(-FAN), {
    key: ({ id }) => id,
    create: ({ card }) => cardElement(card),
    update: (picture, { card }) => {
      if ((picture.dataset.card ?? null) !== card) drawCard(picture, card);
    },
  });
}
