/** The line to the house, in words: lost, coming back, and back again with nothing missed. */

import { make, mark } from "../make.js";
import { table as texts } from "../texts/table.js";

const BACK_MS = 6000;

/** Draws into `place`, which is away while there is nothing to say. */
export class Line {
  #place;
  #timer = null;
  #last = "connected";

  constructor(place) {
    this.#place = place;
  }

  /** `welcome` is said once, where somebody came back by loading the page again. */
  draw({ state, error }, { welcome = null } = {}) {
    if (error !== null) return undefined;
    const was = this.#last;
    this.#last = state;
    if (state !== "connected") return this.#show(state, texts.lineSays[state]);
    if (welcome !== null) return this.#passing(welcome);
    if (was !== "connected") return this.#passing(texts.lineSays.back);
    return undefined;
  }

  /** Say what stays said; `offer` is `[word, run]`, a button beside it. */
  say(sentence, offer = null) {
    this.#show("over", sentence);
    if (offer === null) return;
    const [word, run] = offer;
    this.#place.append(" ", make("button", { class: "small", type: "button", onclick: run }, word));
  }

  #passing(sentence) {
    this.#show("back", sentence);
    this.#timer = setTimeout(() => (this.#place.hidden = true), BACK_MS);
  }

  #show(state, sentence) {
    clearTimeout(this.#timer);
    this.#place.hidden = false;
    mark(this.#place, "data-state", state);
    this.#place.replaceChildren(sentence);
  }
}
