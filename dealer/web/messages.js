/**
 * Messages with placeholders, plurals and choices: the part of ICU MessageFormat that `texts/` uses.
 *
 *     {name}                                           a value; a list is joined with "and"
 *     {Name}                                           the same with a capital first letter
 *     {count, plural, =0 {none} one {# card} other {# cards}}   `#` is the number
 *     {state, select, true {on} other {off}}
 *
 * The forms of a plural are the categories of `Intl.PluralRules`, or `=` and a number.
 */

const NAME = /^\s*(\w+)\s*/;
const KIND = /^,\s*(plural|select)\s*,\s*/;
const FORM = /^\s*(=\d+|[^\s{}]+)\s*\{/;

/** Letters of scripts that are written from right to left. */
const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/**
 * @typedef {object} Choice
 * @property {string} name of the value
 * @property {"plural" | "select" | null} kind null for a placeholder
 * @property {Map<string, Part[]>} forms
 */
/** @typedef {string | Choice} Part `#` stands for the number of a plural */

/**
 * The parts of a message. Throws SyntaxError if it is malformed.
 *
 * @param {string} message
 * @returns {Part[]}
 */
export function parse(message) {
  const rest = { text: message };
  const parts = partsOf(rest, false);
  if (rest.text !== "") throw new SyntaxError(`unexpected } in the message ${message}`);
  return parts;
}

function partsOf(rest, inPlural) {
  const parts = [];
  while (rest.text !== "" && rest.text[0] !== "}") {
    if (rest.text[0] === "{") {
      rest.text = rest.text.slice(1);
      parts.push(choiceOf(rest));
    } else if (inPlural && rest.text[0] === "#") {
      rest.text = rest.text.slice(1);
      parts.push("#");
    } else {
      const [text] = (inPlural ? /^[^{}#]+/ : /^[^{}]+/).exec(rest.text);
      rest.text = rest.text.slice(text.length);
      parts.push(text);
    }
  }
  return parts;
}

function choiceOf(rest) {
  const take = (pattern) => {
    const found = pattern.exec(rest.text);
    if (found !== null) rest.text = rest.text.slice(found[0].length);
    return found?.[1] ?? null;
  };
  const name = take(NAME);
  const kind = take(KIND);
  const forms = new Map();
  for (let form = kind && take(FORM); form !== null; form = take(FORM)) {
    forms.set(form, partsOf(rest, kind === "plural"));
    if (take(/^(\})/) === null) throw new SyntaxError(`{${name}} is not closed`);
  }
  if (take(/^\s*(\})/) === null || name === null || (kind !== null && !forms.has("other"))) {
    throw new SyntaxError(`{${name}} is malformed`);
  }
  return { name, kind, forms };
}

/** Formats messages in one language. */
export class Formatter {
  #number;
  #plurals;
  #list;
  #rtl;

  /**
   * @param {string} locale of numbers, plurals and lists
   * @param {boolean} [rtl] whether the language is written from right to left
   */
  constructor(locale, rtl = false) {
    this.locale = locale;
    this.#number = new Intl.NumberFormat(locale);
    this.#plurals = new Intl.PluralRules(locale);
    this.#list = new Intl.ListFormat(locale);
    this.#rtl = rtl;
  }

  /** A number of units, in words. */
  quantity(value, unit) {
    const how = /** @type {const} */ ({ style: "unit", unitDisplay: "long" });
    return new Intl.NumberFormat(this.locale, { ...how, unit }).format(value);
  }

  /**
   * @param {Part[]} parts of `parse`
   * @param {Record<string, any>} values
   * @param {number | null} [count] the number of the plural around the parts
   * @returns {string}
   */
  format(parts, values, count = null) {
    return parts.map((part) => {
      if (part === "#" && count !== null) return this.#number.format(count);
      if (typeof part === "string") return part;
      const { name, kind, forms } = part;
      if (kind === "plural") {
        const number = values[name];
        const form = forms.get(`=${number}`) ?? forms.get(this.#plurals.select(number));
        return this.format(form ?? forms.get("other"), values, number);
      }
      if (kind === "select") {
        return this.format(forms.get(String(values[name])) ?? forms.get("other"), values, count);
      }
      if (name in values) return this.#shown(values[name]);
      return capital(this.#shown(values[name[0].toLowerCase() + name.slice(1)]));
    }).join("");
  }

  /** "1,000". */
  number(value) {
    return this.#number.format(value);
  }

  /** "Ada, Bob and Cleo". */
  list(values) {
    return this.#list.format(values.map((value) => this.#shown(value)));
  }

  /** A value; names in another direction than the sentence's do not change the order of its words. */
  #shown(value) {
    if (Array.isArray(value)) return this.list(value);
    const text = String(value);
    return RTL.test(text) || (this.#rtl && /\D/.test(text)) ? `\u2068${text}\u2069` : text;
  }
}

/** A message for others than readers of the page: without the marks around names. */
export const withoutIsolates = (text) => text.replace(/[\u2068\u2069]/g, "");

/** The text with a capital first letter. */
const capital = (text) =>
  text.replace(/^(\u2068?)(\p{L})/u, (_, mark, letter) => mark + letter.toLocaleUpperCase());
