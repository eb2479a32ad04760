/** Questions the page puts before it does something: to whom, onto which pile, really? */

import { make } from "../make.js";
import { table as texts } from "../texts/table.js";
import { faceOn } from "./actions.js";
import { nameAt, pileName, pilesShown } from "./reading.js";

/**
 * Show a dialog and wait. `fill(close)` makes what is in it and calls `close(answer)`; who goes
 * away without an answer gives null. `alert` is for what must be read.
 */
export function dialog(title, fill, { alert = false, name = "" } = {}) {
  return new Promise((resolve) => {
    const box = make("dialog", {
      class: name, "aria-labelledby": "dialog-title", role: alert ? "alertdialog" : null,
    });
    let answer = null;
    const close = (given = null) => {
      answer = given;
      box.close();
    };
    box.append(
      make("div", { class: "dialog-head" },
        make("h2", { id: "dialog-title" }, title),
        alert ? "" : make("button", {
          class: "quiet", type: "button", "aria-label": texts.close, onclick: () => close(),
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

/** The questions about a table, for actions that need an answer. */
export function questions(game) {
  return {
    /** One of these seats; without asking where there is only one. */
    async seat(title, seats) {
      if (seats.length === 1) return seats[0];
      return await dialog(title, (close) => [
        make("div", { class: "choices", onkeydown: (event) => byDigit(event, seats, close) },
          ...seats.map((seat, at) => make("button", {
            type: "button", autofocus: at === 0, onclick: () => close(seat),
          }, nameAt(game.table, seat), at < 9 ? make("kbd", {}, String(at + 1)) : ""))),
      ]);
    },

    /** `{ pile, face }` to play onto. */
    async pile(table) {
      const name = make("input", {
        name: "pile", maxlength: 32, pattern: "[!-~]+", autocomplete: "off",
        placeholder: texts.newPile, "aria-label": texts.newPile, required: true,
      });
      const down = make("input", { type: "checkbox", name: "down" });
      const wanted = (pile) => ({ pile, face: down.checked ? "down" : "up" });
      return await dialog(texts.playOnto, (close) => [
        make("label", { class: "choice" }, down, texts.faceDown),
        make("div", { class: "choices" }, ...pilesShown(table.state).map((stack, at) =>
          make("button", {
            type: "button", autofocus: at === 0,
            onclick: () => close({ ...wanted(pileName(stack)), ...coverOf(stack, down) }),
          }, texts.pileCalled(pileName(stack))))),
        make("form", {
          class: "line", onsubmit: (event) => {
            event.preventDefault();
            close(wanted(name.value));
          },
        }, name, make("button", { type: "submit" }, texts.playThere)),
      ]);
    },

    async sure(sentence, word) {
      return await dialog(word, (close) => [
        make("p", {}, sentence),
        make("div", { class: "answers" },
          make("button", { type: "button", onclick: () => close(false) }, texts.no),
          make("button", {
            class: "danger", type: "button", autofocus: true, onclick: () => close(true),
          }, word)),
      ]) === true;
    },
  };
}

function coverOf(stack, down) {
  return down.checked ? {} : { face: faceOn(stack) };
}

function byDigit(event, seats, close) {
  const at = Number(event.key) - 1;
  if (seats[at] === undefined || !/^[1-9]$/.test(event.key)) return;
  event.preventDefault();
  close(seats[at]);
}
