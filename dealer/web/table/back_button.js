/**
 * The browser's Back dismisses a dialog instead of leaving the page.
 *
 * While a dialog is open the history has an entry more for this page. Back goes to the entry below,
 * which is the same page; a dialog that is closed otherwise removes the entry by going back itself.
 */

const OVER = "dealer/page/dialog"; // in the state of the additional entry

let isOver = history.state?.[OVER] === true;
let isReturning = false; // the page goes back itself, which takes a moment

/**
 * Let Back close a dialog that has just been opened, unless it has to be answered.
 *
 * @param {HTMLDialogElement} box
 * @param {boolean} mustAnswer
 */
export function dismissedByBack(box, mustAnswer) {
  box.toggleAttribute("data-answer", mustAnswer);
  // The dialog that follows a closed one is opened before this task ends, and uses its entry.
  box.addEventListener("close", () => setTimeout(update));
  update();
}

/** The topmost open dialog. @returns {HTMLDialogElement | undefined} */
function topmost() {
  return Array.from(document.querySelectorAll("dialog")).filter((box) => box.open).at(-1);
}

function update() {
  if (isReturning) return;
  const isOpen = topmost() !== undefined;
  if (isOpen === isOver) return;
  isOver = isOpen;
  if (isOpen) {
    history.pushState({ ...history.state, [OVER]: true }, "");
  } else {
    isReturning = true;
    history.back();
  }
}

addEventListener("popstate", () => {
  isOver = history.state?.[OVER] === true;
  const box = topmost();
  if (!isReturning && box !== undefined && !box.hasAttribute("data-answer")) box.close();
  isReturning = false;
  update();
});

update();
