/** The marks of a seat: host, dealer button, turn, score. */

import { element, setAttribute } from "../dom.js";
import { number, table as texts } from "../texts.js";
import { isHostSeat } from "./selectors.js";

/**
 * What is marked at a seat.
 *
 * @param {any} page
 * @param {number} seat
 * @returns {{ bot: boolean, host: boolean, dealer: boolean, turn: boolean, score: number | null }}
 */
export function marksOf({ table, markers }, seat) {
  return {
    bot: table.state.seats.find((player) => player.seat === seat)?.bot ?? false,
    host: isHostSeat(table, seat),
    dealer: markers.dealerButton === seat,
    turn: markers.turn === seat && (table.round !== null || table.state.rounds === 0),
    score: markers.scores.get(seat) ?? null,
  };
}

/** An element for the marks, which are also in the name of the seat. */
export function marksElement() {
  const mark = (name, sign) => element(
    "span", { class: `mark ${name}`, hidden: true, "data-sign": sign });
  return element(
    "span", { class: "marks", "aria-hidden": "true" },
    mark("bot", texts.marks.bot),
    mark("host", "★\ufe0e"), mark("dealer", "D"), mark("score", ""),
  );
}

/** @param {HTMLElement} container from `marksElement` */
export function updateMarks(container, { bot, host, dealer, score }) {
  const [isBot, hosts, deals, points] = /** @type {any} */ (container.children);
  isBot.hidden = !bot;
  hosts.hidden = !host;
  deals.hidden = !dealer;
  points.hidden = score === null;
  const sign = score === null ? null : texts.marks.points({ score: number(score) });
  setAttribute(points, "data-sign", sign);
}

/** The marks in words, joined by commas; empty if there are none. */
export function marksText({ bot, host, dealer, turn, score }) {
  return [
    bot && texts.marks.bot, host && texts.marks.host, dealer && texts.marks.dealer,
    turn && texts.marks.turn,
    score !== null && texts.marks.score({ score: number(score) }),
  ].filter(Boolean).join(", ");
}
