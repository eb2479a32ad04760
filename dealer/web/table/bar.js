/** The bar above the felt: the table's name, how it stands, the invitation, and the menu. */

import { useFourColours, usesFourColours } from "../cards.js";
import { harmless, make, write } from "../make.js";
import { table as texts } from "../texts/table.js";
import { actionNamed, offered } from "./actions.js";
import { dialog } from "./asking.js";
import { hostCollects } from "./reading.js";

/** Names by which a computer calls itself, and no other does. */
const ITSELF = ["localhost", "127.0.0.1", "[::1]"];

/** Draws into `place`. */
export class Bar {
  #game;
  #name = make("h1", {});
  #standing = make("p", { class: "soft" });

  constructor(place, game) {
    this.#game = game;
    const button = (word, key, run, has = {}) => make(
      "button", { type: "button", "aria-keyshortcuts": key, onclick: run, ...has }, word);
    place.append(
      make("a", {
        class: "home", href: "/", "aria-label": texts.allTables, title: texts.allTables,
      }, "♠\ufe0e"),
      make("div", { class: "title" }, this.#name, this.#standing),
      button(texts.invite, "i", () => this.invite()),
      button("?", "?", () => game.help(), { "aria-label": texts.help, title: texts.help }),
      button("☰", "z", () => this.menu(), { "aria-label": texts.menu, title: texts.menu }),
    );
  }

  draw() {
    const { table } = this.#game;
    const name = harmless(table.state.name ?? texts.nameless);
    write(this.#name, name);
    document.title = texts.title(name);
    const people = texts.people(table.seats.size, table.watching);
    write(this.#standing, [texts.standing(table), people].join(" · "));
  }

  /** The link that lets others come, on the clipboard if the browser lets a page at it. */
  async invite() {
    const { table, invite } = this.#game;
    const secret = table.invite ?? invite;
    const link = `${location.origin}/tables/${table.id}${secret ? `#invite=${secret}` : ""}`;
    const status = make("p", { role: "status", class: "soft" });
    const field = make("input", {
      readonly: true, value: link, "aria-label": texts.inviteLink, autofocus: true,
      onfocus: ({ target }) => target.select(),
    });
    const copy = async () => {
      field.select();
      try {
        await navigator.clipboard.writeText(link);
        write(status, texts.copied);
      } catch {
        write(status, texts.copyYourself);
      }
    };
    await dialog(texts.inviteTitle, () => [
      make("p", {}, table.state.invited && !secret ? texts.inviteUnknown : texts.inviteIntro),
      make("div", { class: "line" }, field,
        make("button", { class: "chief", type: "button", onclick: copy }, texts.copy)),
      status,
      ITSELF.includes(location.hostname) ? make("p", { class: "soft" }, texts.inviteNear) : "",
    ]);
  }

  async menu() {
    const { table } = this.#game;
    const colours = make("input", {
      type: "checkbox", onchange: ({ target }) => useFourColours(target.checked),
    });
    colours.checked = usesFourColours();
    const link = (href, text) => make("a", { class: "button", href }, text);
    const chosen = await dialog(texts.menu, (close) => [
      make("label", { class: "choice" }, colours, texts.fourColours),
      hostCollects(table) ? make("p", { class: "soft" }, texts.hostCollects) : "",
      make("div", { class: "choices below" },
        link("/", texts.allTables),
        link(`/tables/${table.id}/history.txt`, texts.readHistory),
        link(`/tables/${table.id}/audit`, texts.auditPage),
        ...["leave", "closeTable"].map(actionNamed).filter((one) => offered(one, table)).map(
          (one) => make("button", {
            class: "danger", type: "button", onclick: () => close(one.name),
          }, texts.actions[one.name]))),
    ]);
    if (chosen !== null) await this.#game.run(chosen);
  }
}
