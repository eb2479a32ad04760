/** The game's log in words, the newest line always in sight; what is new is also said aloud. */

import { cardName, cardSign } from "../cards.js";
import { keyed, make, write } from "../make.js";
import { table as texts } from "../texts/table.js";
import { Story } from "./story.js";

const KEPT = 120;
const CODE = /(\S+[♥♦♣]\ufe0e)/;
const SUITS = { "♥": "heart", "♦": "diamond", "♣": "club" };
const LAST_MS = 8.64e15; // a log may name a later time than a date can be
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", hourCycle: "h23",
});

function timeOf(at) {
  const date = new Date(Math.min(at, LAST_MS));
  return make("time", { class: "soft", datetime: date.toISOString() }, clock.format(date));
}

/** Draws into `place` what `game.table` has seen. */
export class Log {
  #game;
  #story;
  #list = make("div", {
    role: "log", "aria-live": "off", "aria-label": texts.log, tabindex: 0,
  });
  #said = 0;

  constructor(place, game) {
    this.#game = game;
    this.#story = new Story(() => game.table.seat);
    const toggle = make("button", {
      class: "quiet", type: "button", "aria-expanded": "false", "aria-controls": "log",
      onclick: () => {
        const open = place.classList.toggle("unfolded");
        toggle.setAttribute("aria-expanded", String(open));
        write(toggle, open ? texts.lastLine : texts.wholeLog);
        this.#list.scrollTop = this.#list.scrollHeight;
      },
    }, texts.wholeLog);
    this.#list.id = "log";
    place.setAttribute("aria-label", texts.log);
    const head = make("div", { class: "story-head" }, make("h2", {}, texts.log), toggle);
    place.append(head, this.#list);
  }

  add(happened) {
    const { table } = this.#game;
    const lies = (slot) => Object.entries(table.state.round?.stacks ?? {}).find(
      ([, cards]) => cards.some((card) => card.slot === slot))?.[0];
    this.#story.add(happened, { seats: table.seats, lies });
  }

  skip() {
    this.#story.skip(this.#game.table.state.at);
  }

  draw() {
    const lines = this.#story.lines.slice(-KEPT);
    const list = this.#list;
    const below = list.scrollHeight - list.scrollTop - list.clientHeight;
    keyed(list, lines, {
      key: ({ id }) => id,
      create: ({ at }) => make("div", {}, timeOf(at), make("span", {})),
      update: (item, line) => this.#update(item, line),
    });
    if (below < 40) list.scrollTop = list.scrollHeight;
    this.#sayNew(lines);
  }

  #update(item, line) {
    const over = this.#overFor(line);
    const sentence = line.say(cardSign);
    if (item.dataset.said === sentence && item.dataset.over === String(over)) return;
    item.dataset.said = sentence;
    item.dataset.over = String(over);
    const text = item.children[1];
    const coloured = (part) => make("span", { class: SUITS[part.at(-2)] }, part);
    text.replaceChildren(...sentence.split(CODE).map((part, at) =>
      (at % 2 === 1 ? coloured(part) : part)));
    if (!over) return;
    const { id } = this.#game.table;
    text.append(" ", make("a", { href: `/tables/${id}/${line.audit}` }, texts.audit));
  }

  /** A round that is over can be watched; one that is not would show its cards. */
  #overFor({ audit, shuffle }) {
    if (audit === undefined || audit === null) return false;
    const { round } = this.#game.table;
    return shuffle === undefined || round === null || round !== shuffle.round;
  }

  #sayNew(lines) {
    const fresh = lines.filter(({ id, shuffle }) => id > this.#said && shuffle?.over !== null);
    if (fresh.length === 0) return;
    this.#said = fresh.at(-1).id;
    const live = fresh.filter((line) => line.live);
    if (live.length > 0) this.#game.say(live.slice(-4).map((line) => line.say(cardName)).join(" "));
  }
}

/** Says things to who listens instead of looking; what is said twice is heard twice. */
export function speaker(place) {
  return (sentence) =>
    write(place, place.textContent === sentence ? `${sentence}\u00a0` : sentence);
}
