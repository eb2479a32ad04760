/** Markers: the newest notes of the kinds that have a meaning in every game; see CLIENT.md. */

/** @typedef {import("../client.js").TableEvent} TableEvent */
/** @typedef {import("../client.js").Markers} Markers */

const SEAT = /^[1-9][0-9]{0,9}$/;
const SCORE = /^([1-9][0-9]{0,9}):(0|-?[1-9][0-9]{0,14})$/;
const COUNTER = /^([^:]{1,64}):(0|-?[1-9][0-9]{0,14})$/u;
const PHRASE = /^[a-z0-9._-]{1,64}$/;
const REACTION = /^.{1,16}$/su;

/**
 * The newest notes of each kind; notes with other texts than CLIENT.md gives are ignored.
 *
 * @param {Iterable<TableEvent>} events oldest first
 * @returns {Markers}
 */
export function markersOf(events) {
  const markers = {
    turn: null, dealerButton: null, scores: new Map(), counters: new Map(),
    phrase: null, reaction: null,
  };
  for (const event of events) {
    if (event.type === "NoteAdded") apply(markers, event.public);
  }
  return markers;
}

function apply(markers, { seat, kind, text }) {
  let found;
  if (kind === "turn" && SEAT.test(text)) markers.turn = Number(text);
  else if (kind === "dealer_button" && SEAT.test(text)) markers.dealerButton = Number(text);
  else if (kind === "score" && (found = SCORE.exec(text))) {
    markers.scores.set(Number(found[1]), Number(found[2]));
  } else if (kind === "counter" && (found = COUNTER.exec(text))) {
    markers.counters.set(found[1], Number(found[2]));
  } else if (kind === "phrase" && PHRASE.test(text)) markers.phrase = { seat, text };
  else if (kind === "reaction" && REACTION.test(text)) markers.reaction = { seat, text };
}
