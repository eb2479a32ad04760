/** The picture of dragged cards that follows the pointer: as many as move, as they will be seen. */

import { cardElement, drawCard } from "../cards.js";
import { element, setAttribute } from "../dom.js";

const MAX_CARDS = 9; // that are drawn; a number says how many there are

export class Ghost {
  #box;

  /**
   * @param {(string | null)[]} codes of the cards, null for a back
   * @param {boolean} touch the cards are drawn above the finger, which would cover them
   */
  constructor(codes, touch) {
    this.#box = element("div", { class: touch ? "ghost touch" : "ghost" });
    this.#box.append(...codes.slice(0, MAX_CARDS).map(cardElement));
    setAttribute(this.#box, "data-count", codes.length > 1 ? codes.length : null);
    document.querySelector("#overlay").append(this.#box);
  }

  draw(codes) {
    Array.from(this.#box.children).forEach((picture, index) => {
      if ((picture.dataset.card ?? null) !== codes[index]) drawCard(picture, codes[index]);
    });
  }

  moveTo(x, y) {
    this.#box.style.translate = `${x}px ${y}px`;
  }

  remove() {
    this.#box.remove();
  }
}
