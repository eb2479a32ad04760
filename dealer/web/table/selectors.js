/**
 * Functions that read the client's table: who has which seat, which cards a stack has, what the
 * rules allow. They change nothing.
 */

import { escapeControl } from "../dom.js";
import { table as texts } from "../texts/table.js";
import { seatOf } from "../verify.js";

/** @typedef {import("../client.js").Card} Card */
/** @typedef {import("../client.js").RemoteTable} RemoteTable */
/** @typedef {import("../client.js").TableState} TableState */

/** Piles that are shown during a round even while they are empty. */
const PERMANENT = ["pile:table", "pile:discard"];
const BURN = "pile:burn";

/**
 * The cards of a stack, bottom first; none if there is no such stack.
 *
 * @param {TableState} state
 * @param {string} stack
 * @returns {readonly Card[]}
 */
export function cardsIn(state, stack) {
  return state.round?.stacks[stack] ?? [];
}

/**
 * The round to draw: the open one, or, until the next one opens, the last one with all its cards.
 *
 * @param {TableState} state
 */
export function shownRound(state) {
  return state.round ?? state.closedRound;
}

/**
 * The cards of a stack of the round that is drawn, bottom first.
 *
 * @param {TableState} state
 * @param {string} stack
 * @returns {readonly Card[]}
 */
export function cardsShown(state, stack) {
  return shownRound(state)?.stacks[stack] ?? [];
}

/** The stack of a seat's hand. */
export function handOf(seat) {
  return `hand:${seat}`;
}

/**
 * The cards of this player's hand in the open round, in the order in which they came.
 *
 * @param {RemoteTable} table
 */
export function ownCards(table) {
  return table.seat === null ? [] : cardsIn(table.state, handOf(table.seat));
}

/** The piles that are not empty, as stack names. */
function filledPiles(state) {
  return Object.entries(shownRound(state)?.stacks ?? {})
    .filter(([stack, cards]) => stack.startsWith("pile:") && cards.length > 0)
    .map(([stack]) => stack);
}

/**
 * The piles in the middle, as stack names, the permanent ones first.
 *
 * @param {TableState} state
 */
export function pilesShown(state) {
  if (shownRound(state) === null) return [];
  const others = filledPiles(state).filter(
    (stack) => !PERMANENT.includes(stack) && stack !== BURN && seatOfPile(stack) === null,
  );
  const burns = state.who.burn !== "nobody" || cardsShown(state, BURN).length > 0;
  return [...PERMANENT, ...(burns ? [BURN] : []), ...others];
}

/**
 * The seat before which a pile is laid: `pile:won:<seat>` has the tricks that it won,
 * `pile:seat:<seat>` what it laid out, and `pile:pass:<seat>` the cards that wait to be passed to
 * it. Null for the piles in the middle.
 *
 * @param {string} stack
 */
export function seatOfPile(stack) {
  const seat = /^pile:(?:won|seat|pass):([1-9][0-9]{0,9})$/.exec(stack)?.[1];
  return seat === undefined ? null : Number(seat);
}

/**
 * The piles before a seat that are not empty, as stack names.
 *
 * @param {TableState} state
 * @param {number} seat
 */
export function pilesOfSeat(state, seat) {
  return filledPiles(state).filter((stack) => seatOfPile(stack) === seat).sort();
}

/**
 * A name that no pile of the round has, for a new one.
 *
 * @param {TableState} state
 */
export function freePileName(state) {
  let number = 1;
  while (state.round?.stacks[`pile:${texts.pile(number)}`] !== undefined) number += 1;
  return texts.pile(number);
}

/** The seat whose passed cards wait in a pile, until all seats have passed; null for other stacks. */
export function passedTo(stack) {
  const seat = /^pile:pass:([1-9][0-9]{0,9})$/.exec(stack)?.[1];
  return seat === undefined ? null : Number(seat);
}

/** A pile's name without the prefix `pile:`. */
export function pileName(stack) {
  return stack.replace(/^pile:/, "");
}

/**
 * The name of the current or last player of a seat; "Seat n" if none is known.
 *
 * @param {RemoteTable} table
 * @param {number} seat
 */
export function nameAt(table, seat) {
  return escapeControl(table.seats.get(seat) ?? formerPlayers(table).get(seat) ?? texts.seat(seat));
}

/** Players seen so far by seat: those from before this page was loaded are in no event. */
const seen = new WeakMap();

function namesSeen(table) {
  const names = seen.get(table) ?? new Map();
  for (const [seat, name] of table.seats) names.set(seat, name);
  seen.set(table, names);
  return new Map(names);
}

/**
 * The last player of each free seat, by seat, as far as this page saw them leave.
 *
 * @param {RemoteTable} table
 * @returns {Map<number, string>}
 */
export function formerPlayers(table) {
  const former = new Map();
  const names = namesSeen(table);
  for (const { type, public: event } of table.history) {
    if (type === "SeatTaken") {
      names.set(event.seat, event.name);
      former.delete(event.seat);
    } else if (type === "SeatLeft" || type === "SeatVacated") {
      former.set(event.seat, names.get(event.seat) ?? texts.seat(event.seat));
    }
  }
  return former;
}

/**
 * The other seats to show, in order around the table from this player's own.
 *
 * @param {RemoteTable} table
 */
export function seatsAround(table) {
  const { state, seat: own } = table;
  const taken = new Map(state.seats.map((one) => [one.seat, one]));
  const numbers = new Set([...taken.keys(), ...formerPlayers(table).keys()]);
  for (const [stack, cards] of Object.entries(shownRound(state)?.stacks ?? {})) {
    const seat = seatOf(stack) ?? seatOfPile(stack);
    if (seat !== null && cards.length > 0) numbers.add(seat);
  }
  numbers.delete(own);
  const start = own ?? 0;
  const rank = (seat) => (seat > start ? seat - start : seat - start + 2 ** 32);
  return [...numbers].sort((a, b) => rank(a) - rank(b)).map((seat) => ({
    seat,
    name: nameAt(table, seat),
    taken: taken.has(seat),
    here: table.presence.get(seat)?.here ?? null,
    since: table.presence.get(seat)?.since ?? null,
    cards: cardsShown(state, handOf(seat)),
    piles: pilesOfSeat(state, seat),
  }));
}

/**
 * Whether the player of a seat is the host, as far as this client knows: the log does not say which
 * seat the player has who opened the table.
 *
 * @param {RemoteTable} table
 * @param {number} seat
 */
export function isHostSeat(table, seat) {
  return seat === (table.state.hostSeat ?? (table.host ? table.seat : null));
}

/**
 * The seats of the other players, who can be given cards.
 *
 * @param {RemoteTable} table
 */
export function otherSeats(table) {
  return table.state.seats.map(({ seat }) => seat).filter((seat) => seat !== table.seat);
}

/**
 * The free seats, lowest first.
 *
 * @param {TableState} state
 */
export function freeSeats(state) {
  const taken = new Set(state.seats.map(({ seat }) => seat));
  const all = Array.from({ length: state.seatsMax }, (_, index) => index + 1);
  return all.filter((seat) => !taken.has(seat));
}

/**
 * Whether the open round, or otherwise the last one, uses only the house's random bytes.
 *
 * @param {RemoteTable} table
 */
export function isHouseOnly({ state, history }) {
  const opened = history.findLast(({ type }) => type === "RoundOpened");
  const entropy = opened?.type === "RoundOpened" ? opened.public.entropy : undefined;
  return (state.round?.entropy ?? entropy) === "house";
}

/**
 * Whether a stack was shuffled, so that its cards can be drawn and moved.
 *
 * @param {TableState} state
 * @param {string} stack
 */
export function isSealed(state, stack) {
  const cards = cardsIn(state, stack);
  return cards.length > 0 && cards.every((card) => card.slot !== null);
}

/**
 * Whether the rules of the table allow this player an action.
 *
 * @param {RemoteTable} table
 * @param {string} rule
 */
export function isAllowed(table, rule) {
  const who = table.state.who[rule];
  if (who === "nobody") return false;
  return table.host || (who === "players" && table.seat !== null);
}

/**
 * Whether the host may move the cards of players' hands to the deck or a pile.
 *
 * @param {RemoteTable} table
 */
export function hostCollects({ state }) {
  return state.who.collect !== "nobody";
}
