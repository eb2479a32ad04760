/** Replays the rounds of a bundle: connects the page, keys and the address to the replay control. */

import { byId, element, setAttribute, setText } from "../dom.js";
import { practiceUrl } from "../server_url.js";
import { fill, audit as texts } from "../texts.js";
import { indexOf, momentsOf } from "./moments.js";
import { fitScreen, showChapters, showMoment } from "./moment_view.js";
import * as permalink from "./permalink.js";
import { ReplayControl, onKeyDown } from "./replay_control.js";
import { playerAt } from "./sentences.js";
import { ALL_CARDS, SPECTATOR } from "./visibility.js";

const ADDRESS_DELAY_MS = 300;
const COPIED_MS = 1500;
/** The controls stay in the window once the table begins in this part of it: the upper 65 %. */
const FELT_SEEN = "0px 0px -35% 0px";

let table = null; // the id of the table, if its server can be asked to play on from its rounds
let rounds = [];
let round = null; // the one that is shown
/** @type {string | number} */
let viewer = ALL_CARDS;
/** @type {(round: any) => void} */
let onRound = () => {};
let addressTimer = null;
let fittedWidth = 0; // of the screen, in pixels, at the last layout

const control = new ReplayControl((index, flight) => {
  showMoment(round, index, { viewer, playing: control.playing, flight });
  nameViewers();
  showPlayOn(round.moments[index]);
  clearTimeout(addressTimer);
  addressTimer = setTimeout(updateAddress, ADDRESS_DELAY_MS);
});

/** Show a problem; null hides the last one. */
export function showProblem(sentence) {
  byId("problem").hidden = sentence === null;
  setText(byId("problem"), sentence ?? "");
}

/** Stop the replay until `replay` is called. */
export function stop() {
  control.open(0, 0);
  round = null;
  rounds = [];
}

/**
 * Replay rounds of `roundsOf`. If there are none, show the sentence `none`. `onRound` is called with
 * each round that is shown. `playedAt` is the table whose rounds one may play on from, or null.
 */
export function replay(given, { none, onRound: shows, playedAt }) {
  rounds = given;
  table = playedAt;
  onRound = shows;
  byId("round").replaceChildren(...rounds.map(({ number, state }) => {
    const name = { open: texts.openRound, broken: texts.brokenRound }[state] ?? String(number);
    return element("option", { value: number }, fill(name, { number }));
  }));
  if (rounds.length > 0) openAddress(location.hash);
  else showNoReplay(none);
}

/** Go to the moment of a fragment, by default the first round that can be replayed. */
function openAddress(fragment) {
  const wanted = permalink.parse(fragment);
  const named = permalink.roundFor(rounds, wanted);
  const missing = named === null && wanted.round !== null;
  showProblem(missing ? texts.problems.round({ number: wanted.round }) : null);
  openRound(named ?? rounds.find(({ state }) => state !== "open") ?? rounds[0], wanted);
  if ([wanted.k, wanted.step, wanted.version].some((one) => one !== null)) scrollToReplay();
}

/** On narrow screens the checks are above the replay; a link to a moment scrolls past them. */
function scrollToReplay() {
  if (byId("moment").getBoundingClientRect().top > innerHeight) byId("replay").scrollIntoView();
}

function openRound(next, wanted) {
  if (next !== round || control.count === 0) {
    round = next;
    onRound(round);
    byId("round").value = String(round.number);
    if (momentsOf(round).length === 0) {
      control.open(0, 0);
      showNoReplay(texts.stillOpen);
      return;
    }
    showScreen();
  }
  const version = permalink.versionFor(round, wanted);
  const outside = version !== null && (version < round.first || version > round.last);
  if (outside) showProblem(texts.problems.moment);
  viewer = viewers().includes(wanted.viewer) ? wanted.viewer : ALL_CARDS;
  byId("viewer").value = String(viewer);
  control.open(round.moments.length, indexOf(round, version ?? startOf(round)));
}

/** Where a replay starts that no link names: with the shuffled deck, if it is shuffled. */
const startOf = ({ shuffles, first }) => shuffles.find(({ sealed }) => sealed)?.last ?? first;

function showNoReplay(sentence) {
  byId("no-replay").hidden = false;
  byId("screen").hidden = byId("view").hidden = byId("chapters").hidden = true;
  byId("which").hidden = rounds.length < 2;
  setText(byId("no-replay"), sentence);
}

function showScreen() {
  byId("no-replay").hidden = true;
  for (const id of ["screen", "view", "which", "chapters"]) byId(id).hidden = false;
  fitScreen(round);
  showChapters(round, (version) => {
    control.pause();
    control.go(indexOf(round, version));
  });
  byId("viewer").replaceChildren(...viewers().map(
    (value) => element("option", { value }, nameOfViewer(value))));
}

/** The possible viewers: all cards, a spectator, each seat that was taken. */
function viewers() {
  const seats = new Set(round.moments.flatMap((moment) => [...moment.seats.keys()]));
  return [ALL_CARDS, SPECTATOR, ...[...seats].sort((a, b) => a - b)];
}

/** The name of a viewer; of a seat that of its player at this moment, or of the last or first one. */
function nameOfViewer(value) {
  if (value === ALL_CARDS) return texts.allCards;
  if (value === SPECTATOR) return texts.spectator;
  const isTaken = ({ seats }) => seats.has(value);
  const moment = round.moments.slice(0, control.index + 1).findLast(isTaken)
    ?? round.moments.find(isTaken);
  return texts.seat({ name: playerAt(moment, value) });
}

function nameViewers() {
  for (const option of byId("viewer").options) {
    const seat = Number(option.value);
    if (seat > 0) setText(option, nameOfViewer(seat));
  }
}

/** The link to play on from a moment; when the round is closed, from the one before. */
function showPlayOn({ version }) {
  byId("play-on").hidden = table === null || round.state !== "closed";
  const moment = { table, round: round.number, version: Math.min(version, round.last - 1) };
  setAttribute(byId("play-on"), "href", practiceUrl(moment));
}

const currentLink = () => permalink.format(round, round.moments[control.index], viewer);

/** Keep the address in step with what is shown; not while the replay is running. */
function updateAddress() {
  if (control.playing || control.count === 0 || location.hash === currentLink()) return;
  history.replaceState(null, "", currentLink());
}

async function copyLink() {
  const text = new URL(currentLink(), location.href).href;
  try {
    await navigator.clipboard.writeText(text);
    setText(byId("copy"), texts.copied);
    setTimeout(() => setText(byId("copy"), texts.copy), COPIED_MS);
  } catch {
    const field = byId("link"); // over plain http there is no clipboard: let the user copy it
    field.classList.remove("visually-hidden");
    field.removeAttribute("aria-hidden");
    field.tabIndex = 0;
    field.value = text;
    setAttribute(field, "aria-label", texts.copyThis);
    field.select();
  }
}

/** Attach the event listeners of the controls, the keys and the address. */
export function listen() {
  const on = (id, event, handler) => byId(id).addEventListener(event, handler);
  on("round", "change", () => openRound(
    rounds.find(({ number }) => String(number) === byId("round").value),
    { ...permalink.parse(""), viewer },
  ));
  on("viewer", "change", () => {
    const { value } = byId("viewer");
    viewer = value === ALL_CARDS || value === SPECTATOR ? value : Number(value);
    control.go(control.index);
  });
  on("start", "click", () => control.step(-control.count));
  on("backward", "click", () => control.step(-1));
  on("play", "click", () => {
    const { top, bottom } = byId("table-view").getBoundingClientRect();
    const isSeen = top >= 0 && bottom <= innerHeight;
    if (!isSeen) byId("replay").scrollIntoView(); // the controls are seen without the whole table
    control.toggle();
  });
  on("forward", "click", () => control.step(1));
  on("end", "click", () => control.step(control.count));
  on("scrub", "input", () => {
    const index = Number(byId("scrub").value);
    control.pause();
    control.go(index);
  });
  on("speed", "change", () => (control.speed = Number(byId("speed").value)));
  on("copy", "click", copyLink);
  byId("speed").replaceChildren(...Object.entries(texts.speeds).map(([value, name]) =>
    element("option", { value, selected: Number(value) === control.speed }, name)));
  document.addEventListener("keydown", (event) => {
    if (onKeyDown(control, event)) event.preventDefault();
  });
  on("arithmetic", "toggle", () => control.go(control.index));
  addEventListener("hashchange", ({ newURL }) => {
    // Not `location`: `updateAddress` may have replaced the address before this event came.
    if (rounds.length > 0) openAddress(new URL(newURL).hash);
  });
  new IntersectionObserver(([{ isIntersecting }]) => {
    setAttribute(byId("controls"), "data-stays", isIntersecting);
  }, { rootMargin: FELT_SEEN }).observe(byId("table-view"));
  new ResizeObserver(([{ contentRect }]) => fitTo(contentRect.width)).observe(byId("stage"));
}

/** Lay everything out for a new width, such as that of a turned phone. */
function fitTo(width) {
  if (control.count === 0 || width === fittedWidth || width === 0) return;
  fittedWidth = width;
  requestAnimationFrame(() => {
    if (control.count === 0) return;
    fitScreen(round);
    control.go(control.index);
  });
}
