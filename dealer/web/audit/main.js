/** The audit page: loads a bundle, verifies it in this browser, and replays it. */

import { cardElement } from "../cards.js";
import { byId, element, safeText, save, setAttribute, setText } from "../dom.js";
import { languageSwitch } from "../language.js";
import { addCardPictures, isServed } from "../late_styles.js";
import { loadPack, usePack } from "../packs.js";
import { addPips } from "../pips.js";
import { sourceUrl, tableUrl } from "../server_url.js";
import { gameHelp, loadGame } from "../table/game.js";
import { fill, audit as texts } from "../texts.js";
import { themeSwitch } from "../theme.js";
import { linesOf, restore, verify } from "../verify.js";
import * as io from "./bundle_io.js";
import { listen as listenToReplay, replay, showProblem, stop } from "./controller.js";
import { explain } from "./explanation.js";
import { leavesOf, roundsOf } from "./moments.js";
import { keepOffline } from "./offline.js";
import { parseKey, parseNotes, savedOf } from "./saved.js";
import { showVerdict } from "./verdicts.js";

const ORIGIN = /^\{"bundle":"dealer\/v1","key":"[0-9a-f]{64}","origin":"[^"]*\/t\/([0-9a-f]{32})"/;
const UNSUPPORTED = /^No (WebCrypto|Ed25519) here/; // errors of `verify`

const originalHtml = isServed() ? null : io.ownHtml();
const tableOfAddress = io.tableOf(location);

let bytes = null; // the bundle's file
let table = null; // the id of its table, if it has one
let current = 0; // number of the newest bundle: results of earlier ones are dropped
const given = { key: null, notes: [] }; // by the user

// —————————————————————————————————————————— loading ——————————————————————————————————————————————

async function load(promise, words) {
  for (const id of ["verdict", "replay", "take"]) byId(id).hidden = true;
  showProblem(null);
  stop();
  showBusy(words);
  current += 1;
  const own = current;
  try {
    const loaded = await promise;
    if (own === current) await check(loaded, () => own === current);
  } catch (error) {
    if (!(error instanceof io.NoBundle)) throw error;
    if (own === current) showProblem(fill(texts.problems[error.problem], { status: error.status }));
  } finally {
    if (own === current) byId("busy").hidden = true;
  }
}

function showBusy(words) {
  byId("busy").hidden = false;
  setText(byId("busy-words"), words);
  byId("progress").removeAttribute("value");
}

/** Verify the bundle, with the key and the checkpoints that are saved or were given. */
async function check(loaded, isCurrent) {
  bytes = loaded;
  showBusy(texts.checking);
  const { bytes: restored, notes } = await restore(bytes);
  if (!isCurrent()) return;
  const lines = linesOf(restored);
  table = ORIGIN.exec(new TextDecoder().decode(lines[0].subarray(0, 4096)))?.[1] ?? null;
  const saved = table === null ? { key: null, notes: [] } : savedOf(table);
  const key = given.key ?? saved.key;
  byId("take").hidden = false;
  byId("open-bundle").hidden = true;
  let report;
  try {
    report = await verify(lines, {
      key, saved: [...saved.notes, ...given.notes], notes, progress,
    });
  } catch (error) {
    if (!UNSUPPORTED.test(error.message)) throw error;
    const { noEd25519, noWebCrypto } = texts.problems;
    showProblem(globalThis.crypto?.subtle ? noEd25519 : noWebCrypto);
    return;
  }
  const rules = rulesOf(lines, report);
  const [pack, hasGame] = isServed()
    ? await Promise.all([loadPack(rules.pack), loadGame(rules)]) : [null, false];
  if (!isCurrent()) return;
  usePack(pack);
  byId("result").classList.add("shown");
  byId("verdict").hidden = byId("replay").hidden = false;
  const source = given.key !== null ? "given" : saved.key !== null ? "saved" : "none";
  showVerdict(report, lines, {
    key: source, saved: saved.notes.length, given: given.notes.length,
  });
  const rounds = roundsOf(lines, report);
  const [opened] = leavesOf(lines, report);
  const game = hasGame ? gameHelp()?.title : undefined;
  const named = [opened?.public.name, game].filter(Boolean).map(safeText);
  showTable(named, rounds[0] ?? null, report);
  const known = source !== "none" || saved.notes.length + given.notes.length > 0;
  explain(rounds[0] ?? null, report, known);
  replay(rounds, {
    none: report.fault !== null ? texts.notReplayed : texts.noRounds,
    playedAt: isServed() && table === tableOfAddress ? table : null,
    onRound: (round) => {
      showTitle(named, round);
      explain(round, report, known);
    },
  });
}

async function progress(done, total) {
  byId("progress").max = total;
  byId("progress").value = done;
  await new Promise((painted) => setTimeout(painted));
}

/** The rules of the table; empty if its first event could not be read. */
function rulesOf(lines, report) {
  if (report.fault?.check === "form") return {};
  return JSON.parse(new TextDecoder().decode(lines[1])).public?.rules ?? {};
}

/** The names of the table and its game, as far as the bundle has them, and the round's number. */
function showTitle(named, round) {
  const names = named.length > 0 ? named : [(table ?? "").slice(0, 8)];
  const deal = round === null ? [] : [texts.deal(round)];
  setText(byId("table-name"), [...names, ...deal].join("\u00a0· "));
  document.title = `${texts.title}: ${names[0]} · dealer`;
}

function showTable(named, round, report) {
  showTitle(named, round);
  setText(byId("about"), safeText(report.origin));
  byId("links").hidden = !isServed();
  byId("to-table").hidden = table !== tableOfAddress;
  byId("to-table").href = tableUrl(tableOfAddress);
  byId("source").hidden = !isServed() || report.practice === null;
  if (report.practice !== null) byId("source").href = sourceUrl(report.practice);
}

// ———————————————————————————————————————————— saving —————————————————————————————————————————————

const fileName = () => table ?? "bundle";

async function savePage(withBundle) {
  const page = originalHtml ?? (await io.fetchPage());
  if (page === null) {
    showProblem(texts.problems.network);
    return;
  }
  if (withBundle) save(`audit-${fileName()}.html`, io.withBundle(page, bytes), "text/html");
  else save("audit.html", page, "text/html");
}

// ————————————————————————————————————————————— start —————————————————————————————————————————————

function fillTexts() {
  document.title = `${texts.title} · dealer`;
  /** @type {NodeListOf<HTMLElement>} */
  const texted = document.querySelectorAll("[data-text]");
  for (const target of texted) setText(target, texts[target.dataset.text]);
  /** @type {NodeListOf<HTMLElement>} */
  const labelled = document.querySelectorAll("[data-label]");
  for (const target of labelled) setAttribute(target, "aria-label", texts[target.dataset.label]);
  byId("limits-words").replaceChildren(...texts.limitsWords.map((one) => element("li", {}, one)));
  ["As", "Kh", "Qc", "Jd", "Ts"].forEach((code, n) => {
    const card = cardElement(code);
    card.style.setProperty("--lean", String(n - 2));
    byId("fan").append(card);
  });
}

function listen() {
  const on = (id, event, handler) => byId(id).addEventListener(event, handler);
  on("file", "change", () => byId("file").files[0] && loadFile(byId("file").files[0]));
  on("known", "submit", checkAgain);
  on("take-bundle", "click", () => save(`${fileName()}.jsonl`, bytes, "application/jsonl"));
  on("take-page", "click", () => savePage(false));
  on("take-both", "click", () => savePage(true));
  on("another", "click", () => {
    byId("open-bundle").hidden = false;
    byId("file").focus();
  });
  listenForDrops();
}

function listenForDrops() {
  const highlight = (isOver) => document.body.classList.toggle("over", isOver);
  addEventListener("dragover", (event) => {
    event.preventDefault();
    highlight(true);
  });
  addEventListener("dragleave", () => highlight(false));
  addEventListener("drop", (event) => {
    event.preventDefault();
    highlight(false);
    const [dropped] = event.dataTransfer.files;
    if (dropped) loadFile(dropped);
  });
}

/** Load another bundle. The key and notes that the user gave belonged to the last one. */
function loadFile(chosen) {
  Object.assign(given, { key: null, notes: [] });
  byId("known").reset();
  load(io.readFile(chosen), texts.checking);
}

function checkAgain(event) {
  event.preventDefault();
  const [key, notes] = [parseKey(byId("key").value), parseNotes(byId("notes").value)];
  const invalid = key === undefined ? texts.badKey : notes === undefined ? texts.badNotes : "";
  setText(byId("known-problem"), invalid);
  if (invalid) return;
  Object.assign(given, { key, notes });
  load(Promise.resolve(bytes), texts.checking).then(() => byId("verdict-title").focus());
}

fillTexts();
byId("theme").append(themeSwitch(), languageSwitch());
listen();
listenToReplay();
addCardPictures();
addPips();
if (isServed()) keepOffline();
if (io.hasEmbedded()) load(io.readEmbedded(), texts.checking);
else if (tableOfAddress !== null) {
  byId("open-bundle").hidden = true;
  load(io.fetchBundle(tableOfAddress, savedOf(tableOfAddress).token), texts.reading)
    .then(() => (byId("open-bundle").hidden = bytes !== null));
}
