/** A player's chip, at the table and in a replay: initials on the colour of the seat. */

import { element, setAttribute } from "./dom.js";

const COLOURS = 10;

/** A player's chip: the initials in the seat's colour; a ring at the player's turn. */
export function chipElement() {
  return element(
    "span", { class: "chip", "aria-hidden": "true", translate: "no" }, element("span", {}));
}

/** @param {HTMLElement} chip from `chipElement` */
export function updateChip(chip, { seat, name }) {
  setAttribute(chip.firstElementChild, "data-sign", initialsOf(name));
  setAttribute(chip, "data-colour", colourOf(seat));
  setAttribute(chip, "data-seat", seat);
}

/** A letter with its marks, or an emoji of several parts, is one. */
const letters = new Intl.Segmenter();

/** The first letters of the first two words of a name. */
export function initialsOf(name) {
  return name.trim().split(/\s+/u).slice(0, 2)
    .map((word) => letters.segment(word)[Symbol.iterator]().next().value?.segment ?? "")
    .join("").toLocaleUpperCase();
}

/** The number of a seat's colour in seats.css. */
export const colourOf = (seat) => ((seat - 1) % COLOURS) + 1;
