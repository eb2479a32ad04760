/**
 * The table of a replay: as in play, the players around the felt and the piles in the middle. While
 * a whole deck lies there, before and in its shuffle, it is a row of cards, the bottom card first.
 *
 * Elements are reused, and only cards that have changed are drawn again, so that scrubbing through
 * a shuffle of 416 cards draws two cards at a time. Cards that moved are animated.
 */

import { drawCard } from "../cards.js";
import { chipElement, updateChip } from "../chips.js";
import { element, setAttribute, setText } from "../dom.js";
import { pileKind } from "../pile_kinds.js";
import { placesAround, putBeforePlayers } from "../places.js";
import { columnOf, hasTricks, isColumn, pilesOfGame, spreadInGame } from "../table/game.js";
import { audit as texts } from "../texts.js";
import { seatOf } from "../verify.js";

const MAX_ANIMATED = 30; // cards
const MANY = 60; // from so many cards on, rows are one suit long
const CROWD = 200; // from so many cards on, rows are as long as the table is wide
const NARROW_ACROSS = 8; // cards of one deck in a row, where the table is high rather than wide
const TITLE_PX = 64; // of the table: its edge, and the title of the deck
const ROW = 1.52; // height of a row, as a part of a card's width
const WIDE_PX = 560; // of the table, for rows of two suits, and cards with two corners
const LOW = matchMedia("(max-height: 30rem)"); // all rows are seen at once
const LOW_CARD_PX = 36;
const GAP = 0.06; // between two cards, as a part of a card's width
const LEAST_CARD_PX = 24;
const MAX_CARD_PX = { few: 50, many: 32, crowd: 22 };
const CROWD_ACROSS = 16; // cards in a row, at least

const PILED = /^(deck$|pile:(discard$|burn$|won:|pass:))/; // only the top card is seen
const SIDES = ["top", "left", "middle", "right", "own"];

const stacks = new Map(); // by name, as `emptyStack` makes them
const areas = Object.fromEntries(
  SIDES.map((side) => [side, element("div", { class: "area", "data-area": side })]));
const holders = new Map(); // of a seat: its hand and the piles before it
let order = "";

/**
 * Draw the stacks.
 *
 * @param {HTMLElement} container
 * @param {Map<string, { card: number, face: string | null }[]>} all by stack, bottom first
 * @param {object} options
 * @param {(stack: string) => string} options.titles headings
 * @param {Map<number, string>} options.marks "i", "j", "i = j" or "moved", by card
 * @param {{ stack: string, settled: (index: number) => boolean } | null} options.shuffling the
 *   stack that is being shuffled, and which of its places have their final card
 * @param {{ seats: number[], own: number, names: Map<number, string> }} options.around the taken
 *   seats, the one below, and the names of the players
 * @param {Map<number, number | null | undefined>} options.played the seat that has played a card
 * @param {number} options.flight duration of animations in ms; 0 for none
 * @param {boolean} [options.grid] whether a whole deck is a row of cards, and not a pile
 */
export function draw(container, all, options) {
  const { titles, marks, shuffling, around, played, flight, grid = true } = options;
  const whole = grid ? shuffling?.stack ?? wholeDeck(all) : null;
  const shown = stacksShown(all, whole, around);
  arrange(container, shown, whole, around);
  if (whole === null && shown.has("deck")) { // from then on it is covered
    shown.set("deck", shown.get("deck").map(({ card }) => ({ card, face: null })));
  }
  const changed = [];
  for (const [name, cards] of shown) changed.push(...changes(stacks.get(name), cards));
  const from = flight > 0 && changed.length <= 4 * MAX_ANIMATED ? positions(changed) : null;
  for (const [name, cards] of shown) setCards(stacks.get(name), cards);
  for (const [name, cards] of shown) {
    const stack = stacks.get(name);
    style(stack, name, cards, titles, marks, shuffling, whole);
    const { chip, seat } = stack;
    if (chip !== null) updateChip(chip, { seat, name: around.names.get(seat) ?? String(seat) });
    if (isTrick(name)) {
      const owners = stack.places.map(({ card }) => played.get(card) ?? null);
      putBeforePlayers(stack.places.map((one) => one.node), owners, fromOwn(around));
    }
  }
  if (from !== null) animate(from, flight);
}

/** The seats around the table from the own one on. */
const fromOwn = ({ seats, own }) =>
  [...seats.filter((seat) => seat >= own), ...seats.filter((seat) => seat < own)];

const isTrick = (name) => name === "pile:table" && hasTricks();

/** The deck while all cards are in it; null once one has left it. */
function wholeDeck(all) {
  const out = [...all].some(([name, cards]) => name !== "deck" && cards.length > 0);
  return out ? null : "deck";
}

/**
 * What is drawn unless a deck lies open: each player's hand, and of the empty piles the trick and
 * those of a tableau.
 */
function stacksShown(all, whole, { seats }) {
  const shown = new Map([...all].filter(([, cards]) => cards.length > 0));
  if (whole !== null) return shown;
  for (const seat of seats) if (!shown.has(`hand:${seat}`)) shown.set(`hand:${seat}`, []);
  const piles = (pilesOfGame() ?? []).map((name) => `pile:${name}`);
  const kept = piles.some(isColumn) ? piles : hasTricks() ? ["pile:table"] : [];
  for (const name of kept) if (!shown.has(name)) shown.set(name, []);
  return shown;
}

/** Put one element for each stack where it is around the table. */
function arrange(container, shown, whole, { seats, own }) {
  const names = [...shown.keys()].sort(compareStacks);
  const now = [...names, whole, own, ...seats].join();
  if (order === now) return;
  order = now;
  for (const name of names) if (!stacks.has(name)) stacks.set(name, emptyStack(name));
  for (const name of [...stacks.keys()]) if (!shown.has(name)) stacks.delete(name);
  const sides = sidesOf(names, seats, own);
  for (const area of Object.values(areas)) area.replaceChildren();
  holders.clear();
  for (const [seat, side] of whole === null ? sides : []) holderIn(areas[side], seat);
  for (const name of names) {
    const seat = seatOf(name) ?? pileKind(name).seat;
    const area = whole !== null || seat === null ? areas.middle : areas[sides.get(seat) ?? "top"];
    if (area === areas.middle) area.append(stacks.get(name).node);
    else holderIn(area, seat).append(stacks.get(name).node);
  }
  setAttribute(container, "data-whole", whole !== null);
  const isTableau = whole === null && names.some(isColumn);
  setAttribute(container, "data-columns", isTableau);
  const piles = (pilesOfGame() ?? []).map((name) => `pile:${name}`);
  const inGame = [...new Set([...piles, ...names.filter((name) => seatOf(name) === null)])];
  for (const name of names) {
    const { style: place } = stacks.get(name).node;
    place.gridColumn = isTableau ? String(columnOf(name, inGame)) : "";
  }
  container.replaceChildren(...SIDES.map((side) => areas[side]));
}

function holderIn(area, seat) {
  if (!holders.has(seat)) holders.set(seat, element("div", { class: "place" }));
  const holder = holders.get(seat);
  if (holder.parentElement !== area) area.append(holder);
  return holder;
}

/** At which side each seat is, from the own one on. */
function sidesOf(names, seats, own) {
  const all = new Set([...seats, ...names.map(seatOf).filter((seat) => seat !== null)]);
  const rank = (seat) => (seat > own ? seat - own : seat - own + 2 ** 32);
  const others = [...all].filter((seat) => seat !== own).sort((a, b) => rank(a) - rank(b));
  const places = placesAround(others.length);
  const sides = new Map([[own, "own"]]);
  others.forEach((seat, index) => sides.set(seat, places.of(index).side));
  return sides;
}

/** The deck, then hands, which are around it in their order, then piles. */
const rank = (name) => (name === "deck" ? 0 : seatOf(name) !== null ? 1 : 2);

function compareStacks(a, b) {
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return rank(a) === 1 ? seatOf(a) - seatOf(b) : a < b ? -1 : 1;
}

function emptyStack(name) {
  const title = element("b", {});
  const count = element("span", {});
  const list = element("ol", {});
  const seat = seatOf(name);
  const chip = seat === null ? null : chipElement();
  const node = element("div", { class: "stack", "data-stack": name, role: "group" },
    element("h3", {}, chip, title, " ", count), list);
  return { node, title, chip, seat, count, list, places: [] };
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

function style(stack, name, cards, titles, marks, shuffling, whole) {
  const { node, places } = stack;
  const isShuffling = shuffling?.stack === name;
  const wide = name === whole;
  const column = isColumn(name);
  const own = node.closest(".area") === areas.own;
  const spread = stack.seat === null && (spreadInGame(name.slice(5)) ?? !PILED.test(name));
  const classes = {
    wide, suits: wide && cards.length > 13 && cards.length <= CROWD, shuffling: isShuffling,
    hand: stack.seat !== null, small: !wide && stack.seat !== null && !own, column,
    trick: !wide && isTrick(name), spread: spread && !column && !isTrick(name),
    piled: !wide && !spread && !column && stack.seat === null,
  };
  node.className = ["stack", ...Object.keys(classes).filter((one) => classes[one])].join(" ");
  node.style.setProperty("--n", String(Math.max(2, cards.length)));
  setText(stack.title, titles(name));
  setText(stack.count, String(cards.length)); // in words in the label
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
  const isLong = width > WIDE_PX && size === "many";
  const isHigh = size === "few" && width < WIDE_PX && !LOW.matches;
  const across = size === "crowd" ? CROWD_ACROSS : isLong ? 26 : isHigh ? NARROW_ACROSS : 13;
  const room = width / (across + GAP * (across - 1)) - 0.1;
  const most = LOW.matches ? Math.min(LOW_CARD_PX, MAX_CARD_PX[size])
    : isHigh ? highestCard(container, Math.ceil(count / across)) : MAX_CARD_PX[size];
  container.style.setProperty("--card", `${Math.min(most, room)}px`);
  container.style.setProperty("--across", String(across));
  container.classList.toggle("signs", size !== "few" || isLong || width < WIDE_PX);
}

/** The width of cards of which so many rows are as high as the table is at least. */
function highestCard(container, rows) {
  const high = parseFloat(getComputedStyle(container).minHeight);
  return Math.max(LEAST_CARD_PX, Math.min(MAX_CARD_PX.few, (high - TITLE_PX) / rows / ROW));
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
