/** The toolbar: a button for each action that the player may use, and the number of cards. */

import { element, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts.js";
import { ACTIONS, actionNamed, disabledReason, isVisible } from "./actions.js";
import { choices, dialog } from "./dialogs.js";
import { buttonsOfGame, isDealt, isOver, nextDeal } from "./game.js";
import { OF_CARDS, cardActions } from "./questions.js";
import { scrollCue } from "./scroll_cue.js";

/** The groups of actions; on a phone each row scrolls. */
const ROWS = [["hand"], ["deck", "round"]];
/** Actions without a group have a button if the game says so. */
const OF_GAMES = { passTo: "hand" };

const groupOf = ({ name, group }) => group ?? OF_GAMES[name];

/**
 * A button whose action is not possible now stays focusable, and shows the reason when pressed. A
 * game may name the buttons that matter; the other actions are in a menu.
 */
export class Toolbar {
  #page;
  #container;
  #buttons = new Map();
  #number = element("output", { class: "number", "aria-live": "off" });
  #stepper;
  #cues = [];
  #others = element("button", {
    class: "tool others", type: "button", "aria-haspopup": "dialog", hidden: true,
    onclick: () => this.#chooseOther(),
  }, texts.actions.more);

  constructor(container, page) {
    this.#page = page;
    this.#container = container;
    setAttribute(container, "role", "toolbar");
    setAttribute(container, "aria-label", texts.toolbar);
    container.addEventListener("keydown", (event) => this.#onKeyDown(event));
    this.#stepper = this.#createStepper();
    for (const groups of ROWS) {
      const row = element(
        "div", { class: "tool-row" }, ...groups.map((group) => this.#createGroup(group)));
      container.append(row);
      this.#cues.push(scrollCue(row, "inline"));
    }
    container.querySelector(".deck").prepend(this.#stepper);
    container.querySelector(".round").append(this.#others);
  }

  draw() {
    const { table, count } = this.#page;
    for (const [action, button] of this.#buttons) {
      button.hidden = !this.#isShown(action);
      const reason = disabledReason(action, this.#page);
      setAttribute(button, "aria-disabled", reason === null ? null : "true");
      setAttribute(button, "title", reason ?? texts.hints[action.name]);
    }
    setAttribute(this.#container, "data-few", buttonsOfGame() !== null);
    this.#others.hidden = this.#otherActions().length === 0;
    const dealName = count === 1 ? nextDeal(table)?.title : null;
    setText(
      this.#buttons.get(actionNamed("deal")).firstElementChild, dealName ?? texts.actions.deal);
    const over = isOver(table);
    const close = this.#buttons.get(actionNamed("closeRound"));
    setText(close.firstElementChild, over ? texts.endHand : texts.actions.closeRound);
    close.classList.toggle("primary", over);
    setAttribute(close, "data-mark", over ? null : "final");
    this.#number.textContent = String(count);
    setAttribute(this.#stepper, "aria-label", texts.howMany({ count }));
    for (const group of this.#container.querySelectorAll(".tools")) {
      const tools = Array.from(group.querySelectorAll("button.tool"));
      group.hidden = tools.every((tool) => tool.hidden);
    }
    this.#stepper.hidden = !ACTIONS.some((one) => one.counted && this.#isShown(one) &&
      !(one.name === "deal" && buttonsOfGame() !== null));
    this.#stepper.parentElement.hidden &&= this.#stepper.hidden;
  }

  /** Mark where the rows can be scrolled. Called after all is drawn, as it needs the layout. */
  measure() {
    for (const mark of this.#cues) mark();
  }

  #createGroup(group) {
    const actions = ACTIONS.filter((one) => groupOf(one) === group);
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
      element("span", {}, texts.actions[action.name]),
      element("kbd", { "aria-hidden": "true" }, action.key.replace("Shift+", "⇧").toUpperCase()),
    );
    this.#buttons.set(action, button);
    return button;
  }

  #isShown(action) {
    if (!isVisible(action, this.#page.table)) return false;
    const named = buttonsOfGame();
    if (named === null) return action.group !== null;
    const { table } = this.#page;
    if (action.name === "deal" && (table.round === null || isDealt(table))) return false;
    if (action.name === "closeRound") return isOver(this.#page.table);
    return named.includes(action.name);
  }

  /** The actions whose buttons the game leaves out; `more` is this menu itself. */
  #otherActions() {
    if (buttonsOfGame() === null) return [];
    return ACTIONS.filter((one) => one.group !== null && one.name !== "more" &&
      isVisible(one, this.#page.table) && !this.#isShown(one));
  }

  /** What can be done with the selected cards comes first, then what has no button in the game. */
  async #chooseOther() {
    const page = this.#page;
    const ofCards = page.slots.length > 0 ? cardActions(page, page) : [];
    const others = this.#otherActions().filter((one) => !OF_CARDS.includes(one.name));
    const labelled = (labels) => ({ name, mark }) => ({ label: labels[name], value: name, mark });
    const chosen = await dialog(texts.otherActions, (close) => [
      choices(close, [
        ...ofCards.map(labelled(texts.cardActions)), ...others.map(labelled(texts.actions)),
      ]),
    ]);
    if (chosen !== null) await page.run(chosen);
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
