/** The lobby: opens a table, and lists the open ones. */

import { cardElement } from "./cards.js";
import { browserStore, connect } from "./client.js";
import { brandLogo, brandTitle, element, escapeControl, setText } from "./dom.js";
import { languageSwitch } from "./language.js";
import { withoutIsolates } from "./messages.js";
import { goTo, stored, tabStored } from "./page_storage.js";
import { errorText, lobby as texts } from "./texts.js";
import { themeSwitch } from "./theme.js";

const NAME = "dealer/page/name";
/** The table that this player has just joined here: its page need not say "welcome back". */
const ARRIVING = "dealer/page/arriving";
const DECKS = ["52", "54", "36", "32", "24"];
const SHORT_DECKS = { 36: "A6789TJQK", 32: "A789TJQK", 24: "A9TJQK" };
const REFRESH_MS = 5000;

const name = element("input", {
  name: "player", autocomplete: "nickname", maxlength: 64, required: true,
  value: stored.getItem(NAME) ?? "",
});
const tableName = element("input", { name: "table", maxlength: 64, autocomplete: "off" });
const seats = element("input", { name: "seats", type: "number", min: 1, max: 100, value: 6 });
const deck = select("deck", DECKS.map((value) => [value, texts.decks[value]]));
const shoe = element("input", { name: "shoe", type: "number", min: 1, max: 8, value: 1 });
const preset = select("preset", Object.entries(texts.presets));
const presetMeans = hint("preset-means", texts.presetMeans.free);
const entropy = select("entropy", Object.entries(texts.entropies));
const entropyMeans = hint("entropy-means", texts.entropyMeans.players);
const invited = element("input", { type: "checkbox", name: "invited" });
const watched = element("input", { type: "checkbox", name: "watched", checked: true });
const collects = element("input", { type: "checkbox", name: "collects" });
const open = element("button", { class: "primary", type: "submit" }, texts.open);
const status = element("p", { role: "status", class: "muted" });
const list = element("ul", { class: "tables" });
const empty = element("p", { class: "muted" }, texts.looking);

preset.setAttribute("aria-describedby", presetMeans.id);
entropy.setAttribute("aria-describedby", entropyMeans.id);
preset.addEventListener("change", () => setText(presetMeans, texts.presetMeans[preset.value]));
entropy.addEventListener("change", () => setText(entropyMeans, texts.entropyMeans[entropy.value]));

document.querySelector("#lobby").append(welcome(), columns(), footer());
document.title = texts.title({ brand: brandTitle() ?? "dealer" });

const house = connect(null, { name: name.value || texts.guest, store: browserStore(stored) });
house.then(refresh, (error) => setText(empty, errorText(error)));

function footer() {
  return element("footer", {}, themeSwitch(), languageSwitch());
}

function select(name, options) {
  const choices = options.map(([value, text]) => element("option", { value }, text));
  return element("select", { name }, ...choices);
}

function hint(id, text) {
  return element("p", { class: "wide muted", id }, text);
}

function field(label, input, attributes = {}) {
  return element("label", { class: "field", ...attributes }, label, input);
}

function welcome() {
  const fan = element("div", { class: "fan", "aria-hidden": "true" });
  fan.append(...["As", "Kh", "Qc", "Jd"].map((code) => cardElement(code)));
  return element(
    "header", { class: "welcome felt" },
    element(
      "div", {},
      brandTitle() === null && brandLogo() === null ? "" : element(
        "p", { class: "brand" },
        brandLogo() === null ? "" : element("img", { src: brandLogo(), alt: "" }),
        brandTitle() ?? ""),
      element("h1", {}, texts.headline), element("p", {}, texts.promise),
    ),
    fan,
  );
}

function columns() {
  const more = element(
    "div", { class: "more" },
    field(texts.tableName, tableName, { class: "field wide" }),
    field(texts.seats, seats),
    field(texts.shoe, shoe),
    field(texts.deck, deck, { class: "field wide" }),
    field(texts.preset, preset, { class: "field wide" }),
    presetMeans,
    field(texts.entropy, entropy, { class: "field wide" }),
    entropyMeans,
    element("label", { class: "choice wide" }, invited, texts.invited),
    element("label", { class: "choice wide" }, watched, texts.watched),
    element("label", { class: "choice wide" }, collects, texts.collects),
  );
  const form = element(
    "form", { onsubmit: openTable },
    field(texts.yourName, name),
    element("details", {}, element("summary", {}, texts.choose), more),
    open,
    status,
  );
  const audit = element("a", { href: "/audit" }, texts.audit);
  return element(
    "div", { class: "columns" },
    element("section", { class: "panel" }, element("h2", {}, texts.openTitle), form),
    element(
      "section", { class: "panel", "aria-labelledby": "open-tables" },
      element("h2", { id: "open-tables" }, texts.tables), empty, list,
      element("p", { class: "muted" }, texts.auditBefore, " ", audit),
    ),
  );
}

async function openTable(event) {
  event.preventDefault();
  open.disabled = true;
  setText(status, texts.opening);
  const player = name.value.trim();
  stored.setItem(NAME, player);
  try {
    const table = await (await house).open({
      deck: chosenDeck(),
      seats: seats.valueAsNumber,
      name: tableName.value.trim() || withoutIsolates(texts.defaultTable({ player })),
      rules: chosenRules(),
    });
    await (await house).join(table, { name: player, invite: table.invite });
    tabStored.setItem(ARRIVING, table.id);
    goTo(`/tables/${table.id}`);
  } catch (error) {
    setText(status, errorText(error));
    open.disabled = false;
  }
}

function chosenDeck() {
  const decks = shoe.valueAsNumber;
  const ranks = SHORT_DECKS[deck.value];
  if (decks === 1 && ranks === undefined) return deck.value;
  const cards = ranks && Array.from("shdc", (suit) => Array.from(ranks, (rank) => rank + suit));
  if (decks === 1) return cards.flat();
  return { decks, ...(ranks ? { cards: cards.flat() } : { jokers: deck.value === "54" ? 2 : 0 }) };
}

/** @returns {import("./client.js").Rules} */
function chosenRules() {
  return {
    preset: preset.value,
    entropy: entropy.value,
    ...(invited.checked ? { join: "invite" } : {}),
    ...(watched.checked ? {} : { watch: "nobody" }),
    collect: collects.checked ? "host" : "nobody",
  };
}

async function refresh() {
  try {
    showTables(await (await house).tables());
  } catch (error) {
    setText(empty, errorText(error));
  }
  setTimeout(refresh, REFRESH_MS);
}

function showTables(tables) {
  empty.hidden = tables.length > 0;
  setText(empty, texts.noTables);
  const shown = tables.map((one) => JSON.stringify([one.table, one.name, one.taken, one.rounds]));
  if (list.dataset.shown === shown.join()) return;
  list.dataset.shown = shown.join();
  list.replaceChildren(...tables.map(tableEntry));
}

const titleOf = (name, id) =>
  (name ? escapeControl(name) : texts.nameless({ id: id.slice(0, 6) }));

function tableEntry({ table, name, taken, rounds }) {
  return element(
    "li", {},
    element(
      "a", { href: `/tables/${table}` },
      element("strong", { dir: "auto" }, titleOf(name, table)),
      element("span", { class: "muted" }, texts.seated({ taken })),
      element("span", { class: "muted" }, texts.rounds({ rounds })),
    ),
  );
}
