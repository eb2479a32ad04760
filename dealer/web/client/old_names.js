/** Names of a table's commands in earlier releases; they go with the next one. */

/** @typedef {import("../client.js").RemoteTable} Declared */

/** A subclass has the commands under their new names. */
export class OldNames {
  /** @type {Declared["change"]} */
  change(method, params) {
    return this.#now.call(method, params);
  }

  /** @type {Declared["return"]} */
  return(cards, options) {
    return this.#now.returnCards(cards, options);
  }

  /** @type {Declared["handReturn"]} */
  handReturn(cards, options) {
    return this.#now.returnCards(cards, options);
  }

  /** @type {Declared["pileMove"]} */
  pileMove(source, options) {
    return this.#now.move(source, options);
  }

  /** @returns {Declared} */
  get #now() {
    return /** @type {any} */ (this);
  }
}
