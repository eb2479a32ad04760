/** What happened in a round, in sentences: a line for each event, and one for the swaps in a row. */

import { machineTimeOf, timeOf } from "../clock.js";
import { byId, element, setAttribute } from "../dom.js";
import { audit as texts } from "../texts.js";
import { sentenceOf } from "./sentences.js";

let shown = { round: null, viewer: null, lines: [] };
/** @type {ResizeObserver | null} */
let observer = null;

/** The lines of a round: { first, last, at, sentence }, the first two as indices of moments. */
export function historyOf(round, viewer) {
  const lines = [];
  round.moments.forEach((moment, index) => {
    const last = lines.at(-1);
    if (moment.swap !== null && last?.swaps > 0) {
      last.last = index;
      last.swaps += 1;
      last.sentence = texts.swapsInARow({ count: last.swaps });
      return;
    }
    const swaps = moment.swap === null ? 0 : 1;
    const sentence = swaps ? texts.swapsInARow({ count: 1 }) : sentenceOf(round, index, viewer);
    lines.push({ first: index, last: index, at: moment.at, sentence, swaps });
  });
  return lines;
}

/** Show the lines of a round as `viewer` saw it, and mark that of moment `index`. */
export function showHistory(round, index, viewer) {
  if (shown.round !== round || shown.viewer !== viewer) build(round, viewer);
  const { lines } = shown;
  const current = lines.findIndex(({ first, last }) => first <= index && index <= last);
  if (lines[current].node.hasAttribute("aria-current")) return;
  lines.forEach(({ node }, n) => setAttribute(node, "aria-current", n === current ? "true" : null));
  scrollToCurrent();
}

/** Put the current line in the middle; lines are longer or shorter when the page's width changes. */
function scrollToCurrent() {
  const { offsetTop = 0, offsetHeight = 0 } =
    shown.lines.find(({ node }) => node.hasAttribute("aria-current"))?.node ?? {};
  byId("history").scrollTop = offsetTop - (byId("history").clientHeight - offsetHeight) / 2;
}

function build(round, viewer) {
  const lines = historyOf(round, viewer).map((line) => ({
    ...line,
    node: element("li", {},
      element("time", { class: "muted", datetime: machineTimeOf(line.at) }, timeOf(line.at)),
      element("span", {}, line.sentence)),
  }));
  byId("history-lines").replaceChildren(...lines.map(({ node }) => node));
  observer ??= new ResizeObserver(scrollToCurrent);
  observer.observe(byId("history"));
  shown = { round, viewer, lines };
}
