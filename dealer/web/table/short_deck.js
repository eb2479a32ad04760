/** A deck of 52 without the cards that would stay undealt; the page of the dealer loads it. */

const SUITS = ["s", "h", "d", "c"];
const RANKS = "A23456789TJQK";
const LOW_RANKS = "23456789";

/**
 * The deck without the lowest diamonds and spades. Undefined if all 52 cards are dealt, or if the
 * players have chosen another deck.
 *
 * @param {string | string[] | undefined} given by the table's rules
 * @param {number} dealt cards
 * @param {string} lead the card that leads to the first trick, which stays
 * @returns {string[] | undefined}
 */
export function shortDeck(given, dealt, lead) {
  const deck = SUITS.flatMap((suit) => Array.from(RANKS, (rank) => rank + suit));
  const isPlain = given === undefined || String(given) === "52" || String(given) === String(deck);
  if (!isPlain || dealt === deck.length) return undefined;
  const low = Array.from(LOW_RANKS).flatMap((rank) => ["d", "s"].map((suit) => rank + suit))
    .filter((card) => card !== lead).slice(0, deck.length - dealt);
  return deck.filter((card) => !low.includes(card));
}
