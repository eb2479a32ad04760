/** The help card of the game: how it is played. It is offered once in this browser. */

import { element } from "../dom.js";
import { remember, stored } from "../page_storage.js";
import { table as texts } from "../texts.js";
import { dialog } from "./dialogs.js";

/** @typedef {{ game: string, title: string, sentences: string[] }} Help */

const SEEN = "dealer/page/help/";

/** @param {Help} help */
export async function showHelpCard({ game, title, sentences }) {
  remember(SEEN + game, "offered");
  await dialog(title, () => [
    element("ol", { class: "help-card" }, ...sentences.map((one) => element("li", {}, one))),
    element("p", { class: "muted" }, texts.gameIsFree),
  ]);
}

/**
 * Offer the card above the players, unless it was offered for this game before. It covers nothing.
 *
 * @param {HTMLElement} notice
 * @param {Help} help
 */
export function offerHelpCard(notice, help) {
  if (!notice.hidden || stored.getItem(SEEN + help.game) !== null) return;
  if (matchMedia("(max-height: 700px)").matches) return; // the cards need the room: the menu has it
  const button = (label, onclick, attributes = {}) =>
    element("button", { class: "small", type: "button", onclick, ...attributes }, label);
  remember(SEEN + help.game, "offered");
  const dismiss = () => {
    notice.hidden = true;
  };
  notice.replaceChildren(
    button(texts.howToPlay({ game: help.title }), () => {
      dismiss();
      showHelpCard(help);
    }),
    " ", button("✕", dismiss, { "aria-label": texts.close }),
  );
  notice.hidden = false;
}
