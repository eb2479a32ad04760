/** The field in which the reader chooses the language; `early.js` finds what was chosen. */

import { element } from "./dom.js";
import { goTo, persistent, remember, stored } from "./page_storage.js";
import { language, shared as texts } from "./texts.js";

const NAME = "dealer/page/language"; // also in early.js

/** The languages of the server's files, such as "de". */
const offered = () =>
  (document.documentElement.dataset.languages ?? "").split(" ").map((one) => one.split(":")[0]);

/** A language's name for itself, such as "Deutsch". */
function nameOf(tag) {
  const name = new Intl.DisplayNames(tag, { type: "language" }).of(tag);
  return name[0].toLocaleUpperCase(tag) + name.slice(1);
}

/** Show this page, and the other pages, in a language; "" for that of the browser. */
function choose(tag) {
  if (tag === "") stored.removeItem(NAME);
  else remember(NAME, tag);
  if (persistent) location.reload();
  else goTo(location.pathname + location.search + location.hash);
}

/** A field in which the reader chooses the language. */
export function languageSwitch() {
  const chosen = stored.getItem(NAME) === null ? "" : language;
  const choices = offered().map((tag) =>
    element("option", { value: tag, lang: tag, selected: tag === chosen }, nameOf(tag)));
  const select = element("select", { onchange: () => choose(select.value) },
    element("option", { value: "", selected: chosen === "" }, texts.ofBrowser), ...choices);
  return element("label", { class: "theme language" }, texts.language, select);
}
