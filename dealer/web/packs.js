/**
 * Packs: how the cards of a deck are named, drawn and sorted, from `/packs/<name>.json`.
 *
 * A pack may be anyone's. Its pictures are shown as images, in which no script runs, and its texts as
 * text.
 */

import { drawCard, part, useCardsOf } from "./cards.js";
import { addStyles } from "./late_styles.js";
import { fetchJson } from "./server_url.js";
import { inLanguage } from "./texts.js";

/** @typedef {string | Record<string, string>} LocalisedText a text, or texts by language */
/** @typedef {import("./cards.js").PackCard} PackCard */
/**
 * @typedef {object} Pack
 * @property {string} pack
 * @property {LocalisedText} title
 * @property {number} width characters of a code without the number of its copy
 * @property {Record<string, any>} cards by code
 * @property {any[]} suits
 * @property {any[]} ranks
 * @property {LocalisedText} [named]
 * @property {{ colour?: string, svg?: string }} [back]
 * @property {string[]} deck the codes of the whole deck
 */

const NAME = /^[a-z0-9-]{1,64}$/;
const COPY = /^(\.[0-9]+)*$/;
const AS_TEXT = "\ufe0e";
const WIDE = 1.9; // letters of an index in full size
const NARROW = /[Iijl.]/gu; // half as wide as other letters, as in Roman numbers

/**
 * The pack of this name; null if the server does not have it.
 *
 * @param {unknown} name
 * @returns {Promise<Pack | null>}
 */
export async function loadPack(name) {
  return typeof name === "string" && NAME.test(name) ? fetchJson(`packs/${name}.json`) : null;
}

/**
 * Name and draw the page's cards with a pack; null: without one.
 *
 * @param {Pack | null} pack
 */
export function usePack(pack) {
  if (pack !== null) addStyles("packs.css");
  if (pack === null) useCardsOf(() => null);
  else useCardsOf(finder(pack), suitsOf(pack));
  const root = document.documentElement;
  const { colour = null, svg = null } = pack?.back ?? {};
  root.style.setProperty("--card-back", colour);
  root.style.setProperty("--card-back-image", svg === null ? null : `url("${imageOf(svg)}")`);
  root.toggleAttribute("data-pack-back", svg !== null);
}

/**
 * Let an element show a card of a pack that the page does not use; its back if there is no pack.
 *
 * @param {Pack | null} pack
 * @param {HTMLElement} element
 * @param {string | null} code
 */
export function drawCardOf(pack, element, code) {
  const card = pack === null || code === null ? null : finder(pack)(code);
  drawCard(element, card === null ? null : code);
  if (card === null) return;
  addStyles("packs.css");
  card.draw(element);
}

/**
 * A function that finds a card by its code, also in a shoe.
 *
 * @param {Pack} pack
 */
function finder(pack) {
  const suits = byKey(pack.suits, "suit");
  const ranks = byKey(pack.ranks, "rank");
  const order = new Map(Object.keys(pack.cards).map((code, index) => [code, index]));
  /** @type {Map<string, PackCard>} */
  const found = new Map();
  return (code) => {
    const base = code.slice(0, pack.width);
    if (!order.has(base) || !COPY.test(code.slice(pack.width))) return null;
    if (!found.has(base)) {
      const card = pack.cards[base];
      const suit = suits.get(card.suit) ?? null;
      const rank = ranks.get(card.rank) ?? null;
      found.set(base, {
        name: nameOf(pack, card, suit, rank),
        weight: {
          suit: suit?.index ?? suits.size,
          rank: rank?.index ?? ranks.size + order.get(base),
        },
        draw: (element) => drawPackCard(element, pack.pack, card, suit, rank),
      });
    }
    return found.get(base);
  };
}

/** As of `suitsOfCards`; a phrase has small letters only. */
function suitsOf({ suits }) {
  return suits.map(({ suit: key, name, sign }) => {
    const named = inLanguage(name);
    return {
      phrase: `suit-${key.toLowerCase()}`, key, name: named, sign: sign ? sign + AS_TEXT : named,
    };
  });
}

function byKey(list, key) {
  return new Map(list.map((one, index) => [one[key], { ...one, index }]));
}

function nameOf(pack, card, suit, rank) {
  if (card.name !== undefined) return inLanguage(card.name);
  return inLanguage(pack.named)
    .replace("{rank}", () => inLanguage(rank.name)).replace("{suit}", () => inLanguage(suit.name));
}

function drawPackCard(element, pack, card, suit, rank) {
  element.dataset.pack = pack;
  element.toggleAttribute("data-ground", card.ground !== undefined);
  const style = (name, value) => value !== undefined && element.style.setProperty(name, value);
  style("--ink", card.colour ?? suit?.colour);
  style("--ground", card.ground);
  const index = card.corner ?? rank?.corner ?? "";
  const letters = index.length - (index.match(NARROW) ?? []).length / 2;
  style("--corner-size", String(0.29 * Math.min(1, WIDE / Math.max(1, letters))));
  const corner = () => part("corner", part("rank", index), ...markOf(suit));
  element.replaceChildren(corner(), corner(), middleOf(element, card, suit, rank));
}

/** What a card shows in its middle: a picture, a text, the mark of its suit, or its name. */
function middleOf(element, card, suit, rank) {
  const svg = card.svg ?? rank?.svg;
  if (svg !== undefined) return part("middle picture", pictureOf(svg));
  const text = card.text ?? rank?.text ?? (suit === null ? card.name : undefined);
  if (text === undefined) return part("middle", ...markOf(suit));
  const words = inLanguage(text);
  const { length } = Array.from(words);
  if (length <= 2) {
    element.style.setProperty("--text-size", String(length === 1 ? 0.5 : 0.34));
    return part("middle", words + AS_TEXT);
  }
  const longest = Math.max(...words.split(" ").map((word) => word.length));
  element.style.setProperty("--text-size", String(Math.min(0.17, 1.15 / longest)));
  return part("middle words", words);
}

/** The mark of a suit: its picture, or its sign. */
function markOf(suit) {
  if (suit === null || (suit.svg === undefined && suit.sign === undefined)) return [];
  return [part("suit", suit.svg === undefined ? suit.sign + AS_TEXT : pictureOf(suit.svg))];
}

function pictureOf(svg) {
  const picture = document.createElement("img");
  picture.alt = "";
  picture.draggable = false;
  picture.src = imageOf(svg);
  return picture;
}

const imageOf = (svg) => `data:image/svg+xml,${encodeURIComponent(svg)}`;
