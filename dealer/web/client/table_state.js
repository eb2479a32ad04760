/** The client's view of a table (`TableState` of client.d.ts), built from what was verified. */

import { newLedger } from "../verify.js";
import { readSnapshot } from "./snapshot.js";

/** @typedef {import("../client.js").TableState} TableState */
/** @typedef {import("../client.js").RoundState} RoundState */
/** @typedef {import("./event_verifier.js").EventVerifier} EventVerifier */

const ACTIONS = {
  open: "host", close: "host", shuffle: "host", deal: "host", collect: "host",
  draw: "players", burn: "players", cut: "players", pile: "players", turn: "players",
  discard: "players", play: "players", give: "players", show: "players", return: "players",
  annotate: "players", pass: "players", take_back: "players",
  move_seat: "players",
};
const PRESETS = {
  free: ACTIONS,
  dealer: {
    ...ACTIONS, draw: "host", burn: "host", cut: "host", pile: "host", turn: "host",
    take_back: "host",
  },
  shared: {
    ...ACTIONS, open: "players", close: "players", shuffle: "players", deal: "players",
  },
};
const WHO = ["host", "players", "nobody"];

/**
 * The table as this viewer may know it.
 *
 * @param {Pick<EventVerifier, "version" | "at" | "origin" | "key" | "rules" | "players"
 *   | "hostSeat" | "rounds" | "ledger" | "closedRound" | "face">} verifier
 * @returns {TableState}
 */
export function tableState(verifier) {
  const { version, at, origin, key, rules, players, hostSeat, rounds, ledger, closedRound } =
    verifier;
  const seats = [...players].sort(([a], [b]) => a - b);
  return {
    version, at, origin, key, ...readRules(rules), closed: ledger.closed, rounds,
    hostSeat,
    seats: seats.map(([seat, player]) => ({ seat, ...player })),
    round: ledger.round && roundState(ledger.round, (card) => verifier.face(card)),
    closedRound: closedRound && roundState(closedRound, ({ face }) => face, true),
  };
}

/**
 * A table at an earlier version, from the server's `state`. Throws if that is malformed.
 *
 * @param {string} table the table's id
 * @param {any} state
 * @returns {TableState}
 */
export function pastState(table, state) {
  const faces = new Map((state.round?.cards ?? []).map(([slot, code]) => [slot, code]));
  const restored = readSnapshot(state, newLedger(table, new Map()));
  const face = (card) => (card.slot < 0 ? card.face : faces.get(card.slot) ?? null);
  return tableState({ ...restored, key: state.key, closedRound: null, face });
}

/** The rules with the preset filled in; unknown and invalid members are ignored. */
function readRules(rules) {
  const preset = Object.hasOwn(PRESETS, rules.preset) ? PRESETS[rules.preset] : PRESETS.free;
  const own = Object.entries(rules).filter(([name, who]) => name in ACTIONS && WHO.includes(who));
  return {
    rules,
    name: typeof rules.name === "string" ? rules.name : null,
    who: { ...preset, ...Object.fromEntries(own) },
    seatsMax: Number.isInteger(rules.seats) && rules.seats > 0 ? rules.seats : 10,
    invited: rules.join === "invite",
    watched: rules.watch !== "nobody",
  };
}

/**
 * @param {any} round
 * @param {(card: any) => string | null} faceOf
 * @param {boolean} [allShown]
 * @returns {RoundState}
 */
function roundState(round, faceOf, allShown = false) {
  const { number, deck, entropy, commitMs, revealMs, commitment, k, voided, shuffle } = round;
  const card = (one) => ({
    id: one.id,
    slot: one.slot < 0 ? null : one.slot,
    card: faceOf(one),
    shown: allShown || one.slot < 0 || round.shown.has(one.slot),
    drawable: one.reached,
  });
  const stacks = [...round.stacks].map(([name, cards]) => [name, cards.map(card)]);
  return {
    number, deck, entropy, commitMs, revealMs, commitment, shuffleIndex: k, voided,
    stacks: Object.fromEntries(stacks),
    ahead: [...round.earlyDigests.keys()],
    withheld: [...round.withheld],
    shuffle: shuffle && {
      shuffleIndex: shuffle.k,
      stack: shuffle.stack, n: shuffle.n, algorithm: shuffle.algorithm,
      steps: shuffle.steps, swaps: shuffle.done,
      startedAt: shuffle.startedAt,
      closedAt: shuffle.closed ? shuffle.closedAt : null,
      closedVersion: shuffle.closed || null,
      promised: [...shuffle.digests.keys()],
      revealed: [...shuffle.nonces.keys()],
    },
  };
}
