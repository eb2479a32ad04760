/** The banner that says when the connection to the server is lost, and when it is back. */

import { SessionEnded } from "../client.js";
import { SUPERSEDED } from "../client/errors.js";
import { element, setAttribute } from "../dom.js";
import { errorText, table as texts } from "../texts.js";

const RESTORED_MS = 6000;

/** Hidden while there is nothing to say. */
export class ConnectionBanner {
  #container;
  #timer = null;
  #last = "connected";

  constructor(container) {
    this.#container = container;
  }

  /**
   * @param {import("../client.js").ConnectionStatus} status
   * @param {{ welcome?: string | null }} [options] a sentence for a player who reloaded the page
   */
  draw({ state, error }, { welcome = null } = {}) {
    if (error !== null) return;
    const last = this.#last;
    this.#last = state;
    if (state !== "connected") this.#show(state, texts.connection[state]);
    else if (welcome !== null) this.#showBriefly(welcome);
    else if (last !== "connected") this.#showBriefly(texts.connection.restored);
  }

  /**
   * Show a sentence permanently.
   *
   * @param {string} sentence
   * @param {{ label: string, onClick: () => void } | null} [button]
   */
  show(sentence, button = null) {
    this.#show("over", sentence);
    if (button === null) return;
    this.#container.append(" ", element("button", {
      class: "small", type: "button", onclick: button.onClick,
    }, button.label));
  }

  /** Show why the session has ended; a seat that was taken over elsewhere can be had back. */
  showEnd(error) {
    const superseded = error instanceof SessionEnded && error.code === SUPERSEDED;
    if (!superseded) this.show(errorText(error));
    else {
      this.show(texts.superseded, { label: texts.playHere, onClick: () => location.reload() });
    }
  }

  #showBriefly(sentence) {
    this.#show("restored", sentence);
    this.#timer = setTimeout(() => (this.#container.hidden = true), RESTORED_MS);
  }

  #show(state, sentence) {
    clearTimeout(this.#timer);
    this.#container.hidden = false;
    setAttribute(this.#container, "data-state", state);
    this.#container.replaceChildren(sentence);
  }
}
