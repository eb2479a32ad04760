/** The mark beside the shuffle: what this browser itself checked, and what did not hold. */

import { make, mark, write } from "../make.js";
import { table as texts } from "../texts/table.js";
import { dialog } from "./asking.js";
import { houseAlone } from "./reading.js";

const SIGNS = { yes: "✓", house: "–", waiting: "…", no: "✗", unavailable: "–" };

/** Draws into `place`; it opens to the list of checks. */
export class Mark {
  #game;
  #button = make("button", { class: "mark", type: "button", onclick: () => this.open() });
  #list = make("ul", { class: "checks" });

  constructor(place, game) {
    this.#game = game;
    this.#button.setAttribute("aria-keyshortcuts", "m");
    place.append(this.#button);
  }

  draw() {
    const { table } = this.#game;
    const { checks } = table;
    const stands = standing(checks, table.error !== null && table.evidence !== null);
    const state = stands === "yes" && houseAlone(table) ? "house" : stands;
    mark(this.#button, "data-state", state);
    const held = checks.filter((check) => check.state === "yes").length;
    const open = checks.filter((check) => check.state === "unavailable").length;
    write(this.#button, `${SIGNS[state]} ${texts.mark[state](held, open)}`);
    this.#list.replaceChildren(...checks.map(line), ...table.doubts.map(doubt));
  }

  async open() {
    await dialog(texts.markTitle, () => [
      make("p", {}, texts.markIntro), this.#list, make("p", { class: "soft" }, texts.markLimits),
    ], { name: "wide" });
  }
}

/** How all of it stands: one "no" is a no, and what is still awaited is not yet a yes. */
export function standing(checks, cheated) {
  if (cheated || checks.some(({ state }) => state === "no")) return "no";
  const counted = checks.filter(due);
  if (counted.length === 0 || counted.some(({ state }) => state === "waiting")) return "waiting";
  return "yes";
}

/** Whether an answer can be there by now: a round is made again only when it is closed. */
function due({ name, state }) {
  return state !== "unavailable" && !(name === "round" && state === "waiting");
}

function line({ name, state, done, of, sentence }) {
  return make(
    "li", { "data-state": state },
    make("span", {
      class: `sign ${state}`, role: "img", "aria-label": texts.states[state],
    }, SIGNS[state]),
    make("div", {},
      make("strong", {}, texts.checks[name].title),
      make("span", { class: "soft" }, ` ${texts.tally(done, of)}`),
      make("p", {}, sentence ?? texts.checks[name][state] ?? texts.checks[name].means)),
  );
}

function doubt(sentence) {
  return make("li", { "data-state": "doubt" },
    make("span", { class: "sign waiting", role: "img", "aria-label": texts.states.doubt }, "?"),
    make("div", {}, make("strong", {}, texts.doubtTitle), make("p", {}, sentence)));
}

/** The house cheated: say so, and let the player take away what shows it. */
export async function accuse(game, error) {
  const { evidence } = error;
  await dialog(texts.cheated.title, (close) => [
    make("p", { class: "sentence" }, error.message),
    make("p", {}, texts.cheated.means),
    make("div", { class: "answers" },
      make("button", { type: "button", onclick: () => close() }, texts.cheated.look),
      make("button", {
        class: "chief", type: "button", autofocus: true,
        onclick: () => takeAway(`evidence-${game.table?.id ?? game.id}.json`, evidence),
      }, texts.cheated.download)),
  ], { alert: true, name: "cheated" });
}

/** Hand a thing to the browser as a file to keep. */
export function takeAway(name, thing) {
  const blob = new Blob([JSON.stringify(thing, null, 2)], { type: "application/json" });
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
