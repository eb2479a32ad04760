/** The player's own hand: tap or space selects a card; dragging, or alt and arrow keys, move it. */

import { cardElement, cardName, drawCard } from "../cards.js";
import { chipElement, updateChip } from "../chips.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts.js";
import { bubbleElement } from "./bubbles.js";
import { turnLine } from "./next_step.js";
import { drawSeatPiles } from "./pile_view.js";
import { scrollCue } from "./scroll_cue.js";
import { marksElement, marksOf, marksText, updateMarks } from "./seat_marks.js";
import { cardsShown, handOf, nameAt, pilesOfSeat, shownRound } from "./selectors.js";
import { cardToLead, isOffSuit, suitToFollow } from "./trick.js";

const SORT_KEYS = { suit: "t", rank: "n" };

export class Hand {
  #page;
  #title = element("h2", { id: "hand-title" });
  #chip = chipElement();
  #marks = marksElement();
  #turn = element("b", { class: "your-turn", hidden: true });
  #others = element("span", { class: "others-turn", hidden: true });
  #marksText = element("p", { id: "own-marks", class: "visually-hidden" });
  #before = element("span", { class: "before" });
  #bubble = bubbleElement();
  #list = element("ul", {
    id: "hand", role: "listbox", "aria-multiselectable": "true",
    "aria-describedby": "own-marks hand-help",
  });
  #cue = scrollCue(this.#list, "inline");
  #sortButtons;
  #shown = [];
  #seen = new Set(); // the slots that were drawn before
  #focus = null; // the slot that the Tab key reaches
  #suit = null; // the one to follow in the trick
  #lead = null; // the one card that may be led

  constructor(container, page) {
    this.#page = page;
    this.#sortButtons = ["suit", "rank"].map((by) => element("button", {
      class: "small", type: "button", "data-by": by, "aria-keyshortcuts": SORT_KEYS[by],
      onclick: () => this.sort(by),
    }, texts.sortBy[by]));
    this.#list.addEventListener("click", ({ target, detail }) => {
      /** @type {HTMLElement | null} */
      const option = /** @type {HTMLElement} */ (target).closest("[data-slot]");
      if (option !== null) page.moves.tap(Number(option.dataset.slot), detail > 0);
    });
    this.#list.addEventListener("keydown", (event) => this.#onKeyDown(event));
    this.#list.addEventListener("focusin", ({ target }) => this.#onFocus(target));
    // After a change of the width, too, what is selected is in view.
    new ResizeObserver(() => this.#show(this.chosen)).observe(this.#list);
    container.append(
      element("div", { class: "hand-head" },
        this.#chip, this.#title, this.#turn, this.#others, this.#marks, this.#before,
        element("div", {
          class: "sorts", role: "group", "aria-label": texts.sort,
        }, ...this.#sortButtons), this.#bubble),
      element("div", { class: "hand-frame scroll-frame" }, this.#list),
      this.#marksText,
      element("p", { id: "hand-help", class: "visually-hidden" }, texts.handHelp),
    );
  }

  /** The slots of all cards, from left to right. */
  get slots() {
    return this.#shown.map((card) => card.slot);
  }

  /** The slots of the selected cards, from left to right. */
  get chosen() {
    return this.slots.filter((slot) => this.#page.selected.has(slot));
  }

  draw() {
    const { table, selected, order } = this.#page;
    const round = shownRound(table.state);
    const cards = table.seat === null ? [] : cardsShown(table.state, handOf(table.seat));
    this.#suit = table.seat === null ? null : suitToFollow(table);
    this.#lead = table.seat === null ? null : cardToLead(table);
    this.#shown = order.arrange(round?.number ?? null, cards);
    if (table.round === null) selected.clear();
    const present = new Set(this.slots);
    for (const slot of selected) if (!present.has(slot)) selected.delete(slot);
    if (!present.has(this.#focus)) this.#moveFocus();

    const name = texts.yourHand({ cards: cards.length });
    setAttribute(this.#list, "aria-label", name);
    setText(this.#title, selected.size === 0 ? name
      : texts.chosen({ cards: cards.length, selected: selected.size }));
    setAttribute(this.#list, "data-drop", table.seat === null ? null : handOf(table.seat));
    this.#list.style.setProperty("--cards", Math.max(1, cards.length));
    this.#drawPlace();
    setAttribute(this.#list, "data-empty", cards.length === 0 ? texts.emptyHand : null);
    reconcile(this.#list, this.#shown, {
      key: (card) => card.slot,
      create: (card) => this.#option(card),
      update: (option, card) => this.#update(option, card),
    });
    for (const button of this.#sortButtons) {
      setAttribute(button, "aria-pressed", String(order.by === button.dataset.by));
    }
  }

  /**
   * Show the card that came last, unless cards are selected, and mark where the hand can be scrolled.
   * Called after all is drawn, as it needs the layout.
   */
  measure() {
    const fresh = this.slots.findLast((slot) => !this.#seen.has(slot));
    if (fresh !== undefined && this.#seen.size > 0) {
      this.#show(this.chosen.length > 0 ? this.chosen : [fresh]);
    }
    if (fresh !== undefined || this.#seen.size > this.#shown.length) this.#seen = new Set(this.slots);
    this.#cue();
  }

  /** Scroll to these cards: if there is not room for all, to the first ones. */
  #show(slots) {
    for (const slot of slots.toReversed()) {
      this.#optionOf(slot).scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  /** The marks of the player's own seat, and the piles before it. */
  #drawPlace() {
    const { table, bubbles } = this.#page;
    if (table.seat === null) return;
    const marks = marksOf(this.#page, table.seat);
    updateChip(this.#chip, { seat: table.seat, name: nameAt(table, table.seat) });
    updateMarks(this.#marks, marks);
    setText(this.#marksText, texts.ownMarks({ seat: table.seat, marks: marksText(marks) || null }));
    setAttribute(this.#list.closest("#own"), "data-turn", marks.turn);
    const { line, own, hint } = turnLine(this.#page);
    this.#turn.hidden = !own;
    this.#others.hidden = own || line === null;
    setText(own ? this.#turn : this.#others, line ?? "");
    setAttribute(this.#turn, "data-hint", hint);
    drawSeatPiles(this.#before, this.#page, pilesOfSeat(table.state, table.seat));
    bubbles.draw(this.#bubble, table.seat);
  }

  sort(by) {
    this.#page.order.sort(by);
    this.#page.announce(texts.sorted[by]);
    this.draw();
  }

  /** Select or deselect a card. */
  toggle(slot) {
    const { selected } = this.#page;
    if (!selected.delete(slot)) selected.add(slot);
    this.draw();
    this.#page.draw();
  }

  /** A card, and all selected ones if it is one of them, from left to right. */
  together(slot) {
    return this.#page.selected.has(slot) ? this.chosen : [slot];
  }

  /** Mark where dragged cards would be put if they were dropped at `x`; null removes the mark. */
  markPlace(x, moved) {
    const before = x === null ? undefined : this.slotAfter(x, moved);
    setAttribute(this.#list, "data-place", before === null ? "end" : null);
    for (const option of this.#list.children) {
      setAttribute(option, "data-place", Number(option.dataset.key) === before ? "before" : null);
    }
  }

  /** The slot before which cards dropped at `x` are put; null for the end. */
  slotAfter(x, moved) {
    for (const option of this.#list.children) {
      const slot = Number(option.dataset.key);
      if (moved.includes(slot)) continue;
      const { left, width } = option.getBoundingClientRect();
      if (x < left + width / 2) return slot;
    }
    return null;
  }

  #option(card) {
    const option = element("li", { role: "option", tabindex: -1, "data-slot": card.slot });
    option.append(cardElement(card.card));
    return option;
  }

  #update(option, card) {
    const picture = option.firstElementChild;
    if (picture.dataset.card !== (card.card ?? undefined)) drawCard(picture, card.card);
    const shown = card.shown && this.#page.table.round !== null; // after a round all cards are
    const name = shown ? texts.shownToAll({ name: cardName(card.card) }) : cardName(card.card);
    setAttribute(option, "aria-label", name);
    setAttribute(option, "title", name);
    setAttribute(option, "data-shown", shown);
    setAttribute(option, "data-off", this.#lead === null
      ? (this.#page.isOff ?? isOffSuit)(card, this.#suit) : card.card !== this.#lead);
    setAttribute(option, "aria-selected", String(this.#page.selected.has(card.slot)));
    setAttribute(option, "tabindex", card.slot === this.#focus ? 0 : -1);
  }

  /** The card with the focus has gone: its neighbour gets it. */
  #moveFocus() {
    const focused = this.#list.querySelector(":focus");
    const index = focused === null ? 0 : Array.from(this.#list.children).indexOf(focused);
    this.#focus = this.slots[Math.min(index, this.slots.length - 1)] ?? null;
    if (focused !== null) queueMicrotask(() => this.#optionOf(this.#focus)?.focus());
  }

  #optionOf(slot) {
    return this.#list.querySelector(`[data-key="${slot}"]`);
  }

  #onFocus(target) {
    const option = target.closest("[data-slot]");
    if (option === null) return;
    this.#focus = Number(option.dataset.slot);
    for (const one of this.#list.children) setAttribute(one, "tabindex", one === option ? 0 : -1);
  }

  #onKeyDown(event) {
    const index = this.slots.indexOf(this.#focus);
    const last = this.slots.length - 1;
    const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: last }[event.key];
    if (index < 0 || event.ctrlKey || event.metaKey) return;
    if (event.key === " " || event.key === "Enter") this.toggle(this.#focus);
    else if (to !== undefined && event.altKey) this.#moveCard(index, to);
    else if (to !== undefined) this.#optionOf(this.slots[to])?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Move a card within the hand, by one position or to an end. */
  #moveCard(from, to) {
    const { slots } = this;
    if (to < 0 || to >= slots.length || to === from) return;
    const before = to > from ? slots[to + 1] ?? null : slots[to];
    this.#page.order.move(slots, [slots[from]], before);
    this.draw();
    this.#optionOf(slots[from]).focus();
    this.#page.announce(texts.movedTo({ place: to + 1, of: slots.length }));
  }
}
