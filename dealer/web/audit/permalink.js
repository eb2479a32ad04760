/**
 * Links to a moment of a replay: the fragment of the page's address.
 *
 *     #round=1&step=17&k=0      after swap 17 of the round's shuffle k, which is 0 by default
 *     #version=80               after the event of that version; &round=1 may be added
 *     &seat=2                   as seen from seat 2; seat=0 is a spectator; default: all cards
 */

import { ALL_CARDS, SPECTATOR } from "./visibility.js";

const NUMBER = /^[0-9]{1,10}$/;

/** Parse a fragment: { round, k, step, version, viewer }, null for what is missing. */
export function parse(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const number = (name) => {
    const text = given.get(name);
    return text !== null && NUMBER.test(text) ? Number(text) : null;
  };
  const [round, k, step, version] = ["round", "k", "step", "version"].map(number);
  const seat = number("seat");
  const viewer = seat === null ? ALL_CARDS : seat === 0 ? SPECTATOR : seat;
  return { round, k, step, version, viewer };
}

/** The fragment of a moment, with its `#`. */
export function format(round, moment, viewer) {
  const { swap, shuffle, version } = moment;
  const where = swap === null ? `version=${version}` : `k=${shuffle.k}&step=${swap.step}`;
  const seat = viewer === ALL_CARDS ? "" : `&seat=${viewer === SPECTATOR ? 0 : viewer}`;
  return `#round=${round.number}&${where}${seat}`;
}

/** The round of a link, by its number or otherwise by its version; null if there is none. */
export function roundFor(rounds, { round, version }) {
  if (round !== null) return rounds.find(({ number }) => number === round) ?? null;
  if (version === null) return null;
  return rounds.find(({ last }) => version <= last) ?? rounds.at(-1) ?? null;
}

/** The version of a link in a round whose moments were built; null if it names none. */
export function versionFor(round, { k, step, version }) {
  if (version !== null) return version;
  const shuffle = round.shuffles.find((one) => one.k === (k ?? 0));
  if (shuffle === undefined || (k === null && step === null)) return null;
  return shuffle.swaps[step]?.version ?? (step === null ? shuffle.first : shuffle.last);
}
