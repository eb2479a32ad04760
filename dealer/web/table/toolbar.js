/** The toolbar: one row with the next step as its filled button, and the rest behind "More…". */

import { element, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts.js";
import { BETWEEN_SHUFFLES, actionNamed, disabledReason, isVisible, labelOf } from "./actions.js";
import { choices, dialog } from "./dialogs.js";
import { buttonsOfGame, passOfRound, wordOf } from "./game.js";
import { nextStep, turnLine } from "./next_step.js";
import { OF_CARDS, cardActions } from "./questions.js";
import { ownCards, passing } from "./selectors.js";
import { leadText } from "./trick.js";

/** All buttons, in the order of the row and of the menu. */
const ROW = [
  "deal", "draw", "play", "discard", "passTo", "give", "show", "takeBack", "putBack", "shuffle",
  "cut", "burn", "collect", "closeRound",
];
/** Without a game all but one have a place; the first ones keep it where there is little room. */
const OF_FREE_PLAY = [
  "takeBack", "draw", "play", "discard", "deal", "shuffle", "give", "show", "putBack", "cut",
  "burn", "collect",
];

/** Whether an action has a place in the row: in a round with passing either that, or playing. */
const isTimely = (name, table) => !["passTo", "play"].includes(name) ||
  passOfRound(table.round) === null || (name === "passTo") === (passing(table) !== null);

/** A button whose action is not possible now stays focusable, and shows the reason when pressed. */
export class Toolbar {
  #page;
  #container;
  #buttons = new Map();
  #number = element("output", { class: "number", "aria-live": "off" });
  #stepper;
  #says = element("p", { class: "says", "aria-hidden": "true" }); // the felt and the hand say it, too
  #more = element("button", {
    class: "tool", type: "button", "aria-haspopup": "dialog", onclick: () => this.#chooseOther(),
  }, texts.actions.more);
  #step = null;
  #names = []; // of the actions that have a button, the most important first
  #crowdedOut = new Set(); // those for which there is no room
  #measured = ""; // what the row had when it was measured

  constructor(container, page) {
    this.#page = page;
    this.#container = container;
    setAttribute(container, "role", "toolbar");
    setAttribute(container, "aria-label", texts.toolbar);
    container.addEventListener("keydown", (event) => this.#onKeyDown(event));
    this.#stepper = this.#createStepper();
    for (const name of ROW) this.#buttons.set(name, this.#createButton(actionNamed(name)));
    container.append(this.#says, ...this.#buttons.values(), this.#more);
    this.#buttons.get("draw").after(this.#stepper); // its number is that of cards to draw
    const observer = new ResizeObserver(() => this.#fit());
    for (const one of [container, this.#more]) observer.observe(one); // the room, and the letters
  }

  draw() {
    const { count, table } = this.#page;
    this.#chooseNames();
    const cards = ownCards(table).length;
    const line = table.seat === null ? null
      : turnLine(this.#page).line ?? (cards > 0 ? texts.yourHand({ cards }) : null);
    // Once a trick is whole, both may be who takes it.
    const said = new Set([line, leadText(table)].filter(Boolean));
    setText(this.#says, [...said].join("\n"));
    for (const [name, button] of this.#buttons) {
      const isStep = name === this.#step?.name;
      button.hidden = !this.#names.includes(name) || (!isStep && this.#crowdedOut.has(name));
      const reason = disabledReason(actionNamed(name), this.#page);
      setText(button, isStep ? this.#step.label : labelOf(name));
      setAttribute(button, "data-before", isStep ? this.#step.before : null);
      setAttribute(button, "aria-disabled", reason === null ? null : "true");
      setAttribute(button, "title", reason ?? texts.hints[name]);
      button.classList.toggle("primary", isStep && this.#step.filled);
    }
    this.#number.textContent = String(count);
    setAttribute(this.#stepper, "aria-label", texts.howMany({ count }));
    const counted = this.#names.some((name) => actionNamed(name).counted);
    this.#stepper.hidden = buttonsOfGame() !== null || !counted;
    const others = this.#otherActions();
    const waits = disabledReason({ conditions: BETWEEN_SHUFFLES }, this.#page);
    const isImpossible = (one) => disabledReason(one, this.#page) !== null;
    this.#more.hidden = others.length === 0;
    const isIdle = waits !== null && others.every(isImpossible);
    setAttribute(this.#more, "aria-disabled", isIdle ? "true" : null);
    setAttribute(this.#container, "data-waits", waits);
    this.#container.hidden = this.#names.length === 0 && this.#more.hidden;
  }

  /** In the next frame, as one that draws many cards has enough to lay out. */
  measure() {
    requestAnimationFrame(() => this.#fit());
  }

  /** Leave out the buttons that do not fit, first those of what is not possible now. */
  #fit() {
    if (this.#container.dataset.waits || this.#measured === this.#content()) return;
    for (const name of this.#names) this.#buttons.get(name).hidden = false;
    const spare = this.#names.filter((name) => name !== this.#step?.name).reverse();
    const byUse = [false, true].flatMap(
      (possible) => spare.filter((name) => this.#isPossible(name) === possible));
    // Each question costs a layout of the page: halve, rather than leave out one after the other.
    let [least, most] = [0, this.#isTooFull() ? byUse.length : 0];
    while (least < most) {
      const half = (least + most) >> 1;
      this.#leaveOut(byUse, half);
      if (this.#isTooFull()) least = half + 1;
      else most = half;
    }
    this.#leaveOut(byUse, least);
    this.#measured = this.#content();
  }

  #leaveOut(names, count) {
    this.#crowdedOut = new Set(names.slice(0, count));
    for (const name of names) this.#buttons.get(name).hidden = this.#crowdedOut.has(name);
    if (count > 0) this.#more.hidden = false;
  }

  #isPossible(name) {
    return !this.#buttons.get(name).hasAttribute("aria-disabled");
  }

  /** What decides which buttons have a place: the room, the labels, and what is possible. */
  #content() {
    const { clientWidth, clientHeight } = this.#container;
    const { fontSize } = getComputedStyle(this.#container);
    const labels = this.#names.map(
      (name) => this.#buttons.get(name).textContent + this.#isPossible(name));
    return [
      clientWidth, clientHeight, fontSize, this.#stepper.hidden, this.#says.textContent,
      this.#step?.name, ...labels,
    ].join("|");
  }

  #isTooFull() {
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = this.#container;
    return scrollWidth > clientWidth + 1 || scrollHeight > clientHeight + 1;
  }

  /** The next step, and what the game says; dealing and closing the round are only steps there. */
  #chooseNames() {
    const { table } = this.#page;
    const ofGame = buttonsOfGame()?.filter((name) => !["deal", "closeRound"].includes(name));
    const names = table.round === null ? [] : (ofGame ?? OF_FREE_PLAY).filter(
      (name) => isVisible(actionNamed(name), table) && isTimely(name, table));
    this.#step = nextStep(this.#page, names);
    const isNew = this.#step !== null && !names.includes(this.#step.name);
    this.#names = isNew ? [this.#step.name, ...names] : names;
  }

  #createButton({ name, mark, key }) {
    return element("button", {
      class: "tool", type: "button", "data-action": name, "data-mark": mark,
      "aria-keyshortcuts": key, onclick: (event) => this.#page.click(name, event),
    }, texts.actions[name]);
  }

  /** The actions that have no button now. */
  #otherActions() {
    const { table } = this.#page;
    if (table.round === null) return [];
    return ROW.map(actionNamed).filter((one) => isVisible(one, table) &&
      (!this.#names.includes(one.name) || this.#buttons.get(one.name).hidden));
  }

  /** What can be done with the selected cards comes first, then what has no button. */
  async #chooseOther() {
    const page = this.#page;
    const ofCards = page.slots.length > 0 ? cardActions(page, page) : [];
    const others = this.#otherActions().filter((one) => !OF_CARDS.includes(one.name));
    const labelled = (labels) => (one) => ({
      label: wordOf(one.name) ?? labels[one.name], value: one.name, mark: one.mark,
      reason: disabledReason(one, page),
    });
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
