/**
 * The games of the lobby as tiles with a picture and the number of players: those that most people
 * know come first, and "Any game" is last.
 */

import { drawCard } from "../cards.js";
import { element } from "../dom.js";
import { drawCardOf, loadPack } from "../packs.js";
import { inLanguage, lobby as texts } from "../texts.js";

/** The picture of a game whose file has none; null is a card face down. */
const PICTURE = ["As", "Kd"];
const ANY = [null, null];
const FIRST = ["hearts", "holdem", "go-fish", "klondike", "crazy-eights", "gin-rummy"];
const MOST = 5; // cards of a picture, which is a whole deck where the file has none

/** The games of `/games.json` in the order of their tiles. */
export function inOrder(games) {
  const rank = ({ game }) => (FIRST.indexOf(game) + 1 || FIRST.length + 1);
  const byTitle = (a, b) => inLanguage(a.title).localeCompare(inLanguage(b.title));
  return games.toSorted((a, b) => rank(a) - rank(b) || byTitle(a, b));
}

/**
 * The tile of a game, a radio button.
 *
 * @param {any} game of `/games.json`; null for a table without a game
 */
export function tile(game) {
  const title = game === null ? texts.anyGame : inLanguage(game.title);
  return element(
    "label", { class: game === null ? "tile any" : "tile" },
    element("input", { type: "radio", name: "game", value: game?.game ?? "" }),
    picture(game),
    element("span", { class: "title", dir: "auto" }, title),
    element("span", { class: "muted" }, playersOf(game)),
  );
}

function playersOf(game) {
  if (game === null) return texts.tileAny;
  const { min, max } = game.players;
  return min === max ? texts.seated({ taken: max }) : texts.tile({ min, max });
}

function picture(game) {
  const place = element("span", { class: "cards", "aria-hidden": "true" });
  if (game?.pack !== undefined) {
    const { picture: chosen = game.deck.cards ?? game.deck } = game;
    const codes = chosen.slice(0, MOST);
    loadPack(game.pack).then((pack) => place.append(
      ...codes.map((code) => shown((card) => drawCardOf(pack, card, code)))));
  } else {
    const codes = game === null ? ANY : game.picture ?? PICTURE;
    place.append(...codes.map((code) => shown((card) => drawCard(card, code))));
  }
  return place;
}

/** A card of a picture: another pack does not change it, so it has no code. */
function shown(draw) {
  const card = element("span", {});
  draw(card);
  delete card.dataset.card;
  return card;
}
