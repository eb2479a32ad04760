/** Running scores: after a hand the host’s page notes the total of each player, in the log. */

import { resultRule } from "./game.js";
import { isAllowed, isHostSeat } from "./selectors.js";

const RESULT = new URL("./result.js", import.meta.url).href;

/**
 * Follow an event: after the end of a hand whose game counts points, note the totals.
 *
 * @param {import("../client.js").RemoteTable} table
 * @param {import("../client.js").TableEvent} event
 */
export async function noteScores(table, { type, live }) {
  if (type !== "RoundClosed" || !live || !isAllowed(table, "annotate")) return;
  if (table.seat === null || !isHostSeat(table, table.seat)) return;
  const rule = resultRule();
  const { closedRound } = table.state;
  if (rule?.points === undefined || closedRound === null) return;
  const { scores: before } = table.markers;
  const { resultOf } = await import(RESULT);
  const { scores } = resultOf(rule, closedRound.stacks);
  if (!scores.some(({ best }) => best)) return; // the hand was not played to its end
  for (const { seat, value } of scores) {
    await table.note("score", `${seat}:${(before.get(seat) ?? 0) + value}`);
  }
}
