/** The toolbar: a button for each action that the player may use, and the number of cards. */

import { element, setAttribute } from "../dom.js";
import { table as texts } from "../texts.js";
import { ACTIONS, disabledReason, isVisible } from "./actions.js";

/** The groups of actions; on a phone each row scrolls. */
const ROWS = [["hand"], ["deck", "round"]];

/** A button whose action is not possible now stays focusable, and shows the reason when pressed. */
export class Toolbar {
  #page;
  #container;
  #buttons = new Map();
  #number = element("output", { class: "number", "aria-live": "off" });
  #stepper;

  constructor(container, page) {
    this.#page = page;
    this.#container = container;
    setAttribute(container, "role", "toolbar");
    setAttribute(container, "aria-label", texts.toolbar);
    container.addEventListener("keydown", (event) => this.#onKeyDown(event));
    this.#stepper = this.#createStepper();
    for (const row of ROWS) {
      container.append(
        element("div", { class: "tool-row" }, ...row.map((group) => this.#createGroup(group))));
    }
    container.querySelector(".deck").prepend(this.#stepper);
  }

  draw() {
    const { table, count } = this.#page;
    for (const [action, button] of this.#buttons) {
      button.hidden = !isVisible(action, table);
      const reason = disabledReason(action, this.#page);
      setAttribute(button, "aria-disabled", reason === null ? null : "true");
      setAttribute(button, "title", reason ?? texts.hints[action.name]);
    }
    this.#number.textContent = String(count);
    setAttribute(this.#stepper, "aria-label", texts.howMany({ count }));
    for (const group of this.#container.querySelectorAll(".tools")) {
      const tools = Array.from(group.querySelectorAll("button.tool"));
      group.hidden = tools.every((tool) => tool.hidden);
    }
    this.#stepper.hidden = !ACTIONS.some((one) => one.counted && isVisible(one, table));
    this.#stepper.parentElement.hidden &&= this.#stepper.hidden;
  }

  #createGroup(group) {
    const actions = ACTIONS.filter((one) => one.group === group);
    return element("div", {
      class: `tools ${group}`, role: "group", "aria-label": texts.groups[group],
    }, ...actions.map((one) => this.#createButton(one)));
  }

  #createButton(action) {
    const button = element(
      "button", {
        class: "tool", type: "button", "data-action": action.name,
        "data-mark": action.mark, "aria-keyshortcuts": action.key,
        onclick: (event) => this.#page.click(action.name, event),
      },
      texts.actions[action.name],
      element("kbd", { "aria-hidden": "true" }, action.key.replace("Shift+", "⇧").toUpperCase()),
    );
    this.#buttons.set(action, button);
    return button;
  }

  #createStepper() {
    const step = (by, sign, label) => element("button", {
      class: "borderless", type: "button", "aria-label": label,
      onclick: () => this.#page.setCount(this.#page.count + by),
    }, sign);
    return element("div", { class: "stepper", role: "group" },
      step(-1, "−", texts.fewer), this.#number, step(1, "+", texts.more));
  }

  /** Arrow keys move the focus along the toolbar. */
  #onKeyDown(event) {
    const right = document.documentElement.dir === "rtl" ? -1 : 1;
    const by = { ArrowLeft: -right, ArrowRight: right }[event.key];
    if (by === undefined) return;
    const buttons = Array.from(this.#container.querySelectorAll("button")).filter(
      (button) => button.offsetParent !== null,
    );
    const index = buttons.indexOf(document.activeElement);
    buttons[(index + by + buttons.length) % buttons.length]?.focus();
    event.preventDefault();
  }
}
