/** The badge that sums up the client's checks, the list behind it, and the dialog about a fraud. */

import { element, save, setAttribute, setText } from "../dom.js";
import { sourceUrl } from "../server_url.js";
import { fill, language, shared, table as texts } from "../texts.js";
import { PRACTICE } from "../verify.js";
import { dialog } from "./dialogs.js";
import { isHouseOnly } from "./history.js";

/** @typedef {import("../client.js").Check} Check */

const INCOMPLETE = ["other_client", "not_seen"]; // why a part of a round is not checked here
const SIGNS = { yes: "✓", waiting: "…", no: "✗", unavailable: "–" }; // of one check

export class FairnessBadge {
  #page;
  #button = element("button", { class: "badge", type: "button", onclick: () => this.open() });
  #words = element("span", {});
  #details = element("span", { class: "visually-hidden" }); // the first level has plain words
  #list = element("ul", { class: "checks" });

  constructor(container, page) {
    this.#page = page;
    this.#button.setAttribute("aria-keyshortcuts", "m");
    this.#button.append(this.#words, " ", this.#details);
    container.append(this.#button);
  }

  draw() {
    const { table } = this.#page;
    const { checks } = table;
    const state = this.#state(combined(checks, table.error !== null && table.evidence !== null));
    setAttribute(this.#button, "data-state", state);
    const passed = checks.filter((check) => check.state === "yes").length;
    const unavailable = checks.filter((check) => check.state === "unavailable").length;
    const open = state === "house" ? Math.max(0, unavailable - 1) : unavailable;
    setText(this.#words, texts.badge[state]);
    setText(this.#details, fill(texts.badgeDetails[state] ?? "", { passed, open }));
    if (this.#list.isConnected) this.#drawList();
  }

  /** What the badge says, as a key of its texts. */
  #state(result) {
    const { table } = this.#page;
    if (result === "no") return "no";
    if (table.practice !== null) return "practice";
    const reasons = new Set(table.checks.map(({ because }) => because));
    const incomplete = INCOMPLETE.find((reason) => reasons.has(reason));
    if (incomplete !== undefined) return incomplete;
    if (result === "yes") return isHouseOnly(table) ? "house" : "yes";
    const isSealed = table.checks.some(({ name, state }) => name === "seal" && state === "yes");
    return isSealed ? "waiting" : "unshuffled";
  }

  #drawList() {
    const { checks, doubts: all } = this.#page.table;
    const doubts = all.filter((sentence) => sentence !== PRACTICE); // `open` says it
    this.#list.replaceChildren(...checks.map(checkItem), ...doubts.map(doubtItem));
  }

  async open() {
    const { practice } = this.#page.table;
    this.#drawList();
    await dialog(texts.badgeTitle, () => [
      practice && element("p", {}, texts.practiceMeans(practice), " ",
        element("a", { href: sourceUrl(practice) }, texts.practiceSource)),
      element("p", {}, texts.badgeIntro),
      this.#list,
      element("p", { class: "muted" }, texts.badgeLimits),
    ], { name: "wide" });
  }
}

/**
 * All checks as one: "no" if any failed, "yes" only if none is still waiting.
 *
 * @param {Check[]} checks
 * @param {boolean} cheated
 */
export function combined(checks, cheated) {
  if (cheated || checks.some(({ state }) => state === "no")) return "no";
  const counted = checks.filter(isDue);
  if (counted.length === 0 || counted.some(({ state }) => state === "waiting")) return "waiting";
  return "yes";
}

/** Whether a check can have a result: a round is replayed only when it is closed. */
function isDue({ name, state }) {
  return state !== "unavailable" && !(name === "round" && state === "waiting");
}

function checkItem({ name, state, done, of, sentence, because }) {
  const check = texts.checks[name];
  const words = state === "no" && sentence !== null ? exactly(check.no, sentence)
    : [text(texts.checkReasons[because] ?? check[state] ?? check.means)];
  return element(
    "li", { "data-state": state },
    element("span", {
      class: `sign ${state}`, role: "img", "aria-label": texts.checkStates[state],
    }, SIGNS[state]),
    element("div", {},
      element("strong", {}, check.title),
      element("span", { class: "muted" }, ` ${checkCount(done, of)}`),
      ...words),
  );
}

const text = (sentence) => element("p", { class: "sentence" }, sentence);

/**
 * Elements for an English sentence of the client: as it is where the reader's language is that, else
 * the page's own sentence, if there is one, and the client's as its exact words.
 *
 * @param {string | null} own
 * @param {string} exact
 */
function exactly(own, exact) {
  if (language === "en") return [text(exact)];
  return [...(own === null ? [] : [text(own)]), element("details", {},
    element("summary", {}, shared.exactWords), element("p", { lang: "en", dir: "ltr" }, exact))];
}

function checkCount(done, of) {
  if (of !== null && of > 0) return texts.checkedOf({ done, of });
  return done > 0 ? texts.checkedTimes({ done }) : "";
}

function doubtItem(sentence) {
  const label = texts.checkStates.doubt;
  return element("li", { "data-state": "doubt" },
    element("span", { class: "sign waiting", role: "img", "aria-label": label }, "?"),
    element("div", {}, element("strong", {}, texts.doubtTitle), ...exactly(null, sentence)));
}

/** An accusation in the reader's language. */
export function accusation({ message, check }) {
  return language === "en" ? message : texts.checks[check].no;
}

/** Show the player that the server cheated, and offer the evidence as a download. */
export async function showFraud(page, error) {
  const file = `evidence-${page.table?.id ?? page.id}.json`;
  const evidence = JSON.stringify(error.evidence, null, 2);
  await dialog(texts.cheated.title, (close) => [
    ...exactly(texts.checks[error.check].no, error.message),
    element("p", {}, texts.cheated.means),
    element("div", { class: "answers" },
      element("button", { type: "button", onclick: () => close() }, texts.cheated.close),
      element("button", {
        class: "primary", type: "button", autofocus: true,
        onclick: () => save(file, evidence, "application/json"),
      }, texts.cheated.download)),
  ], { alert: true, name: "cheated" });
}
