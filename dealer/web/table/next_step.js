/** What comes next in a round: the action of the one filled button, and who is to act. */

import { cardSign, suitSign } from "../cards.js";
import { table as texts } from "../texts.js";
import { actionNamed, disabledReason, isVisible, labelOf, renewsDeck } from "./actions.js";
import {
  buttonsOfGame, comparesHands, hasTricks, hasTurns, isOver, leadingCardOfGame, nextDeal, wordOf,
} from "./game.js";
import { begun } from "./history.js";
import { OF_CARDS } from "./questions.js";
import {
  cardsIn, isSealed, isShowdown, isShown, isTrick, nameAt, notShown, ownCards, passing,
} from "./selectors.js";
import { cardToLead, leadingCard, suitToFollow, takenBy } from "./trick.js";

/**
 * The next step for this player, and what its button says; null if there is none. The steps of a
 * hand come first, then passing cards, then what can be done with the selected ones, and drawing,
 * unless the game has something else before. `before` is what to wait for. A deal is not filled while
 * it is another player's turn.
 *
 * @param {any} page
 * @param {string[]} names the actions that have a button, the most important first
 * @returns {{ name: string, label: string, before: string | null, filled: boolean } | null}
 */
export function nextStep(page, names) {
  const { table, slots } = page;
  if (table.round === null) return null;
  const mayDo = (name) => isVisible(actionNamed(name), table);
  const isPossible = (name) => disabledReason(actionNamed(name), page) === null;
  const { turn } = page.markers;
  const step = (name, label = null, before = null, filled = true) => (
    { name, label: label ?? labelOf(name), before, filled });
  const shows = isShowdown(table) && notShown(table).length > 0;
  if (shows && mayDo("show") && isPossible("show")) return step("show");
  if (isOver(table) && !shows && mayDo("closeRound")) return step("closeRound");
  if (!isSealed(table.state, "deck") && mayDo("shuffle") && isPossible("shuffle") && !mayPlay(page)) {
    return step("shuffle", renewsDeck(table) ? texts.newDeck : null);
  }
  if (mayDo("deal") && isPossible("deal")) {
    const next = nextDeal(table);
    const before = isUntouched(table) ? null : wordOf("before_deal");
    const filled = before === null || turn === null || turn === table.seat;
    if (next !== null || isUntouched(table)) return step("deal", next?.title, before, filled);
  }
  const pass = passing(table);
  if (pass !== null && pass.seat !== null && !pass.done && names.includes("passTo")) {
    return step("passTo", texts.passCards({ count: pass.count, name: nameAt(table, pass.seat) }));
  }
  // Others may move, too, but the filled button is for the player whose turn it is.
  const isFree = turn === null && (!hasTurns() || table.state.seats.length === 1);
  if (turn !== table.seat && !isFree) return null;
  // Where cards are passed, several ones are selected for that, and a single one to be played.
  const moves = slots.length > 1 && names.includes("passTo") ? ["passTo", ...names] : names;
  const ofCards = slots.length === 0 ? undefined : moves.find(
    (name) => OF_CARDS.includes(name) && isPossible(name));
  if (ofCards !== undefined) return step(ofCards);
  const draws = buttonsOfGame() === null ? names.includes("draw") : names[0] === "draw";
  return draws && !mayPlay(page) && isPossible("draw") ? step("draw") : null;
}

/**
 * Whose turn it is, or what is next, for the line beside the hand, and whether that is this player's
 * to do; a hint says how. The line is null where there is nothing to say.
 *
 * @param {any} page
 * @returns {{ line: string | null, own: boolean, hint?: boolean }}
 */
export function turnLine(page) {
  const { table, slots, markers: { turn }, bestHand } = page;
  const { seat } = table;
  const words = texts.whoseTurn;
  const isIdle = table.round === null || ownCards(table).length === 0;
  const own = (line, hint = false) => ({ line, own: true, hint });
  const others = (line) => ({ line, own: false });
  if (bestHand) return others(bestHand.line);
  if (isShowdown(table)) {
    return isIdle || isShown(table, seat) ? others(words.waitsFor({ names: notShown(table) }))
      : own(words.showOrFold, true);
  }
  if (turn === seat) {
    if (isIdle || slots.length > 0) return own(texts.yourTurn);
    const hint = renewsDeck(table) && !mayPlay(page) ? texts.newDeckFirst : wordOf("your_turn");
    if (hint !== null) return own(hint, true);
    const [card, suit] = [cardToLead(table), suitToFollow(table)];
    if (card !== null) return own(words.lead({ card: cardSign(card) }));
    if (suit !== null) return own(words.follow({ suit: suitSign(suit) }));
    return own(hasTricks() ? words.yourTurnTap : texts.yourTurn);
  }
  // While cards are selected the heading has the room: it says how many.
  if (isIdle && hasTricks() && isOver(table)) return others(words.allPlayed);
  if (isIdle || slots.length > 0 || table.state.seats.length === 1) return others(null);
  if (turn !== null) return others(words.turnOf({ name: nameAt(table, turn) }));
  if (comparesHands() || !hasTurns() || isOver(table)) return others(null);
  if (isTrick(table)) {
    return leadingCard(table)?.seat === seat ? own(texts.tricks.take) : others(takenBy(table));
  }
  const pass = passing(table);
  if (pass !== null) {
    return pass.done ? others(words.waitsFor({ names: pass.left }))
      : own(texts.disabled.passCount(pass), true);
  }
  const lead = leadingCardOfGame();
  return others(lead !== null && !begun(table).played ? words.begins({ card: cardSign(lead) })
    : words.anyone);
}

/** Whether it is this player's turn and a card of theirs fits on the pile: none is drawn yet. */
export function mayPlay({ table, isOff, markers: { turn } }) {
  return turn === table.seat && isOff !== null && cardsIn(table.state, "pile:table").length > 0
    && ownCards(table).some((card) => !isOff(card));
}

/** Whether no card has left the deck. */
function isUntouched({ state }) {
  const all = Object.values(state.round.stacks).flat();
  return all.length === cardsIn(state, "deck").length;
}
