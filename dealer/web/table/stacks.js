/** The middle of the table: the deck, the piles, counters, and, between rounds, the next one. */

import { element, safeText, reconcile, setAttribute, setText } from "../dom.js";
import { tableUrl } from "../server_url.js";
import { number, table as texts } from "../texts.js";
import { actionNamed, disabledReason, isVisible } from "./actions.js";
import { dealsAtOnce, gameHelp, turnsOnto } from "./game.js";
import { showHelpCard } from "./help_card.js";
import { isColumn, isSpread, pileElement, updatePile } from "./pile_view.js";
import { scrollCue } from "./scroll_cue.js";
import { cardsShown, pilesShown, shownRound } from "./selectors.js";
import { betweenRounds } from "./wording.js";

const ROW = 6; // spread cards that leave room for another stack on a phone

export class Stacks {
  #page;
  #container;
  #list = element("ul", { class: "stacks", role: "list", "aria-label": texts.stacks });
  #counters = element("ul", { class: "counters", role: "list", "aria-label": texts.counters });
  #between = element("div", { class: "between" });
  #cues;
  #help = element("button", {
    class: "small", type: "button", hidden: true, onclick: () => showHelpCard(gameHelp()),
  });

  constructor(container, page) {
    this.#page = page;
    this.#container = container;
    container.append(this.#between, this.#list, this.#counters);
    this.#cues = [container.parentElement, container].map((one) => scrollCue(one, "block"));
  }

  draw() {
    const { state } = this.#page.table;
    const names = shownRound(state) === null ? [] : stacksShown(state);
    const over = state.round === null && state.closedRound !== null;
    this.#markOver(over);
    setAttribute(this.#container, "data-many", sizeOf(state, names));
    this.#list.hidden = names.length === 0;
    const columns = names.filter(isColumn).length;
    setAttribute(this.#container, "data-tableau", columns > 0);
    this.#list.style.setProperty("--columns", String(columns));
    reconcile(this.#list, names, {
      key: (name) => name,
      create: (name) => pileElement(name, (event) => this.#tap(name, event)),
      update: (item, name) => this.#update(item, columns > 0 ? columnOf(name, names) : null),
    });
    this.#drawCounters();
    this.#drawBetween();
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
    return draws ? this.#page.click("draw", event) : this.#page.onPileTap(name);
  }

  #update(item, column) {
    updatePile(item, this.#page);
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

  /** Between rounds: a sentence, the button that opens a round, and links to the last round. */
  #drawBetween() {
    const { table } = this.#page;
    this.#between.hidden = table.round !== null;
    if (table.round !== null) return;
    const { rounds, closedRound } = table.state;
    const mayOpen = isVisible(actionNamed("openRound"), table) && !table.closed;
    const sentence = betweenRounds({ closed: table.closed, rounds }, mayOpen);
    const help = gameHelp();
    this.#help.hidden = help === null;
    if (help !== null) setText(this.#help, texts.howToPlay({ game: help.title }));
    const start = dealsAtOnce(table) ? texts.startDeal
      : rounds === 0 ? texts.startFirst : texts.startRound({ round: rounds + 1 });
    const key = JSON.stringify([sentence, mayOpen, rounds, closedRound !== null, start]);
    if (this.#between.dataset.shown === key) return;
    this.#between.dataset.shown = key;
    this.#between.replaceChildren(
      rounds > 0 ? element("h2", { class: "over" }, texts.roundIsOver({ round: rounds })) : "",
      element("p", {}, sentence),
      mayOpen
        ? element("button", {
            class: "primary", type: "button", onclick: () => this.#page.run("openRound"),
          }, start)
        : "",
      this.#help,
      rounds > 0 ? lastRoundLinks(table) : "",
    );
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

/**
 * In which column of a tableau a stack is: the deck and the pile beside it at the left, the other
 * piles at the right, and the columns below them.
 */
function columnOf(name, names) {
  const columns = names.filter(isColumn);
  if (isColumn(name)) return columns.indexOf(name) + 1;
  const left = ["deck", turnsOnto()];
  if (left.includes(name)) return left.indexOf(name) + 1;
  const right = names.filter((one) => !isColumn(one) && !left.includes(one));
  return Math.max(1, columns.length - right.length + right.indexOf(name) + 1);
}

/** How many stacks there are, for their size: two make one row on a phone, if they are not wide. */
function sizeOf(state, names) {
  const isWide = (name) => isSpread(name) && cardsShown(state, name).length > ROW;
  const stacks = names.length;
  if (stacks <= 2 && !names.some(isWide)) return "two";
  if (stacks <= 4) return "few";
  return stacks <= 8 ? "some" : "many";
}

/** Links to the audit, the history and the bundle of the last round. */
function lastRoundLinks({ id, state }) {
  const link = (href, text, attributes = {}) => element("a", { href, ...attributes }, text);
  // A table without spectators gives its log only to its players, and a link carries no token; the
  // audit page sends it.
  const files = [
    " · ", link(tableUrl(id, "/history"), texts.readHistory),
    " · ", link(tableUrl(id, "/bundle.jsonl"), texts.takeBundle, { download: `${id}.jsonl` }),
  ];
  return element(
    "p", { class: "finished" },
    state.closedRound === null ? texts.roundNotSeen : texts.roundOver, " ",
    link(tableUrl(id, `/audit#round=${state.rounds}`), texts.watchAudit),
    ...(state.watched ? files : []),
  );
}
