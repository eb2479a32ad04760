/** What the rules of a table say about how it is shown: its pack of cards, and its game. */

import { loadPack, usePack } from "../packs.js";
import { gameHelp, loadGame } from "./game.js";
import { offerHelpCard } from "./help_card.js";

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
  page.draw();
}

async function loadPackOf({ pack: name }) {
  const pack = await loadPack(name);
  if (pack !== null) usePack(pack);
  return pack !== null;
}
