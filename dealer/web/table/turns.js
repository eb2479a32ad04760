/**
 * Passing the turn on, at tables with a game whose file says by which moves. Each page does it for
 * its own player: after a move, when a trick is won, when the last move is taken back, and when they
 * hold the card that leads to the first trick. The host's page gives the first turn of a round in
 * other games, and the turn after each deal to the board.
 */

import { hasTricks, hasTurns, isDealtLater, leadingCardOfGame, passesTurn } from "./game.js";
import { begun } from "./history.js";
import {
  cardsIn, handOf, isAllowed, isHostSeat, isTrick, nextSeat, ownCards, passing, pileName, wonBy,
} from "./selectors.js";

export class Turns {
  #page;
  #doneAt = 0; // the time of the last move that was followed: a move of several cards has one

  constructor(page) {
    this.#page = page;
  }

  /** @param {import("../client.js").TableEvent} event */
  onEvent(event) {
    const { table } = this.#page;
    if (!event.live || !hasTurns() || table.seat === null || event.at === this.#doneAt) return;
    if (!isAllowed(table, "annotate")) return;
    const seat = this.#turnAfter(event, table);
    if (seat === null) return;
    this.#doneAt = event.at;
    table.note("turn", String(seat)).catch(() => {}); // a mark: a refusal changes no card
  }

  /** The seat whose turn it is by an event, as far as this page is to say that; otherwise null. */
  #turnAfter({ type, public: event }, table) {
    const own = table.seat;
    const lead = leadingCardOfGame();
    if (lead !== null && isToLead(table, lead)) return own;
    const isDeal = type === "CardMoved" && event.from === "deck" && isDealtLater(pileName(event.to));
    if (isDeal || (type === "RoundOpened" && lead === null)) {
      const { dealerButton } = table.markers;
      return isHostSeat(table, own) ? nextSeat(table, dealerButton ?? own) : null;
    }
    const followed = moveOf(type, event, own);
    if (followed === "won") return own;
    if (followed === "back") return table.markers.turn === nextSeat(table, own) ? own : null;
    if (followed === null || !passesTurn(followed)) return null;
    const leads = hasTricks() && cardsIn(table.state, "pile:table").length === 1;
    if ((table.markers.turn !== own && !leads) || isTrick(table)) return null;
    return nextSeat(table, own);
  }
}

/** Whether this player has the card that leads, once cards are passed, and no player had the turn. */
function isToLead(table, lead) {
  const { turn, played } = begun(table);
  if (table.round === null || turn || played || passing(table) !== null) return false;
  const waits = table.state.seats.some(
    ({ seat }) => cardsIn(table.state, `pile:pass:${seat}`).length > 0);
  return !waits && ownCards(table).some(({ card }) => card === lead);
}

/** What a player did by an event, as game files call it; "won" a trick, or took a card "back". */
function moveOf(type, { from, to, seat }, own) {
  if (type === "CardDrawn" && seat === own) return from === "deck" ? "draw" : "back";
  if (type !== "CardMoved") return null;
  if (from === "pile:table" && wonBy(to) === own) return "won";
  if (from !== handOf(own)) return null;
  return { "pile:table": "play", "pile:discard": "discard" }[to] ?? null;
}
