/** Which card of a trick leads, in the games that say how tricks are won. */

import { cardOf } from "../cards.js";
import { trumpsOfGame } from "./game.js";
import { playedBy } from "./history.js";
import { cardsIn } from "./selectors.js";

const RANKS = "23456789TJQKA";

/**
 * The card of the trick that leads, and the seat that has played it; null if the game does not say
 * that, or no card is that of a suit. People may say otherwise: trumps of a bid are not known.
 *
 * @param {import("../client.js").RemoteTable} table
 * @returns {{ slot: number, card: string, seat: number | null } | null}
 */
export function leadingCard(table) {
  const trumps = trumpsOfGame();
  if (trumps === null) return null;
  const cards = cardsIn(table.state, "pile:table").filter(({ card }) => card !== null)
    .map(({ slot, card }) => ({ slot, card, ...cardOf(card) })).filter(({ rank }) => rank !== null);
  const strength = ({ suit, rank }) => (suit === trumps ? 200 : suit === cards[0].suit ? 100 : 0)
    + RANKS.indexOf(rank);
  const best = cards.reduce(
    (found, one) => (found === null || strength(one) > strength(found) ? one : found), null);
  return best && {
    slot: best.slot, card: best.card, seat: playedBy(table, best.slot)?.seat ?? null,
  };
}
