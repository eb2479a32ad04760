/** The verifier's report on the page: a badge, the result of each check, and the counts. */

import { element, setText } from "../dom.js";
import { audit as texts } from "../texts/audit.js";
import { CHECKS, TITLES, reportLines, results } from "../verify.js";

const SIGNS = { passed: "✓", failed: "✗", "not checked": "○" };
const CLASSES = { passed: "yes", failed: "no", "not checked": "waiting" };
const TICK = "M4 13l5 5L20 6";
const CROSS = "M5 5l14 14M19 5L5 19";
const RING = "M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16"; // something was not checked

/** @returns {any} */
const at = (id) => document.getElementById(id);
const list = (id, sentences) =>
  at(id).replaceChildren(...sentences.map((one) => element("li", {}, one)));

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
  at("verdict").classList.toggle("bad", fault !== null);
  at("verdict").classList.toggle("partly", fault === null && !all);
  at("badge-sign").setAttribute("d", fault !== null ? CROSS : all ? TICK : RING);
  setText(at("verdict-title"), fault !== null ? texts.failed
    : all ? texts.passed : texts.partly(passed, found.length - passed));
  setText(at("verdict-words"), fault === null
    ? texts.passedWords(lines.length, report.swaps.length, report.remarks)
    : texts.failedWords(TITLES[fault.check], fault.line));
  showFault(fault, lines);
  at("checks").replaceChildren(...found.map(showResult));
  list("against", [
    texts.againstKey[against.key], texts.againstNotes(against.saved, against.given),
  ]);
  list("counted", reportLines(report).slice(CHECKS.length));
}

function showResult({ check, state, sentence }) {
  const attributes = { class: `sign ${CLASSES[state]}`, "aria-hidden": "true" };
  return element("li", { "data-check": check, "data-state": state },
    element("span", attributes, SIGNS[state]),
    element("span", {}, element("b", {}, TITLES[check]), " ",
      element("span", { class: `state ${CLASSES[state]}` }, state), ": ",
      element("span", { class: "muted" }, `${sentence} (${check})`)));
}

function showFault(fault, lines) {
  at("fault").hidden = fault === null;
  if (fault === null) return;
  setText(at("fault-sentence"), fault.sentence);
  setText(at("fault-open"), texts.openLine(fault.line));
  const line = lines[fault.line];
  setText(at("fault-line"), line === undefined ? texts.noLine : new TextDecoder().decode(line));
}
