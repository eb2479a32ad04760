/**
 * The preset of the table's game: titles of its piles, its deals, its buttons and its help. It is
 * data of `/games/<name>.json`, and only what the page shows; the server does not enforce it.
 */

import { fetchJson } from "../server_url.js";
import { inLanguage } from "../texts.js";
import { seatOf } from "../verify.js";
import { writtenTitle } from "./pile_names.js";

/** @typedef {import("../client.js").RemoteTable} RemoteTable */
/** @typedef {{ each: number, piles: { name: string, count: number, face: string }[] }} Deal */

const NAME = /^[a-z0-9-]{1,64}$/;
const SEAT = "{seat}";
const SHORT_DECK = new URL("./short_deck.js", import.meta.url).href;
/** The buttons of presets are named by the actions of the rules. */
const BUTTONS = { return: "putBack", take_back: "takeBack", close: "closeRound", pass: "passTo" };

/** @type {any} */
let preset = null;
/** @type {Record<string, string>} by the names of actions */
let words = {};

/**
 * Load the preset that the rules name; whether there is one.
 *
 * @param {Record<string, unknown>} rules
 */
export async function loadGame({ game }) {
  if (typeof game !== "string" || !NAME.test(game)) return false;
  preset = await fetchJson(`games/${game}.json`);
  words = Object.fromEntries(Object.entries(preset?.words ?? {}).map(
    ([name, text]) => [BUTTONS[name] ?? name, inLanguage(text)]));
  return preset !== null;
}

/** The name, title and help of the game; null without a preset, or if it has no help. */
export function gameHelp() {
  if (preset === null || preset.help.length === 0) return null;
  return {
    game: preset.game, title: inLanguage(preset.title), sentences: preset.help.map(inLanguage),
  };
}

/** The names of the game's piles that are always shown; null without a preset that has piles. */
export function pilesOfGame() {
  if (preset === null || preset.piles.length === 0) return null;
  return preset.piles.map(({ name }) => name).filter((name) => !name.includes(SEAT));
}

/** The game's or a player's title of a pile by its plain name; null if it has none. */
export function titleInGame(name) {
  const found = findPile(name);
  if (found === null) return writtenTitle(name);
  return inLanguage(found.pile.title).replaceAll(SEAT, found.seat);
}

/** Whether a pile is drawn spread out, "down" for a column; null if the game does not say. */
export function spreadInGame(name) {
  return findPile(name)?.pile.spread ?? null;
}

function findPile(name) {
  for (const pile of preset?.piles ?? []) {
    if (pile.name === name) return { pile, seat: "" };
    const [before, after] = pile.name.split(SEAT);
    if (after === undefined || !name.startsWith(before) || !name.endsWith(after)) continue;
    const seat = name.slice(before.length, name.length - after.length);
    if (/^[1-9][0-9]{0,9}$/.test(seat)) return { pile, seat };
  }
  return null;
}

/** Whether tricks are played: the game has piles for those that a seat has won. */
export const hasTricks = () =>
  preset?.piles.some(({ name }) => name.startsWith("won:")) ?? false;

/** Whether tricks may be played, also without a game. */
export const mayHaveTricks = () => preset === null || hasTricks();

/** The suit of trumps, empty for none; null if the game does not say how tricks are won. */
export const trumpsOfGame = () => preset?.tricks?.trumps ?? null;

/** The card whose holder leads to the first trick; null if the game does not say. */
export const leadingCardOfGame = () => preset?.tricks?.lead ?? null;

/**
 * How many cards are passed in a round, and in which direction: `left`, `right` or `across`; null if
 * none are, or if the game does not say.
 *
 * @param {number} round
 * @returns {{ count: number, direction: string } | null}
 */
export function passOfRound(round) {
  const direction = preset?.pass?.to[(round - 1) % preset.pass.to.length] ?? "none";
  return direction === "none" ? null : { count: preset.pass.count, direction };
}

/** Whether a pile gets its cards by a later deal, as the board of a poker game does. */
export const isDealtLater = (name) =>
  preset?.deal.slice(1).some(({ piles }) => piles.at(-1)?.name === name) ?? false;

/** The least number of players, and the game's title, if fewer sit there; null otherwise. */
export function playersMissing({ state, practice }) {
  if (preset === null || practice !== null || state.seats.length >= preset.players.min) return null;
  return { min: preset.players.min, game: inLanguage(preset.title) };
}

/**
 * The deck of a round whose cards are all dealt, in a game that says who leads: without the lowest
 * diamonds and spades that would be left over. Undefined where it is the table's.
 *
 * @param {RemoteTable} table
 * @returns {Promise<string[] | undefined>}
 */
export async function deckOfRound({ state: { seats, rules } }) {
  const lead = leadingCardOfGame();
  if (lead === null || seats.length < preset.players.min) return undefined;
  const [{ each }] = commandsOf(preset.deal[0], seats.length);
  const { shortDeck } = await import(SHORT_DECK);
  return shortDeck(rules.deck, each * seats.length, lead);
}

/** The pattern of the cards whose player chooses the suit that comes next; null if there are none. */
export const suitPattern = () => preset?.suit ?? null;

/** Whether players have turns, and whether a move passes the turn on. */
export const hasTurns = () => preset?.turns !== undefined;
export const passesTurn = (move) => preset?.turns?.includes(move) ?? false;

/** The pile onto which a tap on the deck turns a card, as a stack name; null if it draws. */
export const turnsOnto = () => (preset?.turn === undefined ? null : `pile:${preset.turn}`);

/** Whether the cards of a stack lie in a column, the last one the lowest. */
export const isColumn = (name) => name.startsWith("pile:") && spreadInGame(name.slice(5)) === "down";

/**
 * In which column of a tableau a stack is: the deck and the pile beside it at the left, the other
 * piles at the right, and the columns below them.
 */
export function columnOf(name, names) {
  const columns = names.filter(isColumn);
  if (isColumn(name)) return columns.indexOf(name) + 1;
  const left = ["deck", turnsOnto()];
  if (left.includes(name)) return left.indexOf(name) + 1;
  const right = names.filter((one) => !isColumn(one) && !left.includes(one));
  return Math.max(1, columns.length - right.length + right.indexOf(name) + 1);
}

/** What a round gave each player, by the game: a rule for `result.js`; null if it says nothing. */
export const resultRule = () => preset?.result ?? null;

/**
 * The title of the game's deal that lays `count` cards on a pile where `lying` are; null if it has
 * none.
 */
export function titleOfDeal(name, lying, count) {
  const found = preset?.deal.find(({ title, when, piles }) => title !== undefined &&
    when?.[name] === lying && piles.some((one) => one.name === name && one.count === count));
  return found === undefined ? null : inLanguage(found.title);
}

/** Whether the game's deals burn cards, which goes without saying. */
export const burnsByDealing = () =>
  preset?.deal.some(({ piles }) => piles.some(({ name }) => name === "burn")) ?? false;

/** Whether the hands are compared at the end as in poker, and some have folded before. */
export const comparesHands = () => ["poker", "omaha"].includes(preset?.result?.of);

/** Whether a player who discards has folded, with all cards: the board is dealt to those who stay. */
export const folds = () => comparesHands() && preset.deal.length > 1;

/** What the game calls an action, or says with it (`your_turn`, `before_deal`); null for nothing. */
export const wordOf = (name) => words[name] ?? null;

/** The title of the game's first deal; null if it has none. */
export function titleOfFirstDeal() {
  const title = preset?.deal[0]?.title;
  return title === undefined ? null : inLanguage(title);
}

/** Whether one may play the game alone. */
export const isForOne = () => preset?.players.min === 1;

/** Whether the game deals no cards to players, who need no room for a hand. */
export const hasNoHands = () =>
  preset !== null && preset.deal.length > 0 && preset.deal[0].each.every(([, cards]) => cards === 0);

/** The names of the actions that have a button; null if the game does not say. */
export function buttonsOfGame() {
  if (preset === null || preset.buttons.length === 0) return null;
  return preset.buttons.map((name) => BUTTONS[name] ?? name);
}

/**
 * The game's next deal in the state of the round: its title, or null, and its commands; null if
 * there is none.
 *
 * @param {RemoteTable} table
 * @returns {{ title: string | null, deals: Deal[] } | null}
 */
export function nextDeal({ state }) {
  if (preset === null || state.round === null) return null;
  const { stacks } = state.round;
  const inHands = Object.entries(stacks).some(([name, { length }]) => name !== "deck" && length > 0);
  const fits = ({ when }) => Object.entries(when ?? {}).every(
    ([name, count]) => (stacks[`pile:${name}`]?.length ?? 0) === count);
  const next = preset.deal.find((one, index) => (index === 0) === !inHands && fits(one));
  if (next === undefined) return null;
  const title = next.title === undefined ? null : inLanguage(next.title);
  return { title, deals: commandsOf(next, state.seats.length) };
}

/** Whether opening a round also deals: the game says what, and its players are here. */
export function dealsAtOnce({ state }) {
  return preset !== null && preset.deal.length > 0 && state.seats.length >= preset.players.min &&
    state.who.deal === state.who.open;
}

/** Whether the game says what is dealt, and all of that is dealt in the open round. */
export function isDealt(table) {
  const plan = preset?.deal ?? [];
  return plan.length > 0 && table.state.round !== null && nextDeal(table) === null;
}

/**
 * Whether the hand is over: the last of several deals is done, or the cards of all players are
 * played and no trick waits, or, if the game counts what is left in hands, those of one player;
 * without hands, if the deck, the pile beside it and the columns have no card left.
 */
export function isOver(table) {
  if (!isDealt(table)) return false;
  if (preset.deal.length > 1) return true;
  const { stacks } = table.state.round;
  const hands = Object.keys(stacks).filter((name) => seatOf(name) !== null);
  const isEmpty = (name) => (stacks[name]?.length ?? 0) === 0;
  if (hasNoHands()) {
    const columns = pilesOfGame()?.filter((name) => spreadInGame(name) === "down") ?? [];
    return ["deck", turnsOnto(), ...columns.map((name) => `pile:${name}`)].every(isEmpty);
  }
  if (resultRule()?.of === "hand") return hands.some(isEmpty);
  const played = hands.length > 0 && hands.every(isEmpty);
  return played && (!hasTricks() || isEmpty("pile:table"));
}

/** The commands of a deal: one names each pile once. */
function commandsOf({ each, piles }, players) {
  const cards = each.findLast(([least]) => least <= players) ?? each[0];
  const deals = [{ each: cards[1], piles: [] }];
  for (const { name, count, face } of piles) {
    if (deals.at(-1).piles.some((pile) => pile.name === name)) deals.push({ each: 0, piles: [] });
    deals.at(-1).piles.push({ name, count, face });
  }
  return deals;
}
