/**
 * The table as somebody at it could see it: from above everything, from a seat what it was shown.
 *
 * The rule is the house's own. Everybody knows what was shown to all, a seat also what came into
 * its hand or was shown to it; the order of a fresh deck is no secret. While a stack is shuffled,
 * who sits at the table sees it as it lay before.
 */

import { faceOf } from "./story.js";

/** Who looks: from above. */
export const ABOVE = "above";
/** … or without a seat. A seat is its number. */
export const SPECTATOR = "spectator";

/** Whether `viewer` may know the face of a card, a number of `story.js`, at a moment. */
export function knows(moment, viewer, card) {
  if (viewer === ABOVE || card < 0 || moment.shown.has(card)) return true;
  return viewer !== SPECTATOR && (moment.known.get(viewer)?.has(card) ?? false);
}

/** A stack as `viewer` sees it lie, bottom first: numbers of cards. */
export function liesFor(moment, viewer, stack) {
  const { shuffle, type } = moment;
  const hidden = viewer !== ABOVE && shuffle?.stack === stack && type !== "DeckSealed";
  return hidden ? shuffle.before : (moment.stacks.get(stack) ?? []);
}

/** All stacks: Map name → [{ card, face }], where a face that is not for `viewer` is null. */
export function seen(round, moment, viewer) {
  return new Map([...moment.stacks.keys()].map((stack) => [
    stack,
    liesFor(moment, viewer, stack).map((card) => ({
      card,
      face: knows(moment, viewer, card) ? faceOf(round, card) : null,
    })),
  ]));
}
