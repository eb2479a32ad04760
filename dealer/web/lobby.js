/** The lobby: opens a table, and lists the open ones. */

import { cardElement, drawCard } from "./cards.js";
import { browserStore, connect } from "./client.js";
import { dayAndTimeOf } from "./clock.js";
import { brandLogo, brandTitle, element, safeText, field, setText } from "./dom.js";
import { languageSwitch } from "./language.js";
import { addCardPictures } from "./late_styles.js";
import { Choices } from "./lobby/choices.js";
import { withoutIsolates } from "./messages.js";
import { ARRIVING, PLAYER, goTo, ownTables, remember, stored, tabStored } from "./page_storage.js";
import { practiceOf, serverUrl, socketUrl, tableUrl } from "./server_url.js";
import { errorText, lobby as texts } from "./texts.js";
import { themeSwitch } from "./theme.js";

const REFRESH_MS = 5000;
const NAME_MAX = 64;
const FAN = ["As", "Kd", "Qc", "Th"]; // each picture of a court costs the first view 5 KB

const from = practiceOf(location.hash); // for a practice table: the round to play on from

const name = element("input", {
  name: "player", autocomplete: "nickname", maxlength: NAME_MAX, required: true,
  value: stored.getItem(PLAYER) ?? "",
});
const open = element("button", { class: "primary", type: "submit" },
  from === null ? texts.open : texts.openPractice);
const status = element("p", { role: "status", class: "muted" });
const list = element("ul", { class: "tables" });
const empty = element("p", { class: "muted" }, texts.looking);
const fan = element("div", { class: "fan", "aria-hidden": "true" });
fan.append(...FAN.map(cardElement));
const start = element("div", { class: "start" }, field(texts.yourName, name), open, status);
const choices = new Choices({ row: start, name, button: open }, showCardsOf);

document.querySelector("#lobby").append(welcome(), columns(), footer());
document.title = texts.title({ brand: brandTitle() ?? "dealer" });
addCardPictures();

const house = connect(socketUrl(), { name: name.value || texts.guest, store: browserStore(stored) });
house.then(refresh, (error) => setText(empty, errorText(error)));
addEventListener("hashchange", () => location.reload());

function footer() {
  return element("footer", {}, themeSwitch(), languageSwitch());
}

function welcome() {
  return element(
    "header", { class: "welcome felt" },
    element(
      "div", {},
      brandTitle() === null && brandLogo() === null ? "" : element(
        "p", { class: "brand" },
        brandLogo() === null ? "" : element("img", { src: brandLogo(), alt: "" }),
        brandTitle() ?? ""),
      element("h1", {}, texts.headline),
      element("p", {}, element("span", { class: "how-to" }, `${texts.howTo} `), texts.promise),
      element("p", { class: "finished" }, texts.auditBefore, " ",
        element("a", { href: serverUrl("finished") }, texts.audit)),
    ),
    fan,
  );
}

/** Let the fan show some cards of a pack; null: of the standard cards. */
function showCardsOf(pack) {
  const ofPack = (index) => pack.deck[Math.ceil(((index + 1) * pack.deck.length) / FAN.length) - 1];
  Array.from(fan.children).forEach((card, index) =>
    drawCard(card, pack === null ? FAN[index] : ofPack(index)));
}

function columns() {
  const form = element(
    "form", { onsubmit: openTable },
    from === null ? "" : element(
      "p", {}, (from.version === undefined ? texts.practiceAgain : texts.practiceAt)(from)),
    ...(from === null ? [choices.element]
      : [start, element("a", { href: serverUrl() }, texts.ordinary)]),
  );
  return element(
    "div", { class: "columns" },
    own(),
    element("section", { class: "panel new" },
      element("h2", {}, from === null ? texts.openTitle : texts.practice), form),
    element(
      "section", { class: "panel", "aria-labelledby": "open-tables" },
      element("h2", { id: "open-tables" }, texts.tables), empty, list,
    ),
  );
}

/** The tables at which this browser has a seat; nothing if there are none. */
function own() {
  const tables = ownTables({ closed: false });
  if (tables.length === 0) return "";
  return element(
    "section", { class: "panel own", "aria-labelledby": "own-tables" },
    element("h2", { id: "own-tables" }, texts.yourTables),
    element("ul", { class: "tables" }, ...tables.map((one) => entry(
      one.id, one, texts.yourSeat(one), ...(one.since ? [dayAndTimeOf(one.since)] : [])))),
  );
}

async function openTable(event) {
  event.preventDefault();
  open.disabled = true;
  setText(status, texts.opening);
  const player = name.value.trim();
  remember(PLAYER, player);
  try {
    /** @type {any} */
    const chosen = from === null ? await choices.table() : { from };
    const title = from === null ? texts.defaultTable : texts.defaultPractice;
    const table = await (await house).open({
      ...chosen, name: chosen.name || namedAfter(player, title),
    });
    // Who plays a round again gets the hand of the same seat.
    const seat = (from && (await house).kept(from.table).seat) ?? undefined;
    await (await house).join(table, { name: player, invite: table.invite, seat });
    remember(ARRIVING, table.id, tabStored);
    goTo(tableUrl(table.id));
  } catch (error) {
    setText(status, errorText(error));
    open.disabled = false;
  }
}

/** The name of a table that was given none, with as much of the player's as there is room for. */
function namedAfter(player, title) {
  const letters = Array.from(new Intl.Segmenter().segment(player), ({ segment }) => segment);
  let name = withoutIsolates(title({ player }));
  while (name.length > NAME_MAX) {
    letters.pop();
    name = withoutIsolates(title({ player: `${letters.join("").trimEnd()}…` }));
  }
  return name;
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
  const shown = JSON.stringify(tables.map((one) => [one.table, one.name, one.taken, one.rounds]));
  if (list.dataset.shown === shown) return;
  list.dataset.shown = shown;
  list.replaceChildren(...tables.map(tableEntry));
}

function tableEntry(one) {
  return entry(one.table, one, texts.seated(one), texts.rounds(one),
    dayAndTimeOf(Number(one.opened_at)));
}

function entry(id, table, ...notes) {
  if (table.practice) notes.unshift(texts.ofPractice({ deal: table.deal ?? "none" }));
  const title = table.name ? safeText(table.name) : texts.nameless({ id: id.slice(0, 6) });
  return element("li", {}, element("a", { href: tableUrl(id) },
    element("strong", { dir: "auto", translate: "no" }, title),
    " ", element("span", { class: "muted" }, notes.join(" · "))));
}
