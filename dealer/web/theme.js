/**
 * The colour theme of the pages: the system's, light or dark.
 *
 * A theme other than the system's is the attribute `data-theme` of the root element, which base.css
 * reads. A page with `early.js` in its head has it before it is painted.
 */

import { element, setAttribute } from "./dom.js";
import { remember, stored } from "./page_storage.js";
import { shared } from "./texts.js";

const NAME = "dealer/page/theme"; // also in early.js
const THEMES = ["light", "dark"];
const texts = shared.theme;

/** Show this page, and the other pages when they are opened, in a theme; "system" is not stored. */
function choose(theme) {
  if (THEMES.includes(theme)) remember(NAME, theme);
  else stored.removeItem(NAME);
  apply(theme);
}

/** Show this page in a theme, and return it; anything but a theme is the system's. */
function apply(theme) {
  const chosen = THEMES.includes(theme) ? theme : null;
  setAttribute(document.documentElement, "data-theme", chosen);
  return chosen ?? "system";
}

/** A field in which the reader chooses the theme; applies the one that was chosen before. */
export function themeSwitch() {
  const chosen = apply(stored.getItem(NAME));
  const choices = Object.entries(texts.themes).map(([value, name]) =>
    element("option", { value, selected: value === chosen }, name));
  const select = element("select", { onchange: () => choose(select.value) }, ...choices);
  return element("label", { class: "theme" }, texts.label, select);
}
