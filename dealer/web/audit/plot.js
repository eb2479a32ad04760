/** How many swaps each card of a shuffle took part in: a bar chart, and the same as a table. */

import { cardName, cardSign } from "../cards.js";
import { element, setText } from "../dom.js";
import { audit as texts } from "../texts/audit.js";
import { faceOf, swapCounts } from "./moments.js";

const SVG = "http://www.w3.org/2000/svg";
// Pixels
const HEIGHT = 120;
const FOOT = 16;
const LEFT = 18;
const MIN_WIDTH = 280;
const MARGIN = 34;
const LABEL_WIDTH = 17; // of a card's sign

/** @returns {any} */
const at = (id) => document.getElementById(id);
let drawn = { shuffle: null, bars: [] };
let width = MIN_WIDTH;

/** Adapt to the width of the window. */
export function fitPlot() {
  width = Math.max(MIN_WIDTH, Math.round(at("screen").clientWidth - MARGIN));
  drawn.shuffle = null;
}

/** Plot the current or last shuffle at a moment, as far as it has come. */
export function plot(round, moment) {
  const shuffle = round.shuffles.findLast(({ first }) => first <= moment.version) ?? null;
  const none = shuffle === null || shuffle.n === 0;
  at("bars").hidden = at("plot-more").hidden = none;
  if (none) {
    setText(at("plot-words"), texts.noPlot);
    drawn.shuffle = null;
    return;
  }
  if (drawn.shuffle !== shuffle) build(round, shuffle);
  const { swap, version } = moment;
  const over = shuffle.swaps.length > 0 && version > shuffle.swaps.at(-1).version;
  const count = swap !== null ? swap.step + 1 : over ? shuffle.swaps.length : 0;
  const done = swapCounts(shuffle, count);
  const before = swap === null ? done : swapCounts(shuffle, count - 1);
  drawn.bars.forEach((bar, place) => {
    bar.setAttribute("y", drawn.y(done[place]));
    bar.setAttribute("height", drawn.y(0) - drawn.y(done[place]));
    bar.setAttribute("class", done[place] > before[place] ? "now" : "done");
  });
}

function svgElement(name, attributes, text = null) {
  const created = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  if (text !== null) created.textContent = text;
  return created;
}

function build(round, shuffle) {
  const counts = swapCounts(shuffle);
  const most = Math.max(1, ...counts);
  const y = (count) => HEIGHT - FOOT - (count / most) * (HEIGHT - FOOT - 8);
  const step = (width - LEFT) / shuffle.n;
  const svg = svgElement("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": texts.plotName(most),
  });
  for (const count of ticks(most)) {
    svg.append(
      svgElement("line", { x1: LEFT, x2: width, y1: y(count), y2: y(count) }),
      svgElement("text", { x: LEFT - 4, y: y(count) + 3.5, "text-anchor": "end" }, String(count)),
    );
  }
  const faces = shuffle.before.map((card) => faceOf(round, card));
  const wide = Math.max(step - (step > 4 ? 2 : 0.5), 0.5);
  const every = Math.ceil((LABEL_WIDTH * Math.max(1, cardSign(faces[0]).length / 3)) / step);
  const bars = counts.map((count, place) => {
    const x = LEFT + place * step + (step - wide) / 2;
    const title = svgElement("title", {}, `${cardName(faces[place])}: ${count}`);
    const height = y(0) - y(count);
    const all = svgElement("rect", { class: "all", x, y: y(count), width: wide, height });
    all.append(title);
    const bar = svgElement("rect", { class: "done", x, y: y(0), width: wide, height: 0 });
    svg.append(all, bar);
    if (place % every === 0 && cardSign(faces[place]).length <= 4) {
      svg.append(svgElement("text", {
        x: x + wide / 2, y: HEIGHT - 3, "text-anchor": "middle",
        class: /[♥♦]/.test(cardSign(faces[place])) ? "red" : "",
      }, cardSign(faces[place])));
    }
    return bar;
  });
  at("bars").replaceChildren(svg);
  setText(at("plot-words"), texts.plotWords(shuffle.n, shuffle.swaps.length, shuffle.algorithm));
  tabulate(faces, counts);
  drawn = { shuffle, bars, y };
}

function ticks(most) {
  const step = Math.max(1, Math.ceil(most / 4));
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, n) => n * step);
}

function tabulate(faces, counts) {
  const head = [texts.plotPlace, texts.plotCard, texts.plotSwaps];
  const row = (place) => element("tr", {},
    element("td", {}, String(place)), element("th", { scope: "row" }, cardName(faces[place])),
    element("td", {}, String(counts[place])));
  at("plot-table").replaceChildren(
    element("thead", {}, element("tr", {},
      ...head.map((one) => element("th", { scope: "col" }, one)))),
    element("tbody", {}, ...counts.map((_, place) => row(place))),
  );
}
