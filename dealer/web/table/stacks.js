/** The middle of the table: the deck and the piles, or, between rounds, the way to the next one. */

import { cardElement, cardName, drawCard } from "../cards.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { language, table as texts } from "../texts.js";
import { actionNamed, disabledReason, isVisible } from "./actions.js";
import { cardsIn, pileName, pilesShown } from "./selectors.js";
import { betweenRounds, pileTitle } from "./wording.js";

const MAX_SPREAD = 12; // cards of a spread pile that are drawn
const NOT_SPREAD = ["pile:discard", "pile:burn"];

export class Stacks {
  #page;
  #list = element("ul", { class: "stacks", "aria-label": texts.stacks });
  #between = element("div", { class: "between" });

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
    const spread = name !== "deck" && !NOT_SPREAD.includes(name);
    return element("li", {
      "data-drop": name, "data-stack": name, "data-spread": spread, class: spread ? "open" : null,
    }, button);
  }

  #update(item, name, cards) {
    const { table } = this.#page;
    const button = item.firstElementChild;
    const [pictures, title, count] = button.children;
    const spread = item.dataset.spread !== undefined;
    const shown = cards.slice(spread ? -MAX_SPREAD : -1);
    setAttribute(item, "data-thick", Math.min(3, Math.ceil(cards.length / 18)));
    setAttribute(item, "data-shuffling", table.state.round?.shuffle?.stack === name);
    setAttribute(item, "data-drag", cards.length > 0 ? name : null);
    setText(title, name === "deck" ? texts.deck : pileTitle(pileName(name)));
    setText(count, String(cards.length));
    setAttribute(button, "aria-label", name === "deck"
      ? texts.deckLabel({ cards: cards.length })
      : pileLabel(pileName(name), cards.length, visibleNames(shown)));
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
    const sentence = betweenRounds({ closed: table.closed, rounds }, mayOpen);
    const key = JSON.stringify([sentence, mayOpen, rounds]);
    if (this.#between.dataset.shown === key) return;
    this.#between.dataset.shown = key;
    this.#between.replaceChildren(
      element("p", {}, sentence),
      mayOpen
        ? element("button", {
            class: "primary", type: "button", onclick: () => this.#page.run("openRound"),
          }, rounds === 0 ? texts.startFirst : texts.startRound({ round: rounds + 1 }))
        : "",
      rounds > 0 ? lastRoundLinks(table) : "",
    );
  }
}

function pileLabel(name, cards, seen) {
  const pile = pileTitle(name);
  return seen.length === 0 ? texts.pileLabel({ pile, cards })
    : texts.pileLabelSeen({ pile, cards, seen });
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
    " · ", link(`/tables/${id}/history.txt?lang=${language}`, texts.readHistory),
    " · ", link(`/tables/${id}/bundle.jsonl`, texts.takeBundle, { download: `${id}.jsonl` }),
  ];
  return element(
    "p", { class: "finished" }, texts.roundOver({ round: state.rounds }), " ",
    link(`/tables/${id}/audit#round=${state.rounds}`, texts.watchAudit),
    ...(state.watched ? files : []),
  );
}
