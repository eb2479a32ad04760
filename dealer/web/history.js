/**
 * The history of a table as a page: the lines of its `history.txt`, with headings and times. The
 * server has verified the table before it writes them.
 */

import { savedOf } from "./audit/saved.js";
import { cardSign } from "./cards.js";
import { machineTimeOf, timeOf } from "./clock.js";
import { brandTitle, element, setText } from "./dom.js";
import { languageSwitch } from "./language.js";
import { fetchPatiently, serverUrl, tableUrl } from "./server_url.js";
import { fill, finished as texts, language } from "./texts.js";
import { themeSwitch } from "./theme.js";

const TIMED = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) {2}(.*)$/;
const MOMENT = /(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+)/;
const HEX = /([0-9a-f]{32,})/; // keys and the like
const SHORT = 8; // of their digits are shown
const CARD = /(?<![^\s])([2-9TJQKA][shdc])(?![^\s,.;]| \()/; // a name has its seat after it
const WRITTEN = /[:：]/; // before the words of a player, which are left as they are
const ABOUT = 2; // lines about the table, which come first

const [, table = ""] = /\/tables\/([0-9a-f]{32})\/history$/.exec(location.pathname) ?? [];
const file = tableUrl(table, `/history.txt?lang=${language}`);
const status = element("p", { role: "status", class: "panel" }, texts.making);
const lines = element("div", { id: "lines", class: "panel", hidden: true });

document.title = texts.historyTitle({ brand: brandTitle() ?? "dealer" });
document.querySelector("#lobby").append(
  element("header", { class: "head" }, element("h1", {}, texts.historyHeadline),
    element("nav", { class: "ways" },
      link(tableUrl(table, "/audit"), texts.check), link(file, texts.asText),
      link(serverUrl(), texts.allTables))),
  status, lines,
  element("footer", {}, themeSwitch(), languageSwitch()),
);

function link(href, text) {
  return element("a", { class: "button", href }, text);
}

/**
 * The elements of a history's lines.
 *
 * @param {string} text
 */
function pageOf(text) {
  const written = text.trimEnd().split("\n");
  const made = [];
  let begins = true; // a paragraph
  let list = null;
  let isFresh = false; // whether cards are those of a fresh deck, in its order
  for (const line of written.slice(ABOUT)) {
    const timed = TIMED.exec(line);
    if (timed === null) list = null;
    else if (list === null) made.push(list = element("ol", {}));
    if (begins) isFresh = MOMENT.test(line);
    if (timed !== null) list.append(moment(timed));
    else if (line.startsWith("  ")) addCards(made, line.trim().split(" "), isFresh);
    else if (line !== "") made.push(begins ? heading(line) : element("p", {}, line));
    begins = line === "";
  }
  for (const one of made.slice(1)) if (one.matches("ol")) foldProofs(one); // of the rounds
  return [...made, element("details", {}, element("summary", {}, texts.about),
    ...written.slice(0, ABOUT).map((line) => element("p", { class: "muted" }, line)))];
}

/** A heading whose day and time are not torn apart. */
const heading = (line) => element("h2", {}, ...line.split(MOMENT).map((part, index) =>
  (index % 2 === 1 ? element("span", {}, part) : part)));

/** @param {string[]} timed as TIMED finds it */
function moment([, day, time, sentence]) {
  const at = Date.parse(`${day}T${time}Z`);
  return element("li", {},
    element("time", { class: "muted", datetime: machineTimeOf(at) }, timeOf(at)),
    element("span", { dir: "auto", translate: "no" }, ...sentence.split(HEX).flatMap((part, index) =>
      (index % 2 === 1 ? element("abbr", { title: part }, `${part.slice(0, SHORT)}…`)
        : WRITTEN.test(sentence) ? part : withSigns(part)))));
}

/** A sentence whose cards have the signs of their suits. */
const withSigns = (sentence) => sentence.split(CARD).map((part, index) =>
  (index % 2 === 1 ? cardElement(part) : part));

const cardElement = (code) => element("span", { "data-suit": code[1] }, cardSign(code));

/** Fold the moments of a round that have keys and the like, with one that is between two of them. */
function foldProofs(list) {
  const items = [...list.children];
  const proves = items.map((one) => one.querySelector("abbr") !== null);
  const isFolded = items.map((_, index) =>
    proves[index] || (proves[index - 1] === true && proves[index + 1] === true));
  let first = 0;
  while (first < items.length) {
    const open = isFolded.indexOf(false, first);
    const end = open < 0 ? items.length : open;
    if (end - first > 1) fold(items.slice(first, end));
    first = end + 1;
  }
}

function fold(moments) {
  const item = element("li", {});
  moments[0].before(item);
  item.append(element("details", {},
    element("summary", {}, fill(texts.proofs, { count: moments.length })),
    element("ol", {}, ...moments)));
}

/** The cards of one stack may have several lines. A fresh deck is folded under its title. */
function addCards(made, codes, isFresh) {
  let cards = made.at(-1).matches("details") ? made.at(-1).lastChild : made.at(-1);
  if (cards.className !== "cards") {
    cards = element("p", { class: "cards" });
    made.push(isFresh
      ? element("details", {}, element("summary", {}, made.pop().textContent), cards) : cards);
  }
  cards.append(...codes.map(cardElement));
}

async function show() {
  const { token } = savedOf(table);
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const response = await fetchPatiently(file, { headers });
  if (response === null) setText(status, texts.away);
  else if (response.status === 401) setText(status, texts.private);
  else if (response.ok) lines.replaceChildren(...pageOf(await response.text()));
  else setText(status, await response.text());
  status.hidden = response?.ok === true;
  lines.hidden = !status.hidden;
}

show();
