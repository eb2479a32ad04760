/**
 * Which suit comes next, where a game lets the player of some cards choose it, as after an eight in
 * crazy eights: a choice for that player, and at the pile what was chosen, until another card lies
 * there. It is said by a note of the kind `phrase`, `suit-h`, the newest after the move of the card.
 * Loaded for such games; a module of the page's state would be another one here, so that is given.
 */

import { element, setText } from "../dom.js";

const PILE = "pile:table"; // where cards are played
const OPEN = "…"; // until its player has said it
const RED = ["h", "d"];

/** @typedef {{ phrase: string, key: string, sign: string, name: string }} Suit */
/**
 * @typedef {object} Given
 * @property {string} pattern of the codes of the cards, in which `*` stands for any characters
 * @property {Suit[]} suits
 * @property {string} question
 * @property {(suit: { suit: string }) => string} sentence
 * @property {(slot: number) => number | null} playerOf the seat that played a card
 * @property {(code: string) => { rank: string | null, suit: string | null }} cardOf
 * @property {(phrase: string) => void} say
 */

export class SuitChoice {
  #page;
  #given;
  #fits;
  #choice;
  #sign = element("p", { class: "suit-now" });

  /**
   * @param {any} page
   * @param {Given} given
   */
  constructor(page, given) {
    this.#page = page;
    this.#given = given;
    const parts = given.pattern.split("*").map((part) => part.replace(/[^A-Za-z0-9]/g, "\\$&"));
    this.#fits = new RegExp(`^${parts.join(".*")}$`);
    const buttons = given.suits.map(({ phrase, key, sign, name }) => element("button", {
      type: "button", "aria-label": name, title: name, "data-suit": key,
      onclick: () => given.say(phrase),
    }, sign));
    this.#choice = element(
      "div", { class: "suits", role: "group", "aria-label": given.question, hidden: true },
      element("p", {}, given.question), ...buttons);
    document.getElementById("middle").append(this.#choice);
    page.isOff = ({ card }) => this.#isOff(card);
  }

  /** Whether a card of the hand does not match the last one, for the player in turn. */
  #isOff(code) {
    const { table, markers } = this.#page;
    const last = table.state.round?.stacks[PILE]?.at(-1);
    if (markers.turn !== table.seat || !last?.card || code === null) return false;
    const [card, top] = [code, last.card].map(this.#given.cardOf);
    if (card.rank === null || top.rank === null || this.#fits.test(code)) return false;
    if (!this.#fits.test(last.card)) return card.rank !== top.rank && card.suit !== top.suit;
    const said = this.#saidAfter(last.slot)?.key ?? null;
    return said !== null && card.suit !== said;
  }

  draw() {
    const { table } = this.#page;
    const card = table.round === null ? undefined : table.state.round.stacks[PILE]?.at(-1);
    const asks = typeof card?.card === "string" && card.shown && this.#fits.test(card.card);
    const player = asks ? this.#given.playerOf(card.slot) : null;
    const said = player === null ? null : this.#saidAfter(card.slot);
    const hand = table.state.round?.stacks[`hand:${player}`] ?? [];
    const over = hand.length === 0; // the player has won
    const isOpen = player !== null && said === null && !over;
    this.#choice.hidden = !isOpen || player !== table.seat || table.state.who.annotate === "nobody";
    const shown = said !== null || (isOpen && this.#choice.hidden);
    this.#sign.hidden = !shown;
    if (!shown) return;
    const { sign = OPEN, key = null } = said ?? {};
    setText(this.#sign, this.#given.sentence({ suit: sign }));
    this.#sign.classList.toggle("red", RED.includes(key));
    const pile = document.querySelector(`.stacks > [data-stack="${PILE}"]`);
    if (pile !== null && this.#sign.parentElement !== pile) pile.append(this.#sign);
  }

  /** The suit that was said last after a card was played; null if none was. */
  #saidAfter(slot) {
    const { suits } = this.#given;
    for (const { type, public: event } of this.#page.table.history.toReversed()) {
      if (type === "CardMoved" && event.to === PILE && event.slot === slot) return null;
      const said = type === "NoteAdded" && event.kind === "phrase"
        ? suits.find(({ phrase }) => phrase === event.text) : undefined;
      if (said !== undefined) return said;
    }
    return null;
  }
}
