/** Questions for a number: a score, a counter, the seconds of a turn, cards to take. */

import { element, field } from "../dom.js";
import { table as texts } from "../texts.js";
import { dialog, form } from "./dialogs.js";

const LARGEST = 10 ** 15 - 1;

/**
 * A whole number, as `{ number }`; null if the question was dismissed.
 *
 * @param {string} title
 * @param {number} value the number to begin with
 * @param {{ min?: number, max?: number }} [bounds]
 * @returns {Promise<{ number: number } | null>}
 */
export async function askNumber(title, value, { min = -LARGEST, max = LARGEST } = {}) {
  const input = element("input", {
    type: "number", step: 1, required: true, value, min, max, autofocus: true,
    "aria-label": title, onfocus: ({ target }) => target.select(),
  });
  return await dialog(title, (close) => [
    form(() => close({ number: Number(input.value) }), { class: "line" },
      input, element("button", { type: "submit" }, texts.notes.set)),
  ]);
}

/** A counter's name and value, as `{ name, number }`; null if the question was dismissed. */
export async function askCounter(counters) {
  const [[first = "", value = 0] = []] = counters;
  const name = element("input", {
    required: true, maxlength: 64, pattern: "[^:]+", autocomplete: "off", value: first,
    autofocus: true,
  });
  const number = element("input", {
    type: "number", step: 1, required: true, value, min: -LARGEST, max: LARGEST,
  });
  return await dialog(texts.notes.counter, (close) => [
    form(() => close({ name: name.value.trim(), number: Number(number.value) }), {},
      field(texts.notes.counterName, name), field(texts.notes.counterValue, number),
      element("button", { type: "submit" }, texts.notes.set)),
  ]);
}
