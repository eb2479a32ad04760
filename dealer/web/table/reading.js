/**
 * What can be read off the table: who sits where, how many cards lie in which stack, who may act.
 *
 * Everything here is a function of the client's table and changes nothing.
 */

import { harmless } from "../make.js";
import { table as texts } from "../texts/table.js";
import { seatOf } from "../verify.js";

/** Piles that have their place on the felt as long as a round is open, cards or none. */
const STANDING = ["pile:table", "pile:discard"];
const BURN = "pile:burn";

/** The cards of a stack, bottom first; none where there is no such stack. */
export function cardsIn(state, stack) {
  return state.round?.stacks[stack] ?? [];
}

export function handOf(seat) {
  return `hand:${seat}`;
}

/** The cards of this player's own hand, in the order in which they came. */
export function ownCards(table) {
  return table.seat === null ? [] : cardsIn(table.state, handOf(table.seat));
}

/** The piles that the felt shows, as stacks, those that always stand there first. */
export function pilesShown(state) {
  if (state.round === null) return [];
  const named = Object.keys(state.round.stacks).filter((stack) => stack.startsWith("pile:"));
  const others = named.filter(
    (stack) => !STANDING.includes(stack) && stack !== BURN && cardsIn(state, stack).length > 0,
  );
  const burns = state.who.burn !== "nobody" || cardsIn(state, BURN).length > 0;
  return [...STANDING, ...(burns ? [BURN] : []), ...others];
}

/** What a pile is called: its name, without what says that it is a pile. */
export function pileName(stack) {
  return stack.replace(/^pile:/, "");
}

/** The name of who sits there, or sat there last; the seat's number where nobody is known. */
export function nameAt(table, seat) {
  return harmless(table.seats.get(seat) ?? leftFrom(table).get(seat) ?? texts.seat(seat));
}

/** Who was seen in which seat, by table: who sat there when this page came stands in no event. */
const seen = new WeakMap();

function namesSeen(table) {
  const names = seen.get(table) ?? new Map();
  for (const [seat, name] of table.seats) names.set(seat, name);
  seen.set(table, names);
  return new Map(names);
}

/** Names of who left a seat that is free now, by seat, as far as this page saw it. */
export function leftFrom(table) {
  const left = new Map();
  const names = namesSeen(table);
  for (const { type, public: fact } of table.history) {
    if (type === "SeatTaken") {
      names.set(fact.seat, fact.name);
      left.delete(fact.seat);
    } else if (type === "SeatLeft") {
      left.set(fact.seat, names.get(fact.seat) ?? texts.seat(fact.seat));
    }
  }
  return left;
}

/** The other seats that the felt shows, as one sees them going round from one's own. */
export function seatsAround(table) {
  const { state, seat: own } = table;
  const taken = new Map(state.seats.map((one) => [one.seat, one]));
  const left = leftFrom(table);
  const numbers = new Set([...taken.keys(), ...left.keys()]);
  for (const stack of Object.keys(state.round?.stacks ?? {})) {
    const seat = seatOf(stack);
    if (seat !== null && cardsIn(state, stack).length > 0) numbers.add(seat);
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
    cards: cardsIn(state, handOf(seat)),
  }));
}

/** Seats of the other players, who can be given cards. */
export function otherSeats(table) {
  return table.state.seats.map(({ seat }) => seat).filter((seat) => seat !== table.seat);
}

/** The free seats, lowest first. */
export function freeSeats(state) {
  const taken = new Set(state.seats.map(({ seat }) => seat));
  const all = Array.from({ length: state.seatsMax }, (_, place) => place + 1);
  return all.filter((seat) => !taken.has(seat));
}

/** Whether the open round, or else the last one, takes only the house's bytes. */
export function houseAlone({ state, history }) {
  const opened = history.findLast(({ type }) => type === "RoundOpened");
  return (state.round?.entropy ?? opened?.public.entropy) === "house";
}

/** Whether this stack was shuffled, so that cards of it can be drawn and moved. */
export function isSealed(state, stack) {
  const cards = cardsIn(state, stack);
  return cards.length > 0 && cards.every((card) => card.slot !== null);
}

/** Whether the rules let this player ever do `action`. */
export function entitled(table, action) {
  const who = table.state.who[action];
  if (who === "nobody") return false;
  return table.host || (who === "players" && table.seat !== null);
}

/** Whether the host may take the cards of other players' hands onto the deck or a pile. */
export function hostCollects({ state }) {
  return state.who.collect !== "nobody";
}
