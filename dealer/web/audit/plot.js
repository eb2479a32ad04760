/** How many swaps each card of a shuffle saw: bars, and the same as a table. */

import { cardName, cardSign } from "../cards.js";
import { make, write } from "../make.js";
import { audit as texts } from "../texts/audit.js";
import { faceOf, visits } from "./story.js";

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 120;
const FOOT = 16;
const LEFT = 18;
const LEAST = 280; // pixels
const MARGIN = 34;
const LABEL_ROOM = 17; // pixels that a card's sign takes

const at = (id) => document.getElementById(id);
let drawn = { shuffle: null, bars: [] };
let width = LEAST;

/** Draw for this window's width from now on. */
export function fitPlot() {
  width = Math.max(LEAST, Math.round(at("screen").clientWidth - MARGIN));
  drawn.shuffle = null;
}

/** Plot the shuffle that a moment is in, or that came last before it, as far as it had come. */
export function plot(round, moment) {
  const shuffle = round.shuffles.findLast(({ first }) => first <= moment.version) ?? null;
  const none = shuffle === null || shuffle.n === 0;
  at("bars").hidden = at("plot-more").hidden = none;
  if (none) {
    write(at("plot-words"), texts.noPlot);
    drawn.shuffle = null;
    return;
  }
  if (drawn.shuffle !== shuffle) build(round, shuffle);
  const { swap, version } = moment;
  const over = shuffle.swaps.length > 0 && version > shuffle.swaps.at(-1).version;
  const count = swap !== null ? swap.step + 1 : over ? shuffle.swaps.length : 0;
  const done = visits(shuffle, count);
  const before = swap === null ? done : visits(shuffle, count - 1);
  drawn.bars.forEach((bar, place) => {
    bar.setAttribute("y", drawn.y(done[place]));
    bar.setAttribute("height", drawn.y(0) - drawn.y(done[place]));
    bar.setAttribute("class", done[place] > before[place] ? "now" : "done");
  });
}

function element(name, has, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(has)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function build(round, shuffle) {
  const seen = visits(shuffle);
  const most = Math.max(1, ...seen);
  const y = (count) => HEIGHT - FOOT - (count / most) * (HEIGHT - FOOT - 8);
  const step = (width - LEFT) / shuffle.n;
  const svg = element("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": texts.plotName(most),
  });
  for (const count of ticks(most)) {
    svg.append(
      element("line", { x1: LEFT, x2: width, y1: y(count), y2: y(count) }),
      element("text", { x: LEFT - 4, y: y(count) + 3.5, "text-anchor": "end" }, String(count)),
    );
  }
  const faces = shuffle.before.map((card) => faceOf(round, card));
  const wide = Math.max(step - (step > 4 ? 2 : 0.5), 0.5);
  const every = Math.ceil((LABEL_ROOM * Math.max(1, cardSign(faces[0]).length / 3)) / step);
  const bars = seen.map((count, place) => {
    const x = LEFT + place * step + (step - wide) / 2;
    const title = element("title", {}, `${cardName(faces[place])}: ${count}`);
    const height = y(0) - y(count);
    const all = element("rect", { class: "all", x, y: y(count), width: wide, height });
    all.append(title);
    const bar = element("rect", { class: "done", x, y: y(0), width: wide, height: 0 });
    svg.append(all, bar);
    if (place % every === 0 && cardSign(faces[place]).length <= 4) {
      svg.append(element("text", {
        x: x + wide / 2, y: HEIGHT - 3, "text-anchor": "middle",
        class: /[♥♦]/.test(cardSign(faces[place])) ? "red" : "",
      }, cardSign(faces[place])));
    }
    return bar;
  });
  at("bars").replaceChildren(svg);
  write(at("plot-words"), texts.plotWords(shuffle.n, shuffle.swaps.length, shuffle.algorithm));
  tabulate(faces, seen);
  drawn = { shuffle, bars, y };
}

function ticks(most) {
  const step = Math.max(1, Math.ceil(most / 4));
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, n) => n * step);
}

function tabulate(faces, seen) {
  const head = [texts.plotPlace, texts.plotCard, texts.plotSwaps];
  const row = (place) => make("tr", {},
    make("td", {}, String(place)), make("th", { scope: "row" }, cardName(faces[place])),
    make("td", {}, String(seen[place])));
  at("plot-table").replaceChildren(
    make("thead", {}, make("tr", {}, ...head.map((one) => make("th", { scope: "col" }, one)))),
    make("tbody", {}, ...seen.map((_, place) => row(place))),
  );
}
