/**
 * Replays a closed round with the secret that the house has revealed: derives the tape, repeats
 * every swap, follows every card, and compares each commitment (to the secret, the swaps, the drawn
 * cards, the sealed slots). The rules are those of verify.js. A client that joined in the middle of
 * the round knows no faces: it finds them by the commitments of their slots.
 */

import {
  RuleViolation, applyEvent, houseCommitment, saltKeyOf, secretLength, slotCommitment, slotSalt,
} from "../verify.js";
import { ANY_SEAT } from "./snapshot.js";

/**
 * Throws RuleViolation at the first difference.
 *
 * @param {any} ledger an empty one
 * @param {{ base: any, seats: Set<number> }} start the round when it was first seen, null for its
 *   beginning, and the seats that were taken then
 * @param {{ leaves: any[], secret: Uint8Array }} played
 */
export async function replayRound(ledger, { base, seats }, { leaves, secret }) {
  const { number } = base ?? { number: leaves[0].public.round };
  ledger.seats = seats;
  ledger.everSeated = ANY_SEAT;
  ledger.remarks.rounds = base === null ? number - 1 : number;
  const saltKey = await saltKeyOf(ledger.table, number, secret);
  if (base === null) ledger.secrets.set(leaves[0].version, secret);
  else enterRound(ledger, base, { secret, saltKey });
  for (const leaf of leaves) {
    if (leaf.type === "RoundClosed") break;
    await applyEvent(ledger, leaf);
    const over = leaf.type === "DeckSealed" || leaf.type === "ShuffleVoided";
    if (over && ledger.round.secret === null) openSlots(ledger, { secret, saltKey });
  }
}

/** Begin in the middle of a round. */
function enterRound(ledger, base, { secret, saltKey }) {
  const { deck, number, commitment, shuffle } = base;
  if (
    secret.length !== secretLength(deck.length) ||
    houseCommitment(ledger.table, number, secret) !== commitment
  ) {
    throw new RuleViolation("The revealed secret is not the one that the house committed to.");
  }
  ledger.round = base;
  openSlots(ledger, { secret, saltKey });
  // If checkpoint C1 of the running shuffle is from before our start, its tape is not known: its
  // swaps are not checked, and the cards that it sealed are looked up at its seal.
  const withoutTape = shuffle?.closed && ledger.roots.get(shuffle.closed) === undefined;
  if (withoutTape) Object.assign(base, { secret: null, saltKey: null });
}

/** Set the round's secret, and find the face of every sealed card by its commitment. */
function openSlots({ table, round }, { secret, saltKey }) {
  Object.assign(round, { secret, saltKey });
  const cards = [...round.stacks.values()].flat();
  const left = new Set(round.deck);
  for (const card of cards.filter(({ slot }) => slot < 0)) left.delete(card.face);
  for (const card of cards.filter(({ slot }) => slot >= 0)) {
    const { number } = round;
    const salt = slotSalt(saltKey, card.slot);
    const opens = (code) =>
      slotCommitment(table, number, card.slot, salt, code) === card.commitment;
    card.face = [...left].find(opens) ?? null;
    if (card.face === null) {
      throw new RuleViolation("A sealed slot holds a card that is not in this round's deck.");
    }
    left.delete(card.face);
  }
}
