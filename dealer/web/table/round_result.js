/**
 * What the last round gave each player, in the sheet between rounds: points and totals, tricks, or
 * the hands of poker. Loaded when a round is over; a module of the page's state would be another one
 * here, so that is given.
 */

import { element, reconcile, setAttribute, setText } from "../dom.js";
import { resultOf } from "./result.js";
import { handsOf, wordsOf } from "./showdown.js";

/**
 * @typedef {object} Given
 * @property {any} texts
 * @property {() => any} ruleOf the rule of the game for results; null for none
 * @property {() => boolean} comparesHands
 * @property {(stack: string) => boolean} isBoard
 * @property {(seat: number) => string} nameOf
 * @property {{ list: (texts: string[]) => string, number: (value: number) => string }} words
 * @property {{ cardElement: (code: string) => HTMLElement, cardName: (code: string) => string,
 *   cardSign: (code: string) => string, chipElement: () => HTMLElement,
 *   updateChip: (chip: any, player: any) => void }} pictures
 */

const SUITS = { h: "heart", d: "diamond", c: "club" }; // as in the log

export class RoundResult {
  #given;
  #says = element("span");
  #ahead = element("small");
  #winner = element("p", { class: "winner" }, this.#says, this.#ahead);
  #scores;
  #pot;

  /** @param {Given} given */
  constructor(given) {
    this.#given = given;
    const { label, pot } = given.texts;
    this.#scores = element("ol", { class: "scores", role: "list", "aria-label": label });
    this.#pot = element("p", { class: "muted" }, pot);
  }

  /** In their order. */
  get parts() {
    return [this.#winner, this.#scores, this.#pot];
  }

  /**
   * The scores of a closed round by the game's rule; without one, those that were noted.
   *
   * @param {any} round null if its cards were not seen
   * @param {any} table
   */
  draw(round, table) {
    const { texts, nameOf, ruleOf, words } = this.#given;
    const rule = ruleOf();
    /** @type {{ unit: string | null, scores: any[] }} */
    const { unit, scores } = round === null ? { unit: null, scores: [] }
      : rule === null ? { unit: "points", scores: notedScores(table.markers) }
        : this.#resultOf(rule, round);
    const totals = new Map(rule?.points === undefined ? [] : scores.map(
      ({ seat, value }) => [seat, totalBefore(table, seat, value)]));
    const goesOn = [...totals.values()].some((total) => total !== 0);
    const after = ({ seat, value }) => (totals.get(seat) ?? 0) + value;
    const sign = rule?.best === "most" ? -1 : 1;
    if (goesOn) scores.sort((a, b) => sign * (after(a) - after(b)));
    const winners = scores.filter(({ best }) => best).map(({ seat }) => nameOf(seat));
    const hands = unit === null && scores.length > 0;
    this.#winner.hidden = winners.length === 0 && !hands;
    this.#scores.hidden = scores.length === 0;
    this.#pot.hidden = !hands;
    // Of a game to some points a hand is only a part, until a player has those.
    const { to = null, best } = rule ?? {};
    const isPart = to !== null && !scores.some((score) => after(score) >= to);
    const first = scores.length > 0 ? after(scores[0]) : 0;
    const leaders = scores.filter((one) => after(one) === first).map(({ seat }) => nameOf(seat));
    const won = to === null ? winners : leaders;
    setText(this.#says, hands ? wordsOf(scores, texts, nameOf, table.seat)
      : isPart ? texts.hand({ best, names: winners })
        : texts.winner({ count: won.length, names: won }));
    const all = rule?.all !== undefined && tookAll(scores, rule.all);
    setText(this.#ahead, all ? texts.all({ name: nameOf(all.seat), points: rule.all })
      : isPart && goesOn ? texts.ahead(
      { count: leaders.length, names: leaders, score: words.number(first) }) : "");
    // Who alone has not folded wins with any cards.
    if (hands && winners.length === 1 && scores[0].kind !== null) this.#showFive(scores[0].five);
    reconcile(this.#scores, scores, {
      key: ({ seat }) => seat,
      create: () => element(
        "li", {}, this.#given.pictures.chipElement(), element("bdi", { class: "name" }),
        element("span", { class: "muted total" }), element("b"),
        element("span", { class: "hand-shown" })),
      update: (item, score) => this.#update(
        item, score, unit, goesOn ? totals.get(score.seat) : null),
    });
  }

  /** `before` is the total before the round; null where only the round counts. */
  #update(item, { seat, value, best, hand = [], kind = null }, unit, before) {
    const { texts, nameOf, pictures, words } = this.#given;
    const [badge, name, total, score, cards] = item.children;
    const player = nameOf(seat);
    pictures.updateChip(badge, { seat, name: player });
    setText(name, player);
    setText(total, kind !== null ? texts.kinds[kind] : before === null ? ""
      : texts.sum({ before: words.number(before), now: words.number(value) }));
    setText(score, before !== null ? `= ${words.number(before + value)}`
      : unit !== null ? texts[unit]({ count: value }) : hand.length === 0 ? texts.fold : "");
    reconcile(cards, hand, {
      key: ({ id }) => id, create: ({ card }) => pictures.cardElement(card),
    });
    const names = hand.map(({ card }) => pictures.cardName(card));
    setAttribute(cards, "role", hand.length > 0 ? "img" : null);
    setAttribute(cards, "aria-label", hand.length > 0 ? words.list(names) : null);
    setAttribute(item, "data-best", best);
  }

  #resultOf(rule, { stacks }) {
    if (!this.#given.comparesHands()) return resultOf(rule, stacks);
    const board = Object.keys(stacks).filter((name) => this.#given.isBoard(name));
    return { unit: null, scores: handsOf(rule.of, stacks, board.flatMap((name) => stacks[name])) };
  }

  /** The cards that make the best hand, in signs and colours. */
  #showFive(five) {
    this.#ahead.replaceChildren(...five.flatMap(({ card }) => [
      element("span", { class: SUITS[card[1]] }, this.#given.pictures.cardSign(card)), " "]));
  }
}

const notedScores = ({ scores }) => [...scores].map(
  ([seat, value]) => ({ seat, value, best: false })).sort((a, b) => a.seat - b.seat);

/** The score of the player who took the points of all cards; the others get `points` each. */
const tookAll = (scores, points) => scores.length > 1
  && scores.filter(({ value }) => value === points).length === scores.length - 1
  && scores.find(({ value }) => value === 0);

/**
 * The total of a seat before the last round, which gave it `value`: that which was noted since the
 * round without the value, or the last one before.
 */
function totalBefore({ markers, history }, seat, value) {
  const noted = markers.scores.get(seat) ?? 0;
  const closed = history.findLastIndex(({ type }) => type === "RoundClosed");
  const isNoted = history.slice(Math.max(0, closed)).some(({ type, public: event }) =>
    type === "NoteAdded" && event.kind === "score" && event.text.startsWith(`${seat}:`));
  return isNoted ? noted - value : noted;
}
