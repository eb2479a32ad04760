/**
 * How a player likes to hold their cards: sorted, or in an order of their own.
 *
 * The house knows nothing of it. It is remembered in this browser by slot, for one round.
 */

import { compareCards } from "../cards.js";

const KEY = "dealer/page/order/";

/** One player's order at one table; `store` is like localStorage. */
export class Order {
  #key;
  #store;
  #round = null;
  #slots = [];
  /** "suit" or "rank" while the hand keeps itself sorted, else null. */
  by = null;

  constructor(table, store = localStorage) {
    this.#key = KEY + table;
    this.#store = store;
    try {
      const kept = JSON.parse(store.getItem(this.#key) ?? "{}");
      this.#round = kept.round ?? null;
      this.#slots = Array.isArray(kept.slots) ? kept.slots : [];
      this.by = kept.by === "suit" || kept.by === "rank" ? kept.by : null;
    } catch {
      // What cannot be read is an order that nobody has.
    }
  }

  /** The cards as they are held; those that are new come last, unless the hand is kept sorted. */
  arrange(round, cards) {
    if (round !== this.#round) {
      this.#round = round;
      this.#slots = [];
    }
    const place = new Map(this.#slots.map((slot, index) => [slot, index]));
    const of = (card) => place.get(card.slot) ?? Infinity;
    const held = cards.map((card, came) => ({ card, came }));
    held.sort((a, b) => {
      if (this.by !== null) return compareCards(a.card.card ?? "??", b.card.card ?? "??", this.by);
      return of(a.card) === of(b.card) ? a.came - b.came : of(a.card) - of(b.card);
    });
    return held.map(({ card }) => card);
  }

  /** Keep the hand sorted by suit or by rank from now on. */
  sort(by) {
    this.by = by;
    this.#keep();
  }

  /** Put the cards in `moved` together, in their order, before the card `before` (or last). */
  move(slots, moved, before) {
    const staying = slots.filter((slot) => !moved.includes(slot));
    const at = before === null ? staying.length : staying.indexOf(before);
    const taken = slots.filter((slot) => moved.includes(slot));
    staying.splice(at < 0 ? staying.length : at, 0, ...taken);
    this.by = null;
    this.#slots = staying;
    this.#keep();
  }

  #keep() {
    const kept = { round: this.#round, slots: this.#slots, by: this.by };
    try {
      this.#store.setItem(this.#key, JSON.stringify(kept));
    } catch {
      // Then the order lasts as long as the page.
    }
  }
}
