/** One key for each thing to do; they can be switched off, and `?` shows them all. */

import { make } from "../make.js";
import { table as texts } from "../texts/table.js";
import { ACTIONS, offered } from "./actions.js";

const OFF = "dealer/page/keys";

/**
 * Listens on the whole page. `others` are keys that are no actions: `{ key: run }`. Nothing is
 * taken from fields, from open dialogs, or from chords with ctrl, alt or the command key.
 */
export class Keys {
  #game;
  #keys;

  constructor(game, others) {
    this.#game = game;
    this.#keys = new Map(Object.entries(others));
    for (const one of ACTIONS) this.#keys.set(one.key, () => game.run(one.name));
    document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** Whether single keys do things; some who speak to their computer want them off. */
  get on() {
    return localStorage.getItem(OFF) !== "off";
  }

  set on(on) {
    localStorage.setItem(OFF, on ? "on" : "off");
  }

  #pressed(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, textarea, select") || event.repeat) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const letter = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const shifted = event.shiftKey && /^[a-z]$/.test(letter);
    const name = shifted ? `Shift+${letter.toUpperCase()}` : letter;
    const run = this.#keys.get(name);
    if (run === undefined || (!this.on && name !== "Escape")) return;
    event.preventDefault();
    run(name);
  }
}

/** What the `?` overlay says: each key with what it does here, and the switch. */
export function helpFor(game, keys) {
  const row = (key, text) => make("div", {}, make("dt", {}, make("kbd", {}, shown(key))),
    make("dd", {}, text));
  const actions = ACTIONS.filter((one) => offered(one, game.table));
  const own = make("input", {
    type: "checkbox", checked: keys.on, onchange: ({ target }) => (keys.on = target.checked),
  });
  own.checked = keys.on;
  return [
    make("p", {}, texts.helpIntro),
    make("dl", { class: "keys" },
      ...actions.map((one) => row(one.key, texts.means[one.name])),
      ...Object.entries(texts.otherKeys).map(([key, text]) => row(key, text))),
    make("p", {}, texts.helpDragging),
    make("label", { class: "choice" }, own, texts.singleKeys),
  ];
}

function shown(key) {
  return key.length === 1 ? key.toUpperCase() : key;
}
