/** The finished tables: those at which this browser had a seat, and the public ones. */

import { browserStore, connect } from "./client.js";
import { dayAndTimeOf } from "./clock.js";
import { brandTitle, element, safeText, setText } from "./dom.js";
import { languageSwitch } from "./language.js";
import { ownTables, stored } from "./page_storage.js";
import { serverUrl, socketUrl, tableUrl } from "./server_url.js";
import { errorText, finished as texts } from "./texts.js";
import { themeSwitch } from "./theme.js";

const list = element("ul", { class: "tables" });
const empty = element("p", { class: "muted", role: "status" }, texts.looking);

document.title = texts.title({ brand: brandTitle() ?? "dealer" });
document.querySelector("#lobby").append(
  element("header", { class: "head" }, element("h1", {}, texts.headline),
    element("nav", { class: "ways" },
      element("a", { class: "button", href: serverUrl() }, texts.allTables))),
  own(),
  element("section", { class: "panel", "aria-labelledby": "public" },
    element("h2", { id: "public" }, texts.publicTables), empty, list),
  element("section", { class: "panel" },
    element("p", {}, texts.fromFile, " ",
      element("a", { href: serverUrl("audit") }, texts.openFile))),
  element("footer", {}, themeSwitch(), languageSwitch()),
);

/** The finished tables at which this browser had a seat; nothing if there are none. */
function own() {
  const tables = ownTables({ closed: true });
  if (tables.length === 0) return "";
  return element("section", { class: "panel", "aria-labelledby": "own" },
    element("h2", { id: "own" }, texts.yourTables),
    element("ul", { class: "tables" }, ...tables.map((one) => entry(one.id, one, one.since))));
}

/** @param {number | undefined} at in ms since 1970, if it is known */
function entry(id, table, at) {
  const notes = at === undefined ? [] : [dayAndTimeOf(at)];
  if (table.rounds > 0) notes.push(texts.deals({ count: table.rounds }));
  if (table.practice) notes.unshift(texts.ofPractice({ deal: table.deal ?? "none" }));
  const title = table.name ? safeText(table.name) : texts.nameless({ id: id.slice(0, 6) });
  const link = (what, text) => element(
    "a", { class: "button", href: tableUrl(id, what), "aria-label": `${text}: ${title}` }, text);
  return element("li", {},
    element("div", {}, element("strong", { dir: "auto", translate: "no" }, title),
      element("p", { class: "muted" }, notes.join(" · "))),
    element("div", { class: "ways" }, link("/audit", texts.check), link("/history", texts.history)));
}

async function show() {
  try {
    const house = await connect(socketUrl(), { store: browserStore(stored) });
    const tables = await house.tables({ closed: true });
    await house.close();
    setText(empty, texts.none);
    empty.hidden = tables.length > 0;
    list.replaceChildren(...tables.map((one) => entry(one.table, one, Number(one.opened_at))));
  } catch (error) {
    setText(empty, errorText(error));
  }
}

show();
