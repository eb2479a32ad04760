/**
 * Everything that somebody can do at the table: its name, its key, when it is possible, and how.
 *
 * `hindrance(action, game)` gives the sentence that says why it cannot be done now, or null; the
 * house has the last word all the same. `game` is what main.js makes: the client's `table`, the
 * chosen `slots` of one's hand, the `count` that is set. An action that `asks` is carried out with
 * the answer, and not at all without one.
 */

import { table as texts } from "../texts/table.js";
import { seatOf } from "../verify.js";
import {
  cardsIn, entitled, freeSeats, handOf, isSealed, otherSeats, ownCards, pileName,
} from "./reading.js";

const why = texts.hindered;

/** Conditions, each a sentence where it does not hold. */
const connected = ({ table, stopped }) => {
  if (stopped) return why.stopped;
  if (table.closed) return why.closed;
  return table.connection.state === "connected" ? null : why.away;
};
const noRound = ({ table }) => (table.round === null ? null : why.roundOpen);
const inRound = ({ table }) => (table.round === null ? why.noRound : null);
const still = ({ table }) => (table.shuffling ? why.shuffling : null);
const seated = ({ table }) => (table.seat === null ? why.noSeat : null);
const company = ({ table }) => (otherSeats(table).length === 0 ? why.alone : null);
const somebody = ({ table }) => (table.state.seats.length === 0 ? why.nobodySits : null);
const chosen = ({ slots }) => (slots.length === 0 ? why.noneSelected : null);
const anyOwn = ({ table }) => (ownCards(table).length === 0 ? why.emptyHand : null);
const deckThere = ({ table }) => (cardsIn(table.state, "deck").length === 0 ? why.emptyDeck : null);
const deckReady = (game) =>
  deckThere(game) ?? (isSealed(game.table.state, "deck") ? null : why.notShuffled);
const enough = ({ table, count }) => {
  const left = cardsIn(table.state, "deck").length;
  return count > left ? why.tooFew(left) : null;
};
const enoughForAll = ({ table, count }) => {
  const wanted = count * table.state.seats.length;
  const left = cardsIn(table.state, "deck").length;
  return wanted > left ? why.tooFewForAll(left, wanted) : null;
};

/** What holds for whatever is done to cards: there is a line, a round, and no shuffle runs. */
export const BETWEEN_SHUFFLES = [connected, inRound, still];

const right = (action) => (game) => (entitled(game.table, action) ? null : why.notEntitled);
const play = [inRound, still];
const hand = [seated, ...play, anyOwn, chosen];
const deck = [...play, deckReady];

/**
 * In the order in which they stand in the toolbar; `group` is `hand`, `deck` or `round` there, or
 * null for what stands elsewhere. `right` is the rule that grants it.
 */
export const ACTIONS = [
  action("draw", "d", "hand", "draw", [seated, ...deck, enough],
    ({ table, count }) => table.draw(count)),
  action("play", "p", "hand", "play", hand,
    ({ table, slots }) => table.play(slots)),
  action("discard", "x", "hand", "discard", hand,
    ({ table, slots }) => table.discard(slots)),
  action("give", "g", "hand", "give", [...hand, company],
    ({ table, slots }, to) => table.give(slots, { to }),
    ({ table, ask }) => ask.seat(texts.giveTo, otherSeats(table))),
  action("show", "h", "hand", "show", hand,
    ({ table, slots }) => table.show(slots)),
  action("putBack", "r", "hand", "return", hand,
    ({ table, slots }) => table.handReturn(slots)),
  action("showTo", "Shift+H", null, "show", [...hand, company],
    ({ table, slots }, to) => table.show(slots, { to }),
    ({ table, ask }) => ask.seat(texts.showTo, otherSeats(table))),
  action("playTo", "Shift+P", null, "play", hand,
    ({ table, slots }, pile) => table.play(slots, pile),
    ({ table, ask }) => ask.pile(table)),

  action("openRound", "o", "round", "open", [noRound], openAndShuffle),
  action("shuffle", "s", "round", "shuffle", [...play, deckThere],
    ({ table }) => table.shuffle()),
  action("deal", "a", "round", "deal", [...deck, somebody, enoughForAll],
    ({ table, count }) => table.deal(count)),
  action("cut", "c", "deck", "cut", deck,
    ({ table, count }) => table.cut(cutPlace(cardsIn(table.state, "deck").length, count))),
  action("burn", "b", "deck", "burn", [...deck, enough],
    ({ table, count }) => table.burn(count)),
  action("collect", "k", "round", "collect", [...play, somethingOut], collectAll),
  action("closeRound", "Shift+L", "round", "close", [inRound],
    ({ table }) => table.roundClose(), sure("closeRound")),

  action("leave", "Shift+Q", null, null, [seated], ({ table }) => table.leave(), sure("leave")),
  action("closeTable", "Shift+W", null, "host", [], ({ table }) => table.close(),
    sure("closeTable")),
];

/** What is done with as many cards as are set. */
export const COUNTED = ["draw", "deal", "burn", "cut"];

const BY_NAME = new Map(ACTIONS.map((one) => [one.name, one]));

export function actionNamed(name) {
  return BY_NAME.get(name);
}

/** Whether this player can come to do it at all: what is not theirs is not drawn. */
export function offered({ name, right: rule }, table) {
  if (name === (table.round === null ? "closeRound" : "openRound")) return false;
  if (rule === null) return table.seat !== null;
  return rule === "host" ? table.host : entitled(table, rule);
}

/**
 * What comes of dragging cards onto a place: `{ conditions, run, asks }` as in an action, or null
 * where nothing can. `from` and `to` are stacks, a seat's hand among them; `slots` the cards, in a hand.
 */
export function dropped(game, from, to, slots) {
  const { table } = game;
  const own = table.seat === null ? null : handOf(table.seat);
  if (from === to) return null;
  if (from === own) return droppedFromHand(to, slots);
  const count = from === "deck" ? game.count : 1;
  if (from === "deck" && to === own) return actionNamed("draw");
  if (from === "deck" && to === "pile:burn") return actionNamed("burn");
  if (from === "deck" && seatOf(to) !== null) {
    const seats = [seatOf(to)];
    return moving("deal", [...deck, enough], () => table.deal(count, { seats }));
  }
  if (to === own) return moving("pile", [seated, ...play], () => table.pileDraw(pileName(from), 1));
  if (seatOf(from) !== null) {
    const all = cardsIn(table.state, from).length;
    return moving("collect", play, () => table.pileMove(from, { to, count: all }));
  }
  return moving("pile", from === "deck" ? [...deck, enough] : play,
    () => table.pileMove(from, { to, count, face: faceOn(to) }));
}

/** How a card comes to lie on a stack: discards and burned cards are nobody's to see. */
export function faceOn(stack) {
  return ["deck", "pile:discard", "pile:burn"].includes(stack) ? "down" : "up";
}

/** Why `one` cannot be done now, in a sentence; null if it can. */
export function hindrance(one, game) {
  for (const hinders of one.conditions) {
    const sentence = hinders(game);
    if (sentence !== null) return sentence;
  }
  return null;
}

function droppedFromHand(to, slots) {
  const cards = [seated, ...play];
  const seat = seatOf(to);
  if (seat !== null) return moving("give", cards, ({ table }) => table.give(slots, { to: seat }));
  if (to === "deck") return moving("return", cards, ({ table }) => table.handReturn(slots));
  const pile = pileName(to);
  if (pile === "discard") return moving("discard", cards, ({ table }) => table.discard(slots));
  const face = faceOn(to);
  return moving("play", cards, ({ table }) => table.play(slots, { pile, face }));
}

function moving(rule, conditions, run) {
  return { conditions: [connected, right(rule), ...conditions], run, asks: null };
}

function action(name, key, group, rule, conditions, run, asks = null) {
  const granted = rule === null || rule === "host" ? [] : [right(rule)];
  const all = [connected, ...granted, ...conditions];
  return { name, key, group, right: rule, conditions: all, run, asks };
}

/** What cannot be undone is asked about once. */
function sure(name) {
  return ({ ask }) => ask.sure(texts.sure[name], texts.actions[name]);
}

/** A deck that was not shuffled is of no use to anybody, so the shuffle follows where it may. */
async function openAndShuffle({ table }) {
  await table.roundOpen();
  if (entitled(table, "shuffle")) await table.shuffle();
}

/** Where a cut goes: under as many cards as are set, or, where that is one, in the middle. */
function cutPlace(cards, count) {
  const lifted = count > 1 && count < cards ? count : Math.floor(cards / 2);
  return cards - lifted;
}

function somethingOut({ table }) {
  const stacks = Object.entries(table.state.round?.stacks ?? {});
  const out = stacks.some(([name, cards]) => name !== "deck" && cards.length > 0);
  return out ? null : why.nothingOut;
}

/** Every hand and pile back into the deck, stack by stack; the deck is then to be shuffled. */
async function collectAll({ table }) {
  for (const [name, cards] of Object.entries(table.state.round.stacks)) {
    if (name === "deck" || cards.length === 0) continue;
    await table.pileMove(name, { to: "deck", count: cards.length });
  }
}

/** Sit down where one may: the sentence that says why not, or null. */
export function hindersSitting({ table, stopped }) {
  if (stopped) return why.stopped;
  if (table.closed) return why.closed;
  return freeSeats(table.state).length === 0 ? why.full : null;
}
