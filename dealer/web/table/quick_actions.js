/** A button in the middle for what is likely to come next: passing the turn on, giving a trick. */

import { element, setAttribute, setText } from "../dom.js";
import { table as texts } from "../texts.js";
import { trickTo } from "./actions.js";
import { hasTricks, hasTurns } from "./game.js";
import { mayPlay } from "./next_step.js";
import { isAllowed, isTrick, nameAt, nextSeat } from "./selectors.js";
import { leadingCard } from "./trick.js";

export class QuickActions {
  #page;
  #bar = element("div", { class: "quick", role: "group", "aria-label": texts.quickActions });
  #container;
  #passTurn;
  #trick;
  #winner;
  #leader = null; // the seat that has played the card that leads

  constructor(container, page) {
    this.#page = page;
    this.#container = container;
    const button = (name) => element("button", {
      type: "button", hidden: true, "data-action": name,
      onclick: (event) => page.click(name, event),
    });
    [this.#passTurn, this.#trick] = [button("passTurn"), button("trick")];
    this.#winner = element("button", {
      type: "button", hidden: true, "data-action": "trickTo",
      onclick: () => page.attempt(trickTo(this.#leader)),
    });
    this.#bar.append(this.#passTurn, this.#winner, this.#trick);
    container.append(this.#bar);
  }

  draw() {
    const { table } = this.#page;
    const { seat, markers } = table;
    const next = seat === null ? undefined : nextSeat(table, seat);
    const between = table.round === null && table.state.rounds > 0;
    const passes = !between && !hasTricks(); // in tricks each player plays one card
    const ownTurn = passes && seat !== null && markers.turn === seat && next !== seat;
    this.#trick.hidden = !isAllowed(table, "pile") || !isTrick(table);
    this.#leader = this.#trick.hidden ? null : leadingCard(table)?.seat ?? null;
    const known = this.#leader !== null;
    this.#winner.hidden = !known;
    // It is the winner's next step; others can do it for them.
    const own = known && this.#leader === seat;
    this.#winner.classList.toggle("primary", own);
    if (known) {
      setText(this.#winner, own ? texts.tricks.take
        : texts.tricks.to({ name: nameAt(table, this.#leader) }));
    }
    // Beside the winner's button little is enough for the others.
    setText(this.#trick, known ? texts.tricks.other : texts.tricks.toPlayer);
    this.#trick.classList.toggle("short", known);
    setAttribute(this.#trick, "aria-label", known ? texts.tricks.toPlayer : null);
    setAttribute(this.#trick, "title", known ? texts.tricks.toPlayer : null);
    // One at a time, since a phone has little room: the trick comes before the next turn.
    this.#passTurn.hidden = !ownTurn || mayPlay(this.#page) || !isAllowed(table, "annotate")
      || !this.#trick.hidden;
    if (ownTurn) setText(this.#passTurn, texts.notes.passTurnTo({ name: nameAt(table, next) }));
    // Its room is kept, so that nothing on the felt moves when it comes and goes.
    setAttribute(this.#container, "data-next",
      table.round !== null && (hasTurns() || markers.turn !== null));
    this.#bar.hidden = this.#passTurn.hidden && this.#trick.hidden;
  }
}
