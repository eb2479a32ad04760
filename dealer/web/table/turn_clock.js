/** The ring of the clock: how much is left of the time of a turn, from the last note of it on. */

import { HistoryFold } from "../client/fold.js";

const STEPS = 120; // in which the ring goes around
const STEP_MIN_MS = 250;

export class TurnClock {
  #page;
  /** @type {any} */
  #timer = null;
  /** @type {HistoryFold<number>} when the last turn began, by the server's clock */
  #began = new HistoryFold(0, (began, { type, at, public: event }) =>
    (type === "NoteAdded" && event.kind === "turn" ? at : began));

  constructor(page) {
    this.#page = page;
  }

  draw() {
    clearTimeout(this.#timer);
    const { table, markers } = this.#page;
    const began = this.#began.of(table.history);
    const runs = markers.clock > 0 && markers.turn !== null && !table.closed;
    if (runs) this.#show(began, markers.clock * 1000);
    else showLeft(null);
  }

  #show(began, length) {
    const left = Math.min(Math.max(0, 1 - (this.#page.serverTime - began) / length), 1);
    showLeft(left);
    const step = Math.max(STEP_MIN_MS, length / STEPS);
    if (left > 0) this.#timer = setTimeout(() => this.#show(began, length), step);
  }
}

/** Draw the part of the time that is left, 0 to 1, at the player whose turn it is; null for all. */
function showLeft(left) {
  for (const one of document.querySelectorAll("[data-turn]")) {
    const { style } = /** @type {HTMLElement} */ (one);
    if (left === null) style.removeProperty("--left");
    else style.setProperty("--left", left.toFixed(3));
  }
}
