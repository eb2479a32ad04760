/** One's own cards, face up: chosen by tap or space, put in order by dragging or alt and arrows. */

import { cardElement, cardName, drawCard } from "../cards.js";
import { keyed, make, mark, write } from "../make.js";
import { table as texts } from "../texts/table.js";
import { handOf, ownCards } from "./reading.js";

/** Draws into `place`; `game` is main.js's, with `selected`, `order` and `draw()`. */
export class Hand {
  #game;
  #title = make("h2", { id: "hand-title" });
  #list = make("ul", {
    id: "hand", role: "listbox", "aria-multiselectable": "true", "aria-labelledby": "hand-title",
    "aria-describedby": "hand-help",
  });
  #sorts;
  #shown = [];
  #focus = null;

  constructor(place, game) {
    this.#game = game;
    this.#sorts = ["suit", "rank"].map((by) => make("button", {
      class: "small", type: "button", "data-by": by, "aria-keyshortcuts": texts.sortKeys[by],
      onclick: () => this.sort(by),
    }, texts.sortBy[by]));
    this.#list.addEventListener("keydown", (event) => this.#pressed(event));
    this.#list.addEventListener("focusin", ({ target }) => this.#focused(target));
    place.append(
      make("div", { class: "hand-head" }, this.#title, make("div", {
        class: "sorts", role: "group", "aria-label": texts.sorts,
      }, ...this.#sorts)),
      this.#list,
      make("p", { id: "hand-help", class: "unseen" }, texts.handHelp),
    );
  }

  /** The slots as the hand is held, from left to right. */
  get slots() {
    return this.#shown.map((card) => card.slot);
  }

  /** The slots that an action is about, from left to right. */
  get chosen() {
    return this.slots.filter((slot) => this.#game.selected.has(slot));
  }

  draw() {
    const { table, selected, order } = this.#game;
    const cards = ownCards(table);
    this.#shown = order.arrange(table.round, cards);
    const there = new Set(this.slots);
    for (const slot of selected) if (!there.has(slot)) selected.delete(slot);
    if (!there.has(this.#focus)) this.#refocus();

    write(this.#title, texts.yourHand(cards.length, selected.size));
    mark(this.#list, "data-drop", table.seat === null ? null : handOf(table.seat));
    this.#list.style.setProperty("--cards", Math.max(1, cards.length));
    mark(this.#list, "data-empty", cards.length === 0 ? texts.emptyHandHere : null);
    keyed(this.#list, this.#shown, {
      key: (card) => card.slot,
      create: (card) => this.#option(card),
      update: (option, card) => this.#update(option, card),
    });
    for (const button of this.#sorts) {
      mark(button, "aria-pressed", String(order.by === button.dataset.by));
    }
  }

  sort(by) {
    this.#game.order.sort(by);
    this.#game.say(texts.sorted[by]);
    this.draw();
  }

  /** Choose a card, or let it go. */
  toggle(slot) {
    const { selected } = this.#game;
    if (!selected.delete(slot)) selected.add(slot);
    this.draw();
    this.#game.draw();
  }

  /** The card that a drag from (x, y) would be put before; null for after the last. */
  before(x, moved) {
    for (const option of this.#list.children) {
      const slot = Number(option.dataset.key);
      if (moved.includes(slot)) continue;
      const { left, width } = option.getBoundingClientRect();
      if (x < left + width / 2) return slot;
    }
    return null;
  }

  #option(card) {
    const option = make("li", { role: "option", tabindex: -1, "data-slot": card.slot });
    option.append(cardElement(card.card));
    return option;
  }

  #update(option, card) {
    const picture = option.firstElementChild;
    if (picture.dataset.card !== (card.card ?? undefined)) drawCard(picture, card.card);
    const name = card.shown ? texts.shownToAll(cardName(card.card)) : cardName(card.card);
    mark(option, "aria-label", name);
    mark(option, "title", name);
    mark(option, "data-shown", card.shown);
    mark(option, "aria-selected", String(this.#game.selected.has(card.slot)));
    mark(option, "tabindex", card.slot === this.#focus ? 0 : -1);
  }

  /** The card that had the focus has gone: its neighbour gets it. */
  #refocus() {
    const focused = this.#list.querySelector(":focus");
    const place = focused === null ? 0 : Array.from(this.#list.children).indexOf(focused);
    this.#focus = this.slots[Math.min(place, this.slots.length - 1)] ?? null;
    if (focused !== null) queueMicrotask(() => this.#optionOf(this.#focus)?.focus());
  }

  #optionOf(slot) {
    return this.#list.querySelector(`[data-key="${slot}"]`);
  }

  #focused(target) {
    const option = target.closest("[data-slot]");
    if (option === null) return;
    this.#focus = Number(option.dataset.slot);
    for (const one of this.#list.children) mark(one, "tabindex", one === option ? 0 : -1);
  }

  #pressed(event) {
    const at = this.slots.indexOf(this.#focus);
    const last = this.slots.length - 1;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (at < 0 || event.ctrlKey || event.metaKey) return;
    if (event.key === " " || event.key === "Enter") this.toggle(this.#focus);
    else if (to !== undefined && event.altKey) this.#carry(at, to);
    else if (to !== undefined) this.#optionOf(this.slots[to])?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Move the focused card by one place, or to an end. */
  #carry(at, to) {
    const { slots } = this;
    if (to < 0 || to >= slots.length || to === at) return;
    const before = to > at ? slots[to + 1] ?? null : slots[to];
    this.#game.order.move(slots, [slots[at]], before);
    this.draw();
    this.#optionOf(slots[at]).focus();
    this.#game.say(texts.movedTo(to + 1, slots.length));
  }
}
