/** Modal dialogs. Escape, the browser's Back, and a press outside of a dialog dismiss it. */

import { element } from "../dom.js";
import { addStyles } from "../late_styles.js";
import { table as texts } from "../texts.js";
import { dismissedByBack } from "./back_button.js";
import { scrollCue } from "./scroll_cue.js";

let isStyled = false;

/** Load the styles of dialogs, which are not needed to see the table. */
export async function addDialogStyles() {
  await addStyles("table/dialogs.css");
  isStyled = true;
}

/**
 * Show a dialog, and wait until it is closed.
 *
 * @param {string | (Node | string)[]} title
 * @param {(close: (answer?: any) => void) => (Node | string | null)[]} fill creates the contents
 * @param {object} [options]
 * @param {boolean} [options.alert] the dialog cannot be dismissed without a button
 * @param {string} [options.name] its CSS class
 * @returns {Promise<any>} what `close` was called with; null if the dialog was dismissed
 */
export async function dialog(title, fill, { alert = false, name = "" } = {}) {
  if (!isStyled) await addDialogStyles(); // else it opens immediately
  return new Promise((resolve) => {
    let answer = null;
    const close = (given = null) => {
      answer = given;
      box.close();
    };
    const box = element(
      "dialog", {
        class: name, "aria-labelledby": "dialog-title", role: alert ? "alertdialog" : null,
        "data-answer": alert,
      },
      element("div", { class: "dialog-head" },
        element("h2", { id: "dialog-title" }, ...[title].flat()),
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
    scrollCue(box, "block");
    dismissedByBack();
    box.querySelector("[autofocus]")?.focus();
  });
}

/** A form in a dialog, which `submit` closes with the answer. */
export function form(submit, attributes, ...children) {
  const onsubmit = (event) => {
    event.preventDefault();
    submit();
  };
  return element("form", { ...attributes, onsubmit }, ...children);
}

/**
 * A list of buttons, each of which closes the dialog with its value. One with a reason why that is
 * not possible now shows it, does nothing, and comes after the others.
 *
 * @param {(value: any) => void} close
 * @param {{ label: string, value: any, mark?: "public" | "final" | null,
 *   reason?: string | null }[]} offers
 * @param {object} [options]
 * @param {boolean} [options.ranked] the likeliest is the first: it is filled, the others are rows
 */
export function choices(close, offers, { ranked = false } = {}) {
  const isPossible = ({ reason = null }) => reason === null;
  const ordered = [...offers.filter(isPossible), ...offers.filter((one) => !isPossible(one))];
  return element("div", { class: ranked ? "rows ranked" : "choices" }, ...ordered.map(
    ({ label, value, mark, reason = null }, index) => element("button", {
      type: "button", autofocus: index === 0 && reason === null, "data-mark": mark,
      "aria-disabled": reason === null ? null : "true",
      "aria-label": reason === null ? null : label, title: reason,
      onclick: () => reason ?? close(value),
    }, label, reason === null ? "" : element("small", {}, reason))));
}
