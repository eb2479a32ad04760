/**
 * The order of the player's hand: sorted by suit or rank, or an order of the player's own, which is
 * for one round. In games of tricks it is sorted by suit until the player says otherwise. It is
 * stored in this browser, by slot; the server does not know it.
 */

import { compareCards } from "../cards.js";
import { remember, stored } from "../page_storage.js";
import { hasTricks } from "./game.js";

const KEY = "dealer/page/order/";

export class HandOrder {
  #key;
  #round = null;
  #slots = [];
  /** @type {"suit" | "rank" | "own" | null} null until the player has chosen */
  #chosen = null;

  /** @param {string} table */
  constructor(table) {
    this.#key = KEY + table;
    try {
      const order = JSON.parse(stored.getItem(this.#key) ?? "{}");
      this.#round = order.round ?? null;
      this.#slots = Array.isArray(order.slots) ? order.slots : [];
      this.#chosen = ["suit", "rank", "own"].includes(order.by) ? order.by : null;
    } catch {
      // An unreadable order is no order.
    }
  }

  /** The order that the hand is kept in automatically; "own" or null for none. */
  get by() {
    return this.#chosen ?? (hasTricks() ? "suit" : null);
  }

  /**
   * The cards in their order; new ones come last, unless the hand is kept sorted.
   *
   * @param {number | null} round
   * @param {readonly import("../client.js").Card[]} cards
   */
  arrange(round, cards) {
    if (round !== this.#round) {
      this.#round = round;
      this.#slots = [];
      if (this.#chosen === "own") this.#chosen = null;
    }
    const { by } = this;
    const indexes = new Map(this.#slots.map((slot, index) => [slot, index]));
    const indexOf = (card) => indexes.get(card.slot) ?? Infinity;
    const sorted = cards.map((card, arrival) => ({ card, arrival }));
    sorted.sort((a, b) => {
      if (by === "suit" || by === "rank") {
        return compareCards(a.card.card ?? "??", b.card.card ?? "??", by);
      }
      const [first, second] = [indexOf(a.card), indexOf(b.card)];
      return first === second ? a.arrival - b.arrival : first - second;
    });
    return sorted.map(({ card }) => card);
  }

  /** Keep the hand sorted from now on. */
  sort(by) {
    this.#chosen = by;
    this.#save();
  }

  /** Put the cards in `moved` together, in their order, before the slot `before`; null: last. */
  move(slots, moved, before) {
    const staying = slots.filter((slot) => !moved.includes(slot));
    const index = before === null ? staying.length : staying.indexOf(before);
    const taken = slots.filter((slot) => moved.includes(slot));
    staying.splice(index < 0 ? staying.length : index, 0, ...taken);
    this.#chosen = "own";
    this.#slots = staying;
    this.#save();
  }

  #save() {
    const order = { round: this.#round, slots: this.#slots, by: this.#chosen };
    remember(this.#key, JSON.stringify(order));
  }
}
