/**
 * What a round gave each player, as the game file says: points, tricks, or cards that are left.
 * Loaded when a round is over.
 */

/**
 * The member `result` of a game file, as `/games/<name>.json` has it.
 *
 * @typedef {object} ResultRule
 * @property {string} of a pile with `{seat}` in its name, or "hand"
 * @property {[string, number][]} [points] by patterns of codes
 * @property {"least" | "most"} [best]
 * @property {number} [all] what the others get if one player has the points of all cards
 */
/** @typedef {{ seat: number, value: number, best: boolean }} Score */

const SEAT = "{seat}";
const HAND = /^hand:([1-9][0-9]*)$/;

/**
 * The score of each seat that had cards, the best one first if the rule says which that is, and
 * what is counted.
 *
 * @param {ResultRule} rule
 * @param {Record<string, readonly { card: string | null }[]>} stacks of a closed round
 * @returns {{ unit: "points" | "tricks" | "cards", scores: Score[] }}
 */
export function resultOf(rule, stacks) {
  const ofHand = rule.of === "hand";
  const seats = Object.keys(stacks).map((name) => HAND.exec(name)).filter((found) => found !== null)
    .map(([, seat]) => Number(seat)).sort((a, b) => a - b);
  const cardsOf = (seat) =>
    stacks[ofHand ? `hand:${seat}` : `pile:${rule.of.replace(SEAT, seat)}`] ?? [];
  const unit = rule.points !== undefined ? "points" : ofHand ? "cards" : "tricks";
  const values = valuesOf(rule, seats.map(cardsOf), Object.values(stacks).flat());
  const sign = rule.best === "most" ? -1 : 1;
  const first = Math.min(...values.map((value) => sign * value));
  const empty = (seat) => stacks[`hand:${seat}`].length === 0;
  const over = ofHand ? seats.some(empty) : seats.every(empty);
  const named = rule.best !== undefined && over;
  const scores = seats.map((seat, index) => (
    { seat, value: values[index], best: named && sign * values[index] === first }));
  if (rule.best !== undefined) scores.sort((a, b) => sign * (a.value - b.value));
  return { unit, scores };
}

/** @param {ResultRule} rule */
function valuesOf({ of, points, all }, piles, deck) {
  if (points === undefined) {
    return piles.map(({ length }) => (of === "hand" ? length : Math.floor(length / piles.length)));
  }
  const patterns = points.map(([pattern, value]) => ({ pattern: expression(pattern), value }));
  const pointsOf = ({ card }) =>
    patterns.find(({ pattern }) => card !== null && pattern.test(card))?.value ?? 0;
  const sum = (cards) => cards.reduce((total, card) => total + pointsOf(card), 0);
  const sums = piles.map(sum);
  const whole = sum(deck);
  if (all === undefined || whole === 0 || !sums.includes(whole)) return sums;
  return sums.map((one) => (one === whole ? 0 : all));
}

/** A pattern of codes, in which `*` stands for any characters. */
function expression(pattern) {
  const parts = pattern.split("*").map((part) => part.replace(/[^A-Za-z0-9]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}
