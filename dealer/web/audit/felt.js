/**
 * The table as it is drawn: each stack a row of places, the bottom card first.
 *
 * A place keeps its element, and only those are drawn anew whose card is another than before; so a
 * scrub through 416 cards is two of them at a time. What moved flies from where it lay.
 */

import { drawCard } from "../cards.js";
import { make, mark, write } from "../make.js";
import { audit as texts } from "../texts/audit.js";
import { seatOf } from "../verify.js";

const FLIES_MAX = 30; // cards; more at once would be a blur
const MANY = 60; // cards that lie in rows of a suit's length
const CROWD = 200; // … of two; more lie in rows as long as the felt
const ROOM = 560; // pixels of felt that rows of two suits, and cards with two corners, need
const GAP = 0.12; // between two cards, of a card's width
const LARGEST = { few: 50, many: 32, crowd: 22 }; // pixels
const CROWD_ACROSS = 16; // at least

const stacks = new Map(); // by name, as `emptyStack` makes them
let order = "";

/**
 * Draw the stacks.
 *
 * shown     Map: name → [{ card, face }], bottom first; a face that is hidden is null
 * titles    name → its heading
 * marks     Map: card → "i", "j", "i = j" or "moved"
 * shuffling { stack, settled }: settled(place) says whether a place has its card for good; or null
 * flight    milliseconds for cards that moved to fly; 0: they are there at once
 */
export function draw(felt, shown, { titles, marks, shuffling, flight }) {
  arrange(felt, shown);
  const changed = [];
  for (const [name, cards] of shown) changed.push(...changes(stacks.get(name), cards));
  const from = flight > 0 && changed.length <= 4 * FLIES_MAX ? positions(changed) : null;
  for (const [name, cards] of shown) lay(stacks.get(name), cards);
  for (const [name, cards] of shown) dress(stacks.get(name), name, cards, titles, marks, shuffling);
  if (from !== null) fly(from, flight);
}

/** One element a stack: the deck across the felt, then piles and hands. */
function arrange(felt, shown) {
  const names = [...shown.keys()].sort(compareStacks);
  if (order === names.join()) return;
  order = names.join();
  for (const name of names) if (!stacks.has(name)) stacks.set(name, emptyStack(name));
  for (const name of [...stacks.keys()]) if (!shown.has(name)) stacks.delete(name);
  felt.replaceChildren(...names.map((name) => stacks.get(name).element));
}

const rank = (name) => (name === "deck" ? 0 : seatOf(name) !== null ? 1 : 2);

function compareStacks(a, b) {
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return rank(a) === 1 ? seatOf(a) - seatOf(b) : a < b ? -1 : 1;
}

function emptyStack(name) {
  const title = make("b", {});
  const count = make("span", {});
  const list = make("ol", {});
  const element = make("div", { class: "stack", "data-stack": name, role: "group" },
    make("h3", {}, title, " ", count), list);
  return { element, title, count, list, places: [] };
}

/** The places whose card changes, of those that were drawn. */
function changes({ places }, cards) {
  return places.filter(({ card, sign }, place) =>
    card !== cards[place]?.card || sign !== signOf(cards[place]));
}

const signOf = (shown) => (shown === undefined ? null : (shown.face ?? "??"));

function lay(stack, cards) {
  const { places, list } = stack;
  while (places.length > cards.length) places.pop().element.remove();
  cards.forEach((shown, place) => {
    if (place === places.length) {
      const picture = make("span", { role: "img" });
      const element = make("li", {}, picture);
      list.append(element);
      places.push({ element, picture, card: null, sign: null });
    }
    const here = places[place];
    const sign = signOf(shown);
    if (here.sign !== sign) drawCard(here.picture, shown.face);
    Object.assign(here, { card: shown.card, sign });
  });
}

function dress(stack, name, cards, titles, marks, shuffling) {
  const { element, places } = stack;
  const here = shuffling?.stack === name;
  const wide = name === "deck" || here || cards.length > 26;
  element.classList.toggle("wide", wide);
  element.classList.toggle("suits", wide && cards.length > 13 && cards.length <= CROWD);
  element.classList.toggle("small", !wide);
  element.classList.toggle("shuffling", here);
  write(stack.title, titles(name));
  write(stack.count, texts.cards(cards.length));
  mark(element, "aria-label", `${titles(name)}, ${texts.cards(cards.length)}`);
  places.forEach(({ element: place, card }, number) => {
    const about = marks.get(card) ?? "";
    const letter = about.startsWith("i") ? "i" : about;
    place.classList.toggle("mark-i", letter === "i");
    place.classList.toggle("mark-j", letter === "j");
    place.classList.toggle("mark-moved", letter === "moved");
    place.classList.toggle("settled", here && shuffling.settled(number));
    mark(place, "data-mark", letter === "i" || letter === "j" ? `${about} ${number}` : null);
  });
}

/**
 * How many cards a round has, and how many pixels the felt is wide inside, decide how large they
 * are all drawn. To be called when either changes: all of the felt is laid out anew.
 */
export function fitTo(felt, count, width) {
  const size = count > CROWD ? "crowd" : count > MANY ? "many" : "few";
  const across = size === "crowd" ? CROWD_ACROSS : size === "many" && width > ROOM ? 26 : 13;
  const room = width / (across + GAP * (across - 1)) - 0.1;
  felt.style.setProperty("--card", `${Math.min(LARGEST[size], room)}px`);
  felt.style.setProperty("--across", String(across));
  felt.classList.toggle("signs", size !== "few" || width < ROOM);
}

/** Where cards lie, by card. */
function positions(places) {
  return new Map(places.filter(({ card }) => card !== null).map(({ card, element }) =>
    [card, element.getBoundingClientRect()]));
}

function fly(from, duration) {
  let flying = 0;
  for (const { places } of stacks.values()) {
    for (const { card, element, picture } of places) {
      const was = from.get(card);
      if (was === undefined || flying >= FLIES_MAX) continue;
      const is = element.getBoundingClientRect();
      const [dx, dy] = [was.left - is.left, was.top - is.top];
      if (Math.abs(dx) + Math.abs(dy) < 1) continue;
      flying += 1;
      element.classList.add("flying");
      const lift = `translate(${dx / 2}px, ${dy / 2 - 10}px) scale(1.12)`;
      picture.animate(
        [{ transform: `translate(${dx}px, ${dy}px)` }, { transform: lift }, { transform: "none" }],
        { duration, easing: "ease-in-out" },
      ).finished.then(() => element.classList.remove("flying"), () => {});
    }
  }
}
