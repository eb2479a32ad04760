/** Piles whose names say what they are for: those of a seat, and those that any table has. */

const OF_SEAT = /^pile:(won|seat|pass):([1-9][0-9]{0,9})$/;
const COMMON = /^pile:(table|discard|burn)$/;

/**
 * What a pile is for: `won` has the tricks of a seat, `seat` what it laid out, `pass` the cards that
 * wait to be passed to it. `other` is a pile with a name of its own, or no pile. `seat` is null for
 * all but the first three.
 *
 * @param {string} stack
 * @returns {{ kind: "won" | "seat" | "pass" | "table" | "discard" | "burn" | "other",
 *   seat: number | null }}
 */
export function pileKind(stack) {
  const [, kind = COMMON.exec(stack)?.[1] ?? "other", seat = null] = OF_SEAT.exec(stack) ?? [];
  return { kind: /** @type {any} */ (kind), seat: seat === null ? null : Number(seat) };
}
