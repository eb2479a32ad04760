/** The verifier's report on the page: a badge, the result of each check, and the counts. */

import { element, setText } from "../dom.js";
import { audit as texts } from "../texts/audit.js";
import { CHECKS, answers, verdicts } from "../verify.js";

const SIGNS = { true: "✓", false: "✗", null: "–" };
const CLASSES = { true: "yes", false: "no", null: "muted" };
const TICK = "M4 13l5 5L20 6";
const CROSS = "M5 5l14 14M19 5L5 19";

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
  at("verdict").classList.toggle("bad", fault !== null);
  at("badge-sign").setAttribute("d", fault === null ? TICK : CROSS);
  setText(at("verdict-title"), fault === null ? texts.passed : texts.failed);
  setText(at("verdict-words"), fault === null
    ? texts.passedWords(lines.length, report.swaps.length, report.remarks)
    : texts.failedWords(texts.checks[fault.check], fault.line));
  showFault(fault, lines);
  at("checks").replaceChildren(...answers(report).map(showAnswer));
  list("against", [
    texts.againstKey[against.key], texts.againstNotes(against.saved, against.given),
  ]);
  list("counted", verdicts(report).slice(CHECKS.length));
}

function showAnswer({ check, holds, words }) {
  const attributes = { class: `sign ${CLASSES[holds]}`, "aria-hidden": "true" };
  const sign = element("span", attributes, SIGNS[holds]);
  const name = element("b", {}, texts.checks[check]);
  return element("li", { "data-check": check, "data-holds": String(holds) },
    sign, element("span", {}, name, `: ${words}`));
}

function showFault(fault, lines) {
  at("fault").hidden = fault === null;
  if (fault === null) return;
  setText(at("fault-sentence"), fault.sentence);
  setText(at("fault-open"), texts.openLine(fault.line));
  const line = lines[fault.line];
  setText(at("fault-line"), line === undefined ? texts.noLine : new TextDecoder().decode(line));
}
