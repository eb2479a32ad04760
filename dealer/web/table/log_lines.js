/**
 * Turns events into log lines. The swaps of a shuffle make one line, and so do the cards that one
 * command moved. A line names people as they were called, and knows which of them was the reader,
 * when its event happened: who takes a seat later has not made its earlier moves.
 */

import { cardSign } from "../cards.js";
import { markerIn } from "../client/markers.js";
import { safeText } from "../dom.js";
import { pileKind } from "../pile_kinds.js";
import { list, table as texts } from "../texts.js";
import { PRACTICE_RULE, SEAT_GIVEN_UP, seatOf } from "../verify.js";
import { burnsByDealing, spreadInGame, titleInGame, titleOfDeal } from "./game.js";
import { seatChangeIn } from "./history.js";
import { changeSentence, markerSentence, seatSentence } from "./seat_lines.js";
import { passedTo, pileName, wonBy } from "./selectors.js";

const lines = texts.logLines;

/**
 * @typedef {object} LogLine
 * @property {number} id stays the same while the line grows
 * @property {number} at time in milliseconds
 * @property {boolean} live
 * @property {(nameOf: (code: string) => string) => string | null} text with names for card
 *   codes; null for what goes without saying
 * @property {string} [kind] of a note
 * @property {string | null} [audit] path of the audit page for it, relative to the table's
 * @property {any} [shuffle]
 * @property {any} [move]
 * @property {any} [shown]
 */

const MAX_LINES = 500;
const DROPPED_AT_ONCE = 100;

/** Who had which seat at one time; `own` is the reader's seat, or null. */
class People {
  /**
   * @param {Map<number, string>} names by seat, of those who sit and of the last ones who did
   * @param {number | null} own
   */
  constructor(names, own) {
    this.names = names;
    this.own = own;
  }

  name(seat) {
    return safeText(this.names.get(seat) ?? texts.seat({ seat }));
  }

  /** The name of a stack in a sentence: "the deck", "Bob’s hand", "the discard pile". */
  stack(name) {
    if (name === "deck") return texts.theDeck;
    const seat = seatOf(name);
    const title = seat === null ? titleInGame(pileName(name)) : null;
    if (title !== null) return texts.namedPile({ title });
    if (seat === null) return this.#pile(name);
    return seat === this.own ? texts.ownHand : texts.handOf({ name: this.name(seat) });
  }

  #pile(stack) {
    const { kind, seat } = pileKind(stack);
    const own = seat !== null && seat === this.own;
    return texts.thePile({
      kind: own ? `${kind}_own` : kind, player: this.name(seat), name: safeText(pileName(stack)),
    });
  }
}

export class LogLines {
  /** @type {LogLine[]} */
  #lines = [];
  #people = new People(new Map(), null);
  #takenAt = new Map(); // versions of the newest SeatTaken, by seat
  #passers = new Map(); // names by slot, of those who passed its card
  /** @type {Map<string, number>} how many cards lie in each pile */
  #lying = new Map();
  #ownSeat;
  #lastId = 0;
  #movedAt = 0; // the version of the SeatTaken by which a player moves
  /** @type {number | null} when a practice table was laid out, by many events at one time */
  #laidOutAt = null;
  /** @type {number | null} the reader's seat before the event, which may end it */
  #seatBefore = null;

  /** @param {() => number | null} ownSeat the seat of the reader; null for a spectator */
  constructor(ownSeat) {
    this.#ownSeat = ownSeat;
  }

  /** Oldest first. */
  get all() {
    return this.#lines;
  }

  /**
   * @param {import("../client.js").TableEvent} event
   * @param {object} context
   * @param {readonly { seat: number, name: string, since: number }[]} context.seats those who sit
   *   now, which may be long after the event
   * @param {(slot: number) => string | undefined} context.stackOf the stack that a card is in
   */
  add(event, { seats, stackOf }) {
    this.#setPeople(event, seats);
    const { type, at, public: data } = event;
    if (type === "RoundOpened") this.#lying.clear();
    if (type === "TableOpened" && PRACTICE_RULE in data.rules) this.#laidOutAt = at;
    else if (at === this.#laidOutAt && !(type in SHUFFLE_EVENTS)) return;
    if (type === "CardDrawn" || type === "CardMoved" || type === "CardPeeked") this.#addCard(event);
    else if (type === "CardShown") this.#addShown(event, stackOf);
    else if (type in SHUFFLE_EVENTS) this.#addShuffle(event);
    else if (type === "NoteAdded" && event.public.kind === "take_back") this.#addTakeBack(event);
    else if (!this.#addSeatChange(event)) this.#addOther(event);
    this.#seatBefore = this.#people.own;
  }

  /** Who had which seat at the time of an event, and which of them is the reader. */
  #setPeople({ type, version, public: data }, seats) {
    const names = new Map(this.#people.names);
    for (const { seat, name, since } of seats) if (since <= version) names.set(seat, name);
    if (type === "SeatTaken") names.set(data.seat, data.name);
    const seat = this.#ownSeat();
    const since = seats.find((one) => one.seat === seat)?.since ?? 0;
    this.#people = new People(names, since <= version ? seat : null);
  }

  /** A snapshot has replaced events. */
  addGap(at) {
    this.#push({ at, live: false, text: () => lines.skipped });
  }

  /** @returns {LogLine} */
  #push(line) {
    this.#lastId += 1;
    this.#lines.push({ id: this.#lastId, ...line });
    if (this.#lines.length > MAX_LINES) this.#lines.splice(0, DROPPED_AT_ONCE);
    return this.#lines.at(-1);
  }

  #addOther(event) {
    const { type, at, live, version, public: data } = event;
    const people = this.#people;
    const ended = SEAT_GIVEN_UP.includes(type) ? this.#seatBefore : null;
    const name = data.seat === undefined ? "" : people.name(data.seat);
    const player = { own: data.seat !== undefined && data.seat === (ended ?? people.own), name };
    if (type === "SeatTaken") {
      this.#takenAt.set(data.seat, version);
      this.#push({ at, live, text: () => {
        // The reader's own seat is known only after the event.
        player.own ||= data.seat === this.#ownSeat() && this.#takenAt.get(data.seat) === version;
        return seatSentence(event, player);
      } });
      return;
    }
    const sentence = seatSentence(event, player) ?? {
      TableOpened: () => (this.#laidOutAt === null ? lines.tableOpened : lines.practiceOpened),
      TableClosed: () => lines.tableClosed,
      NoteAdded: () => this.#noteText(data, name),
      RoundOpened: () => lines.roundOpened({ round: data.round, cards: data.deck?.length }),
      RoundClosed: () => lines.roundClosed({ round: data.round }),
      StackCut: () => lines.cut({ stack: people.stack(data.stack) }),
    }[type]?.();
    if (sentence === undefined) return;
    const audit = type === "RoundClosed" ? `audit#round=${data.round}` : null;
    // A phrase may name a suit of a pack, which is there later.
    const text = data.kind === "phrase" ? () => this.#noteText(data, name, people) : () => sentence;
    this.#push({ at, live, audit, kind: data.kind, text });
  }

  /**
   * A player moves by three events, which make one line; or the host asks a player to move.
   *
   * @returns {boolean} whether this event is one of them
   */
  #addSeatChange(event) {
    const { version, at, live, public: data } = event;
    if (version === this.#movedAt || version === this.#movedAt - 1) return true;
    const change = seatChangeIn(event, "seat_move") ?? seatChangeIn(event, "seat_offer");
    if (change === null) return false;
    if (data.kind === "seat_move") this.#movedAt = version + 2;
    const [own, name] = [change.from === this.#seatBefore, this.#people.name(change.from)];
    const player = { own, name };
    const text = changeSentence(data.kind, change.to, player);
    this.#push({ at, live, text: () => text });
    return true;
  }

  /** A note in words, if it is a marker; otherwise its text. */
  #noteText({ seat, kind, text }, author, people = this.#people) {
    if (kind === "program") return undefined; // for the audit, not for players
    const by = seat === 0 ? lines.theHost : author;
    if (kind === "readmit") return lines.readmitted({ name: safeText(text) });
    const marked = markerIn({ type: "NoteAdded", public: { seat, kind, text } });
    if (marked === null) return lines.note({ name: by, text: safeText(text) });
    const own = marked.of !== null && marked.of === people.own;
    const name = marked.of === null ? by : people.name(marked.of);
    return markerSentence({ kind, text, value: marked.value }, { own, name });
  }

  /** The moves that take back came just before, as a line that now says what they are. */
  #addTakeBack({ at, live, public: { seat } }) {
    const people = this.#people;
    const sentence = (what) => tookBack(people, seat, what);
    const last = this.#lines.at(-1);
    if (last?.at !== at || last.move === undefined) {
      this.#push({ at, live, text: () => sentence(lines.theMove) });
      return;
    }
    const { move } = last;
    last.text = (nameOf) => sentence(cardsText(move.cards, nameOf));
  }

  /** The cards of one command come at one time, one event each. */
  #addCard({ type, at, live, public: data, card }) {
    const { from = "", to = "" } = data;
    let line = this.#lines.at(-1);
    const same = line?.move?.type === type && line.at === at && line.move.from === from &&
      line.move.to === to && (type !== "CardPeeked" || line.move.seat === data.seat);
    if (!same) {
      // A player takes back what they laid onto a pile in the move before.
      const before = line?.move;
      const back = type === "CardDrawn" && before?.type === "CardMoved" && before.to === from &&
        before.from === `hand:${data.seat}` && before.cards.some(({ slot }) => slot === data.slot);
      const people = this.#people;
      const lying = this.#lying.get(to) ?? 0;
      const move = { type, from, to, seat: data.seat, cards: [], back, passers: [], people, lying };
      line = this.#push({ at, live, move, text: (nameOf) => moveText(move, nameOf) });
    }
    line.move.cards.push({ slot: data.slot, seat: data.seat, card });
    this.#lying.set(from, (this.#lying.get(from) ?? 0) - 1);
    this.#lying.set(to, (this.#lying.get(to) ?? 0) + 1);
    const passer = this.#passers.get(data.slot);
    if (passedTo(to) !== null) this.#passers.set(data.slot, this.#people.name(seatOf(from)));
    else if (passer && !line.move.passers.includes(passer)) line.move.passers.push(passer);
  }

  /** A card that is turned up by the command that moved it belongs to that command's line. */
  #addShown({ at, live, public: data }, stackOf) {
    const last = this.#lines.at(-1);
    const moved = last?.at === at && last.move?.cards.find(({ slot }) => slot === data.slot);
    if (moved) {
      moved.card = data.card;
      return;
    }
    const stack = stackOf(data.slot);
    let line = last;
    if (line?.at !== at || line.shown?.stack !== stack) {
      const shown = { stack, codes: [], people: this.#people };
      line = this.#push({ at, live, shown, text: (nameOf) => shownText(shown, nameOf) });
    }
    line.shown.codes.push(data.card);
  }

  #addShuffle({ type, at, live, public: data }) {
    let line = this.#lines.findLast((one) => one.shuffle !== undefined && !one.shuffle.result);
    if (line?.shuffle.round !== data.round || line?.shuffle.k !== data.k) {
      if (type === "EntropyCommitted") return;
      const { round, k } = data;
      const shuffle = {
        round, k, stack: "deck", n: 0, contributors: [], result: null, people: this.#people,
      };
      const audit = `audit#round=${round}&k=${k}&step=0`;
      line = this.#push({ at, live, shuffle, audit, text: () => this.#shuffleText(shuffle) });
    }
    line.shuffle.people = this.#people;
    SHUFFLE_EVENTS[type](line.shuffle, data);
  }

  #shuffleText({ round, k, stack, n, contributors, result, people }) {
    if (result === null) return lines.shuffling({ stack: people.stack(stack) });
    if (result === "ShuffleVoided") return lines.voided({ stack: people.stack(stack) });
    if (this.#laidOutAt !== null && round === 1 && k === 0) return lines.laidOut({ cards: n });
    if (contributors.length === 0) return lines.shuffledByHouse({ cards: n });
    const others = contributors.filter((seat) => seat !== people.own).sort((a, b) => a - b);
    const names = others.map((seat) => people.name(seat));
    const own = contributors.length > others.length;
    const all = [lines.theHouse, ...names, ...(own ? [lines.you] : [])];
    return lines.shuffled({ cards: n, names: all });
  }
}

/** The cards by name, or their number if some are unknown. */
function cardsText(cards, nameOf) {
  const known = cards.map(({ card }) => card).filter((card) => card !== null).map(nameOf);
  return known.length === cards.length ? list(known) : lines.cards({ count: cards.length });
}

/** The cards as they lie beside each other. */
function rowText(cards, nameOf) {
  const known = cards.map(({ card }) => card).filter((card) => card !== null).map(nameOf);
  return known.length < cards.length ? lines.cards({ count: cards.length })
    : known.join(nameOf === cardSign ? " " : ", ");
}

function tookBack(people, seat, what) {
  const by = seat === 0 ? lines.theHost : people.name(seat);
  const own = seat !== 0 && seat === people.own;
  return (own ? lines.youTookBack : lines.tookBack)({ by, what });
}

/** Null for what goes without saying: cards burned by a deal, and those that lay out columns. */
function moveText({ type, from, to, seat, cards, back, passers, people, lying }, nameOf) {
  const what = cardsText(cards, nameOf);
  if (type === "CardPeeked") {
    const own = seat === people.own;
    return own ? lines.youAreShown({ what }) : lines.isShown({ name: people.name(seat), what });
  }
  if (type === "CardDrawn") return drawText({ from, cards, back, people }, nameOf);
  const [giver, taker] = [from, to].map(seatOf);
  if (passedTo(from) !== null && taker !== null) {
    const by = list(passers);
    const own = taker === people.own;
    return (own ? lines.youGot : lines.got)({ what, by, name: people.name(taker) });
  }
  const some = lines.cards({ count: cards.length });
  const name = pileName(to);
  if (from === "deck" && taker === null) {
    if (to === "pile:burn") return burnsByDealing() ? null : lines.burned({ what: some });
    if (spreadInGame(name) === "down") return null;
    const title = titleOfDeal(name, lying, cards.length) ?? titleInGame(name);
    if (title !== null) return lines.turnedUp({ title, what: rowText(cards, nameOf) });
  }
  const winner = wonBy(to);
  if (winner !== null && giver === null) {
    const row = { what: rowText(cards, nameOf), name: people.name(winner) };
    return winner === people.own ? lines.youWonTrick(row) : lines.wonTrick(row);
  }
  if (giver === null) {
    return lines.moved({ what, from: people.stack(from), to: people.stack(to) });
  }
  const by = people.name(giver);
  const choose = (own, other) => (giver === people.own ? own : other);
  const receiver = taker ?? passedTo(to);
  if (receiver !== null) {
    const toReader = receiver === people.own;
    const sentence = taker !== null
      ? choose(lines.youGave, toReader ? lines.gaveYou : lines.gave)
      : choose(lines.youPassed, toReader ? lines.passedToYou : lines.passed);
    return sentence({ by, whom: people.name(receiver), what });
  }
  if (to === "deck") return choose(lines.youReturned, lines.returned)({ by, what: some });
  if (to === "pile:discard") return choose(lines.youDiscarded, lines.discarded)({ by, what });
  if (to === "pile:table") return choose(lines.youPlayed, lines.played)({ by, what });
  const onto = people.stack(to);
  return choose(lines.youPlayedOnto, lines.playedOnto)({ by, what, onto });
}

function drawText({ from, cards, back, people }, nameOf) {
  const seats = [...new Set(cards.map(({ seat }) => seat))];
  if (back) return tookBack(people, seats[0], cardsText(cards, nameOf));
  const own = cards.filter(({ seat }) => seat === people.own);
  const mine = list(own.map(({ card }) => (card === null ? lines.aCard : nameOf(card))));
  if (seats.length > 1) {
    const each = { each: cards.length / seats.length, players: seats.length };
    return own.length > 0 ? lines.dealtToYou({ ...each, mine }) : lines.dealt(each);
  }
  const ofDeck = from === "deck";
  const source = ofDeck ? null : people.stack(from);
  if (own.length > 0) {
    return (ofDeck ? lines.youDrew : lines.youDrewFrom)({ what: mine, from: source });
  }
  const what = lines.cards({ count: cards.length });
  const name = people.name(seats[0]);
  return (ofDeck ? lines.drew : lines.drewFrom)({ name, what, from: source });
}

function shownText({ stack, codes, people }, nameOf) {
  const what = list(codes.map(nameOf));
  const seat = seatOf(stack ?? "");
  if (seat === null) return lines.turned({ what });
  return (seat === people.own ? lines.youShowed : lines.showed)({
    by: people.name(seat), what,
  });
}

/** How each event of a shuffle changes its line. */
const SHUFFLE_EVENTS = {
  ShuffleStarted: (shuffle, data) => Object.assign(shuffle, { stack: data.stack, n: data.n }),
  EntropyCommitted: () => {},
  EntropyClosed: () => {},
  EntropyRevealed: (shuffle, data) => shuffle.contributors.push(data.seat),
  CardsSwapped: () => {},
  ShuffleVoided: (shuffle) => (shuffle.result = "ShuffleVoided"),
  DeckSealed: (shuffle, data) =>
    Object.assign(shuffle, { n: data.slots.length, result: "DeckSealed" }),
};
