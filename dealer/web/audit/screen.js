/** One moment of a round, shown: the sentence, the swap, the felt, the plot and the controls. */

import { make, mark, write } from "../make.js";
import { audit as texts } from "../texts/audit.js";
import { draw, fitTo } from "./felt.js";
import { fitPlot, plot } from "./plot.js";
import { sentenceOf, titleOf } from "./sentences.js";
import { fitTape, showSwap } from "./swap.js";
import { ABOVE, seen } from "./views.js";

const PLAY = "M4 2.5v11L13 8z";
const PAUSE = "M3.5 3h3v10h-3zM9.5 3h3v10h-3z";
const SHOE = 104; // cards; more do not fit a phone beside what is said of them
const BESIDE_PX = 40; // of the part before the one that is shown

const at = (id) => document.getElementById(id);

/**
 * Show moment `index` of a round whose moments are told.
 *
 * playing  whether the next one comes by itself: then no screen reader is told of each
 * flight   milliseconds for cards that moved to fly
 */
export function showMoment(round, index, { viewer, playing, flight }) {
  const moment = round.moments[index];
  const told = viewer === ABOVE;
  const sentence = sentenceOf(round, index, viewer);
  const last = index === round.moments.length - 1;
  mark(at("moment"), "aria-live", playing ? "off" : "polite");
  at("moment").classList.toggle("no", round.state === "broken" && last);
  write(at("moment"), sentence);
  showSwap(round, moment, told);
  const shown = seen(round, moment, viewer);
  draw(at("felt"), shown, {
    titles: (stack) => titleOf(moment, stack),
    marks: marksOf(moment, shown, told),
    shuffling: told ? shufflingOf(moment) : null,
    flight,
  });
  plot(round, moment);
  showChapter(round, moment);
  showControls(round, index, { sentence, playing });
}

/** Make room for a round's cards in this window. */
export function fitScreen(round) {
  const felt = at("felt");
  const { paddingLeft, paddingRight } = getComputedStyle(felt);
  const width = felt.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  at("screen").classList.toggle("shoe", round.deck.length > SHOE);
  fitTo(felt, round.deck.length, width);
  fitTape();
  fitPlot();
}

/** The cards that an event is about, and what to call them. */
function marksOf({ swap, shuffle, public: event }, shown, told) {
  const marks = new Map();
  if (swap !== null) {
    const cards = shown.get(shuffle.stack);
    if (told) marks.set(cards[swap.j].card, "j");
    marks.set(cards[swap.i].card, told && swap.i === swap.j ? "i = j" : "i");
  } else if ("slot" in event) {
    marks.set(event.slot, "moved");
  }
  return marks;
}

/** Which places of the stack that is shuffled have their card for good by now. */
function shufflingOf({ shuffle, swap, type }) {
  if (shuffle === null || (swap === null && type !== "DeckSealed")) return null;
  const { n, steps, algorithm, stack } = shuffle;
  const done = swap === null ? steps : swap.step + 1;
  const all = done >= n - 1;
  const settled = algorithm === "backward"
    ? (place) => all || place >= n - done
    : (place) => all || place < done;
  return { stack, settled };
}

function showControls(round, index, { sentence, playing }) {
  const scrub = at("scrub");
  scrub.max = String(round.moments.length - 1);
  scrub.value = String(index);
  mark(scrub, "aria-valuetext", sentence);
  write(at("count"), texts.of(index + 1, round.moments.length));
  mark(at("play"), "aria-label", playing ? texts.pause : texts.play);
  at("play-sign").setAttribute("d", playing ? PAUSE : PLAY);
  const first = index === 0;
  const last = index === round.moments.length - 1;
  const done = { start: first, backward: first, forward: last, end: last };
  for (const [id, is] of Object.entries(done)) mark(at(id), "aria-disabled", is ? "true" : null);
}

/** The parts of a round: its shuffles, and what was played between them: { name, first, last }. */
export function chaptersOf(round) {
  const chapters = [];
  let next = round.first;
  const between = (until) => {
    if (next > until) return;
    const name = next === round.first ? texts.beginChapter : texts.playChapter;
    chapters.push({ name, first: next, last: until });
  };
  for (const shuffle of round.shuffles) {
    between(shuffle.first - 1);
    const all = Math.max(shuffle.n - 1, 0);
    const name = texts.shuffleChapter({ ...shuffle, all });
    chapters.push({ name, first: shuffle.first, last: shuffle.last });
    next = shuffle.last + 1;
  }
  between(round.last);
  return chapters;
}

/** A button for each part; `go(version)` is called with its beginning. */
export function showChapters(round, go) {
  at("chapters").replaceChildren(...chaptersOf(round).map(({ name, first, last }) =>
    make("button", { "data-first": first, "data-last": last, onclick: () => go(first) }, name)));
}

function showChapter(round, { version }) {
  for (const button of at("chapters").children) {
    const { first, last } = button.dataset;
    const here = Number(first) <= version && version <= Number(last);
    if (here && !button.hasAttribute("aria-current")) {
      at("chapters").scrollLeft = button.offsetLeft - at("chapters").offsetLeft - BESIDE_PX;
    }
    mark(button, "aria-current", here ? "true" : null);
  }
}
