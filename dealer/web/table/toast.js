/** A sentence that is shown for some seconds, such as a refusal; screen readers announce it. */

import { element } from "../dom.js";

const TOAST_MS = 6000;

export class Toast {
  #container;
  #timer = null;

  constructor(container) {
    this.#container = container;
  }

  show(sentence) {
    clearTimeout(this.#timer);
    this.#container.replaceChildren(element("p", {}, sentence));
    this.#timer = setTimeout(() => this.#container.replaceChildren(), TOAST_MS);
  }
}
