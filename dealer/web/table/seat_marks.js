/** The marks of a seat: its number and colour, host, dealer button, turn, score. */

import { element, setAttribute, setText } from "../dom.js";
import { number, table as texts } from "../texts.js";
import { isHostSeat } from "./selectors.js";

const COLOURS = 10;

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
    turn: markers.turn === seat,
    score: markers.scores.get(seat) ?? null,
  };
}

/** The seat's number on its colour. */
export function seatNumber() {
  return element("span", { class: "seat-number", "aria-hidden": "true" });
}

/** @param {HTMLElement} picture from `seatNumber` */
export function updateSeatNumber(picture, seat) {
  setText(picture, String(seat));
  setAttribute(picture, "data-colour", colourOf(seat));
}

/** The number of a seat's colour in seats.css. */
export const colourOf = (seat) => ((seat - 1) % COLOURS) + 1;

/** An element for the marks, which are also in the name of the seat. */
export function marksElement() {
  const mark = (name, sign) => element("span", { class: `mark ${name}`, hidden: true }, sign);
  return element(
    "span", { class: "marks", "aria-hidden": "true" },
    mark("bot", texts.marks.bot),
    mark("turn", "▶\ufe0e"), mark("host", "★\ufe0e"), mark("dealer", "D"), mark("score", ""),
  );
}

/** @param {HTMLElement} container from `marksElement` */
export function updateMarks(container, { bot, host, dealer, turn, score }) {
  const [isBot, atTurn, hosts, deals, points] = /** @type {any} */ (container.children);
  isBot.hidden = !bot;
  atTurn.hidden = !turn;
  hosts.hidden = !host;
  deals.hidden = !dealer;
  points.hidden = score === null;
  setText(points, score === null ? "" : number(score));
}

/** The marks in words, joined by commas; empty if there are none. */
export function marksText({ bot, host, dealer, turn, score }) {
  return [
    bot && texts.marks.bot, host && texts.marks.host, dealer && texts.marks.dealer,
    turn && texts.marks.turn,
    score !== null && texts.marks.score({ score: number(score) }),
  ].filter(Boolean).join(", ");
}
