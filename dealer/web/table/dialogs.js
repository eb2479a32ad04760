/** Modal dialogs, and the questions that actions ask: which player, which pile, are you sure. */

import { element } from "../dom.js";
import { table as texts } from "../texts/table.js";
import { defaultFace } from "./actions.js";
import { nameAt, pileName, pilesShown } from "./selectors.js";

/**
 * Show a dialog, and wait until it is closed.
 *
 * @param {string} title
 * @param {(close: (answer?: any) => void) => (Node | string)[]} fill creates the contents
 * @param {object} [options]
 * @param {boolean} [options.alert] the dialog cannot be dismissed without a button
 * @param {string} [options.name] its CSS class
 * @returns {Promise<any>} what `close` was called with; null if the dialog was dismissed
 */
export function dialog(title, fill, { alert = false, name = "" } = {}) {
  return new Promise((resolve) => {
    const box = element("dialog", {
      class: name, "aria-labelledby": "dialog-title", role: alert ? "alertdialog" : null,
    });
    let answer = null;
    const close = (given = null) => {
      answer = given;
      box.close();
    };
    box.append(
      element("div", { class: "dialog-head" },
        element("h2", { id: "dialog-title" }, title),
        alert ? "" : element("button", {
          class: "borderless", type: "button", "aria-label": texts.close, onclick: () => close(),
        }, "✕")),
      ...fill(close),
    );
    box.addEventListener("close", () => {
      box.remove();
      resolve(answer);
    });
    if (alert) box.addEventListener("cancel", (event) => event.preventDefault());
    else box.addEventListener("click", (event) => event.target === box && close());
    document.body.append(box);
    box.showModal();
    box.querySelector("[autofocus]")?.focus();
  });
}

/** The questions that actions ask before they run. */
export function questions(page) {
  return {
    /** One of these seats; a single one is chosen without a dialog. */
    async seat(title, seats) {
      if (seats.length === 1) return seats[0];
      return await dialog(title, (close) => [
        element("div", { class: "choices", onkeydown: (event) => onDigit(event, seats, close) },
          ...seats.map((seat, index) => element("button", {
            type: "button", autofocus: index === 0, onclick: () => close(seat),
          }, nameAt(page.table, seat), index < 9 ? element("kbd", {}, String(index + 1)) : ""))),
      ]);
    },

    /** The pile to play onto, as `{ pile, face }`. */
    async pile(table) {
      const name = element("input", {
        name: "pile", maxlength: 32, pattern: "[!-~]+", autocomplete: "off",
        placeholder: texts.newPile, "aria-label": texts.newPile, required: true,
      });
      const down = element("input", { type: "checkbox", name: "down" });
      const choose = (stack) => ({
        pile: pileName(stack), face: down.checked ? "down" : defaultFace(stack),
      });
      return await dialog(texts.playOnto, (close) => [
        element("label", { class: "choice" }, down, texts.faceDown),
        element("div", { class: "choices" }, ...pilesShown(table.state).map((stack, index) =>
          element("button", {
            type: "button", autofocus: index === 0, onclick: () => close(choose(stack)),
          }, texts.pileTitle(pileName(stack))))),
        element("form", {
          class: "line", onsubmit: (event) => {
            event.preventDefault();
            close({ pile: name.value, face: down.checked ? "down" : "up" });
          },
        }, name, element("button", { type: "submit" }, texts.playThere)),
      ]);
    },

    /** Whether the player confirms an action. */
    async confirm(sentence, label) {
      return await dialog(label, (close) => [
        element("p", {}, sentence),
        element("div", { class: "answers" },
          element("button", { type: "button", onclick: () => close(false) }, texts.cancel),
          element("button", {
            class: "danger", type: "button", autofocus: true, onclick: () => close(true),
          }, label)),
      ]) === true;
    },
  };
}

/** The keys 1 to 9 choose a seat. */
function onDigit(event, seats, close) {
  const index = Number(event.key) - 1;
  if (seats[index] === undefined || !/^[1-9]$/.test(event.key)) return;
  event.preventDefault();
  close(seats[index]);
}
