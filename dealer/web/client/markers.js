/** Markers: the newest notes of the kinds that have a meaning in every game; see PROTOCOL.md. */

import { HistoryFold } from "./fold.js";

/** @typedef {import("../client.js").TableEvent} TableEvent */
/** @typedef {import("../client.js").Markers} Markers */

const SEAT = /^[1-9][0-9]{0,9}$/;
const SCORE = /^([1-9][0-9]{0,9}):(0|-?[1-9][0-9]{0,14})$/;
const COUNTER = /^([^:]{1,64}):(0|-?[1-9][0-9]{0,14})$/u;
const CLOCK = /^(0|[1-9][0-9]{0,4})$/;
const PHRASE = /^[a-z0-9._-]{1,64}$/;
const REACTION = /^.{1,16}$/su;

/**
 * What each kind of note says: `{ of, value }`, the seat that it is about, if it is about one, and
 * its value; null for a text that means nothing.
 */
const READERS = {
  turn: (text) => (SEAT.test(text) ? { of: Number(text), value: null } : null),
  dealer_button: (text) => (SEAT.test(text) ? { of: Number(text), value: null } : null),
  clock: (text) => (CLOCK.test(text) ? { of: null, value: Number(text) } : null),
  score: (text) => {
    const found = SCORE.exec(text);
    return found && { of: Number(found[1]), value: Number(found[2]) };
  },
  counter: (text) => {
    const found = COUNTER.exec(text);
    return found && { of: null, value: [found[1], Number(found[2])] };
  },
  phrase: (text) => (PHRASE.test(text) ? { of: null, value: text } : null),
  reaction: (text) => (REACTION.test(text) ? { of: null, value: text } : null),
};

/**
 * What an event says as a marker; null if it is none.
 *
 * @param {Pick<TableEvent, "type" | "public">} event
 * @returns {{ of: number | null, value: any } | null}
 */
export function markerIn({ type, public: event }) {
  if (type !== "NoteAdded") return null;
  const { kind, text } = /** @type {any} */ (event);
  return Object.hasOwn(READERS, kind) ? READERS[kind](text) : null;
}

/** @type {Markers} */
const NONE = {
  turn: null, clock: 0, dealerButton: null, scores: new Map(), counters: new Map(),
  phrase: null, reaction: null,
};

/** The newest notes of each kind, of a list of events: a new object whenever there are new ones. */
export function markersFold() {
  return new HistoryFold(NONE, (markers, event) => {
    const said = markerIn(event);
    return said === null ? markers : withNote(markers, event.public, said);
  });
}

/** @returns {Markers} */
function withNote(markers, { kind, seat, text }, { of, value }) {
  if (kind === "turn") return { ...markers, turn: of };
  if (kind === "clock") return { ...markers, clock: value };
  if (kind === "dealer_button") return { ...markers, dealerButton: of };
  if (kind === "score") return { ...markers, scores: new Map(markers.scores).set(of, value) };
  if (kind === "counter") {
    return { ...markers, counters: new Map(markers.counters).set(value[0], value[1]) };
  }
  return { ...markers, [kind]: { seat, text } };
}
