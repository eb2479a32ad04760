/** A sentence that is shown for some seconds, such as a refusal; screen readers announce it. */

import { element } from "../dom.js";

const TOAST_MS = 6000;

/** A function that shows sentences in an element. */
export function toaster(container) {
  let timer = null;
  return (sentence) => {
    clearTimeout(timer);
    container.replaceChildren(element("p", {}, sentence));
    timer = setTimeout(() => container.replaceChildren(), TOAST_MS);
  };
}
