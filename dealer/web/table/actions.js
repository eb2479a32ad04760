/**
 * Every action of a player: its name, key, conditions and execution.
 *
 * A condition takes the page's context (the client's `table`, the selected `slots` of the hand, the
 * `count` that is set, and `stopped`) and returns null, or the sentence that says why the action is
 * not possible. The server decides in the end. An action with `asks` runs with the answer to a
 * question, and does not run without one.
 */

import { cardOf } from "../cards.js";
import { table as texts } from "../texts.js";
import { seatOf } from "../verify.js";
import {
  dealsAtOnce, deckOfRound, folds, isColumn, isDealt, isOver, nextDeal, pilesOfGame, playersMissing,
  suitPattern, turnsOnto, wordOf,
} from "./game.js";
import {
  cardsIn, handOf, isAllowed, isSealed, isShowdown, nextSeat, otherSeats, ownCards, passing,
  pileName, wonBy, wonPile,
} from "./selectors.js";
import { canTakeBack, takeBack } from "./take_back.js";

/** @typedef {(context: any) => string | null} Condition */
/**
 * @typedef {object} Action
 * @property {string} name
 * @property {string} key shortcut
 * @property {string | null} rule the rule of the table that allows it
 * @property {Condition[]} conditions
 * @property {(context: any, answer?: any) => Promise<any>} run
 * @property {((context: any) => Promise<any>) | null} asks
 * @property {boolean} counted whether it uses the number of cards that is set
 * @property {"public" | "final" | null} mark it shows cards to all, or cannot be undone
 */

const reasons = texts.disabled;

const SEQUENCE = "A23456789TJQK"; // of the cards of a suit, where they are built up

/** The actions that use the number of cards that is set. */
const COUNTED = ["draw", "deal", "burn", "cut"];

/** Every click on the button of these counts, however quick: five taps on the deck draw five. */
export const REPEATED = ["draw", "burn"];

/** @type {Record<string, "public" | "final">} */
const MARKS = {
  play: "public", show: "public", closeRound: "final", leave: "final", closeTable: "final",
};

/** @type {Condition} */
const connected = ({ table, stopped }) => {
  if (stopped) return reasons.stopped;
  if (table.closed) return reasons.closed;
  return table.connection.state === "connected" ? null : reasons.away;
};
const noRound = ({ table }) => (table.round === null ? null : reasons.roundOpen);
const inRound = ({ table }) => (table.round === null ? reasons.noRound : null);
const notShuffling = ({ table }) => (table.shuffling ? reasons.shuffling : null);
const seated = ({ table }) => (table.seat === null ? reasons.noSeat : null);
const hasOthers = ({ table }) => (otherSeats(table).length === 0 ? reasons.alone : null);
const hasPlayers = ({ table }) => (table.state.seats.length === 0 ? reasons.noPlayers : null);
const enoughPlayers = ({ table }) => {
  const missing = playersMissing(table);
  return missing === null ? null : reasons.fewPlayers(missing);
};
/** As many cards as the game says, while they are passed. */
const enoughToPass = ({ table, slots }) => {
  const pass = passing(table);
  return pass === null || slots.length === pass.count ? null : reasons.passCount(pass);
};
const hasSelection = ({ slots }) => (slots.length === 0 ? reasons.noneSelected : null);
/** The selected cards; in a showdown, without a selection, all of the hand. */
const slotsToShow = ({ table, slots }) => (slots.length > 0 || !isShowdown(table) ? slots
  : ownCards(table).filter(({ shown }) => !shown).map(({ slot }) => slot));
const hasSomeToShow = (context) => hasSelection({ slots: slotsToShow(context) });
const hasCards = ({ table }) => (ownCards(table).length === 0 ? reasons.emptyHand : null);
const deckNotEmpty = ({ table }) =>
  (cardsIn(table.state, "deck").length === 0 ? reasons.emptyDeck : null);
const deckReady = (context) =>
  deckNotEmpty(context) ?? (isSealed(context.table.state, "deck") ? null : reasons.notShuffled);
const enough = ({ table, count }) => {
  const left = cardsIn(table.state, "deck").length;
  return count > left ? reasons.tooFew({ left }) : null;
};
/** The pile that goes back to the empty deck; null if none does. */
const turnedOver = (table) => {
  const pile = turnsOnto();
  const empty = pile !== null && cardsIn(table.state, "deck").length === 0;
  return empty && cardsIn(table.state, pile).length > 0 ? pile : null;
};
/** Whether a shuffle makes a new deck: where cards are matched, of all discards but the last. */
export const renewsDeck = ({ state }) => suitPattern() !== null &&
  cardsIn(state, "deck").length === 0 && cardsIn(state, "pile:table").length > 1;
const toShuffle = (context) =>
  (renewsDeck(context.table) ? allowed("pile")(context) : deckNotEmpty(context));
const toDraw = (context) =>
  (turnedOver(context.table) === null ? deckReady(context) ?? enough(context) : null);
/** The commands of a deal: the game's next one, or as many cards as are set to each player. */
const dealsOf = ({ table, count }) =>
  (count === 1 ? nextDeal(table)?.deals : null) ?? [{ each: count, piles: [] }];
const notDealt = ({ table, count }) => (count === 1 && isDealt(table) ? reasons.allDealt : null);
const enoughForAll = (context) => {
  const { table } = context;
  const wanted = dealsOf(context).flatMap(({ each, piles }) =>
    [each * table.state.seats.length, ...piles.map((pile) => pile.count)])
    .reduce((sum, cards) => sum + cards, 0);
  const left = cardsIn(table.state, "deck").length;
  return wanted > left ? reasons.tooFewForAll({ left, wanted }) : null;
};
const somethingOut = ({ table }) => {
  const stacks = Object.entries(table.state.round?.stacks ?? {});
  const out = stacks.some(([name, cards]) => name !== "deck" && cards.length > 0);
  return out ? null : reasons.allInDeck;
};
const notHost = ({ table }) => (table.host ? reasons.isHost : null);
const tableNotEmpty = ({ table }) =>
  (cardsIn(table.state, "pile:table").length === 0 ? reasons.emptyTable : null);
const lastMoveIsOwn = ({ table }) => (canTakeBack(table) ? null : reasons.nothingBack);
const allowed = (rule) => ({ table }) => (isAllowed(table, rule) ? null : reasons.notAllowed);

/** Conditions of every action on cards. */
export const BETWEEN_SHUFFLES = [connected, inRound, notShuffling];

const play = [inRound, notShuffling];
const hand = [seated, ...play, hasCards, hasSelection];
const deck = [...play, deckReady];

/** @type {Action[]} in the order of the list of keys */
export const ACTIONS = [
  action("draw", "d", "draw", [seated, ...play, toDraw],
    drawOrTurn),
  action("play", "p", "play", hand,
    ({ table, slots }) => table.play(slots)),
  action("discard", "x", "discard", [
    seated, ...play, hasCards, (context) => (folds() ? null : hasSelection(context)),
  ],
    ({ table, slots }) => discard(table, slots)),
  action("give", "g", "give", [...hand, hasOthers],
    ({ table, slots }, to) => table.give(slots, { to }),
    ({ table, ask, slots }) => ask.recipient(slots, otherSeats(table))),
  action("show", "h", "show", [seated, ...play, hasCards, hasSomeToShow],
    (context) => context.table.show(slotsToShow(context))),
  action("putBack", "r", "return", hand,
    ({ table, slots }) => table.returnCards(slots)),
  action("takeBack", "u", "take_back", [...play, lastMoveIsOwn],
    ({ table }) => takeBack(table)),
  action("passTo", "Shift+G", "pass", [
    seated, ...play, hasCards, enoughToPass, hasSelection, hasOthers,
  ],
    ({ table, slots }, to) => table.pass(slots, { to }),
    ({ table, ask }) => passing(table)?.seat ?? ask.seat(texts.passTo, otherSeats(table))),
  action("showTo", "Shift+H", "show", [...hand, hasOthers],
    ({ table, slots }, to) => table.show(slots, { to }),
    ({ table, ask }) => ask.seat(texts.showTo, otherSeats(table))),
  action("playTo", "Shift+P", "play", hand,
    ({ table, slots }, pile) => table.play(slots, pile),
    ({ ask }) => ask.pile()),
  action("playDown", "Shift+D", "play", hand,
    ({ table, slots }) => table.play(slots, { face: "down" })),
  action("more", "e", null, hand,
    (context, { chosen, answer }) => chosen.run(context, answer),
    (context) => context.ask.action(context)),

  action("openRound", "o", "open", [noRound, enoughPlayers], openAndShuffle),
  action("shuffle", "s", "shuffle", [...play, toShuffle], shuffleDeck),
  action("deal", "a", "deal", [...deck, hasPlayers, enoughPlayers, notDealt, enoughForAll],
    dealAll),
  action("cut", "c", "cut", deck,
    ({ table, count }) => table.cut(cutIndex(cardsIn(table.state, "deck").length, count))),
  action("burn", "b", "burn", [...deck, enough],
    ({ table, count }) => table.burn(count)),
  action("collect", "k", "collect", [...play, somethingOut], collectAll),
  action("closeRound", "Shift+L", "close", [inRound],
    ({ table }) => table.roundClose(), askBeforeShowing),

  action("trick", "v", "pile", [...play, tableNotEmpty],
    (context, seat) => trickTo(seat).run(context),
    ({ ask }) => ask.anySeat(texts.tricks.toWhom)),
  action("passTurn", "w", "annotate", [seated, hasOthers],
    ({ table }) => table.note("turn", String(nextSeat(table, table.seat)))),
  action("say", "y", "annotate", [seated],
    ({ table }, { kind, text }) => table.note(kind, text), ({ ask }) => ask.saying()),
  action("becomeHost", "Shift+B", null, [seated, notHost],
    ({ table }) => table.transferHost(table.seat), confirmed("becomeHost")),

  action("leave", "Shift+Q", null, [seated],
    ({ table }) => table.leave(), confirmed("leave")),
  action("closeTable", "Shift+W", "host", [],
    ({ table }) => table.close(), confirmed("closeTable")),
];

const BY_NAME = new Map(ACTIONS.map((one) => [one.name, one]));

/** @returns {Action} */
export function actionNamed(name) {
  return BY_NAME.get(name);
}

/** Whether the player may ever use the action, so that its button is shown. */
export function isVisible({ name, rule }, table) {
  if (name === (table.round === null ? "closeRound" : "openRound")) return false;
  if (name === "becomeHost" && table.host) return false;
  if (name === "discard" && folds() && ownCards(table).every(({ shown }) => shown)) return false;
  if (rule === null) return table.seat !== null;
  return rule === "host" ? table.host : isAllowed(table, rule);
}

/** Why an action is not possible now, in a sentence; null if it is. */
export function disabledReason({ conditions }, context) {
  for (const condition of conditions) {
    const reason = condition(context);
    if (reason !== null) return reason;
  }
  return null;
}

/**
 * The action of moving cards from one stack onto another, `{ conditions, run, asks, counted }`, or
 * null if there is none. Stacks include hands; `slots` are cards of the player's hand, or several
 * ones of a pile, which keep their faces; `count` is that of the deck's cards. `face` is the side
 * that they show on a pile.
 *
 * @param {any} table
 * @param {{ from: string, to: string, slots?: number[], count?: number, face?: string }} move
 */
export function actionForMove(table, { from, to, slots = [], count = 1, face = defaultFace(to) }) {
  const own = table.seat === null ? null : handOf(table.seat);
  if (from === to) return null;
  if (from === own) return moveFromHand(to, slots);
  if (from === "deck" && to === own) return actionNamed("draw");
  if (from === "deck" && to === "pile:burn") return actionNamed("burn");
  if (from === "deck" && seatOf(to) !== null) {
    const seats = [seatOf(to)];
    return move("deal", [...deck, enough], () => table.deal(count, { seats }), { counted: true });
  }
  if (from === "deck") {
    return move("pile", [...deck, enough], () => table.move(from, { to, count, face }),
      { counted: true });
  }
  const several = slots.length > 0 ? slots : null;
  // A card that is uncovered at the end of a column turns up on its own.
  const moved = (conditions, run) => move("pile", conditions, async () => {
    await run();
    await turnOfColumn(table, from)?.run();
  });
  if (to === own) {
    return moved([seated, ...play],
      () => table.pileDraw(pileName(from), null, { cards: several }));
  }
  if (seatOf(from) !== null) {
    const all = cardsIn(table.state, from).length;
    return move("collect", play, () => table.move(from, { to, count: all }));
  }
  if (several !== null) {
    return moved(play, () => table.move(from, { to, cards: several, face: "down" }));
  }
  const whole = count > 1 && count === cardsIn(table.state, from).length;
  const which = whole ? { all: true } : { count: 1 };
  return moved(play, () => table.move(from, { to, ...which, face }));
}

/** The action of turning up the card at the end of a column; null if it is not face down. */
export function turnOfColumn(table, stack) {
  const top = cardsIn(table.state, stack).at(-1);
  if (!isColumn(stack) || top === undefined || top.shown || !isAllowed(table, "turn")) return null;
  return {
    conditions: BETWEEN_SHUFFLES, asks: null,
    run: () => table.pileTurn(pileName(stack), [top.slot]),
  };
}

/** The pile of the suit of a stack's top card, if that is the next one there; null otherwise. */
export function foundationOf(table, stack) {
  const code = cardsIn(table.state, stack).at(-1)?.card ?? null;
  if (code === null || !(isColumn(stack) || stack === turnsOnto())) return null;
  const { rank, suit } = cardOf(code);
  const pile = `pile:${suit}`;
  const isNext = rank === SEQUENCE[cardsIn(table.state, pile).length];
  return isNext && pilesOfGame()?.includes(suit) ? pile : null;
}

/** Moving all cards of a pile, face down, onto the pile of the tricks that a seat has won. */
export function trickTo(seat, pile = "pile:table") {
  return move("pile", play,
    ({ table }) => table.move(pile, { to: wonPile(seat), all: true, face: "down" }));
}

/** Adding a note. */
export function noting(kind, text) {
  return move("annotate", [], ({ table }) => table.note(kind, text));
}

/** An action on players, most conditions of which the server knows. */
export function ofPlayers(run, conditions = []) {
  return { rule: null, conditions: [connected, ...conditions], run, asks: null, counted: false };
}

/** Discard these cards; all, if that is to fold. */
function discard(table, slots) {
  return table.discard(folds() ? ownCards(table).map(({ slot }) => slot) : slots);
}

/** What the button of an action says. */
export const labelOf = (name) => wordOf(name) ?? texts.actions[name];

/** Which side a card shows on a stack by default. */
export function defaultFace(stack) {
  const down = ["deck", "pile:discard", "pile:burn"].includes(stack) || wonBy(stack) !== null;
  return down ? "down" : "up";
}

function moveFromHand(to, slots) {
  const cards = [seated, ...play];
  const seat = seatOf(to);
  if (seat !== null) {
    return move("give", cards, ({ table }) => table.give(slots, { to: seat }),
      { asks: ({ ask }) => ask.recipient(slots, [seat]) });
  }
  if (to === "deck") return move("return", cards, ({ table }) => table.returnCards(slots));
  const pile = pileName(to);
  if (pile === "discard") return move("discard", cards, ({ table }) => discard(table, slots));
  const face = defaultFace(to);
  return move("play", cards, ({ table }) => table.play(slots, { pile, face }));
}

function move(rule, conditions, run, { asks = null, counted = false } = {}) {
  return { rule, conditions: [connected, allowed(rule), ...conditions], run, asks, counted };
}

/** @returns {Action} */
function action(name, key, rule, conditions, run, asks = null) {
  const byRule = rule === null || rule === "host" ? [] : [allowed(rule)];
  return {
    name, key, rule, conditions: [connected, ...byRule, ...conditions], run, asks,
    counted: COUNTED.includes(name), mark: MARKS[name] ?? null,
  };
}

/** Ask for confirmation of an action that cannot be undone. */
function confirmed(name) {
  return ({ ask }) => ask.confirm(texts.confirm[name], texts.actions[name]);
}

/** Closing a round shows all cards: that is asked unless the hand is over and no hand has one. */
async function askBeforeShowing({ table, ask }) {
  const isHeld = ([stack, cards]) => seatOf(stack) !== null && cards.length > 0;
  if (isOver(table) && !Object.entries(table.state.round.stacks).some(isHeld)) return true;
  return ask.confirm(texts.confirm.closeRound, texts.actions.closeRound);
}

/** An unshuffled deck cannot be used, so shuffle it, too, and deal, if the rules allow that. */
async function openAndShuffle({ table }) {
  await table.roundOpen({ deck: await deckOfRound(table) });
  if (!isAllowed(table, "shuffle")) return;
  await table.shuffle();
  if (dealsAtOnce(table)) await dealAll({ table, count: 1 });
}

async function shuffleDeck({ table }) {
  if (renewsDeck(table)) {
    const cards = cardsIn(table.state, "pile:table").slice(0, -1).map(({ slot }) => slot);
    await table.move("pile:table", { to: "deck", cards });
  }
  await table.shuffle();
}

/** Draw cards; or, if the game says so, turn them onto its pile, which goes back to an empty deck. */
async function drawOrTurn({ table, count }) {
  const [onto, back] = [turnsOnto(), turnedOver(table)];
  if (back !== null) {
    const cards = cardsIn(table.state, back).map(({ slot }) => slot).toReversed();
    await table.move(back, { to: "deck", cards });
  } else if (onto !== null) await table.move("deck", { to: onto, count, face: "up" });
  else await table.draw(count);
}

async function dealAll(context) {
  for (const { each, piles } of dealsOf(context)) {
    await context.table.deal(each, { piles: piles.length > 0 ? piles : undefined });
  }
}

/** The index of a cut: `count` cards from the top, or, if that is one, the middle. */
function cutIndex(cards, count) {
  const lifted = count > 1 && count < cards ? count : Math.floor(cards / 2);
  return cards - lifted;
}

/** Return every hand and pile to the deck, which must be shuffled afterwards. */
async function collectAll({ table }) {
  for (const [name, cards] of Object.entries(table.state.round.stacks)) {
    if (name === "deck" || cards.length === 0) continue;
    await table.move(name, { to: "deck", count: cards.length });
  }
}
