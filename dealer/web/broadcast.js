/**
 * A table's broadcast, for commentators, streams and a big screen: all hands face up around the felt,
 * as late as the table's rule says. It has no controls, and follows on its own. With the parameter
 * `transparent` only cards and words are drawn, over what a stream has below.
 */

import { draw } from "./audit/table_view.js";
import { cardSign, compareCards } from "./cards.js";
import { connect } from "./client.js";
import { byId, safeText, setAttribute, setText } from "./dom.js";
import { loadPack, usePack } from "./packs.js";
import { socketUrl, tableUrl } from "./server_url.js";
import { hasTricks, loadGame } from "./table/game.js";
import { playedBy } from "./table/history.js";
import { LogLines } from "./table/log_lines.js";
import { delayText } from "./table/selectors.js";
import { pileTitle, statusOf } from "./table/wording.js";
import { audit, errorText, table as texts } from "./texts.js";
import { seatOf } from "./verify.js";

const words = audit.broadcast;
const AGAIN_MS = 3000; // after which one that has not begun, or that broke off, is tried again
const KEY_REVOKED = 4401; // how the server ends those who watch by a link that was taken back
const FLIGHT_MS = 600; // of a card that moves
const SHRINK = 0.97; // the cards, until all of them fit
const LEAST_PX = 18; // the width of a card

const view = byId("table-view");
const [, id = ""] = /\/tables\/([0-9a-f]{32})\/broadcast$/.exec(location.pathname) ?? [];
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
    const still = seen === 0 || matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const event of history.slice(seen)) lines.add(event, { seats: state.seats, stackOf });
    seen = history.length;
    showWords(table, lines);
    view.hidden = false;
    showCards(table, still ? 0 : FLIGHT_MS);
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
  const seconds = table.state.rules.broadcast ?? 0;
  const late = seconds > 0 && words.late({ time: delayText(seconds) });
  const delay = [!table.closed && words.live, late].filter(Boolean).join(" · ");
  setText(byId("delay"), isLive || table.closed ? delay : texts.connection.connecting);
  setAttribute(byId("delay"), "data-live", isLive);
  // Turns and scores are seen at the names.
  const isMove = ({ kind, text }) => !["turn", "score"].includes(kind) && text(cardSign) !== null;
  setText(byId("said"), lines.all.findLast(isMove)?.text(cardSign) ?? "");
}

function showCards(table, flight) {
  const { seats: players, rounds } = table.state;
  const names = new Map(players.map(({ seat, name }) => [seat, safeText(name)]));
  const nameOf = (seat) => names.get(seat) ?? texts.seat({ seat });
  const all = new Map(Object.entries(stacksOf(table)).map(([name, cards]) => [
    name, seatOf(name) === null ? cards : sorted(cards)]));
  const played = new Map([...all.values()].flat().map(
    ({ id: card, slot }) => [card, playedBy(table, slot)?.seat]));
  const drawn = ({ id: card, card: face }) => ({ card, face });
  draw(view, new Map([...all].map(([name, cards]) => [name, cards.map(drawn)])), {
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

/** A hand in the order in which such hands are held. */
const sorted = (cards) => cards.toSorted(
  (a, b) => compareCards(a.card ?? "??", b.card ?? "??", hasTricks() ? "suit" : "rank"));

/** Give the cards the greatest size in which all fit, and within a round never a greater one. */
function fit(what) {
  if (sized !== what) size = Math.min(innerHeight * 0.17, innerWidth * 0.12, 200);
  sized = what;
  for (;; size *= SHRINK) {
    view.style.setProperty("--hand", `${size}px`);
    const fits = view.scrollHeight <= view.clientHeight && view.scrollWidth <= view.clientWidth;
    if (fits || size < LEAST_PX) return;
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
