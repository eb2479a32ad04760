/**
 * What happened at a table, as moments that one can step through, forwards and backwards.
 *
 * A round is a row of moments, one for each event from RoundOpened to RoundClosed. Each moment has
 * the whole table after its event; what an event leaves alone, its moment shares with the one
 * before. A card is a number: before its stack was first sealed `-1 - place` in the round's opening
 * deck, from then on its slot.
 *
 * Nothing is judged here: this is told of what `verify` found sound.
 */

import { seatOf } from "../verify.js";

const EVENT_CHECKS = ["secrets", "tape", "seals", "moves"];
const NOTHING = Object.freeze(new Set());

/** The events of a bundle's lines (Uint8Arrays) up to the first fault, as objects. */
export function leavesOf(lines, report) {
  const { fault } = report;
  if (fault !== null && !EVENT_CHECKS.includes(fault.check)) return [];
  const decoder = new TextDecoder();
  const leaves = [];
  for (const line of lines.slice(1, fault === null ? undefined : fault.line)) {
    const value = JSON.parse(typeof line === "string" ? line : decoder.decode(line));
    if (Object.hasOwn(value, "checkpoint")) break;
    leaves.push(value);
  }
  return leaves;
}

/**
 * The rounds of a bundle, without their moments: { number, state, first, last, leaves, … }, where
 * `first` and `last` are versions and `state` is
 *
 *     closed  its secret is known: it can be watched
 *     open    it cannot, yet
 *     broken  the first fault lies in it: it can be watched up to there
 *
 * @param lines the bundle's, as `verify` took them
 * @param report what `verify` said of them
 */
export function roundsOf(lines, report) {
  const swaps = new Map(report.swaps.map((swap) => [swap.version, swap]));
  const rounds = [];
  const seats = new Map();
  let round = null;
  for (const leaf of leavesOf(lines, report)) {
    if (leaf.type === "RoundOpened") {
      const number = leaf.public.round;
      round = { number, state: "open", first: leaf.version, last: leaf.version, leaves: [], swaps };
      round.seats = new Map(seats);
      rounds.push(round);
    }
    if (leaf.type === "SeatTaken") seats.set(leaf.public.seat, leaf.public.name);
    if (leaf.type === "SeatLeft") seats.delete(leaf.public.seat);
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

/** A round that a fault ends can be watched if its secret stands somewhere behind the fault. */
function breakAt(round, fault) {
  const shuffled = round.leaves.some(({ type }) => type === "CardsSwapped");
  const told = round.leaves.some(({ version }) => round.swaps.has(version));
  if (!shuffled || told) Object.assign(round, { state: "broken", fault });
}

/**
 * All moments of a round: its event's version, at, type and public part, and
 * { stacks, seats, shown, known, shuffle, swap }.
 *
 * stacks   Map: name → cards, bottom first
 * shown    Set of the slots that everybody knows
 * known    Map: seat → Set of the slots that it has seen
 * shuffle  the one that runs, or that this event ended: { k, stack, n, algorithm, steps, before,
 *          first, sealed, swaps }
 * swap     of CardsSwapped: { step, i, j, words, cards, at }, `at` being the place of its first
 *          word on the tape
 *
 * A round that is open has none. `round.faces` are then its faces, by slot.
 */
export function tell(round) {
  if (round.state === "open") return [];
  if (round.moments) return round.moments;
  const [opening] = round.leaves;
  Object.assign(round, { deck: opening.public.deck, origins: [], shuffles: [] });
  round.moments = [];
  let table = {
    stacks: new Map([["deck", round.deck.map((_, place) => -1 - place)]]),
    seats: round.seats, shown: NOTHING, known: new Map(), shuffle: null,
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

/** Where in the opening deck the card lay that a number stands for. */
export const originOf = (round, card) => (card < 0 ? -1 - card : round.origins[card]);

/** The code of the card that a number stands for. */
export const faceOf = (round, card) => round.deck[originOf(round, card)];

/** What an event changes of the table: its new members, and with it `swap`; `over`: no shuffle. */
const CHANGES = {
  SeatTaken: ({ seats }, { seat, name }) => ({ seats: new Map(seats).set(seat, name) }),
  SeatLeft: seatLeft,
  ShuffleStarted: shuffleStarted,
  CardsSwapped: cardsSwapped,
  ShuffleVoided: ({ shuffle }, _, round, version) => {
    Object.assign(shuffle, { voided: true, last: version });
    return { over: true };
  },
  DeckSealed: deckSealed,
  CardDrawn: (table, { seat, from, slot }) => moved(table, slot, from, `hand:${seat}`, Infinity),
  CardMoved: (table, { slot, from, to, place }) => moved(table, slot, from, to, place),
  CardShown: ({ shown }, { slot }) => ({ shown: new Set(shown).add(slot) }),
  CardPeeked: ({ known }, { seat, slot }) => ({ known: learned(known, seat, slot) }),
  StackCut: ({ stacks }, { stack, at }) => {
    const cards = stacks.get(stack) ?? [];
    return { stacks: new Map(stacks).set(stack, [...cards.slice(at), ...cards.slice(0, at)]) };
  },
};

/** The hand stays with the seat; what else its player had seen, who comes next does not know. */
function seatLeft({ seats, stacks, known }, { seat }) {
  const left = new Map(seats);
  left.delete(seat);
  const hand = new Set(stacks.get(`hand:${seat}`));
  const kept = [...(known.get(seat) ?? [])].filter((slot) => hand.has(slot));
  return { seats: left, known: new Map(known).set(seat, new Set(kept)) };
}

function shuffleStarted({ stacks }, event, round, version) {
  const before = stacks.get(event.stack) ?? [];
  const shuffle = { ...event, before, swaps: [], words: 0, voided: false, sealed: false };
  Object.assign(shuffle, { first: version, last: version });
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

/** Each place gets a new slot that nobody has seen: nobody may follow a card that they knew. */
function deckSealed({ stacks, shuffle }, { first }, round, version) {
  const cards = stacks.get(shuffle.stack) ?? [];
  cards.forEach((card, place) => (round.origins[first + place] = originOf(round, card)));
  Object.assign(shuffle, { sealed: true, last: version });
  const slots = cards.map((_, place) => first + place);
  return { stacks: new Map(stacks).set(shuffle.stack, slots), over: true };
}

/** A card goes to a place of another stack, or of the same; a hand that gets it knows it. */
function moved({ stacks, known }, slot, from, to, place) {
  const changed = new Map(stacks);
  changed.set(from, stacks.get(from).filter((card) => card !== slot));
  const there = (changed.get(to) ?? []).slice();
  there.splice(place, 0, slot);
  changed.set(to, there);
  const seat = seatOf(to);
  if (seat === null) return { stacks: changed };
  return { stacks: changed, known: learned(known, seat, slot) };
}

const learned = (known, seat, slot) =>
  new Map(known).set(seat, new Set(known.get(seat)).add(slot));

/** How many of the first `count` swaps each card took part in, by its place before the shuffle. */
export function visits({ n, swaps }, count = swaps.length) {
  const seen = new Array(n).fill(0);
  const order = Array.from({ length: n }, (_, place) => place);
  for (const { i, j } of swaps.slice(0, count)) {
    seen[order[i]] += 1;
    if (i !== j) seen[order[j]] += 1;
    [order[i], order[j]] = [order[j], order[i]];
  }
  return seen;
}

/** The moment of a round that shows a version, or the nearest. */
export const indexOf = (round, version) =>
  Math.min(Math.max(version - round.first, 0), round.last - round.first);
