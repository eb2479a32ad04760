/** How many swaps the cards of a shuffle took part in, beside what a fair shuffle gives. */

import { byId, element, setText } from "../dom.js";
import { svgElement } from "../svg.js";
import { audit as texts } from "../texts.js";
import { SIMULATED, expected, histogramOf } from "./expected.js";
import { swapCounts } from "./moments.js";

// Pixels
const ROOM = 122; // of the bars
const MIN_WIDTH = 200;
const MAX_WIDTH = 640;
const CAP = 3; // half the width of a range's ends

// In letters of the text, as plot.css has it
const HEAD = 0.75;
const FOOT = 2.1;
const LINE = 0.85;
const LEFT = 1.6;
const MARGIN = 2.2;
const DIGIT = 0.45; // with a gap

let drawn = null; // the shuffle
let width = MIN_WIDTH;
let letter = 16; // pixels

/** Adapt to the width of the window, and to the size of letters. */
export function fitPlot() {
  letter = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const room = Math.round(byId("stage").clientWidth - MARGIN * letter);
  width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, room));
  drawn = null;
}

/** Plot the current or last shuffle at a moment, once its swaps are all known. */
export function plot(round, moment) {
  const shuffle = round.shuffles.findLast(({ first }) => first <= moment.version) ?? null;
  const whole = shuffle !== null && shuffle.steps > 0 && shuffle.swaps.length === shuffle.steps &&
    !shuffle.laidOut;
  for (const id of ["plot-key", "bars", "plot-more"]) byId(id).hidden = !whole;
  if (!whole) {
    setText(byId("plot-title"), texts.noPlot);
    drawn = null;
  } else if (drawn !== shuffle) {
    draw(shuffle);
    drawn = shuffle;
  }
}

/** The rows of the chart: { swaps, cards, mean, low, high } for each number of swaps of a card. */
export function rowsOf(shuffle) {
  const cards = histogramOf(swapCounts(shuffle));
  const usual = expected(shuffle.n, shuffle.steps);
  const rows = Array.from({ length: Math.max(cards.length, usual.length) }, (_, swaps) => ({
    swaps, cards: cards[swaps] ?? 0, ...(usual[swaps] ?? { mean: 0, low: 0, high: 0 }),
  }));
  const isShown = ({ cards: here, high }) => here > 0 || high > 0;
  return rows.slice(rows.findIndex(isShown), rows.findLastIndex(isShown) + 1);
}

function draw(shuffle) {
  const rows = rowsOf(shuffle);
  const isUsual = rows.every(({ cards, low, high }) => low <= cards && cards <= high);
  setText(byId("plot-title"), isUsual ? texts.plotEven : texts.plotRare);
  const most = Math.max(...rows.map(({ cards, high }) => Math.max(cards, high)));
  const foot = HEAD * letter + ROOM;
  const height = foot + FOOT * letter;
  const left = LEFT * letter;
  const y = (cards) => foot - (cards / most) * ROOM;
  const svg = svgElement("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": texts.plotName({ shuffle: shuffle.k + 1 }),
  });
  for (const count of ticks(most)) {
    const label = { x: left - 4, y: y(count) + 0.22 * letter, "text-anchor": "end" };
    svg.append(
      svgElement("line", { x1: left, x2: width, y1: y(count), y2: y(count) }),
      svgElement("text", label, String(count)),
    );
  }
  const step = (width - left) / rows.length;
  svg.append(...rows.flatMap((row, n) => pair(row, left + n * step, step, y)));
  // Where the numbers of swaps have no room beside each other, every other one is written.
  const digits = String(rows.at(-1).swaps).length;
  const every = Math.ceil(digits * DIGIT * letter / step);
  for (let n = 0; n < rows.length; n += every) {
    const at = { x: left + (n + 0.5) * step, y: foot + LINE * letter, "text-anchor": "middle" };
    svg.append(svgElement("text", at, String(rows[n].swaps)));
  }
  const caption = {
    x: width / 2, y: height - 0.25 * letter, "text-anchor": "middle",
  };
  svg.append(svgElement("text", caption, texts.plotSwaps));
  byId("bars").replaceChildren(svg);
  const key = { expected: texts.plotExpected, range: texts.plotRange, actual: texts.plotCards };
  byId("plot-key").replaceChildren(...Object.entries(key).map(
    ([kind, words]) => element("li", { class: kind }, words)));
  setText(byId("plot-words"), texts.plotWords({
    shuffle: shuffle.k + 1, n: shuffle.n, simulated: SIMULATED,
  }));
  tabulate(rows);
}

/** The expected bar with its range, and beside it the actual bar. */
function pair({ cards, mean, low, high }, left, step, y) {
  const wide = Math.min(step * 0.36, 26);
  const middle = left + step / 2;
  const bar = (kind, x, count) =>
    svgElement("rect", { class: kind, x, y: y(count), width: wide, height: y(0) - y(count) });
  const x = middle - wide / 2 - 1;
  const range = `M${x} ${y(low)}V${y(high)}M${x - CAP} ${y(high)}h${2 * CAP}` +
    `M${x - CAP} ${y(low)}h${2 * CAP}`;
  return [
    bar("expected", middle - wide - 1, mean), svgElement("path", { class: "range", d: range }),
    bar("actual", middle + 1, cards),
  ];
}

function ticks(most) {
  const step = Math.max(1, Math.ceil(most / 4));
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, n) => n * step);
}

function tabulate(rows) {
  const head = [texts.plotSwaps, texts.plotExpected, texts.plotRange, texts.plotCards];
  const row = ({ swaps, cards, mean, low, high }) => element("tr", {},
    element("th", { scope: "row" }, String(swaps)), element("td", {}, mean.toFixed(1)),
    element("td", {}, texts.range({ low, high })), element("td", {}, String(cards)));
  byId("plot-table").replaceChildren(
    element("thead", {}, element("tr", {},
      ...head.map((one) => element("th", { scope: "col" }, one)))),
    element("tbody", {}, ...rows.map(row)),
  );
}
