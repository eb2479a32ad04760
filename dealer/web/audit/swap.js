/** How a swap came about: the step's place, the word of the tape, and the place that it gives. */

import { make, write } from "../make.js";
import { audit as texts } from "../texts/audit.js";

const AROUND = 4; // words of the tape on each side, where there is room
const WORD_PX = 85;
const WORDS = 65536;

const at = (id) => document.getElementById(id);
let around = AROUND;

/** Show as many words as this window has room for. */
export function fitTape() {
  const room = Math.floor((at("screen").clientWidth / WORD_PX - 1) / 2);
  around = Math.max(1, Math.min(AROUND, room));
}

/** The tape of a shuffle, as far as it was read: { word, step, refused }. */
function tapeOf(shuffle) {
  shuffle.tape ??= shuffle.swaps.flatMap(({ step, words }) =>
    words.map((word, n) => ({ word, step, refused: n < words.length - 1 })));
  return shuffle.tape;
}

/** Show the swap of a moment; `told`: whether who looks may know more of it than its step. */
export function showSwap(round, { shuffle, swap }, told) {
  at("swap").hidden = shuffle === null || shuffle.swaps.length === 0;
  if (at("swap").hidden) return;
  write(at("swap-step"), swap === null ? "—" : texts.stepOf(swap.step, shuffle.steps));
  at("tape").hidden = !told;
  if (swap === null || !told) {
    write(at("swap-i"), swap === null ? "—" : String(swap.i));
    for (const id of ["swap-word", "swap-j"]) write(at(id), "—");
    write(at("swap-words"), told ? texts.tapeWords : texts.hiddenSwap);
    if (told) showTape(shuffle, swap ?? nextTo(shuffle));
    return;
  }
  const { step, i, j, words } = swap;
  const { n, algorithm } = shuffle;
  const word = words.at(-1);
  const backward = algorithm === "backward";
  const b = backward ? i + 1 : n - i;
  write(at("swap-i"), backward ? texts.iBackward(n, step, i) : texts.iForward(step));
  write(at("swap-word"), texts.wordAt(swap.at + words.length - 1, word));
  write(at("swap-j"), backward ? texts.jBackward(word, b, j) : texts.jForward(i, word, b, j));
  const refused = words.slice(0, -1).map((one) => texts.refused(one, WORDS - (WORDS % b)));
  write(at("swap-words"), [...refused, refused.length ? "" : texts.tapeWords].join(" ").trim());
  showTape(shuffle, swap);
}

/** Before the first swap nothing was read of the tape yet: its beginning is shown. */
const nextTo = ({ swaps }) => ({ at: swaps[0].at, step: null });

function showTape(shuffle, swap) {
  const tape = tapeOf(shuffle);
  const first = Math.max(0, Math.min(swap.at - around, tape.length - 2 * around - 1));
  const shown = tape.slice(first, first + 2 * around + 1);
  at("tape").replaceChildren(...shown.map(({ word, step, refused }, n) => {
    const now = step === swap.step;
    return make("li", {
      class: [refused && "refused", now && "now"].filter(Boolean).join(" "),
      "aria-current": now ? "true" : null,
      "aria-label": texts.tapeWord(first + n, word, refused),
    }, make("span", {}, String(word)));
  }));
}
