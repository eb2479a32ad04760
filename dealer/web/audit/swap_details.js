/** How a swap was derived: i from the step, and j from the word of the tape. */

import { byId, element, setText } from "../dom.js";
import { audit as texts } from "../texts.js";

const MAX_AROUND = 4; // words of the tape on each side
const WORD_PX = 85;
const WORDS = 65536;

let around = MAX_AROUND;

/** Adapt the number of words to the width of the window. */
export function fitTape() {
  const room = Math.floor((byId("stage").clientWidth / WORD_PX - 1) / 2);
  around = Math.max(1, Math.min(MAX_AROUND, room));
}

/** The words of the tape that a shuffle has read: { word, step, rejected }. */
function tapeOf(shuffle) {
  shuffle.tape ??= shuffle.swaps.flatMap(({ step, words }) =>
    words.map((word, n) => ({ word, step, rejected: n < words.length - 1 })));
  return shuffle.tape;
}

/** Show the arithmetic of a moment, if it is open: its swap, and its event as it is in the log. */
export function showArithmetic(round, index, seesCards) {
  if (!byId("arithmetic").open) return;
  showSwap(round.moments[index], seesCards);
  setText(byId("logged"), JSON.stringify(round.leaves[index], null, 2));
}

/** Show the swap of a moment. A viewer who may not know the cards sees only its step and i. */
function showSwap({ shuffle, swap }, seesCards) {
  byId("swap").hidden = shuffle === null || shuffle.swaps.length === 0;
  if (byId("swap").hidden) return;
  setText(byId("swap-step"), swap === null ? "—"
    : texts.stepOf({ step: swap.step, last: shuffle.steps - 1 }));
  byId("tape").hidden = !seesCards || shuffle.laidOut;
  if (swap === null || !seesCards) {
    setText(byId("swap-i"), swap === null ? "—" : String(swap.i));
    for (const id of ["swap-word", "swap-j"]) setText(byId(id), "—");
    setText(byId("swap-words"), seesCards ? wordsOf(shuffle) : texts.hiddenSwap);
    if (seesCards) showTape(shuffle, swap ?? beforeFirst(shuffle));
    return;
  }
  const { step, i, j, words } = swap;
  const { n, algorithm } = shuffle;
  const word = words.at(-1);
  const backward = algorithm === "backward";
  const b = backward ? i + 1 : n - i;
  setText(byId("swap-i"), backward ? `${n} − 1 − ${step} = ${i}` : String(step));
  setText(byId("swap-word"), shuffle.laidOut ? "—"
    : texts.wordAt({ at: swap.at + words.length - 1, word }));
  setText(byId("swap-j"), shuffle.laidOut ? String(j) : backward
    ? `${word} mod ${b} = ${j}` : `${i} + (${word} mod ${b}) = ${j}`);
  const rejected = words.slice(0, -1).map((one) => texts.rejected({
    word: one, limit: WORDS - (WORDS % b),
  }));
  setText(byId("swap-words"), rejected.length ? rejected.join(" ") : wordsOf(shuffle));
  showTape(shuffle, swap);
}

/** Where the words of a tape come from. */
const wordsOf = ({ laidOut }) => (laidOut ? texts.laidOutSwap : texts.tapeWords);

/** Before the first swap no word was read: show the beginning of the tape. */
const beforeFirst = ({ swaps }) => ({ at: swaps[0].at, step: null });

function showTape(shuffle, swap) {
  const tape = tapeOf(shuffle);
  const first = Math.max(0, Math.min(swap.at - around, tape.length - 2 * around - 1));
  const shown = tape.slice(first, first + 2 * around + 1);
  byId("tape").replaceChildren(...shown.map(({ word, step, rejected }, n) => {
    const now = step === swap.step;
    return element("li", {
      class: [rejected && "rejected", now && "now"].filter(Boolean).join(" "),
      "aria-current": now ? "true" : null,
      "aria-label": texts.tapeWord({ at: first + n, word, rejected }),
    }, element("span", {}, String(word)));
  }));
}
