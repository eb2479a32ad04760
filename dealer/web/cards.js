/**
 * How a card looks and what it is called: "As" is an ace of spades, drawn with CSS and text.
 *
 * Codes are the wire's: rank `A23456789TJQK` and suit `shdc`, jokers `X1 X2`, in a shoe with the
 * deck behind a dot (`As.3`), and any code of up to 16 characters that a deck of its own brings.
 * `cards.css` draws what is made here; its `--card` is a card's width.
 */

import { cards as texts } from "./texts/english.js";

const SUITS = { s: "♠", h: "♥", d: "♦", c: "♣" };
const RANKS = "A23456789TJQK";
const STANDARD = /^([A2-9TJQK])([shdc])(?:\.0*(\d+))?$/;
const JOKER = /^X([12])(?:\.0*(\d+))?$/;
const AS_TEXT = "\ufe0e";
const COLOURS = "dealer/page/colours";

/**
 * What a code means: `{ rank, suit, joker, deck, own }`, of which those that it does not have are
 * null; `deck` is its number in a shoe, `own` the code itself where it is no card known here.
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

/** What a card is called, "ace of spades"; "face-down card" where its code is null. */
export function cardName(code) {
  if (code === null || code === "??") return texts.faceDown;
  const { rank, suit, joker, deck, own } = cardOf(code);
  if (own !== null) return own;
  const name = joker ? texts.jokers[joker] : texts.named(texts.ranks[rank], texts.suits[suit]);
  return deck === null ? name : texts.ofDeck(name, deck);
}

/** The short form for a line of text, "A♠"; the code itself where it is no card known here. */
export function cardSign(code) {
  const { rank, suit, joker, own } = cardOf(code);
  if (own !== null) return own;
  return joker ? texts.jokers[joker] : shownRank(rank) + SUITS[suit] + AS_TEXT;
}

/**
 * A card to put on the page, `role="img"` with its name.
 *
 * `code` may be null: nobody here knows it. `faceUp` false shows its back and does not name it.
 * `fourColour` colours this one card in four colours; `useFourColours` does so for the whole page.
 */
export function cardElement(code, { faceUp = code !== null, fourColour = false } = {}) {
  const element = document.createElement("span");
  element.setAttribute("role", "img");
  drawCard(element, faceUp ? code : null);
  if (fourColour) element.classList.add("four-colour");
  return element;
}

/** Make an element that `cardElement` made show another card, or its back where `code` is null. */
export function drawCard(element, code) {
  element.classList.add("card");
  element.setAttribute("aria-label", cardName(code));
  for (const name of ["suit", "court", "joker", "own"]) delete element.dataset[name];
  element.style.removeProperty("--code-size");
  element.dataset.face = code === null || code === "??" ? "down" : "up";
  if (element.dataset.face === "down") {
    delete element.dataset.card;
    element.replaceChildren();
    return;
  }
  element.dataset.card = code;
  const { rank, suit, joker, deck, own } = cardOf(code);
  if (own !== null) drawOwn(element, own);
  else if (joker) drawJoker(element, joker);
  else drawStandard(element, rank, suit);
  if (deck !== null) element.append(part("deck-number", deck));
}

/**
 * Compares two codes for sorting a hand: by `"suit"` (spades, hearts, clubs, diamonds, so that the
 * colours alternate) or by `"rank"`, aces high; jokers and unknown codes come last.
 */
export function compareCards(a, b, by) {
  const [first, second] = [weight(a), weight(b)];
  const order = by === "suit" ? ["suit", "rank"] : ["rank", "suit"];
  for (const key of order) {
    if (first[key] !== second[key]) return first[key] - second[key];
  }
  return a < b ? -1 : Number(a > b);
}

/** Whether this browser remembers that suits have four colours. */
export function usesFourColours() {
  try {
    return localStorage.getItem(COLOURS) === "four";
  } catch {
    return false;
  }
}

/** Give the suits of this page four colours, or two, and remember it. */
export function useFourColours(four) {
  document.documentElement.classList.toggle("four-colour", four);
  try {
    localStorage.setItem(COLOURS, four ? "four" : "two");
  } catch {
    // A browser that keeps nothing for pages still colours this one.
  }
}

function weight(code) {
  const { rank, suit } = cardOf(code);
  if (rank === null) return { suit: 9, rank: 99 };
  return { suit: "shcd".indexOf(suit), rank: -((RANKS.indexOf(rank) + 12) % 13) };
}

function shownRank(rank) {
  return rank === "T" ? "10" : rank;
}

function drawStandard(element, rank, suit) {
  element.dataset.suit = suit;
  const corner = () => part("corner", part("rank", shownRank(rank)), suitPart(suit));
  const court = "JQK".includes(rank);
  if (court) element.dataset.court = "";
  const middle = court ? part("rank", rank) : suitPart(suit);
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

function suitPart(suit) {
  return part("suit", SUITS[suit] + AS_TEXT);
}

function part(name, ...children) {
  const element = document.createElement("span");
  element.className = name;
  element.setAttribute("aria-hidden", "true");
  element.append(...children);
  return element;
}

if (usesFourColours()) document.documentElement.classList.add("four-colour");
