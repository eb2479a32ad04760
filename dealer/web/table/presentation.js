/** What the rules of a table say about how it is shown: its pack of cards, and its game. */

import { cardOf, suitsOfCards } from "../cards.js";
import { loadPack, usePack } from "../packs.js";
import { table as texts } from "../texts.js";
import { noting } from "./actions.js";
import {
  comparesHands, gameHelp, isDealtLater, loadGame, resultRule, suitPattern,
} from "./game.js";
import { offerHelpCard } from "./help_card.js";
import { playedBy } from "./history.js";
import { nameAt, pileName } from "./selectors.js";

const SHOWN_HANDS = new URL("./shown_hands.js", import.meta.url).href;
const SUIT_CHOICE = new URL("./suit_choice.js", import.meta.url).href;

/**
 * Load the pack and the preset of a table, and draw the page again with them.
 *
 * @param {any} page
 * @param {HTMLElement} notice where the help card is offered during a round
 */
export async function loadPresentation(page, notice) {
  const { rules } = page.table.state;
  const [pack, game] = await Promise.all([loadPackOf(rules), loadGame(rules)]);
  if (!pack && !game) return;
  const help = gameHelp();
  if (help !== null && page.table.round !== null) offerHelpCard(notice, help);
  const pattern = suitPattern();
  if (pattern !== null) import(SUIT_CHOICE).then(addChoice, () => {}); // without: people say it
  if (comparesHands()) import(SHOWN_HANDS).then(addKinds, () => {}); // without: people compare
  page.draw();

  function addKinds({ ShownHands }) {
    page.add(new ShownHands(page, {
      rules: resultRule().of, texts: texts.result,
      isBoard: (stack) => isDealtLater(pileName(stack)),
      nameOf: (seat) => nameAt(page.table, seat),
    }));
    page.draw();
  }

  function addChoice({ SuitChoice }) {
    page.add(new SuitChoice(page, {
      pattern, suits: suitsOfCards(), question: texts.whichSuit, sentence: texts.suitNow,
      cardOf,
      playerOf: (slot) => playedBy(page.table, slot)?.seat ?? null,
      say: (phrase) => page.attempt(noting("phrase", phrase)),
    }));
    page.draw();
  }
}

async function loadPackOf({ pack: name }) {
  const pack = await loadPack(name);
  if (pack !== null) usePack(pack);
  return pack !== null;
}
