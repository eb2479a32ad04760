/** Whether the last move can be taken back by this player, and how that is done. */

import { seatOf } from "../verify.js";
import { lastMove, playedBy } from "./history.js";
import { hostCollects, isAllowed, passedTo, pileName } from "./selectors.js";

/** @typedef {import("../client.js").RemoteTable} RemoteTable */

/**
 * Whether there is something to take back: this player's last move, if no card has moved since, a
 * move between piles, or cards that they passed.
 *
 * @param {RemoteTable} table
 */
export function canTakeBack(table) {
  if (table.seat === null) return false;
  return hasPassed(table) || laidOpen(table) !== null || isUnseen(table);
}

/**
 * Take the last move back.
 *
 * @param {RemoteTable} table
 */
export async function takeBack(table) {
  const laid = laidOpen(table);
  if (laid === null) await table.takeBack();
  else await table.pileDraw(pileName(laid.to), null, { cards: laid.slots });
}

/**
 * The last move, if this player has laid cards of the hand face up onto a pile by it: they come back
 * as they were seen. The server reverses only moves by which no player saw a face.
 */
function laidOpen(table) {
  const last = lastMove(table);
  const own = last !== null && last.shown && seatOf(last.from) === table.seat;
  return own && seatOf(last.to) === null && isAllowed(table, "pile") ? last : null;
}

function hasPassed(table) {
  const isOwn = ({ slot }) => playedBy(table, slot)?.seat === table.seat;
  return Object.entries(table.state.round.stacks).some(
    ([stack, cards]) => passedTo(stack) !== null && cards.some(isOwn));
}

/** Whether no player saw a face by the last move, and the server lets this player reverse it. */
function isUnseen(table) {
  const last = lastMove(table);
  if (last === null || last.shown) return false;
  const [giver, taker] = [seatOf(last.from), seatOf(last.to)];
  if (giver === null && taker === null) return isAllowed(table, "pile");
  if (giver !== null && taker === null && hostCollects(table)) return false;
  return [giver ?? taker, taker ?? giver].every((seat) => seat === table.seat);
}
