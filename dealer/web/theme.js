/**
 * The colour theme of the pages: the system's, light or dark.
 *
 * A theme other than the system's is the attribute `data-theme` of the root element, which base.css
 * reads. A page with `early.js` in its head has it before it is painted.
 */

import { element, setAttribute } from "./dom.js";
import { stored } from "./page_storage.js";
import { shared } from "./texts.js";

const NAME = "dealer/page/theme"; // also in early.js
const THEMES = ["light", "dark"];
const texts = shared.theme;

/** The theme that was chosen: "light", "dark", or "system". */
export function chosenTheme() {
  const theme = stored.getItem(NAME);
  return theme !== null && THEMES.includes(theme) ? theme : "system";
}

/**
 * Show this page in a theme, and the other pages when they are opened.
 *
 * @param {string} theme "light", "dark" or "system"
 */
export function chooseTheme(theme) {
  if (THEMES.includes(theme)) stored.setItem(NAME, theme);
  else stored.removeItem(NAME);
  applyTheme();
}

/** Show this page in the chosen theme. */
export function applyTheme() {
  const theme = chosenTheme();
  setAttribute(document.documentElement, "data-theme", theme === "system" ? null : theme);
}

/** A field in which the reader chooses the theme; applies the one that was chosen before. */
export function themeSwitch() {
  applyTheme();
  const choices = Object.entries(texts.themes).map(([value, name]) =>
    element("option", { value, selected: value === chosenTheme() }, name));
  const select = element("select", { onchange: () => chooseTheme(select.value) }, ...choices);
  return element("label", { class: "theme" }, texts.label, select);
}
