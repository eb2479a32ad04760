/** Notes with a meaning at this page: the turn, the dealer button, scores, phrases, reactions. */

import { element, field } from "../dom.js";
import { table as texts } from "../texts.js";
import { choices, dialog, form } from "./dialogs.js";

/** Keys of the phrases, which each page shows in its reader's language. */
const PHRASES = [
  "good-game", "well-played", "thank-you", "your-turn", "one-moment", "sorry", "yes", "no",
];
const REACTIONS = ["👍", "👏", "😀", "😮", "🤔", "😢", "🎉", "❤️"];
const LARGEST = 10 ** 15 - 1;

/** A phrase or a reaction to say, as `{ kind, text }`; null if none was chosen. */
export async function askSaying() {
  return await dialog(texts.notes.say, (close) => [
    element("div", { class: "reactions", role: "group", "aria-label": texts.notes.reactions },
      ...REACTIONS.map((text, index) => element("button", {
        type: "button", autofocus: index === 0, onclick: () => close({ kind: "reaction", text }),
      }, text))),
    choices(close, PHRASES.map((text) => (
      { label: texts.phrases[text], value: { kind: "phrase", text } }))),
  ]);
}

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
