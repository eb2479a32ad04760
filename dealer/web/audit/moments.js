/**
 * The rounds of a verified bundle as moments, which a replay steps through in both directions.
 *
 * A round has one moment for each event from RoundOpened to RoundClosed. A moment has the state of
 * the whole table after its event; unchanged parts are shared with the moment before. A card is a
 * number: its slot or, before its stack was first sealed, `-1 - index` in the opening deck.
 *
 * Nothing is checked here: the input is what `verify` has accepted.
 */

import { SEAT_GIVEN_UP, seatOf } from "../verify.js";

const EVENT_CHECKS = ["secrets", "tape", "seals", "moves"];
const TRICK = "pile:table";
const NO_SLOTS = Object.freeze(new Set());

/** What a page shows in place of what people wrote, where that is withheld. */
const WITHHELD = new Map(Object.entries({
  SeatTaken: { name: "—" }, SeatVacated: { reason: "" }, NoteAdded: { text: "—" },
}));

/**
 * The events of a bundle up to the first fault, parsed, with what people wrote among their public
 * members.
 */
export function leavesOf(lines, report) {
  const { fault } = report;
  if (fault !== null && !EVENT_CHECKS.includes(fault.check)) return [];
  const decoder = new TextDecoder();
  const leaves = [];
  for (const line of lines.slice(1)) {
    const value = JSON.parse(typeof line === "string" ? line : decoder.decode(line));
    if (Object.hasOwn(value, "checkpoint")) break;
    if (Object.hasOwn(value, "opened")) {
      const leaf = leaves[value.version - 1];
      leaf.public = { ...leaf.public, ...value.opened };
    } else {
      leaves.push({ ...value, public: { ...WITHHELD.get(value.type), ...value.public } });
    }
  }
  return leaves.slice(0, fault === null ? undefined : fault.line - 1);
}

/**
 * The rounds of a bundle, without their moments: { number, state, first, last, leaves, … }, where
 * `first` and `last` are versions and `state` is
 *
 *     closed  its secret is known: it can be replayed
 *     open    it cannot be replayed yet
 *     broken  it has the first fault: it can be replayed up to there
 *
 * and `laidOut` is true for the first round of a practice table.
 *
 * @param {(string | Uint8Array)[]} lines the bundle's
 * @param {import("../verify.js").Report} report of `verify` on these lines
 * @returns {any[]}
 */
export function roundsOf(lines, report) {
  const swaps = new Map(report.swaps.map((swap) => [swap.version, swap]));
  const rounds = [];
  const seats = new Map();
  const bots = new Set();
  let round = null;
  for (const leaf of leavesOf(lines, report)) {
    if (leaf.type === "RoundOpened") {
      const number = leaf.public.round;
      round = { number, state: "open", first: leaf.version, last: leaf.version, leaves: [], swaps };
      round.laidOut = number === 1 && report.practice !== null;
      Object.assign(round, { seats: new Map(seats), bots: new Set(bots) });
      rounds.push(round);
    }
    const { seat, name, bot } = leaf.public;
    if (leaf.type === "SeatTaken") seats.set(seat, name);
    if (leaf.type === "SeatTaken" && bot) bots.add(seat);
    if (SEAT_GIVEN_UP.includes(leaf.type)) {
      seats.delete(seat);
      bots.delete(seat);
    }
    if (round === null) continue;
    round.leaves.push(leaf);
    round.last = leaf.version;
    if (leaf.type === "RoundClosed") {
      round.state = "closed";
      round = null;
    }
  }
  if (round !== null && report.fault !== null) breakAt(round, report.fault);
  return rounds;
}

/** A round with a fault can be replayed if its secret is in the bundle, after the fault. */
function breakAt(round, fault) {
  const shuffled = round.leaves.some(({ type }) => type === "CardsSwapped");
  const known = round.leaves.some(({ version }) => round.swaps.has(version));
  if (!shuffled || known) Object.assign(round, { state: "broken", fault });
}

/**
 * The moments of a round; none if it is open. A moment has its event's version, at, type and public
 * part, and { stacks, seats, shown, known, played, shuffle, swap }:
 *
 * stacks   Map: name → cards, bottom first
 * shown    Set of the slots that are public
 * known    Map: seat → Set of the slots that it has seen
 * played   Map: slot → the seat that put it into a trick first
 * shuffle  the one that is running or was ended by this event: { k, stack, n, algorithm, steps,
 *          before, first, sealed, swaps, laidOut }
 * swap     of CardsSwapped: { step, i, j, words, cards, at }, with `at` the index of its first word
 *          on the tape
 *
 * @returns {any[]}
 */
export function momentsOf(round) {
  if (round.state === "open") return [];
  if (round.moments) return round.moments;
  const [opening] = round.leaves;
  Object.assign(round, { deck: opening.public.deck, origins: [], shuffles: [] });
  round.moments = [];
  let table = {
    stacks: new Map([["deck", round.deck.map((_, place) => -1 - place)]]),
    seats: round.seats, bots: round.bots, shown: NO_SLOTS, known: new Map(), played: new Map(),
    shuffle: null,
  };
  for (const leaf of round.leaves) {
    const change = CHANGES[leaf.type]?.(table, leaf.public, round, leaf.version) ?? {};
    const { swap = null, over = false, ...changed } = change;
    table = { ...table, ...changed };
    const { version, at, type } = leaf;
    round.moments.push({ version, at, type, public: leaf.public, swap, ...table });
    if (over) table = { ...table, shuffle: null };
  }
  return round.moments;
}

/** The index of a card in the opening deck. */
export const originOf = (round, card) => (card < 0 ? -1 - card : round.origins[card]);

/** The code of a card. */
export const faceOf = (round, card) => round.deck[originOf(round, card)];

/** The new members of the table after an event; also `swap`, and `over` if it ended the shuffle. */
const CHANGES = {
  SeatTaken: ({ seats, bots }, { seat, name, bot }) => ({
    seats: new Map(seats).set(seat, name),
    bots: bot ? new Set(bots).add(seat) : bots,
  }),
  SeatLeft: seatLeft,
  SeatVacated: seatLeft,
  ShuffleStarted: shuffleStarted,
  CardsSwapped: cardsSwapped,
  ShuffleVoided: ({ shuffle }, _, round, version) => {
    Object.assign(shuffle, { voided: true, last: version });
    return { over: true };
  },
  DeckSealed: deckSealed,
  // Without its face: a card is a slot here. `deckSealed` notes which card of the opening deck got
  // the slot (`origins`), after the swaps of `verify`'s report; `faceOf` reads the face there.
  CardDrawn: (table, { seat, from, slot }) => moved(table, slot, from, `hand:${seat}`, Infinity),
  CardMoved: (table, { slot, from, to, place }) => moved(table, slot, from, to, place),
  CardShown: ({ shown }, { slot }) => ({ shown: new Set(shown).add(slot) }),
  CardPeeked: ({ known }, { seat, slot }) => ({ known: learned(known, seat, slot) }),
  StackCut: ({ stacks }, { stack, at }) => {
    const cards = stacks.get(stack) ?? [];
    return { stacks: new Map(stacks).set(stack, [...cards.slice(at), ...cards.slice(0, at)]) };
  },
};

/** The hand stays with the seat; the next player does not know what else its player had seen. */
function seatLeft({ seats, bots, stacks, known }, { seat }) {
  const left = new Map(seats);
  left.delete(seat);
  const hand = new Set(stacks.get(`hand:${seat}`));
  const kept = [...(known.get(seat) ?? [])].filter((slot) => hand.has(slot));
  return {
    seats: left,
    bots: new Set([...bots].filter((other) => other !== seat)),
    known: new Map(known).set(seat, new Set(kept)),
  };
}

function shuffleStarted({ stacks }, event, round, version) {
  const before = stacks.get(event.stack) ?? [];
  const shuffle = { ...event, before, swaps: [], words: 0, voided: false, sealed: false };
  const laidOut = round.laidOut && event.k === 0; // its swaps follow no tape
  Object.assign(shuffle, { first: version, last: version, laidOut });
  round.shuffles.push(shuffle);
  return { shuffle };
}

function cardsSwapped({ stacks, shuffle }, _, round, version) {
  const swap = { ...round.swaps.get(version), at: shuffle.words };
  const cards = (stacks.get(shuffle.stack) ?? []).slice();
  [cards[swap.i], cards[swap.j]] = [cards[swap.j], cards[swap.i]];
  shuffle.swaps.push(swap);
  shuffle.words += swap.words.length;
  shuffle.last = version;
  return { swap, stacks: new Map(stacks).set(shuffle.stack, cards) };
}

/** Each card gets a new, unseen slot, so that players cannot follow cards that they knew. */
function deckSealed({ stacks, shuffle }, { first }, round, version) {
  const cards = stacks.get(shuffle.stack) ?? [];
  cards.forEach((card, place) => (round.origins[first + place] = originOf(round, card)));
  Object.assign(shuffle, { sealed: true, last: version });
  const slots = cards.map((_, place) => first + place);
  return { stacks: new Map(stacks).set(shuffle.stack, slots), over: true };
}

/** Move a card to an index of a stack; the seat whose hand gets it knows it. */
function moved({ stacks, known, played: before }, slot, from, to, place) {
  const changed = new Map(stacks);
  changed.set(from, stacks.get(from).filter((card) => card !== slot));
  const target = (changed.get(to) ?? []).slice();
  target.splice(place, 0, slot);
  changed.set(to, target);
  const [giver, seat] = [from, to].map(seatOf);
  const first = giver !== null && to === TRICK && !before.has(slot);
  const played = first ? new Map(before).set(slot, giver) : before;
  if (seat === null) return { stacks: changed, played };
  return { stacks: changed, played, known: learned(known, seat, slot) };
}

const learned = (known, seat, slot) =>
  new Map(known).set(seat, new Set(known.get(seat)).add(slot));

/** How many of the first `count` swaps each card took part in, by its index before the shuffle. */
export function swapCounts({ n, swaps }, count = swaps.length) {
  const seen = new Array(n).fill(0);
  const order = Array.from({ length: n }, (_, place) => place);
  for (const { i, j } of swaps.slice(0, count)) {
    seen[order[i]] += 1;
    if (i !== j) seen[order[j]] += 1;
    [order[i], order[j]] = [order[j], order[i]];
  }
  return seen;
}

/** The index of the moment of a version, or of the nearest one. */
export const indexOf = (round, version) =>
  Math.min(Math.max(version - round.first, 0), round.last - round.first);
