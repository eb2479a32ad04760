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
import { openPlayers, setClock, setCounter } from "./seat_menu.js";
import { hostCollects, isAllowed } from "./selectors.js";
import { hasSounds, useSounds } from "./sounds.js";
import { statusOf } from "./wording.js";

export class Header {
  #page;
  #name = element("h1", { dir: "auto" });
  #status = element("p", { class: "muted" });
  #say;
  #invite;

  constructor(container, page) {
    this.#page = page;
    const button = (label, key, onclick, attributes = {}) => element(
      "button", { type: "button", "aria-keyshortcuts": key, onclick, ...attributes }, label);
    this.#say = button("☺\ufe0e", "y", (event) => page.click("say", event), {
      "aria-label": texts.notes.say, title: texts.notes.say,
    });
    this.#invite = button(texts.invite, "i", () => showInvitation(page));
    container.append(
      element("a", {
        class: "home", href: serverUrl(), "aria-label": texts.allTables, title: texts.allTables,
        onclick: (event) => this.#leavePage(event),
      }, ...homeContent()),
      element("div", { class: "title" }, this.#name, this.#status),
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
    setText(this.#status, [statusOf(table), people].join(" · "));
  }

  /** A player does not leave the page by a slip. */
  async #leavePage(event) {
    const { table, ask } = this.#page;
    if (table.seat === null || table.closed) return;
    event.preventDefault();
    if (await ask.confirm(texts.confirm.allTables, texts.allTables)) goTo(serverUrl());
  }

  async menu() {
    const { table } = this.#page;
    const colours = element("input", {
      type: "checkbox", onchange: ({ target }) => useFourColours(target.checked),
    });
    colours.checked = usesFourColours();
    const sounds = element("input", {
      type: "checkbox", onchange: ({ target }) => useSounds(target.checked),
    });
    sounds.checked = hasSounds();
    const link = (href, text, attributes = {}) =>
      element("a", { class: "button", href, ...attributes }, text);
    const actions = ["closeRound", "becomeHost", "leave", "closeTable"].filter(
      (name) => isVisible(actionNamed(name), table));
    const help = gameHelp();
    const opens = [
      help === null ? null : [texts.howToPlay({ game: help.title }), () => showHelpCard(help)],
      table.seats.size > 0 ? [texts.hosts.players, openPlayers] : null,
      isAllowed(table, "annotate") ? [texts.notes.counter, setCounter] : null,
      table.host && isAllowed(table, "annotate") ? [texts.notes.clock, setClock] : null,
      table.seat === null ? null : [texts.otherDevice, showOwnLink],
      [texts.help, () => this.#page.help()],
    ].filter((one) => one !== null);
    const chosen = await dialog(texts.menu, (close) => [
      themeSwitch(),
      languageSwitch(),
      element("label", { class: "choice" }, colours, texts.fourColours),
      element("label", { class: "choice" }, sounds, texts.sounds),
      hostCollects(table) ? element("p", { class: "muted" }, texts.hostCollects) : "",
      element("div", { class: "choices below" },
        link(serverUrl(), texts.allTables),
        link(tableUrl(table.id, "/history"), texts.readHistory),
        link(tableUrl(table.id, "/audit"), texts.auditPage),
        // Without spectators only the players get the log, and a link carries no token.
        table.state.watched
          ? link(tableUrl(table.id, "/bundle.jsonl"), texts.takeBundle,
            { download: `${table.id}.jsonl` })
          : "",
        ...opens.map(([label, open]) => element("button", {
          type: "button", onclick: () => close(open),
        }, label)),
        ...actions.map((name) => element("button", {
          class: actionNamed(name).mark === "final" ? "danger" : null, type: "button",
          onclick: () => close(() => this.#page.run(name)),
        }, texts.actions[name]))),
    ]);
    await chosen?.(this.#page);
  }
}

/** The operator's logo and title, or a spade. */
function homeContent() {
  const [logo, title] = [brandLogo(), brandTitle()];
  return [
    logo === null ? "♠\ufe0e" : element("img", { src: logo, alt: "" }),
    title === null ? "" : element("span", { class: "brand" }, title),
  ];
}
