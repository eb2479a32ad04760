/** The verifier's report on the page: a badge, the result of each check, and the counts. */

import { byId, element, safeText, setText } from "../dom.js";
import { fill, language, list, shared, audit as texts } from "../texts.js";
import { NOTES, results } from "../verify.js";

const SIGNS = { passed: "✓", failed: "✗", "not checked": "○" };
const CLASSES = { passed: "yes", failed: "no", "not checked": "waiting" };
const HEADS = ["form", "heads", "saved"]; // the checks before any event
const TICK = "M4 13l5 5L20 6";
const CROSS = "M5 5l14 14M19 5L5 19";
const RING = "M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16"; // there is no verdict on a shuffle

const showList = (id, sentences) =>
  byId(id).replaceChildren(...sentences.map((one) => element("li", {}, one)));

/**
 * Show the report of `verify` on a bundle's `lines`.
 *
 * @param {import("../verify.js").Report} report
 * @param {Uint8Array[]} lines
 * @param {{ key: "none" | "saved" | "given", saved: number, given: number }} against where the key
 *   came from, and how many checkpoints were saved by the browser and given by the user
 */
export function showVerdict(report, lines, against) {
  const { fault } = report;
  const found = results(report);
  const passed = found.filter(({ state }) => state === "passed").length;
  const all = passed === found.length;
  const verdict = fault !== null ? texts.failed : verdictOf(report, all);
  // What the file alone cannot show is in the words; the ring is for rounds without a fair shuffle.
  const fair = [texts.verdicts.fair, texts.verdicts.fairAsShown].includes(verdict);
  const sign = fault !== null ? CROSS : fair ? TICK : RING;
  byId("verdict").classList.toggle("bad", fault !== null);
  byId("verdict").classList.toggle("partly", sign === RING);
  byId("verdict").classList.toggle("shown", verdict === texts.verdicts.fairAsShown);
  byId("badge-sign").setAttribute("d", sign);
  setText(byId("verdict-title"), verdict);
  byId("verdict-tally").replaceChildren(...tallyOf(found, passed));
  const unsaved = found.some(({ check, state }) => check === "saved" && state === "not checked");
  const words = fault === null ? passedWords(report, unsaved)
    : texts.failedWords({ line: fault.line });
  setText(byId("verdict-words"), [words, ...undoneWords(report)].join(" "));
  showFault(fault, lines);
  byId("checks").replaceChildren(...found.map((one) => showResult(one, report)));
  showList("against", [texts.againstKey[against.key], notesText(against.saved, against.given)]);
  const ofTape = report.swaps.filter((swap) => swap.words.length > 0); // not those of a layout
  showList("counted", [
    texts.readLines({ lines: lines.length, swaps: ofTape.length }),
    ...countsOf(report),
  ]);
}

/**
 * How many checks passed, with the names of those that failed; or else of those that were not made,
 * which have a sign of their own: the tick of the verdict is not about them.
 */
function tallyOf(found, passed) {
  const named = (wanted) => list(found.filter(({ state }) => state === wanted).map(
    ({ check }) => texts.titled({ title: texts.checkTitles[check] })));
  const [failed, open] = [named("failed"), named("not checked")];
  const of = found.length;
  if (failed !== "") return [texts.tallyFailed({ passed, of, failed })];
  if (open === "") return [texts.tallyAll({ of })];
  return [
    element("span", {}, texts.tally({ passed, of })), " ",
    element("span", { class: CLASSES["not checked"] },
      element("span", { "aria-hidden": "true" }, `${SIGNS["not checked"]} `),
      texts.tallyOpen({ open })),
  ];
}

/** What the shuffles are whose swaps were recomputed, if there are any. */
function verdictOf({ swaps, remarks, practice }, all) {
  if (practice !== null) return texts.verdicts.practice;
  if (swaps.length === 0) return texts.verdicts.none;
  if (remarks.house_only > 0) return texts.verdicts.fixed;
  return all ? texts.verdicts.fair : texts.verdicts.fairAsShown;
}

function passedWords({ swaps, remarks, practice }, unsaved) {
  const { open_rounds: open, shuffles, voided, house_only: houseOnly } = remarks;
  return [
    practice !== null ? texts.practiceWords(practice) : swaps.length > 0 && texts.passedWords,
    unsaved && texts.asShown,
    open > 0 && texts.passedOpen,
    voided > 0 && texts.passedVoided({ voided, shuffles }),
    practice === null && houseOnly > 0 && texts.passedHouseOnly({ houseOnly, shuffles }),
  ].filter(Boolean).join(" ");
}

/** What was undone in the file, in the language of the page. */
const undoneWords = ({ notes }) =>
  Object.keys(NOTES).filter((key) => notes.includes(NOTES[key])).map((key) => texts.undone[key]);

/** With how many checkpoints the log was compared. */
function notesText(saved, given) {
  const notes = texts.againstNotes;
  if (saved + given === 0) return notes.none;
  return list([
    ...(saved > 0 ? [notes.saved({ count: saved })] : []),
    ...(given > 0 ? [notes.given({ count: given })] : []),
  ]);
}

/** What `reportLines` of the verifier counts, in the language of the page. */
function countsOf({ fault, remarks, cosigners, withheld_parts: parts, withheld_cosigners: keys }) {
  const counts = texts.counts;
  if (fault !== null && HEADS.includes(fault.check)) return [counts.none];
  const { house_only: houseOnly, left_out: leftOut, not_top: draws } = remarks;
  return [
    counts.rounds({ rounds: remarks.rounds, open: remarks.open_rounds }),
    counts.shuffles({ ...remarks, houseOnly }),
    counts.seats({ ...remarks, leftOut, silent: leftOut + remarks.withheld }),
    counts.reused(remarks),
    counts.notTop({ draws }),
    counts.cosigned(remarks),
    ...cosigners.map((one) => counts.cosigner({ ...one, name: safeText(one.name) })),
    ...Object.entries(keys).map(([key, count]) => counts.withheldCosigner({ key, count })),
    ...(parts.length === 0 ? []
      : [counts.withheldParts({ count: parts.length, versions: list(parts.map(String)) })]),
    remarks.pinned ? counts.pinned : counts.unpinned,
  ];
}

/** The sentence of a result, with how far the check went, or why it was not made. */
function resultText({ check, note }, { fault, practice }) {
  if (note === "fault") {
    return texts.checkNotes.fault({ line: fault.line, sentence: faultSentence(fault) });
  }
  const sentence = check === "tape" && practice !== null
    ? texts.tapeAfterLayout : texts.checkSentences[check];
  return note === null ? sentence
    : fill(texts.checkNotes[note], { sentence, line: fault?.line });
}

/** What a fault is, in the reader's language: the verifier's own sentence is English. */
function faultSentence({ check, sentence }) {
  return language === "en" ? sentence : texts.checkFaults[check];
}

function showResult({ check, state, note }, report) {
  const attributes = { class: `sign ${CLASSES[state]}`, "aria-hidden": "true" };
  return element("li", { "data-check": check, "data-state": state },
    element("span", attributes, SIGNS[state]),
    element("span", {}, element("b", {}, texts.checkTitles[check]), " ",
      element("span", { class: `state ${CLASSES[state]}` }, texts.checkStates[state]), ": ",
      element("span", { class: "muted" }, `${resultText({ check, note }, report)} (${check})`)));
}

function showFault(fault, lines) {
  byId("fault").hidden = fault === null;
  if (fault === null) return;
  setText(byId("fault-sentence"), faultSentence(fault));
  byId("fault-exactly").hidden = language === "en";
  setText(byId("fault-exactly").firstElementChild, shared.exactWords);
  setText(byId("fault-exactly").lastElementChild, fault.sentence);
  setText(byId("fault-open"), texts.openLine({ line: fault.line }));
  const line = lines[fault.line];
  setText(byId("fault-line"), line === undefined ? texts.noLine : new TextDecoder().decode(line));
}
