/**
 * Functions that read the client's table: who has which seat, which cards a stack has, what the
 * rules allow. They change nothing.
 */

import { suitsOfCards } from "../cards.js";
import { safeText } from "../dom.js";
import { pileKind } from "../pile_kinds.js";
import { quantity, table as texts } from "../texts.js";
import { broadcastOf, seatOf } from "../verify.js";
import {
  comparesHands, hasNoHands, hasTurns, mayHaveTricks, passOfRound, pilesOfGame,
} from "./game.js";
import { begun, formerPlayers, playedBy } from "./history.js";

/** @typedef {import("../client.js").Card} Card */
/** @typedef {import("../client.js").RemoteTable} RemoteTable */
/** @typedef {import("../client.js").TableState} TableState */

/** Piles that are shown during a round even while they are empty. */
const PERMANENT = ["pile:table", "pile:discard"];
const BURN = "pile:burn";
const NEW_PILE = "pile-";

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
  const ofGame = pilesOfGame()?.map((name) => `pile:${name}`) ?? null;
  const burns = ofGame === null && state.who.burn !== "nobody";
  const permanent = ofGame ?? [...PERMANENT, ...(burns ? [BURN] : [])];
  const others = filledPiles(state).filter(
    (stack) => !permanent.includes(stack) && seatOfPile(stack) === null,
  );
  return [...permanent, ...others];
}

/** The seat in the name of a pile of one of these kinds; null for other stacks. */
function seatIn(stack, ...kinds) {
  const { kind, seat } = pileKind(stack);
  return kinds.includes(kind) ? seat : null;
}

/**
 * The seat before which a pile is laid: `pile:won:<seat>` has the tricks that it won,
 * `pile:seat:<seat>` what it laid out, and `pile:pass:<seat>` the cards that wait to be passed to
 * it. Null for the piles in the middle.
 *
 * @param {string} stack
 */
export const seatOfPile = (stack) => seatIn(stack, "won", "seat", "pass");

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
  while (state.round?.stacks[`pile:${NEW_PILE}${number}`] !== undefined) number += 1;
  return NEW_PILE + number;
}

/** The seat whose passed cards wait in a pile, until all seats have passed; null for other stacks. */
export const passedTo = (stack) => seatIn(stack, "pass");

/** The pile of the tricks that a seat has won. */
export function wonPile(seat) {
  return `pile:won:${seat}`;
}

/** The seat that has won the tricks of a pile; null for other stacks. */
export const wonBy = (stack) => seatIn(stack, "won");

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
  const name = table.seats.get(seat) ?? formerPlayers(table).get(seat);
  return safeText(name ?? texts.seat({ seat }));
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

/** A delay in words, such as "5 minutes". */
export function delayText(seconds) {
  const [unit, size] = seconds > 0 && seconds % 3600 === 0 ? ["hour", 3600]
    : seconds > 0 && seconds % 60 === 0 ? ["minute", 60] : ["second", 1];
  return quantity(seconds / size, unit);
}

/** The sentence about the rule `broadcast`, of which this is the value; empty for none. */
export function broadcastSentence(rule) {
  const seconds = broadcastOf({ broadcast: rule });
  return seconds === null ? "" : texts.broadcast({ time: delayText(seconds) });
}

/**
 * Whether the table's cards are a trick: every player who is seated has played one of them, and
 * none of them two.
 *
 * @param {RemoteTable} table
 */
export function isTrick(table) {
  if (!mayHaveTricks()) return false;
  const cards = cardsIn(table.state, "pile:table");
  const seats = new Set(cards.map(({ slot }) => playedBy(table, slot)?.seat));
  const players = table.state.seats;
  return players.length > 1 && cards.length === seats.size &&
    players.every(({ seat }) => seats.has(seat));
}

/**
 * All seats that are shown, in order around the table from this player's own, or the first one.
 *
 * @param {RemoteTable} table
 */
export function seatsInOrder(table) {
  const others = seatsAround(table).map(({ seat }) => seat);
  return table.seat === null ? others : [table.seat, ...others];
}

/**
 * The seat whose turn follows that of `seat`: the next one that is taken; where no player draws, the
 * next one that has cards, if one has any.
 *
 * @param {RemoteTable} table
 * @param {number} seat
 */
export function nextSeat(table, seat) {
  const taken = table.state.seats.map((one) => one.seat);
  const holds = (one) => cardsIn(table.state, handOf(one)).length > 0;
  const left = table.state.who?.draw === "nobody" ? taken.filter(holds) : [];
  const playing = left.length > 0 ? left : taken;
  return playing.find((one) => one > seat) ?? playing[0];
}

/**
 * Which cards this player is to pass now, and to whom; null if none: all have passed, or one has
 * played. `seat` is null where no player sits across.
 *
 * @param {RemoteTable} table
 * @returns {{ count: number, seat: number | null, done: boolean, left: string[] } | null} `left`
 *   are the players who have not passed yet
 */
export function passing(table) {
  // A practice table may be laid out after the cards were passed.
  const alone = table.practice !== null || table.state.seats.length < 2;
  const pass = alone || table.round === null ? null : passOfRound(table.round);
  const { passed, played } = begun(table);
  const seats = table.state.seats.map((one) => one.seat);
  if (pass === null || played || seats.every((seat) => passed.has(seat))) return null;
  const step = { left: 1, right: seats.length - 1, across: seats.length / 2 }[pass.direction];
  const to = seats[(seats.indexOf(table.seat) + step) % seats.length] ?? null;
  const left = seats.filter((seat) => !passed.has(seat)).map((seat) => nameAt(table, seat));
  return { count: pass.count, seat: to, done: passed.has(table.seat), left };
}

/** Whether all of a seat's cards are shown to all; not if it has none. */
export function isShown({ state }, seat) {
  const cards = cardsIn(state, handOf(seat));
  return cards.length > 0 && cards.every(({ shown }) => shown);
}

/** Whether players show their hands: one has, in a game that compares them. */
export const isShowdown = (table) =>
  comparesHands() && table.state.seats.some(({ seat }) => isShown(table, seat));

/** The names of the players who have cards and have not shown them. */
export const notShown = (table) => table.state.seats.map(({ seat }) => seat)
  .filter((seat) => cardsIn(table.state, handOf(seat)).length > 0 && !isShown(table, seat))
  .map((seat) => nameAt(table, seat));

/**
 * The seat whose turn it is; null while cards are passed, in a showdown, when a trick is complete,
 * when all hands are empty, and until a player has been given the turn in the round.
 *
 * @param {RemoteTable} table
 */
export function turnOf(table) {
  const { turn } = table.markers;
  if (table.round === null) return table.state.rounds === 0 ? turn : null;
  if (!hasTurns()) return turn;
  const isEmpty = ({ seat }) => cardsIn(table.state, handOf(seat)).length === 0;
  const over = !hasNoHands() && table.state.seats.every(isEmpty);
  const none = over || passing(table) !== null || isTrick(table) || isShowdown(table);
  return none || !begun(table).turn ? null : turn;
}

/** A phrase in the reader's language; the key of one that this page does not know. */
export function phraseOf(key) {
  if (Object.hasOwn(texts.phrases, key)) return texts.phrases[key];
  const suit = suitsOfCards().find(({ phrase }) => phrase === key);
  return suit === undefined ? key : texts.suitNow({ suit: suit.sign });
}
