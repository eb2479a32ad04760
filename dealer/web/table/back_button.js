/**
 * The browser's Back dismisses a dialog instead of leaving the page.
 *
 * The first dialog adds an entry for this page to the history. Back goes to the entry below, which
 * is the same page, and closes the open dialog; if none is open, the page goes back again. The
 * entry stays when a dialog is closed otherwise, because removing it would interrupt a navigation
 * that the player begins at that moment.
 */

const ENTRY = "dealer/page/entry"; // in the state of both entries
const [BELOW, ABOVE] = ["below", "above"];

/** Let Back close a dialog that has just been opened; one with `data-answer` has to be answered. */
export function dismissedByBack() {
  if (history.state?.[ENTRY] === ABOVE) return;
  history.replaceState({ ...history.state, [ENTRY]: BELOW }, "");
  history.pushState({ ...history.state, [ENTRY]: ABOVE }, "");
}

addEventListener("popstate", () => {
  if (history.state?.[ENTRY] !== BELOW) return;
  /** @type {HTMLDialogElement | null} */
  const box = document.querySelector("dialog[open]");
  if (box === null) history.back();
  else if (box.dataset.answer === undefined) box.close();
  else dismissedByBack();
});
