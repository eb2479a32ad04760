/** The middle of the table: the deck and the piles, or, between rounds, the way to the next one. */

import { cardElement, cardName, drawCard } from "../cards.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts/table.js";
import { actionNamed, disabledReason, isVisible } from "./actions.js";
import { gameHelp, isSpreadInGame } from "./game.js";
import { showHelpCard } from "./help_card.js";
import { cardsIn, pileName, pileTitle, pilesShown } from "./selectors.js";

const MAX_SPREAD = 12; // cards of a spread pile that are drawn
const NOT_SPREAD = ["pile:discard", "pile:burn"];

export class Stacks {
  #page;
  #list = element("ul", { class: "stacks", "aria-label": texts.stacks });
  #between = element("div", { class: "between" });
  #help = element("button", {
    class: "small", type: "button", hidden: true, onclick: () => showHelpCard(gameHelp()),
  });

  constructor(container, page) {
    this.#page = page;
    container.append(this.#list, this.#between);
  }

  draw() {
    const { table } = this.#page;
    const { state } = table;
    const names = state.round === null ? [] : ["deck", ...pilesShown(state)];
    this.#list.hidden = names.length === 0;
    reconcile(this.#list, names, {
      key: (name) => name,
      create: (name) => this.#create(name),
      update: (item, name) => this.#update(item, name, cardsIn(state, name)),
    });
    this.#drawBetween();
  }

  #create(name) {
    const onclick = (event) =>
      (name === "deck" ? this.#page.click("draw", event) : this.#page.onPileTap(name));
    const button = element(
      "button", { class: "stack", type: "button", onclick },
      element("span", { class: "cards", "aria-hidden": "true" }),
      element("span", { class: "name" }), element("span", { class: "count muted" }),
    );
    return element("li", { "data-drop": name, "data-stack": name }, button);
  }

  #update(item, name, cards) {
    const { table } = this.#page;
    const button = item.firstElementChild;
    const [pictures, title, count] = button.children;
    const spread = isSpread(name);
    setAttribute(item, "data-spread", spread);
    item.classList.toggle("open", spread);
    const shown = cards.slice(spread ? -MAX_SPREAD : -1);
    setAttribute(item, "data-thick", Math.min(3, Math.ceil(cards.length / 18)));
    setAttribute(item, "data-shuffling", table.state.round?.shuffle?.stack === name);
    setAttribute(item, "data-drag", cards.length > 0 ? name : null);
    setText(title, name === "deck" ? texts.deck : pileTitle(pileName(name)));
    setText(count, String(cards.length));
    setAttribute(button, "aria-label", name === "deck"
      ? texts.deckLabel(cards.length)
      : texts.titledPileLabel(pileTitle(pileName(name)), cards.length, visibleNames(shown)));
    if (name === "deck") {
      const reason = disabledReason(actionNamed("draw"), this.#page);
      setAttribute(button, "aria-disabled", reason === null ? null : "true");
      setAttribute(button, "title", reason ?? texts.tapToDraw);
    }
    reconcile(pictures, shown, {
      key: ({ id }) => id,
      create: (card) => cardElement(shownFace(card)),
      update: (picture, card) => {
        if ((picture.dataset.card ?? null) !== shownFace(card)) drawCard(picture, shownFace(card));
      },
    });
  }

  /** Between rounds: a sentence, the button that opens a round, and links to the last round. */
  #drawBetween() {
    const { table } = this.#page;
    this.#between.hidden = table.round !== null;
    if (table.round !== null) return;
    const { rounds } = table.state;
    const mayOpen = isVisible(actionNamed("openRound"), table) && !table.closed;
    const sentence = table.closed ? texts.tableClosed : texts.betweenRounds(rounds, mayOpen);
    const help = gameHelp();
    this.#help.hidden = help === null;
    if (help !== null) setText(this.#help, texts.howToPlay(help.title));
    const key = JSON.stringify([sentence, mayOpen, rounds]);
    if (this.#between.dataset.shown === key) return;
    this.#between.dataset.shown = key;
    this.#between.replaceChildren(
      element("p", {}, sentence),
      mayOpen
        ? element("button", {
            class: "primary", type: "button", onclick: () => this.#page.run("openRound"),
          }, texts.startRound(rounds + 1))
        : "",
      this.#help,
      rounds > 0 ? lastRoundLinks(table) : "",
    );
  }
}

/** Whether all cards of a stack are drawn, as far as there is room. */
function isSpread(stack) {
  if (stack === "deck") return false;
  return isSpreadInGame(pileName(stack)) ?? !NOT_SPREAD.includes(stack);
}

/** The names of the cards that lie face up. */
function visibleNames(shown) {
  return shown.map(shownFace).filter((code) => code !== null).map(cardName);
}

/** The code of a face-up card. A face-down card is drawn as such even if the player knows it. */
function shownFace({ card, shown }) {
  return shown ? card : null;
}

/** Links to the audit, the history and the bundle of the last round. */
function lastRoundLinks({ id, state }) {
  const link = (href, text, attributes = {}) => element("a", { href, ...attributes }, text);
  // A table without spectators gives its log only to its players, and a link carries no token; the
  // audit page sends it.
  const files = [
    " · ", link(`/tables/${id}/history.txt`, texts.readHistory),
    " · ", link(`/tables/${id}/bundle.jsonl`, texts.takeBundle, { download: `${id}.jsonl` }),
  ];
  return element(
    "p", { class: "finished" }, texts.roundOver(state.rounds), " ",
    link(`/tables/${id}/audit#round=${state.rounds}`, texts.watchAudit),
    ...(state.watched ? files : []),
  );
}
