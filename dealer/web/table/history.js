/**
 * What the page knows of a table from its events: who played a card, who had a seat before, which
 * bytes a round takes, and whom the host asks to move. Each is a fold over `table.history`.
 */

import { HistoryFold } from "../client/fold.js";
import { SEAT_CHANGE } from "../client/own_seat.js";
import { table as texts } from "../texts.js";
import { PRACTICE_RULE, SEAT_GIVEN_UP, seatOf } from "../verify.js";

const TRICK = "pile:table"; // where the cards of a trick are played

/** The server's reason when other players free the seat of one who has been away for long. */
const AWAY = /^away for [0-9,]+ (second|minute)s?$/;

/** @typedef {import("../client.js").RemoteTable} RemoteTable */
/**
 * @typedef {object} Play
 * @property {number} seat
 * @property {number} at in milliseconds
 * @property {string | null} name of the player at that time, as far as this page knows it
 * @property {boolean} trick whether it was played onto the pile of the tricks
 */
/** @typedef {{ version: number, from: number, to: number }} SeatChange */

/**
 * A function of a table that computes a fold over its history.
 *
 * @template T
 * @param {(table: RemoteTable) => T} start
 * @param {(value: T, event: any) => T} step
 * @returns {(table: RemoteTable) => T}
 */
function foldOf(start, step) {
  /** @type {WeakMap<RemoteTable, HistoryFold<T>>} */
  const folds = new WeakMap();
  return (table) => {
    let fold = folds.get(table);
    if (fold === undefined) folds.set(table, fold = new HistoryFold(start(table), step));
    return fold.of(table.history);
  };
}

/** @typedef {{ hands: Map<number, number>, trick: number[] }} Layout of a practice table */

/**
 * Who played the card of a slot from the hand. A card of a trick stays that of the player who put it
 * there first: others may take it, and lay it back. Names are those of the time of the move.
 */
const plays = foldOf(
  (table) => ({
    cards: /** @type {Map<number, Play>} */ (new Map()), names: namesBefore(table),
    layout: /** @type {Layout} */ ({ hands: new Map(), trick: [] }),
    laidOutAt: /** @type {number | null} */ (null),
  }),
  (found, { type, at, public: event }) => {
    const { cards, names } = found;
    if (type === "TableOpened" && PRACTICE_RULE in event.rules) found.laidOutAt = at;
    if (at === found.laidOutAt) followLayout(found, type, event, at);
    if (type === "SeatTaken") names.set(event.seat, event.name);
    else if (type === "RoundOpened") cards.clear();
    else if (type === "CardDrawn" && event.from !== TRICK) cards.delete(event.slot);
    else if (type === "CardMoved") {
      const seat = seatOf(event.from);
      const stays = event.from === TRICK || (event.to === TRICK && cards.get(event.slot)?.trick);
      if (!event.to.startsWith("pile:") && !(stays && seatOf(event.to) !== null)) {
        cards.delete(event.slot);
      } else if (seat !== null && !stays) {
        const name = names.get(seat) ?? null;
        cards.set(event.slot, { seat, at, name, trick: event.to === TRICK });
      }
    }
    return found;
  },
);

/**
 * The cards of a practice table are laid out from the deck: those of a trick are, in order, of the
 * seats in a row that have a card less than the others.
 */
function followLayout({ cards, layout: { hands, trick } }, type, event, at) {
  if (type === "CardDrawn") hands.set(event.seat, (hands.get(event.seat) ?? 0) + 1);
  else if (type === "CardMoved" && event.to === TRICK) trick.push(event.slot);
  else if (type === "SeatLeft" && trick.length > 0) {
    const seats = [...hands.keys()].sort((a, b) => a - b);
    const full = Math.max(...hands.values());
    const hasPlayed = (index) => hands.get(seats.at(index)) < full;
    const played = trick.splice(0);
    if (![0, played.length].includes(seats.filter((_, index) => hasPlayed(index)).length)) return;
    const first = seats.findIndex((_, index) => hasPlayed(index) && !hasPlayed(index - 1));
    played.slice(0, seats.length).forEach((slot, index) => {
      const seat = seats[(Math.max(0, first) + index) % seats.length];
      cards.set(slot, { seat, at, name: null, trick: true });
    });
  }
}

/**
 * Who played the card of a slot from the hand, and when in milliseconds; null if the card is in the
 * deck or came from there, or if this page has not seen it.
 *
 * @param {RemoteTable} table
 * @param {number | null} slot
 * @returns {Play | null}
 */
export function playedBy(table, slot) {
  return slot === null ? null : plays(table).cards.get(slot) ?? null;
}

/**
 * @typedef {object} LastMove
 * @property {string} from
 * @property {string} to
 * @property {number} at
 * @property {number[]} slots
 * @property {boolean} shown whether a face was seen by it
 */

/** Events after which the last move can still be taken back. */
const KEEP_MOVE = /^(Seat|Host|Entropy|NoteAdded)/;

/** The last move, the slots that were shown to all, and when a move came back into the hand. */
const moves = foldOf(
  () => ({ last: /** @type {LastMove | null} */ (null), open: new Set(), backAt: 0 }),
  (found, { type, at, public: event }) => {
    const { last, open } = found;
    const same = last !== null && last.at === at;
    if (type === "RoundOpened") open.clear();
    if (type === "CardShown") open.add(event.slot);
    if ((type === "CardMoved" || type === "CardDrawn") && event.from !== "deck") {
      const { from, slot, to = `hand:${event.seat}` } = event;
      const comesBack = type === "CardDrawn" && last?.from === to && last.to === from;
      if (comesBack) found.backAt = at;
      const shown = seatOf(to) !== null && !open.has(slot);
      if ([from, to].some((one) => one.startsWith("pile:pass:")) || found.backAt === at) {
        found.last = null;
      } else if (same && last.from === from && last.to === to) {
        last.slots.push(slot);
        last.shown ||= shown;
      } else {
        found.last = { from, to, at, slots: [slot], shown };
      }
    } else if (type === "CardShown" && same && last.slots.includes(event.slot)) {
      last.shown = true;
    } else if (!KEEP_MOVE.test(type) || event.kind === "take_back") {
      found.last = null;
    }
    return found;
  },
);

/**
 * The last move of cards, which nothing followed on any card; null if there is none, or if it was
 * taken back.
 *
 * @param {RemoteTable} table
 * @returns {LastMove | null}
 */
export function lastMove(table) {
  return table.state.round === null ? null : moves(table).last;
}

/**
 * What the open round has had so far: who passed cards, whether one was played onto the table, and
 * whether a player was given the turn.
 *
 * @type {(table: RemoteTable) => { passed: Set<number>, played: boolean, turn: boolean }}
 */
export const begun = foldOf(
  nothingBegun,
  (found, { type, public: event }) => {
    if (type === "RoundOpened") return nothingBegun();
    if (type === "NoteAdded" && event.kind === "turn") found.turn = true;
    if (type !== "CardMoved") return found;
    const [giver, taker] = [event.from, event.to].map(seatOf);
    if (event.to.startsWith("pile:pass:")) found.passed.add(giver);
    else if (event.from.startsWith("pile:pass:") && event.from !== `pile:pass:${taker}`) {
      found.passed.delete(taker); // taken back
    } else if (giver !== null && event.to === TRICK) found.played = true;
    return found;
  },
);

/** @returns {{ passed: Set<number>, played: boolean, turn: boolean }} */
function nothingBegun() {
  return { passed: new Set(), played: false, turn: false };
}

/** The names of those who sat down before the first event that this page has. */
function namesBefore({ state, history }) {
  const first = history[0]?.version ?? Infinity;
  return new Map(state.seats.filter(({ since }) => since < first)
    .map(({ seat, name }) => [seat, name]));
}

/** Names by seat, of those who sit and of those who left; `moving` is the seat of one who moves. */
const people = foldOf(
  () => ({ names: new Map(), former: new Map(), moving: 0 }),
  (seen, event) => {
    const { type, public: data } = event;
    if (type === "SeatTaken") {
      seen.names.set(data.seat, data.name);
      seen.former.delete(data.seat);
    } else if (SEAT_GIVEN_UP.includes(type)) {
      const name = seen.names.get(data.seat) ?? texts.seat({ seat: data.seat });
      if (data.seat !== seen.moving) seen.former.set(data.seat, name);
      seen.moving = 0;
    } else if (isMove(event)) {
      seen.moving = data.seat;
    }
    return seen;
  },
);

/**
 * The last player of each free seat, by seat, as far as this page saw them leave; not of a seat
 * whose player has moved to another one.
 *
 * @param {RemoteTable} table
 * @returns {Map<number, string>}
 */
export function formerPlayers(table) {
  const { names, former } = people(table);
  // Those who sat down before this page was loaded may be in no event.
  for (const { seat, name } of table.state.seats) names.set(seat, name);
  return former;
}

/** @type {(table: RemoteTable) => { entropy: string | null }} of the round that was opened last */
const lastRound = foldOf(() => ({ entropy: null }), (round, { type, public: event }) =>
  (type === "RoundOpened" ? { entropy: event.entropy } : round));

/**
 * Whether the open round, or otherwise the last one, uses only the house's random bytes.
 *
 * @param {RemoteTable} table
 */
export function isHouseOnly(table) {
  return (table.state.round?.entropy ?? lastRound(table).entropy) === "house";
}

/** Whether an event removes a player for a reason, and not for having been away. */
export function isRemoval({ type, public: { by, reason } }) {
  return type === "SeatVacated" && reason !== "" && !(by === "service" && AWAY.test(reason));
}

/** @type {(table: RemoteTable) => { names: Map<number, string>, removed: Set<string> }} */
const removals = foldOf(
  // Those who sat down before this page was loaded may be in no event.
  (table) => ({ names: new Map(table.seats), removed: new Set() }),
  (seen, event) => {
    const { type, public: data } = event;
    if (type === "SeatTaken") seen.names.set(data.seat, data.name);
    else if (isRemoval(event) && seen.names.has(data.seat)) {
      seen.removed.add(seen.names.get(data.seat));
    } else if (isReadmission(event)) seen.removed.delete(data.text);
    return seen;
  },
);

/**
 * The names of the players who were removed for a reason and may not sit down again yet.
 *
 * @param {RemoteTable} table
 */
export function removedPlayers(table) {
  return removals(table).removed;
}

/** Whether an event is the note by which the host lets a removed player sit down again. */
function isReadmission({ type, public: { kind } }) {
  return type === "NoteAdded" && kind === "readmit";
}

/** @type {(table: RemoteTable) => Map<string, number>} versions of the newest ones, by name */
export const readmissions = foldOf(() => new Map(), (found, event) => (
  isReadmission(event) ? found.set(event.public.text, event.version) : found
));

/** Whether an event says that the next two are a player's move to another seat. */
export function isMove(event) {
  return seatChangeIn(event, "seat_move") !== null;
}

/**
 * The change of a seat in a note of the kind `seat_move` or `seat_offer`; null for other
 * events.
 *
 * @returns {SeatChange | null}
 */
export function seatChangeIn({ type, version, public: event }, kind) {
  const found = type === "NoteAdded" && event.kind === kind ? SEAT_CHANGE.exec(event.text) : null;
  return found && { version, from: Number(found[1]), to: Number(found[2]) };
}

/** @type {(table: RemoteTable) => Map<number, SeatChange>} the newest offer to each seat */
const offers = foldOf(() => new Map(), (found, event) => {
  const offer = seatChangeIn(event, "seat_offer");
  return offer === null ? found : found.set(offer.from, offer);
});

/**
 * Where the host asks this player to move; null if to no seat.
 *
 * @param {RemoteTable} table
 * @returns {SeatChange | null}
 */
export function offerTo(table) {
  const player = table.state.seats.find(({ seat }) => seat === table.seat);
  const offer = player && offers(table).get(player.seat);
  return offer && offer.version > player.since ? offer : null;
}
