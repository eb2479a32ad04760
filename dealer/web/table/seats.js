/** The other players around the table: names, marks, cards, presence, and what lies before them. */

import { cardElement, cardSign, drawCard } from "../cards.js";
import { chipElement, updateChip } from "../chips.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { placesAround } from "../places.js";
import { table as texts } from "../texts.js";
import { bubbleElement } from "./bubbles.js";
import { folds } from "./game.js";
import { drawSeatPiles } from "./pile_view.js";
import { marksElement, marksOf, marksText, updateMarks } from "./seat_marks.js";
import { handOf, seatsAround } from "./selectors.js";

const MAX_BACKS = 5; // that are drawn; a number says how many cards there are
const MAX_FACES = 52;
const SHOWN_LARGE = 4; // cards of a hand that is shown, as in poker

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
        element("span", { class: "count", "aria-hidden": "true" }), marksElement()),
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
    setAttribute(item, "data-best", this.#page.bestHand?.seats.includes(seat) ?? false);
    item.style.setProperty("--index", String(place.index));
    item.style.setProperty("--off", String(place.off));
    updateChip(chip, { seat, name });
    const dealt = this.#page.table.state.round?.stacks[handOf(seat)];
    const folded = folds() && dealt?.length === 0 ? texts.result.fold : null;
    setAttribute(
      chip, "data-says", texts.absent[presence] ?? folded ?? this.#page.kinds?.get(seat) ?? null);
    setText(title, name);
    setAttribute(title, "title", found.host ? texts.marks.host : null);
    updateMarks(marks, found);
    setAttribute(count, "data-sign", String(cards.length));
    count.hidden = cards.length === 0;
    setAttribute(button, "aria-label", texts.seatLabel({
      name, seat, cards: cards.length, presence,
      marks: [folded, marksText(found)].filter(Boolean).join(", ") || null,
    }));
    const unknown = cards.filter(({ card }) => card === null);
    drawCards(backs, unknown.slice(-MAX_BACKS));
    const known = cards.filter(({ card }) => card !== null);
    drawCards(faces, known.slice(-MAX_FACES));
    const shown = known.filter((one) => one.shown);
    setAttribute(faces, "data-caption", shown.length < known.length ? texts.knownToYou : null);
    setAttribute(item, "data-shows", shown.length > 0 && known.length <= SHOWN_LARGE);
    drawSeatPiles(before, this.#page, piles);
    this.#page.bubbles.draw(bubble, seat);
  }
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
