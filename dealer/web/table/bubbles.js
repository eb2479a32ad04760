/**
 * Phrases and reactions as short bubbles at the seats. A bubble disappears when its seat does
 * something else, or after some seconds. It is not in the accessibility tree: screen readers
 * announce the log's line.
 */

import { element, safeText, setText } from "../dom.js";
import { seatOf } from "../verify.js";
import { phraseOf } from "./selectors.js";

const SHOWN_MS = 7000;

export const bubbleElement = () =>
  element("span", { class: "bubble", "aria-hidden": "true", hidden: true, translate: "no" });

export class Bubbles {
  #texts = new Map();
  #timers = new Map();
  #changed;

  /** @param {() => void} changed is called when the time of a bubble is over */
  constructor(changed) {
    this.#changed = changed;
  }

  /** Draw what a seat says. */
  draw(bubble, seat) {
    bubble.hidden = !this.#texts.has(seat);
    setText(bubble, this.#texts.get(seat) ?? "");
  }

  /** @param {import("../client.js").TableEvent} event */
  onEvent(event) {
    if (!event.live) return;
    const seat = actor(event);
    if (seat === null) return;
    this.#remove(seat);
    const text = textOf(event);
    if (text === null) return;
    this.#texts.set(seat, text);
    this.#timers.set(seat, setTimeout(() => {
      this.#remove(seat);
      this.#changed();
    }, SHOWN_MS));
  }

  #remove(seat) {
    clearTimeout(this.#timers.get(seat));
    this.#timers.delete(seat);
    this.#texts.delete(seat);
  }
}

/** The phrase or reaction of an event; null if it has none. */
function textOf({ type, public: event }) {
  if (type !== "NoteAdded") return null;
  const { kind, text } = event;
  if (kind === "phrase") return phraseOf(text);
  return kind === "reaction" ? safeText(text) : null;
}

/** The seat whose player caused an event, as far as the event says; null otherwise. */
function actor({ type, public: event }) {
  if (type === "CardMoved") return seatOf(event.from);
  return type === "NoteAdded" || type === "CardDrawn" || type === "SeatLeft" ? event.seat : null;
}
