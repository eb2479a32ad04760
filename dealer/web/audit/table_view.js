/**
 * The table of a replay: each stack a row of cards, the bottom card first.
 *
 * Elements are reused, and only cards that have changed are drawn again, so that scrubbing through
 * a shuffle of 416 cards draws two cards at a time. Cards that moved are animated.
 */

import { drawCard } from "../cards.js";
import { element, setAttribute, setText } from "../dom.js";
import { audit as texts } from "../texts.js";
import { seatOf } from "../verify.js";

const MAX_ANIMATED = 30; // cards
const MANY = 60; // from so many cards on, rows are one suit long
const CROWD = 200; // from so many cards on, rows are as long as the table is wide
const WIDE_PX = 560; // of the table, for rows of two suits, and cards with two corners
const LOW = matchMedia("(max-height: 30rem)"); // the controls leave room for two rows
const GAP = 0.06; // between two cards, as a part of a card's width
const MAX_CARD_PX = { few: 50, many: 32, crowd: 22 };
const CROWD_ACROSS = 16; // cards in a row, at least

const stacks = new Map(); // by name, as `emptyStack` makes them
let order = "";

/**
 * Draw the stacks.
 *
 * @param {HTMLElement} container
 * @param {Map<string, { card: number, face: string | null }[]>} shown by stack, bottom first
 * @param {object} options
 * @param {(stack: string) => string} options.titles headings
 * @param {Map<number, string>} options.marks "i", "j", "i = j" or "moved", by card
 * @param {{ stack: string, settled: (index: number) => boolean } | null} options.shuffling the
 *   stack that is being shuffled, and which of its places have their final card
 * @param {number} options.flight duration of animations in ms; 0 for none
 */
export function draw(container, shown, { titles, marks, shuffling, flight }) {
  arrange(container, shown);
  const changed = [];
  for (const [name, cards] of shown) changed.push(...changes(stacks.get(name), cards));
  const from = flight > 0 && changed.length <= 4 * MAX_ANIMATED ? positions(changed) : null;
  for (const [name, cards] of shown) setCards(stacks.get(name), cards);
  for (const [name, cards] of shown) style(stacks.get(name), name, cards, titles, marks, shuffling);
  if (from !== null) animate(from, flight);
}

/** Put one element for each stack into the container: the deck, then hands, then piles. */
function arrange(container, shown) {
  const names = [...shown.keys()].sort(compareStacks);
  if (order === names.join()) return;
  order = names.join();
  for (const name of names) if (!stacks.has(name)) stacks.set(name, emptyStack(name));
  for (const name of [...stacks.keys()]) if (!shown.has(name)) stacks.delete(name);
  container.replaceChildren(...names.map((name) => stacks.get(name).node));
}

const rank = (name) => (name === "deck" ? 0 : seatOf(name) !== null ? 1 : 2);

function compareStacks(a, b) {
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return rank(a) === 1 ? seatOf(a) - seatOf(b) : a < b ? -1 : 1;
}

function emptyStack(name) {
  const title = element("b", {});
  const count = element("span", {});
  const list = element("ol", {});
  const node = element("div", { class: "stack", "data-stack": name, role: "group" },
    element("h3", {}, title, " ", count), list);
  return { node, title, count, list, places: [] };
}

/** The places that are drawn and will have another card. */
function changes({ places }, cards) {
  return places.filter(({ card, face }, index) =>
    card !== cards[index]?.card || face !== faceOrBack(cards[index]));
}

const faceOrBack = (shown) => (shown === undefined ? null : (shown.face ?? "??"));

function setCards(stack, cards) {
  const { places, list } = stack;
  while (places.length > cards.length) places.pop().node.remove();
  cards.forEach((shown, index) => {
    if (index === places.length) {
      const picture = element("span", { role: "img" });
      const node = element("li", {}, picture);
      list.append(node);
      places.push({ node, picture, card: null, face: null });
    }
    const place = places[index];
    const face = faceOrBack(shown);
    if (place.face !== face) drawCard(place.picture, shown.face);
    Object.assign(place, { card: shown.card, face });
  });
}

function style(stack, name, cards, titles, marks, shuffling) {
  const { node, places } = stack;
  const isShuffling = shuffling?.stack === name;
  const wide = name === "deck" || isShuffling || cards.length > 26;
  node.classList.toggle("wide", wide);
  node.classList.toggle("suits", wide && cards.length > 13 && cards.length <= CROWD);
  node.classList.toggle("small", !wide);
  node.classList.toggle("shuffling", isShuffling);
  setText(stack.title, titles(name));
  setText(stack.count, texts.cards({ count: cards.length }));
  setAttribute(node, "aria-label", texts.stackLabel({
    title: titles(name), count: cards.length,
  }));
  places.forEach(({ node: item, card }, index) => {
    const mark = marks.get(card) ?? "";
    const letter = mark.startsWith("i") ? "i" : mark;
    item.classList.toggle("mark-i", letter === "i");
    item.classList.toggle("mark-j", letter === "j");
    item.classList.toggle("mark-moved", letter === "moved");
    item.classList.toggle("settled", isShuffling && shuffling.settled(index));
    const labelled = letter === "i" || letter === "j";
    setAttribute(item, "data-mark", labelled ? String(index + 1) : null);
  });
}

/**
 * Set the size of all cards, for a round of `count` cards and a container that is `width` pixels
 * wide inside. To be called when either changes, because it causes a complete layout.
 */
export function fitTo(container, count, width) {
  const size = count > CROWD ? "crowd" : count > MANY ? "many" : "few";
  const isLong = width > WIDE_PX && (size === "many" || LOW.matches);
  const across = size === "crowd" ? CROWD_ACROSS : isLong ? 26 : 13;
  const room = width / (across + GAP * (across - 1)) - 0.1;
  container.style.setProperty("--card", `${Math.min(MAX_CARD_PX[size], room)}px`);
  container.style.setProperty("--across", String(across));
  container.classList.toggle("signs", size !== "few" || isLong || width < WIDE_PX);
}

/** The positions of cards on the page, by card. */
function positions(places) {
  return new Map(places.filter(({ card }) => card !== null).map(({ card, node }) =>
    [card, node.getBoundingClientRect()]));
}

function animate(from, duration) {
  let animated = 0;
  for (const { places } of stacks.values()) {
    for (const { card, node, picture } of places) {
      const old = from.get(card);
      if (old === undefined || animated >= MAX_ANIMATED) continue;
      const current = node.getBoundingClientRect();
      const [dx, dy] = [old.left - current.left, old.top - current.top];
      if (Math.abs(dx) + Math.abs(dy) < 1) continue;
      animated += 1;
      node.classList.add("flying");
      const lift = `translate(${dx / 2}px, ${dy / 2 - 10}px) scale(1.12)`;
      picture.animate(
        [{ transform: `translate(${dx}px, ${dy}px)` }, { transform: lift }, { transform: "none" }],
        { duration, easing: "ease-in-out" },
      ).finished.then(() => node.classList.remove("flying"), () => {});
    }
  }
}
