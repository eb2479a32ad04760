/**
 * Which cards a viewer could see: all of them, or those that a seat or a spectator was shown.
 *
 * The rule is the server's own: cards shown to all are public, a seat also knows the cards that
 * went through its hand or were shown to it, and the order of a fresh deck is public. While a stack
 * is being shuffled, players see it as it was before.
 */

import { faceOf } from "./moments.js";

/** A viewer is ALL_CARDS, SPECTATOR, or the number of a seat. */
export const ALL_CARDS = "above";
export const SPECTATOR = "spectator";

/** Whether `viewer` may know the face of a card (a number of moments.js) at a moment. */
export function knows(moment, viewer, card) {
  if (viewer === ALL_CARDS || card < 0 || moment.shown.has(card)) return true;
  return viewer !== SPECTATOR && (moment.known.get(viewer)?.has(card) ?? false);
}

/** The cards of a stack as `viewer` sees them, bottom first. */
export function cardsFor(moment, viewer, stack) {
  const { shuffle, type } = moment;
  const hidden = viewer !== ALL_CARDS && shuffle?.stack === stack && type !== "DeckSealed";
  return hidden ? shuffle.before : (moment.stacks.get(stack) ?? []);
}

/**
 * All stacks as `viewer` sees them; `face` is null for a card that the viewer may not know.
 *
 * @returns {Map<string, { card: number, face: string | null }[]>}
 */
export function visibleStacks(round, moment, viewer) {
  return new Map([...moment.stacks.keys()].map((stack) => [
    stack,
    cardsFor(moment, viewer, stack).map((card) => ({
      card,
      face: knows(moment, viewer, card) ? faceOf(round, card) : null,
    })),
  ]));
}
