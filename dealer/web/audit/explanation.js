/**
 * A round in three sentences: what the house promised before, what everybody put in, and why no one
 * could choose the order; then what these sentences do not show.
 */

import { dayAndTimeOf } from "../clock.js";
import { byId, element, safeText, setText } from "../dom.js";
import { list, explanation as texts } from "../texts.js";
import { SEAT_GIVEN_UP } from "../verify.js";
import { showEnvelopes } from "./envelopes.js";

/**
 * The shuffles of a round, in order: { number, names, without, voided, sealed }. `number` counts
 * from 1, `names` are the players whose random bytes were revealed, `without` those who were seated
 * and sent none.
 *
 * @param {{ leaves: any[], seats: Map<number, string>, bots: Set<number> }} round of `roundsOf`
 */
export function contributionsOf({ leaves, seats, bots }) {
  const nameOf = (name, bot) => (bot
    ? texts.bot({ name: safeText(name) }) : safeText(name));
  const names = new Map([...seats].map(([seat, name]) => [seat, nameOf(name, bots.has(seat))]));
  const shuffles = [];
  let last = null;
  const handlers = {
    SeatTaken: ({ seat, name, bot }) => names.set(seat, nameOf(name, bot)),
    ShuffleStarted: ({ k }) => {
      last = { number: k + 1, seated: new Map(), revealed: [], voided: false, sealed: false };
      shuffles.push(last);
    },
    EntropyClosed: () => (last.seated = new Map(names)),
    EntropyRevealed: ({ seat }) => last.revealed.push(seat),
    ShuffleVoided: () => (last.voided = true),
    DeckSealed: () => (last.sealed = true),
  };
  for (const { type, public: event } of leaves) {
    if (SEAT_GIVEN_UP.includes(type)) names.delete(event.seat);
    else handlers[type]?.(event);
  }
  return shuffles.map(({ number, seated, revealed, voided, sealed }) => {
    const taken = [...seated].sort(([a], [b]) => a - b);
    const those = (gave) =>
      taken.filter(([seat]) => revealed.includes(seat) === gave).map(([, name]) => name);
    return { number, names: those(true), without: those(false), voided, sealed };
  });
}

/** Shuffles with the same contributors: { numbers, names, without }. */
function groupsOf(shuffles) {
  const groups = new Map();
  for (const { number, names, without } of shuffles) {
    const key = JSON.stringify([names, without]);
    if (!groups.has(key)) groups.set(key, { numbers: [], names, without });
    groups.get(key).numbers.push(number);
  }
  return [...groups.values()];
}

/** The numbers of shuffles, and how many they are. */
const numbered = (numbers) => ({ count: numbers.length, numbers: list(numbers.map(String)) });

/** Who put random bytes into the shuffles; `byPlayers` if any player did. */
function givenText(groups, byPlayers) {
  const sentences = groups.map(({ numbers, names, without }) => {
    if (names.length === 0) return texts.givenByHouse(numbered(numbers));
    const sentence = without.length > 0 ? texts.givenWithout : texts.given;
    return sentence({ ...numbered(numbers), names: [texts.theHouse, ...names], without });
  });
  return [...sentences, ...(byPlayers ? [texts.givenOrder] : [])].join(" ");
}

/**
 * The sentences about a round of a verified bundle: { lines, limits }, where `lines` are
 * [title, sentence] and `limits` are sentences.
 *
 * @param {any} round of `roundsOf`
 * @param {import("../verify.js").Report} report
 * @param {boolean} known whether the bundle was compared with a key or checkpoints from elsewhere
 */
export function explanationOf(round, { fault, remarks }, known) {
  if (fault !== null) {
    return { lines: [[texts.titles.none, texts.failed({ line: fault.line })]], limits: [] };
  }
  const { number, state, leaves, laidOut } = round;
  const when = dayAndTimeOf(leaves[0].at);
  const none = state === "open" ? texts.open({ number, when }) : laidOut && texts.laidOut({ number });
  if (none) return { lines: [[texts.titles.none, none]], limits: [] };
  const shuffles = contributionsOf(round);
  const done = shuffles.filter(({ sealed }) => sealed);
  const voided = shuffles.filter((one) => one.voided).map((one) => one.number);
  const limits = [
    voided.length > 0 && texts.voided(numbered(voided)),
    remarks.reused > 0 && texts.reused({ times: remarks.reused }),
    !known && texts.unknown,
  ].filter(Boolean);
  if (done.length === 0) return { lines: [[texts.titles.none, texts.noShuffle({ number })]], limits };
  const alone = done.filter(({ names }) => names.length === 0).map((one) => one.number);
  const why = alone.length === done.length ? texts.houseOnly
    : texts.why + (alone.length > 0 ? ` ${texts.partlyHouseOnly(numbered(alone))}` : "");
  return {
    lines: [
      [texts.titles.promise, texts.promise({ number, when })],
      [texts.titles.given, givenText(groupsOf(done), alone.length < done.length)],
      [alone.length === done.length ? texts.titles.notShown : texts.titles.why, why],
    ],
    limits,
  };
}

/** Who put something into the shuffles of a closed round; null if there was none. */
function givenIn(round) {
  const shown = round.state !== "open" && !round.laidOut;
  const done = shown ? contributionsOf(round).filter(({ sealed }) => sealed) : [];
  if (done.length === 0) return null;
  const names = new Set(done.flatMap((one) => one.names));
  const houseOnly = done.some((one) => one.names.length === 0);
  return { names: [texts.theHouse, ...names], houseOnly };
}

/** Show the sentences about a round; nothing if it is null and no check failed. */
export function explain(round, report, known) {
  showEnvelopes(round === null || report.fault !== null ? null : givenIn(round));
  byId("explained").hidden = round === null && report.fault === null;
  if (byId("explained").hidden) return;
  const { lines, limits } = explanationOf(round, report, known);
  setText(byId("explained-title"), round === null ? texts.headingAll
    : texts.heading({ number: round.number }));
  byId("explained-lines").replaceChildren(...lines.map(([title, sentence]) =>
    element("li", {}, element("b", {}, title), " ", sentence)));
  byId("explained-limits").hidden = limits.length === 0;
  byId("explained-limits").replaceChildren(...limits.map((one) => element("li", {}, one)));
}
