/** The sheet between rounds: what the last one gave each player, and the button of the next one. */

import { cardElement, cardName, cardSign } from "../cards.js";
import { chipElement, updateChip } from "../chips.js";
import { element, setText } from "../dom.js";
import { practiceUrl, tableUrl } from "../server_url.js";
import { list, number, table as texts } from "../texts.js";
import { actionNamed, isVisible } from "./actions.js";
import {
  comparesHands, dealsAtOnce, gameHelp, isDealtLater, playersMissing, resultRule,
  titleOfFirstDeal,
} from "./game.js";
import { showHelpCard } from "./help_card.js";
import { nameAt, pileName } from "./selectors.js";
import { betweenRounds } from "./wording.js";

const FAN = 5; // cards above the sheet before the first round
const RESULT = new URL("./round_result.js", import.meta.url).href;

export class RoundSheet {
  #page;
  #sheet = element("div", { class: "between" });
  #fan = element("div", { class: "fan", "aria-hidden": "true" },
    ...Array.from({ length: FAN }, () => cardElement(null)));
  #title = element("h2");
  #unseen = element("p", { class: "muted" }, texts.roundNotSeen);
  #sentence = element("p", { class: "muted" });
  /** @type {any} what the last round gave each player, once its module is loaded */
  #result = null;
  #isAsked = false;
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
      this.#fan, this.#title, this.#unseen, this.#sentence,
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
    const chips = comparesHands() && !over && !table.closed ? texts.result.pot : null;
    const sentence = [chips, betweenRounds(table, mayOpen)].filter(Boolean).join(" ") || null;
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

  /** What the round gave each player, once the module is loaded that says it. */
  #drawResult(round) {
    this.#result?.draw(round, this.#page.table);
    if (this.#isAsked || this.#page.table.state.rounds === 0) return;
    this.#isAsked = true;
    import(RESULT).then(({ RoundResult }) => {
      this.#result = new RoundResult({
        texts: texts.result, ruleOf: resultRule, comparesHands,
        isBoard: (stack) => isDealtLater(pileName(stack)),
        nameOf: (seat) => nameAt(this.#page.table, seat),
        words: { list, number },
        pictures: { cardElement, cardName, cardSign, chipElement, updateChip },
      });
      this.#title.after(...this.#result.parts);
      this.draw();
    }, () => {}); // without: only what is next
  }
}

/** The name of the next step between rounds. */
function startLabel(table) {
  const { rounds } = table.state;
  if (!dealsAtOnce(table)) return rounds === 0 ? texts.startFirst : texts.startRound;
  return rounds === 0 ? titleOfFirstDeal() ?? texts.startDeal : texts.dealAgain;
}
