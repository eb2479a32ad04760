/** The buttons under the felt: what this player may do now, and with how many cards. */

import { make, mark } from "../make.js";
import { table as texts } from "../texts/table.js";
import { ACTIONS, COUNTED, actionNamed, hindrance, offered } from "./actions.js";

const GROUPS = ["hand", "deck", "round"];

/** Draws into `place`; a button that cannot be used now says why when it is pressed. */
export class Toolbar {
  #game;
  #place;
  #buttons = new Map();
  #number = make("output", { class: "number", "aria-live": "off" });
  #stepper;

  constructor(place, game) {
    this.#game = game;
    this.#place = place;
    mark(place, "role", "toolbar");
    mark(place, "aria-label", texts.tools);
    place.addEventListener("keydown", (event) => this.#pressed(event));
    this.#stepper = this.#makeStepper();
    for (const group of GROUPS) {
      const inside = ACTIONS.filter((one) => one.group === group).map((one) => this.#button(one));
      place.append(make("div", {
        class: `tools ${group}`, role: "group", "aria-label": texts.groups[group],
      }, ...inside));
    }
    place.querySelector(".deck").prepend(this.#stepper);
  }

  draw() {
    const { table, count } = this.#game;
    for (const [one, button] of this.#buttons) {
      button.hidden = !offered(one, table);
      const reason = hindrance(one, this.#game);
      mark(button, "aria-disabled", reason === null ? null : "true");
      mark(button, "title", reason ?? texts.means[one.name]);
    }
    this.#number.textContent = String(count);
    mark(this.#stepper, "aria-label", texts.howMany(count));
    for (const box of this.#place.children) {
      box.hidden = Array.from(box.querySelectorAll("button.tool")).every((tool) => tool.hidden);
    }
    this.#stepper.hidden = COUNTED.every((name) => !offered(actionNamed(name), table));
    this.#stepper.parentElement.hidden &&= this.#stepper.hidden;
  }

  #button(one) {
    const button = make(
      "button", {
        class: "tool", type: "button", "data-action": one.name, "aria-keyshortcuts": one.key,
        onclick: () => this.#game.run(one.name),
      },
      texts.actions[one.name],
      make("kbd", { "aria-hidden": "true" }, one.key.replace("Shift+", "⇧").toUpperCase()),
    );
    this.#buttons.set(one, button);
    return button;
  }

  #makeStepper() {
    const step = (by, sign, label) => make("button", {
      class: "quiet", type: "button", "aria-label": label,
      onclick: () => this.#game.setCount(this.#game.count + by),
    }, sign);
    return make("div", { class: "stepper", role: "group" },
      step(-1, "−", texts.fewer), this.#number, step(1, "+", texts.more));
  }

  /** Arrow keys walk along the toolbar. */
  #pressed(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    const buttons = Array.from(this.#place.querySelectorAll("button")).filter(
      (button) => button.offsetParent !== null,
    );
    const at = buttons.indexOf(document.activeElement);
    buttons[(at + by + buttons.length) % buttons.length]?.focus();
    event.preventDefault();
  }
}
