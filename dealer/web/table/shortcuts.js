/** Keyboard shortcuts: one key for each action. They can be switched off; `?` lists them. */

import { element } from "../dom.js";
import { remember, stored } from "../page_storage.js";
import { table as texts } from "../texts.js";
import { ACTIONS, isVisible } from "./actions.js";

const SETTING = "dealer/page/keys";
const LATIN = /^[a-z0-9]$/;

/**
 * The letter or digit of a key, on any keyboard: the Latin one at its place where it writes another,
 * as on a Cyrillic keyboard, or none, as while a word is composed; otherwise what the key writes.
 *
 * @param {KeyboardEvent} event
 */
export function letterOf({ key, code, shiftKey }) {
  const written = key.length === 1 ? key.toLowerCase() : key;
  if (LATIN.test(written)) return written;
  const place = shiftKey ? /^Key([A-Z])$/ : /^(?:Key|Digit)([A-Z0-9])$/;
  return place.exec(code)?.[1].toLowerCase() ?? written;
}

/**
 * Listens on the whole page, but not to fields, open dialogs, or combinations with ctrl, alt or the
 * command key. `others` are shortcuts that are not actions: `{ key: run }`.
 */
export class Shortcuts {
  #keys;

  constructor(page, others) {
    this.#keys = new Map(Object.entries(others));
    for (const action of ACTIONS) this.#keys.set(action.key, () => page.run(action.name));
    document.addEventListener("keydown", (event) => this.#onKeyDown(event));
  }

  /** Whether single keys are shortcuts; users of speech input may want them off. */
  get enabled() {
    return stored.getItem(SETTING) !== "off";
  }

  set enabled(enabled) {
    remember(SETTING, enabled ? "on" : "off");
  }

  #onKeyDown(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, textarea, select") || event.repeat) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const letter = this.#keys.has(event.key) ? event.key : letterOf(event);
    const shifted = event.shiftKey && /^[a-z]$/.test(letter);
    const name = shifted ? `Shift+${letter.toUpperCase()}` : letter;
    const run = this.#keys.get(name);
    if (run === undefined || (!this.enabled && name !== "Escape")) return;
    event.preventDefault();
    run(name);
  }
}

/** The contents of the help dialog: each available key, and the switch for shortcuts. */
export function shortcutHelp(page, shortcuts) {
  const row = (key, text) => element("div", {},
    element("dt", {}, element("kbd", {}, key.length === 1 ? key.toUpperCase() : key)),
    element("dd", {}, text));
  const actions = ACTIONS.filter((action) => isVisible(action, page.table));
  const enabled = element("input", {
    type: "checkbox", onchange: ({ target }) => (shortcuts.enabled = target.checked),
  });
  enabled.checked = shortcuts.enabled;
  return [
    element("p", {}, texts.helpIntro),
    element("dl", { class: "keys" },
      ...actions.map((action) => row(action.key, texts.hints[action.name])),
      ...Object.entries(texts.otherKeys).map(([key, text]) => row(key, text))),
    element("p", {}, texts.helpDragging),
    element("label", { class: "choice" }, enabled, texts.singleKeys),
  ];
}
