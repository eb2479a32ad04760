/**
 * What happened at the table, told as one would tell it: a shuffle's swaps are one line, and so are
 * the cards that one wish dealt.
 */

import { harmless } from "../make.js";
import { table as texts } from "../texts/table.js";
import { seatOf } from "../verify.js";
import { pileName } from "./reading.js";

const told = texts.told;

/** Folds events into lines; each has an `id` that stays while the line still grows. */
export class Story {
  #lines = [];
  #names = new Map();
  #own;
  #next = 0;

  /** `own()` is the seat of who reads, null for who looks on. */
  constructor(own) {
    this.#own = own;
  }

  /** Oldest first: `{ id, at, live, say(naming) }`, where `naming` gives a card's code a name. */
  get lines() {
    return this.#lines;
  }

  /** Take one more event; `seats` are the names by seat, `lies(slot)` the stack a card is in. */
  add(happened, { seats, lies }) {
    for (const [seat, name] of seats) this.#names.set(seat, name);
    const { type } = happened;
    if (type === "CardDrawn" || type === "CardMoved" || type === "CardPeeked") this.#card(happened);
    else if (type === "CardShown") this.#shown(happened, lies);
    else if (type in SHUFFLING) this.#shuffle(happened);
    else this.#plain(happened);
  }

  /** A snapshot stands in for what was missed. */
  skip(at) {
    this.#push({ at, live: false, say: () => told.skipped });
  }

  #push(line) {
    this.#next += 1;
    this.#lines.push({ id: this.#next, ...line });
    if (this.#lines.length > 500) this.#lines.splice(0, 100);
    return this.#lines.at(-1);
  }

  #name(seat) {
    return harmless(this.#names.get(seat) ?? texts.seat(seat));
  }

  /** What a stack is called in a sentence: "the deck", "Bob’s hand", "the discard pile". */
  #stack(name) {
    if (name === "deck") return texts.theDeck;
    const seat = seatOf(name);
    if (seat === null) return texts.thePile(pileName(name));
    return seat === this.#own() ? texts.yourHandIs : texts.handOf(this.#name(seat));
  }

  #plain({ type, at, live, public: fact }) {
    if (type === "SeatTaken") this.#names.set(fact.seat, fact.name);
    const mine = fact.seat !== undefined && fact.seat === this.#own();
    const name = fact.seat === undefined ? "" : this.#name(fact.seat);
    const sentence = {
      TableOpened: () => told.tableOpened,
      TableClosed: () => told.tableClosed,
      SeatTaken: () => (mine ? told.youSit(fact.seat) : told.sits(name, fact.seat)),
      SeatLeft: () => (mine ? told.youLeft : told.left(name)),
      RoundOpened: () => told.roundOpened(fact.round, fact.deck?.length),
      RoundClosed: () => told.roundClosed(fact.round),
      StackCut: () => told.cut(this.#stack(fact.stack)),
    }[type];
    if (sentence === undefined) return;
    const text = sentence();
    const audit = type === "RoundClosed" ? `audit#round=${fact.round}` : null;
    this.#push({ at, live, audit, say: () => text });
  }

  /** Cards of one wish come at one time, one event each. */
  #card({ type, at, live, public: fact, card }) {
    const from = fact.from ?? "";
    const to = fact.to ?? "";
    let line = this.#lines.at(-1);
    const same = line?.of?.type === type && line.at === at && line.of.from === from;
    if (!same || line.of.to !== to || (type === "CardPeeked" && line.of.seat !== fact.seat)) {
      line = this.#push({ at, live, of: { type, from, to, seat: fact.seat, cards: [] } });
      const { of } = line;
      line.say = (naming) => this.#sayCards(of, naming);
    }
    line.of.cards.push({ slot: fact.slot, seat: fact.seat, card });
  }

  #sayCards({ type, from, to, seat, cards }, naming) {
    const known = cards.map(({ card }) => card).filter((card) => card !== null).map(naming);
    const what = known.length === cards.length ? told.list(known) : told.cards(cards.length);
    if (type === "CardPeeked") {
      return seat === this.#own() ? told.youAreShown(what) : told.isShown(this.#name(seat), what);
    }
    if (type === "CardDrawn") return this.#sayDrawn(from, cards, naming);
    const [giver, taker] = [from, to].map(seatOf);
    const [by, whom] = [giver, taker].map((one) =>
      one === null ? null : one === this.#own() ? null : this.#name(one));
    if (to === "pile:burn" && from === "deck") return told.burned(told.cards(cards.length));
    if (giver !== null && taker !== null) return told.gave(by, whom, what);
    if (giver === null) return told.moved(what, this.#stack(from), this.#stack(to));
    if (to === "deck") return told.returned(by, told.cards(cards.length));
    if (to === "pile:discard") return told.discarded(by, what);
    return told.played(by, what, to === "pile:table" ? null : this.#stack(to));
  }

  #sayDrawn(from, cards, naming) {
    const seats = [...new Set(cards.map(({ seat }) => seat))];
    const own = cards.filter(({ seat }) => seat === this.#own());
    const mine = told.list(own.map(({ card }) => (card === null ? told.aCard : naming(card))));
    const where = from === "deck" ? null : this.#stack(from);
    if (seats.length > 1) {
      return told.dealt(cards.length / seats.length, seats.length, own.length > 0 ? mine : null);
    }
    if (own.length > 0) return told.youDrew(mine, where);
    return told.drew(this.#name(seats[0]), told.cards(cards.length), where);
  }

  /** A card that is turned up where it was just put is part of that line. */
  #shown({ at, live, public: fact }, lies) {
    const last = this.#lines.at(-1);
    const moved = last?.at === at && last.of?.cards.find(({ slot }) => slot === fact.slot);
    if (moved) {
      moved.card = fact.card;
      return;
    }
    const stack = lies(fact.slot);
    let line = last;
    if (line?.at !== at || line.shows?.stack !== stack) {
      line = this.#push({ at, live, shows: { stack, codes: [] } });
      const { shows } = line;
      line.say = (naming) => {
        const what = told.list(shows.codes.map(naming));
        const seat = seatOf(shows.stack ?? "");
        if (seat === null) return told.turned(what);
        return told.showed(seat === this.#own() ? null : this.#name(seat), what);
      };
    }
    line.shows.codes.push(fact.card);
  }

  #shuffle({ type, at, live, public: fact }) {
    let line = this.#lines.findLast((one) => one.shuffle !== undefined && !one.shuffle.over);
    if (line?.shuffle.round !== fact.round || line?.shuffle.k !== fact.k) {
      if (type === "EntropyCommitted") return;
      const shuffle = { round: fact.round, k: fact.k, stack: "deck", swaps: 0, by: [], over: null };
      line = this.#push({ at, live, shuffle });
      line.audit = `audit#round=${fact.round}&k=${fact.k}&step=0`;
      line.say = () => this.#sayShuffle(shuffle);
    }
    SHUFFLING[type](line.shuffle, fact);
  }

  #sayShuffle({ stack, n, swaps, by, over }) {
    const what = this.#stack(stack);
    if (over === null) return told.shuffling(what);
    if (over === "ShuffleVoided") return told.voided(what);
    const others = by.filter((seat) => seat !== this.#own()).sort((a, b) => a - b);
    const names = others.map((seat) => this.#name(seat));
    return told.shuffled(n, swaps, by.length > others.length ? [...names, told.you] : names);
  }
}

/** What each event of a shuffle adds to its line. */
const SHUFFLING = {
  ShuffleStarted: (line, fact) => Object.assign(line, { stack: fact.stack, n: fact.n }),
  EntropyCommitted: () => {},
  EntropyClosed: () => {},
  EntropyRevealed: (line, fact) => line.by.push(fact.seat),
  CardsSwapped: (line) => (line.swaps += 1),
  ShuffleVoided: (line) => (line.over = "ShuffleVoided"),
  DeckSealed: (line, fact) => Object.assign(line, { n: fact.slots.length, over: "DeckSealed" }),
};
