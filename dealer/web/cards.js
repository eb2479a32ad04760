/**
 * Card elements, names and sort order: "As" is the ace of spades, drawn with CSS and text.
 *
 * Card codes are those of the wire: rank `A23456789TJQK` and suit `shdc`, jokers `X1 X2`, in a shoe
 * with the deck's number after a dot (`As.3`), and any code of up to 16 characters in custom decks.
 * `cards.css` has the styles; its `--card` is the width of a card. A pack (`packs.js`) may name and
 * draw the cards of its deck in its own way.
 */

import { remember, stored } from "./page_storage.js";
import { shared } from "./texts.js";

const SUITS = { s: "♠", h: "♥", d: "♦", c: "♣" };
const RANKS = "A23456789TJQK";
const STANDARD = /^([A2-9TJQK])([shdc])(?:\.0*(\d+))?$/;
const JOKER = /^X([12])(?:\.0*(\d+))?$/;
const AS_TEXT = "\ufe0e";
/** Properties that cards set on their elements. */
const OWN_STYLES = ["--code-size", "--ink", "--ground", "--corner-size", "--text-size"];
const COLOURS = "dealer/page/colours";
const texts = shared.cards;

/**
 * A card of a pack.
 *
 * @typedef {object} PackCard
 * @property {string} name
 * @property {{ suit: number, rank: number }} weight its place in a sorted hand
 * @property {(element: HTMLElement) => void} draw
 */

/** @type {(code: string) => PackCard | null} */
let cardOfPack = () => null;
const STANDARD_SUITS = Object.entries(SUITS).map(([key, sign]) => (
  { phrase: `suit-${key}`, key, sign: sign + AS_TEXT, name: texts.suits[key] }));
let suits = STANDARD_SUITS;

/**
 * Name and draw cards with a pack from now on, also those that are on the page.
 *
 * @param {(code: string) => PackCard | null} find null for a code that the pack does not have
 * @param {typeof STANDARD_SUITS} [ofPack] the suits of the pack
 */
export function useCardsOf(find, ofPack = STANDARD_SUITS) {
  cardOfPack = find;
  suits = ofPack;
  for (const element of document.querySelectorAll(".card[data-card]")) {
    const card = /** @type {HTMLElement} */ (element);
    drawCard(card, card.dataset.card);
  }
}

/**
 * The parts of a code, null where it has none; `deck` is its number in a shoe, and `own` the code
 * itself if it is not a standard card.
 *
 * @param {string} code
 * @returns {{ rank: string | null, suit: string | null, joker: string | null,
 *   deck: string | null, own: string | null }}
 */
export function cardOf(code) {
  const standard = STANDARD.exec(code);
  if (standard) {
    const [, rank, suit, deck = null] = standard;
    return { rank, suit, joker: null, deck, own: null };
  }
  const joker = JOKER.exec(code);
  if (joker) return { rank: null, suit: null, joker: joker[1], deck: joker[2] ?? null, own: null };
  return { rank: null, suit: null, joker: null, deck: null, own: code };
}

/**
 * A card's name, such as "ace of spades"; "face-down card" if its code is null.
 *
 * @param {string | null} code
 */
export function cardName(code) {
  if (code === null || code === "??") return texts.faceDown;
  const inPack = cardOfPack(code);
  if (inPack !== null) return inPack.name;
  const { rank, suit, joker, deck, own } = cardOf(code);
  if (own !== null) return own;
  const name = joker ? texts.jokers[joker] : texts.named({
    rank: texts.ranks[rank], suit: texts.suits[suit],
  });
  return deck === null ? name : texts.ofDeck({ name, deck });
}

/**
 * A card's short form, such as "A♠"; a pack's name of it, or the code if it is no standard card.
 *
 * @param {string} code
 */
export function cardSign(code) {
  const inPack = cardOfPack(code);
  if (inPack !== null) return inPack.name;
  const { rank, suit, joker, own } = cardOf(code);
  if (own !== null) return own;
  return joker ? texts.jokers[joker] : shownRank(rank) + suitSign(suit);
}

/** The sign of a suit. */
export const suitSign = (suit) => SUITS[suit] + AS_TEXT;

/** The suits of the page's cards, each with the key of the phrase that names it. */
export const suitsOfCards = () => suits;

/**
 * A card element with `role="img"` and the card's name as its label.
 *
 * @param {string | null} code null if the card is unknown
 */
export function cardElement(code) {
  const element = document.createElement("span");
  element.setAttribute("role", "img");
  drawCard(element, code);
  return element;
}

/**
 * Let an element from `cardElement` show another card, or its back if `code` is null.
 *
 * @param {HTMLElement} element
 * @param {string | null} code
 */
export function drawCard(element, code) {
  element.classList.add("card");
  element.setAttribute("translate", "no");
  element.setAttribute("aria-label", cardName(code));
  for (const name of ["suit", "court", "joker", "own", "pack"]) delete element.dataset[name];
  for (const name of OWN_STYLES) element.style.removeProperty(name);
  element.dataset.face = code === null || code === "??" ? "down" : "up";
  if (element.dataset.face === "down") {
    delete element.dataset.card;
    element.replaceChildren();
    return;
  }
  element.dataset.card = code;
  const inPack = cardOfPack(code);
  if (inPack !== null) {
    inPack.draw(element);
    return;
  }
  const { rank, suit, joker, deck, own } = cardOf(code);
  if (own !== null) drawOwn(element, own);
  else if (joker) drawJoker(element, joker);
  else drawStandard(element, rank, suit);
  if (deck !== null) element.append(part("deck-number", deck));
}

/**
 * Compare two codes for sorting a hand: by suit (spades, hearts, clubs, diamonds, so that the
 * colours alternate) or by rank, aces high. Jokers and unknown codes come last.
 *
 * @param {string} a
 * @param {string} b
 * @param {"suit" | "rank"} by
 */
export function compareCards(a, b, by) {
  const [first, second] = [weight(a), weight(b)];
  const order = by === "suit" ? ["suit", "rank"] : ["rank", "suit"];
  for (const key of order) {
    if (first[key] !== second[key]) return first[key] - second[key];
  }
  return a < b ? -1 : Number(a > b);
}

/** Whether four suit colours are stored as this browser's preference. */
export const usesFourColours = () => stored.getItem(COLOURS) === "four";

/** Set four or two suit colours for this page, and store the preference. */
export function useFourColours(four) {
  document.documentElement.classList.toggle("four-colour", four);
  remember(COLOURS, four ? "four" : "two");
}

function weight(code) {
  const inPack = cardOfPack(code);
  if (inPack !== null) return inPack.weight;
  const { rank, suit } = cardOf(code);
  if (rank === null) return { suit: 9, rank: 99 };
  return { suit: "shcd".indexOf(suit), rank: -((RANKS.indexOf(rank) + 12) % 13) };
}

function shownRank(rank) {
  return rank === "T" ? "10" : rank;
}

function drawStandard(element, rank, suit) {
  element.dataset.suit = suit;
  const sign = SUITS[suit] + AS_TEXT;
  const corner = () => part("corner", signed("rank", shownRank(rank)), signed("suit", sign));
  const court = "JQK".includes(rank);
  if (court) element.dataset.court = "";
  const middle = court ? signed("rank", rank) : signed("suit", sign);
  element.replaceChildren(corner(), corner(), part("middle", middle));
}

function drawJoker(element, joker) {
  element.dataset.joker = joker;
  const corner = () => part("corner", ...Array.from("JOKER", (letter) => part("rank", letter)));
  element.replaceChildren(corner(), corner(), part("middle", "★" + AS_TEXT));
}

function drawOwn(element, code) {
  element.dataset.own = "";
  element.style.setProperty("--code-size", String(Math.max(0.14, Math.min(0.42, 1 / code.length))));
  element.replaceChildren(part("middle", code));
}

/** A part whose sign is no text: what is called by its name has no other words (WCAG 2.5.3). */
function signed(name, sign) {
  const element = part(name);
  element.dataset.sign = sign;
  return element;
}

/** A part of a card, which screen readers skip. */
export function part(name, ...children) {
  const element = document.createElement("span");
  element.className = name;
  element.setAttribute("aria-hidden", "true");
  element.append(...children);
  return element;
}

if (usesFourColours()) document.documentElement.classList.add("four-colour");
