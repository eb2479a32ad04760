/** The sheet between rounds: what the last one gave each player, and the button of the next one. */

import { cardElement, cardName } from "../cards.js";
import { chipElement, updateChip } from "../chips.js";
import { element, reconcile, setAttribute, setText } from "../dom.js";
import { practiceUrl, tableUrl } from "../server_url.js";
import { list, number, table as texts } from "../texts.js";
import { actionNamed, isVisible } from "./actions.js";
import {
  comparesHands, dealsAtOnce, gameHelp, isDealtLater, playersMissing, resultRule,
  titleOfFirstDeal,
} from "./game.js";
import { showHelpCard } from "./help_card.js";
import { resultOf } from "./result.js";
import { nameAt, pileName } from "./selectors.js";
import { betweenRounds } from "./wording.js";

const FAN = 5; // cards above the sheet before the first round
const SHOWDOWN = new URL("./showdown.js", import.meta.url).href;

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
  #pot = element("p", { class: "muted" }, texts.result.pot);
  /** @type {any} the module that compares hands, once it is loaded */
  #showdown = null;
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
      this.#fan, this.#title, this.#winner, this.#scores, this.#pot, this.#unseen, this.#sentence,
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
      : comparesHands() ? { unit: null, scores: this.#handsOf(round) }
        : rule === null ? { unit: "points", scores: notedScores(markers) }
          : resultOf(rule, round.stacks);
    const winners = scores.filter(({ best }) => best).map(({ seat }) => nameAt(table, seat));
    const hands = unit === null && scores.length > 0;
    this.#winner.hidden = winners.length === 0 && !hands;
    this.#scores.hidden = scores.length === 0;
    this.#pot.hidden = !hands;
    setText(this.#winner, hands ? wordsOfHands(scores, winners)
      : texts.result.winner({ count: winners.length, names: winners }));
    reconcile(this.#scores, scores, {
      key: ({ seat }) => seat,
      create: () => element(
        "li", {}, chipElement(), element("bdi", { class: "name" }),
        element("span", { class: "muted total" }), element("b"),
        element("span", { class: "hand-shown" })),
      update: (item, { seat, value, best, hand = [], kind = null }) => {
        const [badge, name, total, score, cards] = item.children;
        const sum = rule === null ? undefined : markers.scores.get(seat);
        setText(total, kind !== null ? texts.result.kinds[kind]
          : sum === undefined ? "" : texts.result.total({ total: number(sum) }));
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

  /** The hands of a closed round; none until the module is loaded that compares them. */
  #handsOf(round) {
    const { stacks } = round;
    const board = Object.keys(stacks).filter((name) => isDealtLater(pileName(name)));
    if (this.#showdown !== null) {
      return this.#showdown.handsOf(
        resultRule().of, stacks, board.flatMap((name) => stacks[name]));
    }
    import(SHOWDOWN).then((module) => {
      this.#showdown = module;
      this.draw();
    });
    return [];
  }
}

/** Who has the best hand, or who alone has not folded; otherwise that these are the hands. */
function wordsOfHands(hands, names) {
  const best = hands.find((one) => one.best);
  if (best === undefined) return texts.result.shown;
  if (best.kind === null) return texts.result.last({ name: names[0] });
  return texts.result.best({ count: names.length, names, kind: texts.result.kinds[best.kind] });
}

const notedScores = ({ scores }) => [...scores].map(
  ([seat, value]) => ({ seat, value, best: false })).sort((a, b) => a.seat - b.seat);

/** The name of the next step between rounds. */
function startLabel(table) {
  const { rounds } = table.state;
  if (!dealsAtOnce(table)) return rounds === 0 ? texts.startFirst : texts.startRound;
  return rounds === 0 ? titleOfFirstDeal() ?? texts.startDeal : texts.dealAgain;
}
