/** Shows one moment of a replay: the sentence, the swap, the table, the plot and the controls. */

import { byId, element, setAttribute, setText } from "../dom.js";
import { audit as texts } from "../texts.js";
import { showHistory } from "./history.js";
import { fitPlot, plot } from "./plot.js";
import { sentenceOf, stackName, titleOf } from "./sentences.js";
import { fitTape, showArithmetic } from "./swap_details.js";
import { draw, fitTo } from "./table_view.js";
import { ALL_CARDS, visibleStacks } from "./visibility.js";

const PLAY_ICON = "M4 2.5v11L13 8z";
const PAUSE_ICON = "M3.5 3h3v10h-3zM9.5 3h3v10h-3z";

/**
 * Show moment `index` of a round.
 *
 * @param {any} round with its moments
 * @param {number} index
 * @param {object} options
 * @param {string | number} options.viewer
 * @param {boolean} options.playing screen readers then do not announce every moment
 * @param {number} options.flight duration of animations in ms
 */
export function showMoment(round, index, { viewer, playing, flight }) {
  const moment = round.moments[index];
  const seesCards = viewer === ALL_CARDS;
  const sentence = sentenceOf(round, index, viewer);
  const last = index === round.moments.length - 1;
  setAttribute(byId("moment"), "aria-live", playing ? "off" : "polite");
  byId("moment").classList.toggle("no", round.state === "broken" && last);
  setText(byId("moment"), sentence);
  showHistory(round, index, viewer);
  showArithmetic(round, index, seesCards);
  const shown = visibleStacks(round, moment, viewer);
  draw(byId("table-view"), shown, {
    titles: (stack) => titleOf(moment, stack),
    marks: marksOf(moment, shown, seesCards),
    shuffling: seesCards ? shufflingOf(moment) : null,
    around: {
      seats: [...moment.seats.keys()].sort((a, b) => a - b), own: ownSeat(moment, viewer),
      names: moment.seats,
    },
    played: moment.played,
    flight,
  });
  plot(round, moment);
  showChapter(moment);
  showControls(round, index, { sentence, playing });
}

/** Adapt the sizes to the window and to the number of cards of a round. */
export function fitScreen(round) {
  const view = byId("table-view");
  const { paddingLeft, paddingRight } = getComputedStyle(view);
  const width = view.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  fitTo(view, round.deck.length, width);
  fitTape();
  fitPlot();
}

/** The seat at the bottom: the viewer's, and otherwise the first one. */
const ownSeat = ({ seats }, viewer) =>
  (typeof viewer === "number" ? viewer : Math.min(...seats.keys(), Infinity));

/** The labels of the cards that an event is about. */
function marksOf({ swap, shuffle, public: event }, shown, seesCards) {
  const marks = new Map();
  if (swap !== null) {
    const cards = shown.get(shuffle.stack);
    if (seesCards) marks.set(cards[swap.j].card, "j");
    marks.set(cards[swap.i].card, seesCards && swap.i === swap.j ? "i = j" : "i");
  } else if ("slot" in event) {
    marks.set(event.slot, "moved");
  }
  return marks;
}

/** Which places of the stack that is being shuffled have their final card. */
function shufflingOf({ shuffle, swap, type }) {
  if (shuffle === null || (swap === null && type !== "DeckSealed")) return null;
  const { n, steps, algorithm, stack } = shuffle;
  const done = swap === null ? steps : swap.step + 1;
  const all = done >= n - 1;
  const settled = algorithm === "backward"
    ? (index) => all || index >= n - done
    : (index) => all || index < done;
  return { stack, settled };
}

function showControls(round, index, { sentence, playing }) {
  const scrub = byId("scrub");
  scrub.max = String(round.moments.length - 1);
  scrub.value = String(index);
  setAttribute(scrub, "aria-valuetext", sentence);
  setText(byId("count"), texts.of({ done: index + 1, all: round.moments.length }));
  setAttribute(byId("play"), "aria-label", playing ? texts.pause : texts.play);
  byId("play-sign").setAttribute("d", playing ? PAUSE_ICON : PLAY_ICON);
  const first = index === 0;
  const last = index === round.moments.length - 1;
  const disabled = { start: first, backward: first, forward: last, end: last };
  for (const [id, is] of Object.entries(disabled)) {
    setAttribute(byId(id), "aria-disabled", is ? "true" : null);
  }
}

/** The parts of a round, its shuffles and the play between them: { name, first, last } each. */
export function chaptersOf(round) {
  const chapters = [];
  let next = round.first;
  const addPlay = (until) => {
    if (next > until) return;
    const name = next === round.first ? texts.beginChapter : texts.playChapter;
    chapters.push({ name, first: next, last: until });
  };
  for (const shuffle of round.shuffles) {
    addPlay(shuffle.first - 1);
    chapters.push({ name: shuffleTitle(round, shuffle), first: shuffle.first, last: shuffle.last });
    next = shuffle.last + 1;
  }
  addPlay(round.last);
  return chapters;
}

function shuffleTitle({ moments }, { k, n, stack, voided, steps, first, laidOut }) {
  if (laidOut) return texts.laidOutChapter;
  const number = k + 1;
  const chapter = stack === "deck" ? texts.shuffleChapter({ number })
    : texts.shuffleChapterOf({ number, stack: stackName(moments[first], stack) });
  if (voided) return texts.chapterVoided({ chapter });
  return steps < n - 1 ? texts.chapterTop({ chapter, steps }) : chapter;
}

/** Show a button for each part; `go(version)` is called with its first version. */
export function showChapters(round, go) {
  byId("chapters").replaceChildren(...chaptersOf(round).map(({ name, first, last }) =>
    element("button", {
      "data-first": first, "data-last": last, onclick: () => go(first),
      onfocus: ({ target }) => target.matches(":focus-visible") && scrollTo(target),
    }, name)));
}

/** Bring a button into the middle of its row, which scrolls to the side on a phone. */
function scrollTo(button) {
  const [at, row] = [button, button.parentElement].map((one) => one.getBoundingClientRect());
  button.parentElement.scrollBy(at.left - row.left - (row.width - at.width) / 2, 0);
}

function showChapter({ version }) {
  for (const button of byId("chapters").children) {
    const { first, last } = button.dataset;
    const current = Number(first) <= version && version <= Number(last);
    if (current && !button.hasAttribute("aria-current")) scrollTo(button);
    setAttribute(button, "aria-current", current ? "true" : null);
  }
}
