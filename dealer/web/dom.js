/** Small functions that create and update DOM elements. */

const REVOKE_AFTER_MS = 60_000;

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

/** A new element of an SVG picture. */
export function svgElement(name, attributes, ...children) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

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

/** Text that players chose, with control and formatting characters replaced. */
export const escapeControl = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");

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
