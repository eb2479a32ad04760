/**
 * A link to a moment: what stands behind the `#` of the page's address.
 *
 *     #round=1&step=17&k=0      after swap 17 of the round's first shuffle; k is 0 if not named
 *     #version=80               after the event of that version; &round=1 may stand beside it
 *     &seat=2                   as seen from seat 2; seat=0 is a spectator; from above without it
 */

import { ABOVE, SPECTATOR } from "./views.js";

const NUMBER = /^[0-9]{1,10}$/;

/** What a fragment asks for: { round, k, step, version, viewer }, null where it does not say. */
export function read(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const number = (name) => {
    const text = given.get(name);
    return text !== null && NUMBER.test(text) ? Number(text) : null;
  };
  const [round, k, step, version] = ["round", "k", "step", "version"].map(number);
  const seat = number("seat");
  const viewer = seat === null ? ABOVE : seat === 0 ? SPECTATOR : seat;
  return { round, k, step, version, viewer };
}

/** The fragment that leads to a moment of a round, with its `#`. */
export function write(round, moment, viewer) {
  const { swap, shuffle, version } = moment;
  const where = swap === null ? `version=${version}` : `k=${shuffle.k}&step=${swap.step}`;
  const seat = viewer === ABOVE ? "" : `&seat=${viewer === SPECTATOR ? 0 : viewer}`;
  return `#round=${round.number}&${where}${seat}`;
}

/** The round that a link means, or null: the one that is named, else the one of its version. */
export function roundFor(rounds, { round, version }) {
  if (round !== null) return rounds.find(({ number }) => number === round) ?? null;
  if (version === null) return null;
  return rounds.find(({ last }) => version <= last) ?? rounds.at(-1) ?? null;
}

/** The version that a link means in a round whose moments are told, or null. */
export function versionFor(round, { k, step, version }) {
  if (version !== null) return version;
  const shuffle = round.shuffles.find((one) => one.k === (k ?? 0));
  if (shuffle === undefined || (k === null && step === null)) return null;
  return shuffle.swaps[step]?.version ?? (step === null ? shuffle.first : shuffle.last);
}
