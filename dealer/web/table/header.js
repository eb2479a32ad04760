/** The header: the table's name and status, the invitation, and the menu. */

import { useFourColours, usesFourColours } from "../cards.js";
import {
  brandLogo, brandTitle, element, safeText, setAttribute, setText,
} from "../dom.js";
import { languageSwitch } from "../language.js";
import { goTo } from "../page_storage.js";
import { serverUrl, tableUrl } from "../server_url.js";
import { table as texts } from "../texts.js";
import { themeSwitch } from "../theme.js";
import { actionNamed, isVisible } from "./actions.js";
import { dialog } from "./dialogs.js";
import { gameHelp } from "./game.js";
import { showHelpCard } from "./help_card.js";
import { showInvitation, showOwnLink } from "./links.js";
import { seatMenu } from "./menu.js";
import { broadcastSentence, hostCollects, isAllowed } from "./selectors.js";
import { hasSounds, useSounds } from "./sounds.js";
import { statusOf } from "./wording.js";

export class Header {
  #page;
  #name = element("h1", { dir: "auto", translate: "no" });
  #status = element("span");
  #people = element("span", { class: "people" });
  #say;
  #invite;

  constructor(container, page) {
    this.#page = page;
    const button = (label, key, onclick, attributes = {}) => element(
      "button", { type: "button", "aria-keyshortcuts": key, onclick, ...attributes }, label);
    this.#say = button("", "y", (event) => page.click("say", event), {
      "data-sign": "☺\ufe0e", "aria-label": texts.notes.say, title: texts.notes.say,
    });
    this.#invite = button(texts.invite, "i", () => showInvitation(page));
    container.append(
      element("a", {
        class: "home", href: serverUrl(), "aria-label": texts.allTables, title: texts.allTables,
        onclick: (event) => this.#leavePage(event),
      }, ...homeContent()),
      element("div", { class: "title" }, this.#name,
        element("p", { class: "muted" }, this.#status, this.#people)),
      this.#invite,
      this.#say,
      button("?", "?", () => page.help(), {
        class: "help", "aria-label": texts.help, title: texts.help,
      }),
      button("☰", "z", () => this.menu(), { "aria-label": texts.menu, title: texts.menu }),
    );
  }

  draw() {
    const { table } = this.#page;
    const name = safeText(table.state.name ?? texts.nameless);
    setText(this.#name, name);
    setAttribute(this.#invite, "hidden", table.closed);
    setAttribute(this.#say, "hidden", !isVisible(actionNamed("say"), table));
    document.title = texts.title({ name, brand: brandTitle() ?? "dealer" });
    const people = texts.people({ seated: table.seats.size, watching: table.watching });
    const shown = [gameHelp()?.title, statusOf(table), people].filter(Boolean);
    setText(this.#status, shown[0]);
    setText(this.#people, ["", ...shown.slice(1)].join(" · "));
  }

  /** A player does not leave the page by a slip. */
  async #leavePage(event) {
    const { table, ask } = this.#page;
    if (table.seat === null || table.closed) return;
    event.preventDefault();
    if (await ask.confirm(texts.confirm.allTables, texts.allTables)) goTo(serverUrl());
  }

  async menu() {
    const page = this.#page;
    const { table } = page;
    const link = (href, text, attributes = {}) =>
      element("a", { class: "button", href, ...attributes }, text);
    const chosen = await dialog(texts.menu, (close) => {
      const row = (label, onclick) => element("button", { type: "button", onclick }, label);
      const opens = (label, open) => row(label, () => close(open));
      const actions = (...names) => names.map(actionNamed).filter((one) => isVisible(one, table)).map(
        ({ name, mark }) => element("button", {
          class: mark === "final" ? "danger" : null, type: "button",
          onclick: () => close(() => page.run(name)),
        }, texts.actions[name]));
      const ofSeats = (name) => async (on) => (await seatMenu())[name](on);
      const help = gameHelp();
      const annotates = isAllowed(table, "annotate");
      const broadcast = broadcastSentence(table.state.rules.broadcast);
      const { ofTable, ofView, ofLeaving } = texts.menuGroups;
      return [element("div", { class: "groups" },
        group(ofTable, [
          help !== null && opens(texts.howToPlay({ game: help.title }), () => showHelpCard(help)),
          table.seats.size > 0 && opens(texts.hosts.players, ofSeats("openPlayers")),
          annotates && opens(texts.notes.counter, ofSeats("setCounter")),
          annotates && table.host && opens(texts.notes.clock, ofSeats("setClock")),
          link(tableUrl(table.id, "/history"), texts.readHistory),
          link(tableUrl(table.id, "/audit"), texts.auditPage),
          // Without spectators only the players get the log, and a link carries no token.
          table.state.watched && link(tableUrl(table.id, "/bundle.jsonl"), texts.takeBundle,
            { download: `${table.id}.jsonl` }),
          ...actions("becomeHost", "closeRound"),
          broadcast && element("p", { class: "muted" }, broadcast),
          broadcast && table.host && link(tableUrl(table.id, "/broadcast"), texts.broadcastLink),
          hostCollects(table) && element("p", { class: "muted" }, texts.hostCollects),
        ]),
        group(ofView, [
          themeSwitch(), languageSwitch(),
          checkBox(texts.fourColours, usesFourColours(), useFourColours),
          checkBox(texts.sounds, hasSounds(), useSounds),
          opens(texts.help, () => page.help()),
        ]),
        group(ofLeaving, [
          link(serverUrl(), texts.allTables),
          table.seat !== null && opens(texts.otherDevice, showOwnLink),
          ...actions("leave", "closeTable"),
        ]))];
    }, { name: "wide" });
    await chosen?.(page);
  }
}

/** A group of rows with a title; rows that are false are left out. */
const group = (title, rows) => element("section", {},
  element("h3", {}, title), element("div", { class: "rows" }, ...rows.filter(Boolean)));

function checkBox(label, checked, use) {
  const box = element("input", { type: "checkbox", onchange: () => use(box.checked) });
  box.checked = checked;
  return element("label", { class: "choice" }, box, label);
}

/** The operator's logo and title, or a spade. */
function homeContent() {
  const [logo, title] = [brandLogo(), brandTitle()];
  return [
    logo === null ? element("span", { "data-sign": "♠\ufe0e" })
      : element("img", { src: logo, alt: "" }),
    title === null ? "" : element("span", { class: "brand" }, title),
  ];
}
