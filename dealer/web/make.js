/** How the pages' scripts make elements: a name, what it has, and what is in it. */

/**
 * A new element. Members of `has` that begin with `on` are listeners, `true` sets an attribute
 * without a value, null and false leave one out; children that are null are left out, too.
 */
export function make(name, has = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(has)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else mark(element, key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Set an attribute, or take it away where `value` is null or false; unchanged ones stay alone. */
export function mark(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** Set an element's text, if it is another. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A guest's own words, without what could turn a line of text around, or break it. */
export const harmless = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");

/**
 * Let `parent` have one child for each of `items`, in their order. A child stays the same element
 * as long as its item's key is there: so focus, selection and animations survive.
 */
export function keyed(parent, items, { key, create, update }) {
  const present = new Map(Array.from(parent.children, (child) => [child.dataset.key, child]));
  let next = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = present.get(name);
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
