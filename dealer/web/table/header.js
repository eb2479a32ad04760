/** The header: the table's name and status, the invitation, and the menu. */

import { useFourColours, usesFourColours } from "../cards.js";
import { brandLogo, brandTitle, element, escapeControl, setText } from "../dom.js";
import { languageSwitch } from "../language.js";
import { language, table as texts } from "../texts.js";
import { themeSwitch } from "../theme.js";
import { actionNamed, isVisible } from "./actions.js";
import { dialog } from "./dialogs.js";
import { hostCollects } from "./selectors.js";
import { statusOf } from "./wording.js";

const OTHER_DEVICE = "otherDevice";
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

export class Header {
  #page;
  #name = element("h1", { dir: "auto" });
  #status = element("p", { class: "muted" });

  constructor(container, page) {
    this.#page = page;
    const button = (label, key, onclick, attributes = {}) => element(
      "button", { type: "button", "aria-keyshortcuts": key, onclick, ...attributes }, label);
    container.append(
      element("a", {
        class: "home", href: "/", "aria-label": texts.allTables, title: texts.allTables,
      }, ...homeContent()),
      element("div", { class: "title" }, this.#name, this.#status),
      button(texts.invite, "i", () => this.invite()),
      button("?", "?", () => page.help(), { "aria-label": texts.help, title: texts.help }),
      button("☰", "z", () => this.menu(), { "aria-label": texts.menu, title: texts.menu }),
    );
  }

  draw() {
    const { table } = this.#page;
    const name = escapeControl(table.state.name ?? texts.nameless);
    setText(this.#name, name);
    document.title = texts.title({ name, brand: brandTitle() ?? "dealer" });
    const people = texts.people({ seated: table.seats.size, watching: table.watching });
    setText(this.#status, [statusOf(table), people].join(" · "));
  }

  /** Show the invite link. */
  async invite() {
    const { table, invite } = this.#page;
    const secret = table.invite ?? invite;
    const intro = table.state.invited && !secret ? texts.inviteUnknown : texts.inviteIntro;
    const labels = { title: texts.inviteTitle, label: texts.inviteLink, intro };
    await this.#showLink(labels, secret ? `#invite=${secret}` : "");
  }

  /** Show the link by which the player continues on another device. */
  async #otherDevice() {
    const labels = {
      title: texts.otherDevice, label: texts.otherDeviceLink, intro: texts.otherDeviceIntro,
    };
    await this.#showLink(labels, `#seat=${this.#page.table.token}`);
  }

  /** Show a link to this table, with a button that copies it if the browser allows that. */
  async #showLink({ title, label, intro }, fragment) {
    const link = `${location.origin}/tables/${this.#page.table.id}${fragment}`;
    const status = element("p", { role: "status", class: "muted" });
    const field = element("input", {
      readonly: true, value: link, "aria-label": label, autofocus: true,
      onfocus: ({ target }) => target.select(),
    });
    const copy = async () => {
      field.select();
      try {
        await navigator.clipboard.writeText(link);
        setText(status, texts.copied);
      } catch {
        setText(status, texts.copyManually);
      }
    };
    const local = LOOPBACK.includes(location.hostname);
    await dialog(title, () => [
      element("p", {}, intro),
      element("div", { class: "line" }, field,
        element("button", { class: "primary", type: "button", onclick: copy }, texts.copy)),
      status,
      local ? element("p", { class: "muted" }, texts.inviteLocalOnly) : "",
    ]);
  }

  async menu() {
    const { table } = this.#page;
    const colours = element("input", {
      type: "checkbox", onchange: ({ target }) => useFourColours(target.checked),
    });
    colours.checked = usesFourColours();
    const link = (href, text) => element("a", { class: "button", href }, text);
    const actions = ["leave", "closeTable"].filter((name) => isVisible(actionNamed(name), table));
    const chosen = await dialog(texts.menu, (close) => [
      themeSwitch(),
      languageSwitch(),
      element("label", { class: "choice" }, colours, texts.fourColours),
      hostCollects(table) ? element("p", { class: "muted" }, texts.hostCollects) : "",
      element("div", { class: "choices below" },
        link("/", texts.allTables),
        link(`/tables/${table.id}/history.txt?lang=${language}`, texts.readHistory),
        link(`/tables/${table.id}/audit`, texts.auditPage),
        table.token === null ? "" : element("button", {
          type: "button", onclick: () => close(OTHER_DEVICE),
        }, texts.otherDevice),
        ...actions.map((name) => element("button", {
          class: "danger", type: "button", onclick: () => close(name),
        }, texts.actions[name]))),
    ]);
    if (chosen === OTHER_DEVICE) await this.#otherDevice();
    else if (chosen !== null) await this.#page.run(chosen);
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
