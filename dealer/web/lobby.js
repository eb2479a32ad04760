/** The way in: open a table with one button, or sit down at one that is open. */

import { cardElement } from "./cards.js";
import { browserStore, connect } from "./client.js";
import { harmless, make, write } from "./make.js";
import { lobby as texts } from "./texts/lobby.js";

const NAME = "dealer/page/name";
/** The table that one sat down at here: its page need not welcome them back. */
const ARRIVING = "dealer/page/arriving";
const SHORT_DECKS = { 36: "A6789TJQK", 32: "A789TJQK", 24: "A9TJQK" };
const LOOK_AGAIN_MS = 5000;

const name = make("input", {
  name: "player", autocomplete: "nickname", maxlength: 64, required: true,
  value: localStorage.getItem(NAME) ?? "",
});
const tableName = make("input", { name: "table", maxlength: 64, autocomplete: "off" });
const seats = make("input", { name: "seats", type: "number", min: 1, max: 100, value: 6 });
const deck = select("deck", texts.decks);
const shoe = make("input", { name: "shoe", type: "number", min: 1, max: 8, value: 1 });
const preset = select("preset", texts.presets);
const presetMeans = make("p", { class: "wide soft", id: "preset-means" }, texts.presetMeans.free);
const entropy = select("entropy", texts.entropies);
const entropyMeans = make("p", { class: "wide soft", id: "entropy-means" });
write(entropyMeans, texts.entropyMeans.players);
const invited = make("input", { type: "checkbox", name: "invited" });
const watched = make("input", { type: "checkbox", name: "watched", checked: true });
const collects = make("input", { type: "checkbox", name: "collects" });
const open = make("button", { class: "chief", type: "submit" }, texts.open);
const status = make("p", { role: "status", class: "soft" });
const list = make("ul", { class: "tables" });
const none = make("p", { class: "soft" }, texts.looking);

preset.setAttribute("aria-describedby", presetMeans.id);
entropy.setAttribute("aria-describedby", entropyMeans.id);
preset.addEventListener("change", () => write(presetMeans, texts.presetMeans[preset.value]));
entropy.addEventListener("change", () => write(entropyMeans, texts.entropyMeans[entropy.value]));

document.querySelector("#lobby").append(welcome(), columns());
document.title = texts.title;

const house = connect(null, { name: name.value || texts.guest, store: browserStore() });
house.then(lookAgain, (error) => write(none, error.message));

function select(name, options) {
  const choices = options.map(([value, text]) => make("option", { value }, text));
  return make("select", { name }, ...choices);
}

function field(label, input, has = {}) {
  return make("label", { class: "field", ...has }, label, input);
}

function welcome() {
  const fan = make("div", { class: "fan", "aria-hidden": "true" });
  fan.append(...["As", "Kh", "Qc", "Jd"].map((code) => cardElement(code)));
  return make(
    "header", { class: "welcome felt" },
    make("div", {}, make("h1", {}, texts.headline), make("p", {}, texts.promise)),
    fan,
  );
}

function columns() {
  const more = make(
    "div", { class: "more" },
    field(texts.tableName, tableName, { class: "field wide" }),
    field(texts.seats, seats),
    field(texts.shoe, shoe),
    field(texts.deck, deck, { class: "field wide" }),
    field(texts.preset, preset, { class: "field wide" }),
    presetMeans,
    field(texts.entropy, entropy, { class: "field wide" }),
    entropyMeans,
    make("label", { class: "choice wide" }, invited, texts.invited),
    make("label", { class: "choice wide" }, watched, texts.watched),
    make("label", { class: "choice wide" }, collects, texts.collects),
  );
  const form = make(
    "form", { onsubmit: submitted },
    field(texts.yourName, name),
    open,
    status,
    make("details", {}, make("summary", {}, texts.choose), more),
  );
  return make(
    "div", { class: "columns" },
    make("section", { class: "panel" }, make("h2", {}, texts.openTitle), form),
    make(
      "section", { class: "panel", "aria-labelledby": "open-tables" },
      make("h2", { id: "open-tables" }, texts.tables), none, list,
      make("p", { class: "soft" }, texts.auditBefore, make("a", { href: "/audit" }, texts.audit)),
    ),
  );
}

async function submitted(event) {
  event.preventDefault();
  open.disabled = true;
  write(status, texts.opening);
  const player = name.value.trim();
  localStorage.setItem(NAME, player);
  try {
    const table = await (await house).open({
      deck: deckWanted(),
      seats: seats.valueAsNumber,
      name: tableName.value.trim() || texts.defaultTable(player),
      rules: rulesWanted(),
    });
    await (await house).join(table, { name: player, invite: table.invite });
    sessionStorage.setItem(ARRIVING, table.id);
    location.assign(`/tables/${table.id}`);
  } catch (error) {
    write(status, error.message);
    open.disabled = false;
  }
}

function deckWanted() {
  const decks = shoe.valueAsNumber;
  const ranks = SHORT_DECKS[deck.value];
  if (decks === 1 && ranks === undefined) return deck.value;
  const cards = ranks && Array.from("shdc", (suit) => Array.from(ranks, (rank) => rank + suit));
  if (decks === 1) return cards.flat();
  return { decks, ...(ranks ? { cards: cards.flat() } : { jokers: deck.value === "54" ? 2 : 0 }) };
}

function rulesWanted() {
  return {
    preset: preset.value,
    entropy: entropy.value,
    ...(invited.checked ? { join: "invite" } : {}),
    ...(watched.checked ? {} : { watch: "nobody" }),
    collect: collects.checked ? "host" : "nobody",
  };
}

async function lookAgain() {
  try {
    showTables(await (await house).tables());
  } catch (error) {
    write(none, error.message);
  }
  setTimeout(lookAgain, LOOK_AGAIN_MS);
}

function showTables(tables) {
  none.hidden = tables.length > 0;
  write(none, texts.noTables);
  const lines = tables.map((one) => JSON.stringify([one.table, one.name, one.taken, one.rounds]));
  if (list.dataset.shown === lines.join()) return;
  list.dataset.shown = lines.join();
  list.replaceChildren(...tables.map(line));
}

function line({ table, name, taken, rounds }) {
  return make(
    "li", {},
    make(
      "a", { href: `/tables/${table}` },
      make("strong", {}, harmless(name || texts.nameless(table))),
      make("span", { class: "soft" }, texts.seated(taken)),
      make("span", { class: "soft" }, texts.rounds(rounds)),
    ),
  );
}
