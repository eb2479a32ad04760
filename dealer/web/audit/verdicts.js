/** What the verifier says, shown: a badge, each check with its yes or no, and what was counted. */

import { make, write } from "../make.js";
import { audit as texts } from "../texts/audit.js";
import { CHECKS, answers, verdicts } from "../verify.js";

const SIGNS = { true: "✓", false: "✗", null: "–" };
const CLASSES = { true: "yes", false: "no", null: "soft" };
const TICK = "M4 13l5 5L20 6";
const CROSS = "M5 5l14 14M19 5L5 19";

const at = (id) => document.getElementById(id);
const list = (id, sentences) =>
  at(id).replaceChildren(...sentences.map((one) => make("li", {}, one)));

/**
 * Show a report of `verify` over a bundle's `lines`.
 *
 * against  { key: "none" | "kept" | "given", kept, given }: whose key, and how many heads of each
 */
export function showVerdict(report, lines, against) {
  const { fault } = report;
  at("verdict").classList.toggle("bad", fault !== null);
  at("badge-sign").setAttribute("d", fault === null ? TICK : CROSS);
  write(at("verdict-title"), fault === null ? texts.holds : texts.broken);
  write(at("verdict-words"), fault === null
    ? texts.holdsWords(lines.length, report.swaps.length, report.remarks)
    : texts.brokenWords(texts.checks[fault.check], fault.line));
  showFault(fault, lines);
  at("checks").replaceChildren(...answers(report).map(showAnswer));
  list("against", [
    texts.againstKey[against.key], texts.againstNotes(against.kept, against.given),
  ]);
  list("counted", verdicts(report).slice(CHECKS.length));
}

function showAnswer({ check, holds, words }) {
  const looks = { class: `sign ${CLASSES[holds]}`, "aria-hidden": "true" };
  const sign = make("span", looks, SIGNS[holds]);
  const name = make("b", {}, texts.checks[check]);
  return make("li", { "data-check": check, "data-holds": String(holds) },
    sign, make("span", {}, name, `: ${words}`));
}

function showFault(fault, lines) {
  at("fault").hidden = fault === null;
  if (fault === null) return;
  write(at("fault-sentence"), fault.sentence);
  write(at("fault-open"), texts.openLine(fault.line));
  const line = lines[fault.line];
  write(at("fault-line"), line === undefined ? texts.noLine : new TextDecoder().decode(line));
}
