/** The audit page: a bundle comes, is checked in this browser, and can be watched. */

import { cardElement } from "../cards.js";
import { harmless, make, mark, write } from "../make.js";
import { audit as texts } from "../texts/audit.js";
import { linesOf, verify } from "../verify.js";
import * as file from "./file.js";
import { keptOf, keyIn, notesIn } from "./kept.js";
import { roundsOf } from "./story.js";
import { showVerdict } from "./verdicts.js";
import { listen as listenToFilm, problem, stop, watch } from "./watch.js";

const ORIGIN = /^\{"bundle":"dealer\/v1","key":"[0-9a-f]{64}","origin":"[^"]*\/t\/([0-9a-f]{32})"/;
const UNFIT = /^No (WebCrypto|Ed25519) here/; // what `verify` throws where it cannot work

const at = (id) => document.getElementById(id);
const pageAsItCame = file.isOneFile() ? file.ownText() : null;
const tableOfAddress = file.tableOf(location);

let bytes = null; // the bundle
let table = null; // the id of its table, if it says one
let turn = 0; // which bundle came last: an answer about one before it is no answer any more
const given = { key: null, notes: [] };

// ————————————————————————————————————————— a bundle comes ————————————————————————————————————————

async function bring(promise, words) {
  for (const id of ["verdict", "film", "take"]) at(id).hidden = true;
  problem(null);
  stop();
  busy(words);
  turn += 1;
  const ours = turn;
  try {
    const brought = await promise;
    if (ours === turn) await check(brought, () => ours === turn);
  } catch (error) {
    if (!(error instanceof file.NoBundle)) throw error;
    const sentence = texts.problems[error.problem];
    if (ours === turn) problem(typeof sentence === "string" ? sentence : sentence(error.status));
  } finally {
    if (ours === turn) at("busy").hidden = true;
  }
}

function busy(words) {
  at("busy").hidden = false;
  write(at("busy-words"), words);
  at("progress").removeAttribute("value");
}

/** Check the bundle, against what this browser kept of its table and what was given by hand. */
async function check(brought, isAwaited) {
  bytes = brought;
  busy(texts.checking);
  const lines = linesOf(bytes);
  table = ORIGIN.exec(new TextDecoder().decode(lines[0].subarray(0, 4096)))?.[1] ?? null;
  const kept = table === null ? { key: null, notes: [] } : keptOf(table);
  const key = given.key ?? kept.key;
  at("take").hidden = false;
  at("bring").hidden = true;
  let report;
  try {
    report = await verify(lines, { key, saved: [...kept.notes, ...given.notes], progress });
  } catch (error) {
    if (!UNFIT.test(error.message)) throw error;
    problem(globalThis.crypto?.subtle ? texts.problems.old : texts.problems.machine);
    return;
  }
  if (!isAwaited()) return;
  at("result").classList.add("shown");
  at("verdict").hidden = at("film").hidden = false;
  const whose = given.key !== null ? "given" : kept.key !== null ? "kept" : "none";
  showVerdict(report, lines, { key: whose, kept: kept.notes.length, given: given.notes.length });
  showTable(lines, report);
  const rounds = roundsOf(lines, report);
  watch(rounds, report.fault !== null ? texts.notTold : texts.noRounds);
}

async function progress(done, total) {
  at("progress").max = total;
  at("progress").value = done;
  await new Promise((drawn) => setTimeout(drawn));
}

function showTable(lines, report) {
  const opening = report.fault?.check === "form" ? null
    : JSON.parse(new TextDecoder().decode(lines[1])).public;
  const name = opening?.rules.name;
  write(at("table-name"), typeof name === "string" ? harmless(name) : (table ?? "").slice(0, 8));
  write(at("about"), harmless(report.origin));
  at("ways").hidden = file.isOneFile();
  at("to-table").hidden = table !== tableOfAddress;
  at("to-table").href = `/tables/${tableOfAddress}`;
}

// ————————————————————————————————————————— take it home ——————————————————————————————————————————

const named = () => table ?? "bundle";

async function takePage(inside) {
  const page = pageAsItCame ?? (await file.fetchPage());
  if (page === null) {
    problem(texts.problems.nothing);
    return;
  }
  if (inside) file.save(`audit-${named()}.html`, file.withBundle(page, bytes), "text/html");
  else file.save("audit.html", page, "text/html");
}

// ————————————————————————————————————————————— start —————————————————————————————————————————————

function speak() {
  document.title = `${texts.title} · dealer`;
  for (const element of document.querySelectorAll("[data-text]")) {
    write(element, texts[element.dataset.text]);
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    mark(element, "aria-label", texts[element.dataset.label]);
  }
  at("limits-words").replaceChildren(...texts.limitsWords.map((one) => make("li", {}, one)));
  ["As", "Kh", "Qc", "Jd", "Ts"].forEach((code, n) => {
    const card = cardElement(code);
    card.style.setProperty("--lean", String(n - 2));
    at("fan").append(card);
  });
}

function listen() {
  const on = (id, event, act) => at(id).addEventListener(event, act);
  on("file", "change", () => at("file").files[0] && bringFile(at("file").files[0]));
  on("known", "submit", again);
  on("take-bundle", "click", () => file.save(`${named()}.jsonl`, bytes, "application/jsonl"));
  on("take-page", "click", () => takePage(false));
  on("take-both", "click", () => takePage(true));
  on("another", "click", () => {
    at("bring").hidden = false;
    at("file").focus();
  });
  listenForDrops();
}

function listenForDrops() {
  const over = (is) => document.body.classList.toggle("over", is);
  addEventListener("dragover", (event) => {
    event.preventDefault();
    over(true);
  });
  addEventListener("dragleave", () => over(false));
  addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    const [dropped] = event.dataTransfer.files;
    if (dropped) bringFile(dropped);
  });
}

/** Another bundle: what was given by hand belonged to the one before. */
function bringFile(chosen) {
  Object.assign(given, { key: null, notes: [] });
  at("known").reset();
  bring(file.readFile(chosen), texts.checking);
}

function again(event) {
  event.preventDefault();
  const [key, notes] = [keyIn(at("key").value), notesIn(at("notes").value)];
  const wrong = key === undefined ? texts.badKey : notes === undefined ? texts.badNotes : "";
  write(at("known-problem"), wrong);
  if (wrong) return;
  Object.assign(given, { key, notes });
  bring(Promise.resolve(bytes), texts.checking).then(() => at("verdict-title").focus());
}

speak();
listen();
listenToFilm();
if (file.hasInside()) bring(file.readInside(), texts.checking);
else if (tableOfAddress !== null) {
  at("bring").hidden = true;
  bring(file.fetchBundle(tableOfAddress, keptOf(tableOfAddress).token), texts.reading)
    .then(() => (at("bring").hidden = bytes !== null));
}
