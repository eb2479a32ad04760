/** Small functions that create and update DOM elements. */

const REVOKE_AFTER_MS = 60_000;

/** Elements of names, ids, codes and keys, which a browser that translates pages leaves alone. */
const LITERAL = new Set(["abbr", "bdi", "code", "kbd"]);

/**
 * A new element. Attributes whose name begins with `on` are event listeners; `true` sets an empty
 * attribute, and null and false set none. Children that are null or undefined are left out.
 *
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null | undefined)} children
 * @returns {any}
 */
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  if (LITERAL.has(name)) created.translate = false;
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) created.addEventListener(key.slice(2), value);
    else setAttribute(created, key, value);
  }
  created.append(...children.filter((child) => child !== null && child !== undefined));
  return created;
}

/** A field with its label. */
export const field = (label, input, attributes = {}) =>
  element("label", { class: "field", ...attributes }, label, input);

/**
 * The element of an id.
 *
 * @returns {any}
 */
export const byId = (id) => document.getElementById(id);

/**
 * Set an attribute, or remove it if `value` is null, undefined or false. An unchanged attribute is
 * not touched.
 *
 * @param {Element} target
 * @param {string} name
 * @param {any} value
 */
export function setAttribute(target, name, value) {
  if (value === null || value === undefined || value === false) {
    if (target.hasAttribute(name)) target.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (target.getAttribute(name) !== text) target.setAttribute(name, text);
}

/**
 * Set an element's text unless it is the same already.
 *
 * @param {Element} target
 * @param {string} text
 */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

// Texts that players chose. `dealer/game/names.py` says why, and shows them by the same rule.

const INVISIBLE = /[\u{16fe4}\p{DI}\ufff9-\ufffc\u{13430}-\u{13442}\u{1d159}]/u;
const UNSAFE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/u;
const SELECTOR = /[\u180b-\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;
const JOINED = /[\u0590-\u1fff\u2190-\ud7ff\uf900-\u{dffff}]/u;
const VARIED = /[#*0-9\u00a9\u00ae\u1000-\ud7ff\uf900-\ufdfa\u{10000}-\u{dffff}]/u;
const FLAG = /(\u{1f3f4}[\u{e0020}-\u{e007e}]{1,16}\u{e007f})/u;
const MARK = /[\p{Mn}\p{Me}]/u;
const MARKS_MAX = 4;

/** Whether a character without a form belongs to the one before it. */
function belongs(before, character) {
  const joiner = character === "\u200c" || character === "\u200d";
  if (joiner) return JOINED.test(before);
  return SELECTOR.test(character) && VARIED.test(before);
}

function safePart(text) {
  const characters = [...text];
  let safe = "", marks = 0;
  for (const [place, character] of characters.entries()) {
    const formless = INVISIBLE.test(character) && !belongs(characters[place - 1] ?? "", character);
    const kept = formless || UNSAFE.test(character) ? "\ufffd" : character;
    if (!INVISIBLE.test(kept)) marks = MARK.test(kept) ? marks + 1 : 0;
    if (marks <= MARKS_MAX) safe += kept;
  }
  return safe;
}

/**
 * A text as it is shown: what could hide, move or cover other text is replaced by U+FFFD, and marks
 * after the fourth on a letter are left out.
 *
 * @param {string} text
 */
export const safeText = (text) =>
  text.split(FLAG).map((part, index) => (index % 2 === 1 ? part : safePart(part))).join("");

/**
 * Make the children of `parent` match `items`, in order. The child of a key is reused, so that
 * focus, selection and animations are kept.
 *
 * @template Item
 * @param {HTMLElement} parent
 * @param {Item[]} items
 * @param {object} options
 * @param {(item: Item) => unknown} options.key
 * @param {(item: Item) => HTMLElement} options.create
 * @param {(child: any, item: Item) => void} [options.update]
 */
export function reconcile(parent, items, { key, create, update }) {
  const present = new Map(Array.from(parent.children, (child) =>
    [/** @type {HTMLElement} */ (child).dataset.key, child]));
  let next = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = /** @type {HTMLElement | undefined} */ (present.get(name));
    present.delete(name);
    if (child === undefined) {
      child = create(item);
      child.dataset.key = name;
    }
    if (child === next) next = next.nextElementSibling;
    else parent.insertBefore(child, next);
    update?.(child, item);
  }
  for (const child of present.values()) child.remove();
}

/** Let the browser save bytes or text as a file. */
export function save(name, content, type) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), REVOKE_AFTER_MS);
}

const meta = (name) =>
  document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? null;

/** The operator's title for this server; null if there is none. */
export const brandTitle = () => meta("application-name");

/** The address of the operator's logo; null if there is none. */
export const brandLogo = () => meta("dealer-logo");
