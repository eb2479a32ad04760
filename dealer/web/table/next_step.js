/** What comes next in a round: the action of the one filled button. */

import { table as texts } from "../texts.js";
import { actionNamed, disabledReason, isVisible } from "./actions.js";
import { isOver, nextDeal } from "./game.js";
import { OF_CARDS } from "./questions.js";
import { cardsIn, isSealed, nameAt, passing } from "./selectors.js";

/**
 * The next step for this player, and what its button says; null if there is none. The steps of a
 * hand come first, then passing cards, then what can be done with the selected ones, and drawing.
 *
 * @param {any} page
 * @param {string[]} names the actions that have a button, the most important first
 * @returns {{ name: string, label: string } | null}
 */
export function nextStep(page, names) {
  const { table, slots } = page;
  if (table.round === null) return null;
  const mayDo = (name) => isVisible(actionNamed(name), table);
  const isPossible = (name) => disabledReason(actionNamed(name), page) === null;
  const step = (name, label = null) => ({ name, label: label ?? texts.actions[name] });
  if (isOver(table) && mayDo("closeRound")) return step("closeRound");
  if (!isSealed(table.state, "deck") && mayDo("shuffle") && isPossible("shuffle")) {
    return step("shuffle");
  }
  if (mayDo("deal") && isPossible("deal")) {
    const next = nextDeal(table);
    if (next !== null || isUntouched(table)) return step("deal", next?.title);
  }
  const pass = passing(table);
  if (pass !== null && pass.seat !== null && !pass.done && names.includes("passTo")) {
    return step("passTo", texts.passCards({ count: pass.count, name: nameAt(table, pass.seat) }));
  }
  // Others may move, too, but the filled button is for the player whose turn it is.
  if (![null, table.seat].includes(page.markers.turn)) return null;
  // Where cards are passed, several ones are selected for that, and a single one to be played.
  const moves = slots.length > 1 && names.includes("passTo") ? ["passTo", ...names] : names;
  const ofCards = slots.length === 0 ? undefined : moves.find(
    (name) => OF_CARDS.includes(name) && isPossible(name));
  if (ofCards !== undefined) return step(ofCards);
  return names.includes("draw") && isPossible("draw") ? step("draw") : null;
}

/** Whether no card has left the deck. */
function isUntouched({ state }) {
  const all = Object.values(state.round.stacks).flat();
  return all.length === cardsIn(state, "deck").length;
}
