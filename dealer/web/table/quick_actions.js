/** A button in the middle for what is likely to come next: passing the turn on, giving a trick. */

import { element, setText } from "../dom.js";
import { table as texts } from "../texts.js";
import { isAllowed, isTrick, nameAt, nextSeat } from "./selectors.js";

export class QuickActions {
  #page;
  #bar = element("div", { class: "quick", role: "group", "aria-label": texts.quickActions });
  #passTurn;
  #trick;

  constructor(container, page) {
    this.#page = page;
    const button = (name) => element("button", {
      type: "button", hidden: true, "data-action": name,
      onclick: (event) => page.click(name, event),
    });
    [this.#passTurn, this.#trick] = [button("passTurn"), button("trick")];
    this.#bar.append(this.#passTurn, this.#trick);
    container.append(this.#bar);
  }

  draw() {
    const { table } = this.#page;
    const { seat, markers } = table;
    const next = seat === null ? undefined : nextSeat(table, seat);
    const ownTurn = seat !== null && markers.turn === seat && next !== seat;
    this.#trick.hidden = !isAllowed(table, "pile") || !isTrick(table);
    setText(this.#trick, texts.tricks.toPlayer);
    // One at a time, since a phone has little room: the trick comes before the next turn.
    this.#passTurn.hidden = !ownTurn || !isAllowed(table, "annotate") || !this.#trick.hidden;
    if (ownTurn) setText(this.#passTurn, texts.notes.passTurnTo({ name: nameAt(table, next) }));
    this.#bar.hidden = this.#passTurn.hidden && this.#trick.hidden;
  }
}
