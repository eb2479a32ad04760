/**
 * The texts of the page in the reader's language, from `texts/`.
 *
 * A message without placeholders is a string; one with placeholders is a function of their values:
 * `texts.seat({ seat: 3 })`. `early.js` has chosen the language before, and this module waits for
 * its file.
 */

import { Formatter, parse } from "./messages.js";
import { fetchPatiently } from "./server_url.js";

/** @typedef {typeof import("./texts/en.json")} All */
/**
 * @template T
 * @typedef {{ [K in keyof T]: T[K] extends string ? any : T[K] extends string[] ? string[]
 *   : Messages<T[K]> }} Messages
 */

const root = globalThis.document?.documentElement;

/** The language of the page, such as "de". */
export const language = root?.lang || "en";

const source = await read();
const formatter = new Formatter(source.language.locale, source.language.direction === "rtl");

if (root) root.dir = source.language.direction;

export const shared = section("shared");
export const lobby = section("lobby");
export const table = section("table");
export const audit = section("audit");
export const finished = section("finished");
export const explanation = section("explanation");
const refusals = section("refusals");

/** "Ada, Bob and Cleo", in the language of the page. */
export const list = (values) => formatter.list(values);

/** A number as the language writes it. */
export const number = (value) => formatter.number(value);

/** "5 minutes", in the language of the page; `unit` is as in `Intl.NumberFormat`. */
export const quantity = (value, unit) => formatter.quantity(value, unit);

/** A message that may have placeholders, with their values. */
export const fill = (text, values) => (typeof text === "function" ? text(values) : text);

/** Refusals of moves, for which the page has words of the table; the server's name stacks. */
const OF_MOVES = [
  "no_round", "round_open", "shuffle_running", "not_sealed", "deck_empty", "card_not_in_hand",
  "card_not_there", "bad_place", "conflict",
];

/**
 * The sentence of an error of the client or the server. Theirs are English, and those that have a
 * reason are translated; in English, theirs say more, except about moves.
 */
export const errorText = (error) =>
  (language !== "en" || OF_MOVES.includes(error.reason) ? refusals?.[error.reason] : undefined) ??
    error.message;

/**
 * The name of something that has a name in several languages, by language: `{ en: "Whist" }`.
 *
 * @param {string | Record<string, string>} names
 */
export const inLanguage = (names) =>
  (typeof names === "string" ? names : names[language] ?? names.en ?? Object.values(names)[0]);

/** The locale of times: the browser's own if it is of the page's language. */
export const timeLocale = () => {
  const own = globalThis.navigator?.language;
  return own?.split("-")[0] === language ? own : source.language.locale;
};

/** The page's part of the file of its language; a page in one file has all of them inside. */
async function read() {
  const inside = globalThis.document?.getElementById("languages");
  if (inside) return JSON.parse(inside.textContent)[language];
  const part = root?.dataset.texts;
  const response = await fetchPatiently(new URL(part ?? `texts/${language}.json`, import.meta.url));
  if (!response?.ok) throw new Error("The texts of this page could not be loaded.");
  return response.json();
}

/**
 * A section of the file; undefined on pages that do not use it.
 *
 * @template {keyof All} Name
 * @param {Name} name
 * @returns {Messages<All[Name]>}
 */
function section(name) {
  return name in source ? compiled(source[name]) : undefined;
}

function compiled(messages) {
  if (typeof messages === "string") return message(messages);
  if (Array.isArray(messages)) return messages;
  const entries = Object.entries(messages).map(([key, value]) => [key, compiled(value)]);
  return Object.fromEntries(entries);
}

function message(text) {
  if (!text.includes("{")) return text;
  const parts = parse(text);
  return (values) => formatter.format(parts, values);
}
