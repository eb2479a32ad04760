/**
 * A value that is computed from a list of events that grows; each event is read once.
 *
 * @template T
 */
export class HistoryFold {
  #read = 0;
  #value;
  #step;

  /**
   * @param {T} start the value before the first event
   * @param {(value: T, event: any) => T} step the value after an event; may change the given one
   */
  constructor(start, step) {
    this.#value = start;
    this.#step = step;
  }

  /**
   * The value after all of these events.
   *
   * @param {readonly any[]} events oldest first: those of earlier calls and later ones
   * @returns {T}
   */
  of(events) {
    for (; this.#read < events.length; this.#read++) {
      this.#value = this.#step(this.#value, events[this.#read]);
    }
    return this.#value;
  }
}
