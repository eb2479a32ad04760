/** Watching a bundle's rounds: which one, whose eyes, which moment, and the links to these. */

import { make, mark, write } from "../make.js";
import { audit as texts } from "../texts/audit.js";
import { Film, keyPressed } from "./film.js";
import * as link from "./link.js";
import { fitScreen, showChapters, showMoment } from "./screen.js";
import { personAt } from "./sentences.js";
import { indexOf, tell } from "./story.js";
import { ABOVE, SPECTATOR } from "./views.js";

const LINK_MS = 300;
const COPIED_MS = 1500;

const at = (id) => document.getElementById(id);

let rounds = [];
let round = null; // the one that is watched
let viewer = ABOVE;
let linkTimer = 0;
let fitted = 0; // the width of the screen, in pixels, that all is laid out for

const film = new Film((index, flight) => {
  showMoment(round, index, { viewer, playing: film.playing, flight });
  clearTimeout(linkTimer);
  linkTimer = setTimeout(keepLink, LINK_MS);
});

/** Say what went wrong, or with null that nothing does. */
export function problem(sentence) {
  at("problem").hidden = sentence === null;
  write(at("problem"), sentence ?? "");
}

/** Nothing is to be watched until `watch` is called. */
export function stop() {
  film.open(0, 0);
  round = null;
  rounds = [];
}

/** Let these rounds of `roundsOf` be watched; `none` says why, where there are none. */
export function watch(given, none) {
  rounds = given;
  at("round").replaceChildren(...rounds.map(({ number, state }) => {
    const name = { open: texts.openRound, broken: texts.brokenRound }[state] ?? String;
    return make("option", { value: number }, name(number));
  }));
  if (rounds.length > 0) openLink();
  else noFilm(none);
}

/** Come to the moment that the address names; without one, to the first round one can watch. */
function openLink() {
  const wanted = link.read(location.hash);
  const named = link.roundFor(rounds, wanted);
  const missing = named === null && wanted.round !== null;
  problem(missing ? texts.problems.round(wanted.round) : null);
  openRound(named ?? rounds.find(({ state }) => state !== "open") ?? rounds[0], wanted);
  if ([wanted.k, wanted.step, wanted.version].some((one) => one !== null)) comeInSight();
}

/** Where a screen is narrow the checks stand above; a link to a moment leads past them. */
function comeInSight() {
  if (at("moment").getBoundingClientRect().top > innerHeight) at("film").scrollIntoView();
}

function openRound(next, wanted) {
  if (next !== round || film.count === 0) {
    round = next;
    at("round").value = String(round.number);
    if (tell(round).length === 0) {
      film.open(0, 0);
      noFilm(texts.stillOpen);
      return;
    }
    showScreen();
  }
  const version = link.versionFor(round, wanted);
  const outside = version !== null && (version < round.first || version > round.last);
  if (outside) problem(texts.problems.moment);
  viewer = viewers().some(([value]) => value === wanted.viewer) ? wanted.viewer : ABOVE;
  at("viewer").value = String(viewer);
  film.open(round.moments.length, version === null ? 0 : indexOf(round, version));
}

function noFilm(words) {
  at("no-film").hidden = false;
  at("screen").hidden = at("whose").hidden = true;
  at("which").hidden = rounds.length < 2;
  write(at("no-film"), words);
}

function showScreen() {
  at("no-film").hidden = true;
  at("screen").hidden = at("whose").hidden = at("which").hidden = false;
  fitScreen(round);
  showChapters(round, (version) => {
    film.pause();
    film.go(indexOf(round, version));
  });
  const choices = viewers().map(([value, name]) => make("option", { value }, name));
  at("viewer").replaceChildren(...choices);
}

/** From where the round can be seen, with names: above, no seat, and each seat that was taken. */
function viewers() {
  const last = new Map();
  for (const moment of round.moments) {
    for (const seat of moment.seats.keys()) last.set(seat, moment);
  }
  const seats = [...last].sort(([a], [b]) => a - b);
  return [
    [ABOVE, texts.above], [SPECTATOR, texts.spectator],
    ...seats.map(([seat, moment]) => [seat, texts.seat(personAt(moment, seat))]),
  ];
}

const linkHere = () => link.write(round, round.moments[film.index], viewer);

/** The address always leads to what is shown; while the film runs it waits. */
function keepLink() {
  if (film.playing || film.count === 0 || location.hash === linkHere()) return;
  history.replaceState(null, "", linkHere());
}

async function copyLink() {
  const text = new URL(linkHere(), location.href).href;
  try {
    await navigator.clipboard.writeText(text);
    write(at("copy"), texts.copied);
    setTimeout(() => write(at("copy"), texts.copy), COPIED_MS);
  } catch {
    const field = at("link"); // no clipboard over plain http: the link is there to be selected
    field.classList.remove("unseen");
    field.removeAttribute("aria-hidden");
    field.tabIndex = 0;
    field.value = text;
    mark(field, "aria-label", texts.copyThis);
    field.select();
  }
}

/** Let controls, keys and the address lead the film. */
export function listen() {
  const on = (id, event, act) => at(id).addEventListener(event, act);
  on("round", "change", () => openRound(
    rounds.find(({ number }) => String(number) === at("round").value),
    { ...link.read(""), viewer },
  ));
  on("viewer", "change", () => {
    const { value } = at("viewer");
    viewer = value === ABOVE || value === SPECTATOR ? value : Number(value);
    film.go(film.index);
  });
  on("start", "click", () => film.step(-film.count));
  on("backward", "click", () => film.step(-1));
  on("play", "click", () => film.toggle());
  on("forward", "click", () => film.step(1));
  on("end", "click", () => film.step(film.count));
  on("scrub", "input", () => {
    const index = Number(at("scrub").value);
    film.pause();
    film.go(index);
  });
  on("speed", "change", () => (film.speed = Number(at("speed").value)));
  on("copy", "click", copyLink);
  at("speed").replaceChildren(...Object.entries(texts.speeds).map(([value, name]) =>
    make("option", { value, selected: Number(value) === film.speed }, name)));
  document.addEventListener("keydown", (event) => {
    if (keyPressed(film, event)) event.preventDefault();
  });
  addEventListener("hashchange", () => rounds.length > 0 && openLink());
  new ResizeObserver(([{ contentRect }]) => fitTo(contentRect.width)).observe(at("screen"));
}

/** Another width, that of a turned phone or of one scrollbar less: all is laid out anew. */
function fitTo(width) {
  if (film.count === 0 || width === fitted || width === 0) return;
  fitted = width;
  requestAnimationFrame(() => {
    if (film.count === 0) return;
    fitScreen(round);
    film.go(film.index);
  });
}
