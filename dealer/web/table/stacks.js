/** The middle of the felt: the deck, the piles by their names, and what comes next without them. */

import { cardElement, cardName, drawCard } from "../cards.js";
import { keyed, make, mark, write } from "../make.js";
import { table as texts } from "../texts/table.js";
import { actionNamed, hindrance, offered } from "./actions.js";
import { cardsIn, pileName, pilesShown } from "./reading.js";

/** So many cards of a pile that lies open are spread; those under them are a number. */
const SPREAD = 12;
const HEAPS = ["pile:discard", "pile:burn"];

/** Draws into `place`. */
export class Stacks {
  #game;
  #list = make("ul", { class: "stacks", "aria-label": texts.stacks });
  #between = make("div", { class: "between" });

  constructor(place, game) {
    this.#game = game;
    place.append(this.#list, this.#between);
  }

  draw() {
    const { table } = this.#game;
    const { state } = table;
    const names = state.round === null ? [] : ["deck", ...pilesShown(state)];
    this.#list.hidden = names.length === 0;
    keyed(this.#list, names, {
      key: (name) => name,
      create: (name) => this.#create(name),
      update: (item, name) => this.#update(item, name, cardsIn(state, name)),
    });
    this.#drawBetween();
  }

  #create(name) {
    const tapped = () => (name === "deck" ? this.#game.run("draw") : this.#game.touchedPile(name));
    const button = make(
      "button", { class: "stack", type: "button", onclick: tapped },
      make("span", { class: "cards", "aria-hidden": "true" }),
      make("span", { class: "name" }), make("span", { class: "count soft" }),
    );
    const spread = name !== "deck" && !HEAPS.includes(name);
    return make("li", {
      "data-drop": name, "data-stack": name, "data-spread": spread, class: spread ? "open" : null,
    }, button);
  }

  #update(item, name, cards) {
    const { table } = this.#game;
    const button = item.firstElementChild;
    const [pictures, title, count] = button.children;
    const spread = item.dataset.spread !== undefined;
    const shown = cards.slice(spread ? -SPREAD : -1);
    mark(item, "data-thick", Math.min(3, Math.ceil(cards.length / 18)));
    mark(item, "data-shuffling", table.state.round?.shuffle?.stack === name);
    mark(item, "data-drag", cards.length > 0 ? name : null);
    write(title, name === "deck" ? texts.deck : texts.pileCalled(pileName(name)));
    write(count, String(cards.length));
    mark(button, "aria-label", name === "deck"
      ? texts.deckLabel(cards.length)
      : texts.pileLabel(pileName(name), cards.length, seenOf(shown)));
    if (name === "deck") {
      const reason = hindrance(actionNamed("draw"), this.#game);
      mark(button, "aria-disabled", reason === null ? null : "true");
      mark(button, "title", reason ?? texts.tapToDraw);
    }
    keyed(pictures, shown, {
      key: ({ id }) => id,
      create: (card) => cardElement(faceOf(card)),
      update: (picture, card) => {
        if ((picture.dataset.card ?? null) !== faceOf(card)) drawCard(picture, faceOf(card));
      },
    });
  }

  /** What the felt says while no round is open, and the one step to the next. */
  #drawBetween() {
    const { table } = this.#game;
    this.#between.hidden = table.round !== null;
    if (table.round !== null) return;
    const open = actionNamed("openRound");
    const mine = offered(open, table) && !table.closed;
    const sentence = table.closed ? texts.tableClosed : texts.between(table.state.rounds, mine);
    const key = JSON.stringify([sentence, mine, table.state.rounds]);
    if (this.#between.dataset.shown === key) return;
    this.#between.dataset.shown = key;
    this.#between.replaceChildren(
      make("p", {}, sentence),
      mine
        ? make("button", {
            class: "chief", type: "button", onclick: () => this.#game.run("openRound"),
          }, texts.begin(table.state.rounds + 1))
        : "",
      table.state.rounds > 0 ? lastRound(table) : "",
    );
  }
}

/** What the cards that can be seen are called. */
function seenOf(shown) {
  return shown.map(faceOf).filter((code) => code !== null).map(cardName);
}

/** A card that lies face down is drawn so, also for who happens to know it. */
function faceOf({ card, shown }) {
  return shown ? card : null;
}

/** Where a finished round can be checked, read and taken away. */
function lastRound({ id, state }) {
  const link = (href, text, has = {}) => make("a", { href, ...has }, text);
  // A table that nobody may watch gives its log to none but its players, whom a link does not name;
  // the audit page does.
  const files = [
    " · ", link(`/tables/${id}/history.txt`, texts.readHistory),
    " · ", link(`/tables/${id}/bundle.jsonl`, texts.takeBundle, { download: `${id}.jsonl` }),
  ];
  return make(
    "p", { class: "finished" }, texts.roundIsOver(state.rounds), " ",
    link(`/tables/${id}/audit#round=${state.rounds}`, texts.watchAudit),
    ...(state.watched ? files : []),
  );
}
