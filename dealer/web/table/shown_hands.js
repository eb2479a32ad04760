/**
 * What the hands of a showdown are, in words, and which is the best, once all that are left are shown
 * to all. Loaded for games that compare hands; a module of the page's state would be another one
 * here, so that is given.
 */

import { handsOf, wordsOf } from "./showdown.js";

/**
 * @typedef {object} Given
 * @property {"poker" | "omaha"} rules
 * @property {any} texts those of a result, with the kinds of hands, the lowest first
 * @property {(seat: number) => string} nameOf
 * @property {(stack: string) => boolean} isBoard
 */

export class ShownHands {
  #page;
  #given;
  #drawn = "";

  /**
   * @param {any} page its `kinds`, by seats, and `bestHand` are kept up to date
   * @param {Given} given
   */
  constructor(page, given) {
    this.#page = page;
    this.#given = given;
  }

  draw() {
    const { rules, texts, nameOf, isBoard } = this.#given;
    const stacks = this.#page.table.state.round?.stacks ?? {};
    const hands = Object.keys(stacks).filter((name) => name.startsWith("hand:"));
    const isOpen = hands.every((name) => stacks[name].every(({ shown }) => shown));
    const board = Object.keys(stacks).filter(isBoard).flatMap((name) => stacks[name]);
    const found = isOpen ? handsOf(rules, stacks, board) : [];
    const named = found.filter(({ kind }) => kind !== null)
      .map(({ seat, kind }) => /** @type {const} */ ([seat, texts.kinds[kind]]));
    if (String(named) === this.#drawn) return;
    this.#drawn = String(named);
    this.#page.kinds = new Map(named);
    this.#page.bestHand = named.length === 0 ? null : {
      line: wordsOf(found, texts, nameOf, this.#page.table.seat),
      seats: found.filter(({ best }) => best).map(({ seat }) => seat),
    };
    this.#page.draw();
  }
}
