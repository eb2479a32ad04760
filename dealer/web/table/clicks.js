/** Recognizes clicks that repeat one: the second one of a double click, or one before the answer. */

export const DOUBLE_TAP_MS = 300; // for fingers, whose clicks some browsers do not count

/** A click with the keyboard never repeats another. */
export class Clicks {
  #running = new Set();
  /** @type {{ button: EventTarget | null, at: number }} */
  #last = { button: null, at: -Infinity };

  /**
   * Run an action of a button, unless this click repeats the one before.
   *
   * @param {MouseEvent} event `detail` counts the clicks in quick succession, 0 for the keyboard
   * @param {() => Promise<any>} run
   */
  async once(event, run) {
    if (event.detail === 0) return run();
    const button = event.currentTarget;
    const isSecond = event.detail > 1 || this.#isSecondTap(event);
    this.#last = { button, at: event.timeStamp };
    if (isSecond || this.#running.has(button)) return undefined;
    this.#running.add(button);
    try {
      return await run();
    } finally {
      this.#running.delete(button);
    }
  }

  #isSecondTap(event) {
    if (/** @type {PointerEvent} */ (event).pointerType === "mouse") return false;
    const { button, at } = this.#last;
    return button === event.currentTarget && event.timeStamp - at < DOUBLE_TAP_MS;
  }
}
