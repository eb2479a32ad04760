/** The sheet between rounds: what the last one gave each player, and the button of the next one. */

import { cardElement, cardName } from "../cards.js";
import { chipElement, updateChip } from "../chips.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { practiceUrl, tableUrl } from "../server_url.js";
import { list, number, table as texts } from "../texts.js";
import { seatOf } from "../verify.js";
import { actionNamed, isVisible } from "./actions.js";
import {
  comparesHands, dealsAtOnce, gameHelp, playersMissing, resultRule, titleOfFirstDeal,
} from "./game.js";
import { showHelpCard } from "./help_card.js";
import { resultOf } from "./result.js";
import { nameAt } from "./selectors.js";
import { betweenRounds } from "./wording.js";

const FAN = 5; // cards above the sheet before the first round

export class RoundSheet {
  #page;
  #sheet = element("div", { class: "between" });
  #fan = element("div", { class: "fan", "aria-hidden": "true" },
    ...Array.from({ length: FAN }, () => cardElement(null)));
  #title = element("h2");
  #winner = element("p", { class: "winner" });
  #scores = element("ol", { class: "scores", role: "list", "aria-label": texts.result.label });
  #unseen = element("p", { class: "muted" }, texts.roundNotSeen);
  #sentence = element("p", { class: "muted" });
  #start;
  #check = element("a", { class: "button" }, texts.watchAudit);
  #again = element("a", { class: "button" }, texts.playAgain);
  #help;

  constructor(container, page) {
    this.#page = page;
    this.#start = element("button", {
      class: "primary", type: "button", onclick: (event) => page.click("openRound", event),
    });
    this.#help = element("button", {
      class: "borderless", type: "button", onclick: () => showHelpCard(gameHelp()),
    });
    this.#sheet.append(
      this.#fan, this.#title, this.#winner, this.#scores, this.#unseen, this.#sentence,
      element("div", { class: "next" }, this.#start, this.#check, this.#again, this.#help));
    container.prepend(this.#sheet);
  }

  draw() {
    const { table } = this.#page;
    this.#sheet.hidden = table.round !== null;
    if (table.round !== null) return;
    const { rounds, closedRound } = table.state;
    const mayOpen = isVisible(actionNamed("openRound"), table) && !table.closed;
    const over = rounds > 0;
    const help = gameHelp();
    this.#fan.hidden = over;
    this.#title.hidden = !over && help === null;
    const to = resultRule()?.to;
    const ended = texts.roundIsOver({ round: rounds });
    setText(this.#title, !over ? help?.title ?? ""
      : to === undefined ? ended : `${ended} · ${texts.result.to({ points: to })}`);
    this.#drawResult(closedRound);
    this.#unseen.hidden = !over || closedRound !== null;
    const sentence = betweenRounds(table, mayOpen);
    this.#sentence.hidden = sentence === null;
    setText(this.#sentence, sentence ?? "");
    this.#start.hidden = !mayOpen || playersMissing(table) !== null;
    setText(this.#start, startLabel(table));
    this.#check.hidden = !over;
    this.#check.href = tableUrl(table.id, `/audit#round=${rounds}`);
    this.#again.hidden = !over || table.insecure;
    // A practice round again as it was laid out.
    this.#again.href = practiceUrl(
      (rounds === 1 && table.practice) || { table: table.id, round: rounds });
    this.#help.hidden = help === null || over; // the menu has it, too
    if (help !== null) setText(this.#help, texts.howToPlay({ game: help.title }));
  }

  /** The scores of a closed round by the game's rule; without one, those that were noted. */
  #drawResult(round) {
    const { table, markers } = this.#page;
    const rule = resultRule();
    /** @type {{ unit: string | null, scores: any[] }} */
    const { unit, scores } = round === null ? { unit: null, scores: [] }
      : comparesHands() ? { unit: null, scores: handsOf(round) }
        : rule === null ? { unit: "points", scores: notedScores(markers) }
          : resultOf(rule, round.stacks);
    const winners = scores.filter(({ best }) => best).map(({ seat }) => nameAt(table, seat));
    this.#winner.hidden = winners.length === 0;
    this.#scores.hidden = scores.length === 0;
    setText(this.#winner, texts.result.winner({ count: winners.length, names: winners }));
    reconcile(this.#scores, scores, {
      key: ({ seat }) => seat,
      create: () => element(
        "li", {}, chipElement(), element("bdi", { class: "name" }),
        element("span", { class: "muted total" }), element("b"),
        element("span", { class: "hand-shown" })),
      update: (item, { seat, value, best, hand = [] }) => {
        const [badge, name, total, score, cards] = item.children;
        const sum = rule === null ? undefined : markers.scores.get(seat);
        setText(total, sum === undefined ? "" : texts.result.total({ total: number(sum) }));
        const player = nameAt(table, seat);
        updateChip(badge, { seat, name: player });
        setText(name, player);
        setText(score, unit !== null ? texts.result[unit]({ count: value })
          : hand.length === 0 ? texts.result.fold : "");
        reconcile(cards, hand, { key: ({ id }) => id, create: ({ card }) => cardElement(card) });
        const names = hand.map(({ card }) => cardName(card));
        setAttribute(cards, "role", hand.length > 0 ? "img" : null);
        setAttribute(cards, "aria-label", hand.length > 0 ? list(names) : null);
        setAttribute(item, "data-best", best);
      },
    });
  }
}

const notedScores = ({ scores }) => [...scores].map(
  ([seat, value]) => ({ seat, value, best: false })).sort((a, b) => a.seat - b.seat);

/** The hand of each seat of a closed round; none of those who have folded. */
const handsOf = ({ stacks }) => Object.entries(stacks).filter(([name]) => seatOf(name) !== null)
  .map(([name, hand]) => ({ seat: seatOf(name), value: 0, best: false, hand }))
  .sort((a, b) => b.hand.length - a.hand.length || a.seat - b.seat);

/** The name of the next step between rounds. */
function startLabel(table) {
  const { rounds } = table.state;
  if (!dealsAtOnce(table)) return rounds === 0 ? texts.startFirst : texts.startRound;
  return rounds === 0 ? titleOfFirstDeal() ?? texts.startDeal : texts.dealAgain;
}
