/** Reads a snapshot of a table into a ledger, to which events can then be applied. */

import { RuleViolation, isBytes32, isCount, isOrigin, unhex } from "../verify.js";

/**
 * Read a snapshot's `state` into the empty `ledger`. Throws RuleViolation, or any other error, if
 * the snapshot is malformed.
 */
export function readSnapshot(state, ledger) {
  const { version, at, origin, key, rules, closed, rounds, seats, host_seat = null, round } = state;
  ensure(isCount(version) && isCount(at) && isOrigin(origin) && isBytes32(key));
  ensure(typeof rules === "object" && rules !== null && typeof closed === "boolean");
  ensure(isCount(rounds) && Array.isArray(seats));
  const players = new Map();
  for (const { seat, name, since, key: own = null, bot = false } of seats) {
    ensure(isCount(seat) && typeof name === "string" && isCount(since) && typeof bot === "boolean");
    ensure(own === null || isBytes32(own));
    players.set(seat, { name, key: own, since, bot });
  }
  ensure(host_seat === null || players.has(host_seat));
  ledger.seats = new Set(players.keys());
  ledger.everSeated = ANY_SEAT; // a snapshot does not say who has left
  ledger.remarks.rounds = rounds;
  ledger.closed = closed;
  ledger.round = round === undefined ? null : readRound(round);
  return { version, at, origin, rules, rounds, players, hostSeat: host_seat, ledger };
}

/** In place of the set of seats that were ever taken, where that is not known. */
export const ANY_SEAT = { add() {}, has: () => true };

function readRound(view) {
  const { round: number, deck, entropy, commit_ms, reveal_ms, commitment, k, slots } = view;
  ensure(isCount(number) && Array.isArray(deck) && deck.length > 0 && isCount(slots) && isCount(k));
  ensure(deck.every((code) => typeof code === "string") && isBytes32(commitment));
  const commitments = new Map(view.commitments);
  const drawable = new Set(view.drawable);
  const ids = new Set();
  const card = (id) => {
    ensure(Number.isSafeInteger(id) && id >= -deck.length && id < slots && !ids.has(id));
    ids.add(id);
    if (id < 0) return { id, face: deck[-1 - id], slot: -1, commitment: null, reached: false };
    const sealed = commitments.get(id);
    ensure(isBytes32(sealed));
    return { id, face: null, slot: id, commitment: sealed, reached: drawable.has(id) };
  };
  const stacks = new Map();
  for (const [name, cards] of Object.entries(view.stacks)) stacks.set(name, cards.map(card));
  ensure(ids.size === deck.length && Array.isArray(view.cards));
  return {
    number, entropy, secret: null, saltKey: null,
    stacks, slots, k,
    shuffle: view.shuffle === undefined ? null : readShuffle(view.shuffle),
    earlyDigests: new Map(view.ahead), withheld: new Set(view.withheld),
    deck, commitMs: commit_ms, revealMs: reveal_ms, commitment, voided: 0,
    shown: new Set(view.shown),
  };
}

function readShuffle(view) {
  const { k, stack, n, algorithm, steps, started_at, closed_version, closed_at } = view;
  ensure(isCount(k) && isCount(n) && isCount(steps) && isCount(closed_version));
  const nonces = new Map();
  for (const [seat, nonce] of view.nonces) {
    ensure(isBytes32(nonce));
    nonces.set(seat, unhex(nonce));
  }
  return {
    k, stack, n, algorithm, steps, digests: new Map(view.digests), nonces,
    closed: closed_version, done: 0, plan: null, startedAt: started_at, closedAt: closed_at,
  };
}

function ensure(condition) {
  if (!condition) throw new RuleViolation("A member is missing or has the wrong type.");
}
