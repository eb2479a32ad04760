/** The middle of the table: the deck, the piles and counters. */

import { element, safeText, reconcile, setAttribute, setText } from "../dom.js";
import { number, table as texts } from "../texts.js";
import { actionNamed, disabledReason } from "./actions.js";
import { columnOf, isColumn, pilesOfGame, turnsOnto } from "./game.js";
import { isSpread, isTrickPile, pileElement, updatePile } from "./pile_view.js";
import { scrollCue } from "./scroll_cue.js";
import { cardsShown, pilesShown, shownRound } from "./selectors.js";

/** Piles that a game has no need of until they have a card: until then their place is kept. */
const COMES_LATER = /^pile:(discard|burn)$/;

export class Stacks {
  #page;
  #container;
  #list = element("ul", { class: "stacks", role: "list", "aria-label": texts.stacks });
  #counters = element("ul", { class: "counters", role: "list", "aria-label": texts.counters });
  #cues;

  constructor(container, page) {
    this.#page = page;
    this.#container = container;
    container.append(this.#list, this.#counters);
    this.#cues = [container.parentElement, container].map(
      (one) => scrollCue(one, "block", container));
  }

  draw() {
    const { state } = this.#page.table;
    const names = shownRound(state) === null ? [] : stacksShown(state);
    const over = state.round === null && state.closedRound !== null;
    this.#markOver(over);
    setAttribute(this.#container, "data-many", sizeOf(names.length));
    this.#list.hidden = names.length === 0;
    const columns = names.filter(isColumn).length;
    setAttribute(this.#container, "data-tableau", columns > 0);
    this.#list.style.setProperty("--columns", String(columns));
    const main = columns > 0 || over ? undefined : names.find((name) => isSpread(name));
    setAttribute(this.#container, "data-layout", over || names.length === 0 ? null
      : columns > 0 ? "columns" : main === undefined ? "piles"
        : isTrickPile(main) ? "trick" : pilesOfGame() === null ? "free" : "board");
    const beside = names.filter((name) => name !== main).length;
    this.#list.style.setProperty("--beside", String(beside));
    reconcile(this.#list, names, {
      key: (name) => name,
      create: (name) => pileElement(name, (event) => this.#tap(name, event)),
      update: (item, name) => {
        setAttribute(item, "data-main", name === main);
        this.#update(item, columns > 0 ? columnOf(name, names) : null);
      },
    });
    this.#drawCounters();
  }

  /** Mark where seats and middle scroll. Called after all is drawn, as it needs the layout. */
  measure() {
    for (const mark of this.#cues) mark();
  }

  /** After a round there is more to see, from the sentence on. */
  #markOver(over) {
    const around = this.#container.parentElement;
    const before = around.hasAttribute("data-ended");
    setAttribute(around, "data-ended", over);
    if (before !== over) around.scrollTop = 0;
  }

  #tap(name, event) {
    const draws = name === "deck" && this.#page.table.round !== null;
    return draws ? this.#page.click("draw", event) : this.#page.onPileTap(name, event);
  }

  #update(item, column) {
    updatePile(item, this.#page);
    const { state } = this.#page.table;
    const later = pilesOfGame() !== null && COMES_LATER.test(item.dataset.stack);
    setAttribute(item, "data-unused", later && cardsShown(state, item.dataset.stack).length === 0);
    item.style.gridColumn = column === null ? "" : String(column);
    if (item.dataset.stack !== "deck") return;
    const button = item.firstElementChild;
    const reason = disabledReason(actionNamed("draw"), this.#page);
    setAttribute(button, "aria-disabled", reason === null ? null : "true");
    setAttribute(button, "title", reason ?? texts.tapToDraw);
  }

  #drawCounters() {
    const counters = [...this.#page.markers.counters];
    this.#counters.hidden = counters.length === 0;
    reconcile(this.#counters, counters, {
      key: ([name]) => name,
      create: () => element("li", {}, element("bdi", {}), " ", element("b", {})),
      update: (item, [name, value]) => {
        setText(item.firstElementChild, safeText(name));
        setText(item.lastElementChild, number(value));
      },
    });
  }
}

/** The deck, unless it is empty and not drawn from, and the piles; after a round no empty ones. */
function stacksShown(state) {
  const unused = cardsShown(state, "deck").length === 0 && state.who.draw === "nobody";
  if (state.round === null) {
    return ["deck", ...pilesShown(state)].filter((name) => cardsShown(state, name).length > 0);
  }
  const piles = pilesShown(state);
  // Columns come last, and what is beside the deck first.
  const rank = (name) => (name === turnsOnto() ? 0 : isColumn(name) ? 2 : 1);
  if (piles.some(isColumn)) piles.sort((a, b) => rank(a) - rank(b));
  return [...(unused ? [] : ["deck"]), ...piles];
}

/** How many stacks there are, for their size. */
const sizeOf = (stacks) => (stacks <= 4 ? "few" : stacks <= 8 ? "some" : "many");
