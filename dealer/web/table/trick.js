/** Which card of a trick leads, and which suit is followed, in games that say how tricks are won. */

import { cardOf, cardSign } from "../cards.js";
import { table as texts } from "../texts.js";
import { leadingCardOfGame, trumpsOfGame } from "./game.js";
import { begun, playedBy } from "./history.js";
import { cardsIn, isTrick, nameAt, ownCards, turnOf } from "./selectors.js";

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

/**
 * Who takes the trick, and with which card, in words, once it is whole; null before, and where the
 * game does not say.
 *
 * @param {import("../client.js").RemoteTable} table
 */
export function takenBy(table) {
  const leading = isTrick(table) ? leadingCard(table) : null;
  if (leading === null || leading.seat === null) return null;
  const card = cardSign(leading.card);
  return leading.seat === table.seat ? texts.tricks.youTake({ card })
    : texts.tricks.takes({ name: nameAt(table, leading.seat), card });
}

/**
 * Which card leads the trick, or who takes it, in words; null where the game does not say.
 *
 * @param {import("../client.js").RemoteTable} table
 */
export function leadText(table) {
  const leading = leadingCard(table);
  if (leading === null) return null;
  return takenBy(table) ?? texts.tricks.leads({ card: cardSign(leading.card) });
}

const suitOf = ({ card }) => (card === null ? null : cardOf(card).suit);

/**
 * The suit that this player is to follow in the trick; null if none was led, if they have played, or
 * have no card of it, and where the game does not say how tricks are won.
 *
 * @param {import("../client.js").RemoteTable} table
 * @returns {string | null}
 */
export function suitToFollow(table) {
  const trick = cardsIn(table.state, "pile:table");
  const hasPlayed = ({ slot }) => playedBy(table, slot)?.seat === table.seat;
  if (trumpsOfGame() === null || trick.length === 0 || isTrick(table) || trick.some(hasPlayed)) {
    return null;
  }
  const led = suitOf(trick[0]);
  return led !== null && ownCards(table).some((card) => suitOf(card) === led) ? led : null;
}

/**
 * The card that this player is to lead to the first trick of a round, where the game says which.
 *
 * @param {import("../client.js").RemoteTable} table
 * @returns {string | null}
 */
export const cardToLead = (table) =>
  (turnOf(table) === table.seat && !begun(table).played ? leadingCardOfGame() : null);

/** Whether a card is of another suit than the one to follow. */
export const isOffSuit = (card, suit) => suit !== null && suitOf(card) !== suit;
