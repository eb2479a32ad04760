/**
 * A table's broadcast, for commentators, streams and a big screen: all hands face up around the felt,
 * as late as the table's rule says. It has no controls, and follows on its own. With the parameter
 * `transparent` only cards and words are drawn, over what a stream has below.
 */

import { draw } from "./audit/table_view.js";
import { cardSign } from "./cards.js";
import { connect } from "./client.js";
import { byId, safeText, setAttribute, setText } from "./dom.js";
import { loadPack, usePack } from "./packs.js";
import { socketUrl, tableUrl } from "./server_url.js";
import { loadGame } from "./table/game.js";
import { playedBy } from "./table/history.js";
import { LogLines } from "./table/log_lines.js";
import { pileTitle, statusOf } from "./table/wording.js";
import { audit, errorText, quantity, table as texts } from "./texts.js";
import { broadcastOf, seatOf } from "./verify.js";

const words = audit.broadcast;
const AGAIN_MS = 3000; // after which one that has not begun, or that broke off, is tried again
const KEY_REVOKED = 4401; // how the server ends those who watch by a link that was taken back
const FLIGHT_MS = 600; // of a card that moves
const SHRINK = 0.97; // the cards, until all of them fit
const WIDE_PX = 768; // from which on there is no scrolling
const LEAST_PX = { phone: 38, screen: 18 }; // the width of a card

const view = byId("table-view");
const [, id = ""] = /\/tables\/([0-9a-f]{32})\/broadcast$/.exec(location.pathname) ?? [];
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let sized = ""; // the round and the window for which the cards have their size
let size = 0; // the width of a card, in pixels
let show = () => {}; // the table, while one is watched

/** Show one sentence instead of the table. */
function say(...sentence) {
  show = () => {};
  view.hidden = true;
  for (const part of ["name", "status", "delay"]) setText(byId(part), "");
  byId("said").replaceChildren(...sentence);
}

/** Follow the broadcast, until it is over or the link is not valid. */
async function follow() {
  for (;;) {
    const error = await watch().catch((reason) => reason);
    if (error === null) return;
    if (error.reason === "bad_token" || error.code === KEY_REVOKED) return say(words.invalid);
    say(error.reason === "too_early" ? words.begins : errorText(error));
    await new Promise((again) => { setTimeout(again, AGAIN_MS); });
  }
}

/** Watch once. Resolves with why it ended, which is null if the table was closed. */
async function watch() {
  const house = await connect(socketUrl(), { table: id });
  try {
    const table = await house.broadcast(tableUrl(id, `/broadcast${location.hash}`));
    const { rules } = table.state;
    const [pack] = await Promise.all([loadPack(rules.pack), loadGame(rules)]);
    if (pack !== null) usePack(pack);
    show = shower(table);
    show();
    const ended = new Promise((end) => { table.on("ended", end); });
    table.on("changed", () => show());
    table.on("connection", () => show());
    return table.closed ? null : table.error ?? await ended;
  } finally {
    await house.close();
  }
}

/** A function that shows a table as it is now, with the sentence of its last move. */
function shower(table) {
  const lines = new LogLines(() => null);
  let seen = 0; // events
  const stackOf = (slot) => Object.entries(stacksOf(table)).find(
    ([, cards]) => cards.some((card) => card.slot === slot))?.[0];
  return () => {
    const { state, history } = table;
    const isFirst = seen === 0;
    for (const event of history.slice(seen)) lines.add(event, { seats: state.seats, stackOf });
    seen = history.length;
    showWords(table, lines);
    view.hidden = false;
    showCards(table, isFirst || calm.matches ? 0 : FLIGHT_MS);
  };
}

/** The open round's cards, or those of the last one until the next. */
const stacksOf = ({ state: { round, closedRound } }) => (round ?? closedRound)?.stacks ?? {};

function showWords(table, lines) {
  const name = safeText(table.state.name ?? texts.nameless);
  document.title = name;
  setText(byId("name"), name);
  setText(byId("status"), statusOf(table));
  const isLive = table.connection.state === "connected" && !table.closed;
  setText(byId("delay"), isLive || table.closed ? delayOf(table) : texts.connection.connecting);
  setAttribute(byId("delay"), "data-live", isLive);
  const isMove = ({ kind, text }) => kind !== "turn" && text(cardSign) !== null;
  setText(byId("said"), lines.all.findLast(isMove)?.text(cardSign) ?? "");
}

/** "Live · 5 minutes late". */
function delayOf(table) {
  const seconds = broadcastOf(table.state.rules) ?? 0;
  const [unit, length] = [["hour", 3600], ["minute", 60], ["second", 1]].find(
    ([, one]) => seconds % Number(one) === 0);
  const late = words.late({ time: quantity(seconds / Number(length), unit) });
  return [table.closed ? "" : words.live, seconds === 0 ? "" : late].filter(Boolean).join(" · ");
}

function showCards(table, flight) {
  const { seats: players, rounds } = table.state;
  const names = new Map(players.map(({ seat, name }) => [seat, safeText(name)]));
  const nameOf = (seat) => names.get(seat) ?? texts.seat({ seat });
  const all = Object.entries(stacksOf(table));
  const played = new Map(all.flatMap(([, cards]) => cards).map(
    ({ id: card, slot }) => [card, slot === null ? null : playedBy(table, slot)?.seat]));
  draw(view, new Map(all.map(([name, cards]) => [
    name, cards.map((one) => ({ card: one.id, face: one.card })),
  ])), {
    titles: (stack) => {
      const seat = seatOf(stack);
      if (seat === null) return stack === "deck" ? audit.deck : pileTitle(stack.slice(5));
      const score = table.markers.scores.get(seat);
      return score === undefined ? nameOf(seat) : `${nameOf(seat)} · ${score}`;
    },
    marks: new Map(), shuffling: null, played, flight, grid: false,
    around: { seats: [...names.keys()], own: Math.min(...names.keys(), Infinity), names },
  });
  for (const hand of view.querySelectorAll(".stack.hand")) {
    setAttribute(hand, "data-turn", seatOf(hand.dataset.stack) === table.markers.turn);
  }
  fit(`${rounds} ${innerWidth} ${innerHeight}`);
}

/** Give the cards the greatest size in which all fit, and within a round never a greater one. */
function fit(what) {
  if (sized !== what) size = Math.min(innerHeight * 0.17, innerWidth * 0.12, 200);
  sized = what;
  const least = innerWidth < WIDE_PX ? LEAST_PX.phone : LEAST_PX.screen;
  for (size = Math.max(size, least); ; size = Math.max(size * SHRINK, least)) {
    view.style.setProperty("--hand", `${size}px`);
    const fits = view.scrollHeight <= view.clientHeight && view.scrollWidth <= view.clientWidth;
    if (fits || size === least) return;
  }
}

async function begin() {
  setAttribute(document.documentElement, "data-transparent",
    new URLSearchParams(location.search).has("transparent"));
  const { hash } = location;
  if (hash.length > 1) return /^#[0-9a-f.]+$/.test(hash) ? follow() : say(words.invalid);
  const { showToHost } = await import("./broadcast_link.js");
  await showToHost(id, say);
}

addEventListener("resize", () => show());
addEventListener("hashchange", () => location.reload());
begin();
