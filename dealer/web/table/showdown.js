/**
 * The hands that are left at the end of a hand of poker, and the best of them, by the ranks that all
 * these games have. Loaded for games that compare hands.
 */

/** @typedef {{ card: string | null }} Card */
/**
 * @typedef {object} Hand
 * @property {number} seat
 * @property {Card[]} hand
 * @property {boolean} best
 * @property {number | null} kind
 * @property {Card[]} five the cards that count
 */

const HAND = /^hand:([1-9][0-9]*)$/;
const RANKS = "23456789TJQKA";
const NONE = { five: [], strength: null };
const [PAIR, TWO_PAIR, THREE, STRAIGHT, FLUSH, FULL_HOUSE, FOUR, STRAIGHT_FLUSH] =
  [1, 2, 3, 4, 5, 6, 7, 8];
const BY_COUNTS = {
  2111: PAIR, 221: TWO_PAIR, 311: THREE, 32: FULL_HOUSE, 41: FOUR,
};

/**
 * The hand of each seat of a round, the best first; those who folded have none. `kind` is an
 * index of the text `result.kinds`; null for all, and no hand is the best, if cards are missing. The
 * cards of which there are most of a rank are the first of `five`.
 *
 * @param {"poker" | "omaha"} rules
 * @param {Record<string, Card[]>} stacks
 * @param {Card[]} board the cards that count for every hand
 * @returns {Hand[]}
 */
export function handsOf(rules, stacks, board) {
  const hands = Object.keys(stacks).filter((name) => HAND.test(name)).map((name) => {
    const hand = stacks[name];
    const { five, strength } = (hand.length > 0 && bestOf(rules, hand, board)) || NONE;
    return { seat: Number(HAND.exec(name)[1]), hand, five, strength };
  });
  const left = hands.filter(({ hand }) => hand.length > 0);
  const compared = left.length > 1 && left.every(({ strength }) => strength !== null);
  const most = left.map(({ strength }) => strength ?? []).sort(compare).at(-1);
  const order = (a, b) => compare(b.strength ?? [], a.strength ?? [])
    || b.hand.length - a.hand.length || a.seat - b.seat;
  return hands.sort(order).map(({ seat, hand, five, strength }) => ({
    seat, hand, five,
    best: hand.length > 0 && (left.length === 1 || (compared && compare(strength, most) === 0)),
    kind: compared && strength !== null ? strength[0] : null,
  }));
}

/**
 * Who has the best hand, or who alone has not folded; otherwise that these are the hands.
 *
 * @param {Hand[]} hands
 * @param {any} texts those of the result
 * @param {(seat: number) => string} nameOf
 * @param {number | null} own the reader's seat
 * @returns {string}
 */
export function wordsOf(hands, texts, nameOf, own) {
  const [first, ...others] = hands.filter(({ best }) => best);
  if (first === undefined) return texts.shown;
  if (first.kind === null) return texts.last({ name: nameOf(first.seat) });
  if (first.seat === own && others.length === 0) {
    return texts.bestOwn({ kind: texts.kinds[first.kind] });
  }
  const names = [first, ...others].map(({ seat }) => nameOf(seat));
  return texts.best({ count: names.length, names, kind: texts.kinds[first.kind] });
}

/** The best five cards and their strength; null if a board is not complete, or a card has no rank. */
function bestOf(rules, hand, board) {
  const own = rules === "omaha" ? 2 : null;
  if (![0, 5].includes(board.length) || (own !== null && board.length === 0)) return null;
  const fives = own === null ? choose(hand.concat(board), 5)
    : choose(hand, own).flatMap((two) => choose(board, 5 - own).map((three) => two.concat(three)));
  const found = fives.map((five) => ({ five, strength: strengthOfFive(five) }));
  if (found.length === 0 || found.some(({ strength }) => strength === null)) return null;
  const { five, strength } = found.sort((a, b) => compare(a.strength, b.strength)).at(-1);
  return { five: inOrder(five), strength };
}

/**
 * The kind of five cards, then their ranks, those of which there are most first.
 *
 * @param {Card[]} five
 */
function strengthOfFive(five) {
  const ranks = five.map(rankOf);
  if (ranks.includes(-1)) return null;
  const count = (rank) => ranks.filter((one) => one === rank).length;
  const kinds = [...new Set(ranks)].sort((a, b) => count(b) - count(a) || b - a);
  const isFlush = new Set(five.map(({ card }) => card?.[1])).size === 1;
  const isWheel = kinds.join() === "12,3,2,1,0"; // the ace is the lowest of A2345
  const top = isWheel ? [3] : kinds;
  if (kinds.length === 5 && (isWheel || kinds[0] - kinds[4] === 4)) {
    return [isFlush ? STRAIGHT_FLUSH : STRAIGHT, ...top];
  }
  return [isFlush ? FLUSH : BY_COUNTS[kinds.map(count).join("")] ?? 0, ...top];
}

/** Five cards, those of which there are most of a rank first, then the higher ones. */
function inOrder(five) {
  const count = (card) => five.filter((one) => rankOf(one) === rankOf(card)).length;
  return five.toSorted((a, b) => count(b) - count(a) || rankOf(b) - rankOf(a));
}

/** Every choice of `count` of the cards. */
function choose(cards, count) {
  if (count === 0) return [[]];
  return cards.flatMap((card, index) =>
    choose(cards.slice(index + 1), count - 1).map((rest) => [card, ...rest]));
}

/** The order of two strengths. */
function compare(a, b) {
  const differs = a.findIndex((value, index) => value !== b[index]);
  return differs === -1 ? a.length - b.length : a[differs] - (b[differs] ?? -1);
}

const rankOf = ({ card }) => RANKS.indexOf(card?.[0] ?? "-");
