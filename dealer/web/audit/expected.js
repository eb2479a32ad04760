/**
 * How many cards take part in how many swaps of a fair shuffle: the mean and the usual range, from
 * simulated shuffles. The numbers of the simulation are the same in every browser.
 */

import { swapCounts } from "./moments.js";

// The counts of one shuffle depend on each other, so no simple formula gives their range.
export const SIMULATED = 1000; // shuffles
const OUTSIDE = SIMULATED / 100; // of them, on each side of the range
const cache = new Map();

/** How many cards have each count: the index is the count. */
export function histogramOf(counts) {
  const cards = new Array(Math.max(0, ...counts) + 1).fill(0);
  for (const count of counts) cards[count] += 1;
  return cards;
}

/**
 * By the number of swaps of a card, from 0: { mean, low, high }, in cards. Of the simulated
 * shuffles 98 of 100 are from `low` to `high`. The algorithm `forward` gives the same.
 *
 * @param {number} n cards
 * @param {number} steps
 * @returns {{ mean: number, low: number, high: number }[]}
 */
export function expected(n, steps) {
  const key = `${n} ${steps}`;
  if (!cache.has(key)) cache.set(key, simulate(n, steps));
  return cache.get(key);
}

function simulate(n, steps) {
  const random = generator();
  const seen = Array.from({ length: SIMULATED }, () => {
    const swaps = Array.from({ length: steps }, (_, step) => {
      const i = n - 1 - step;
      return { i, j: Math.floor(random() * (i + 1)) };
    });
    return histogramOf(swapCounts({ n, swaps }));
  });
  const most = Math.max(...seen.map((one) => one.length));
  return Array.from({ length: most }, (_, count) => {
    const cards = seen.map((one) => one[count] ?? 0).sort((a, b) => a - b);
    const mean = cards.reduce((sum, one) => sum + one, 0) / SIMULATED;
    return { mean, low: cards[OUTSIDE], high: cards[SIMULATED - 1 - OUTSIDE] };
  });
}

/** Numbers from 0 to 1, always the same ones (mulberry32): good enough for a chart. */
function generator() {
  let state = 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
