/** The game log, a line for each thing that happened; screen readers announce new lines. */

import { cardName, cardSign } from "../cards.js";
import { machineTimeOf, timeOf } from "../clock.js";
import { element, reconcile, setText } from "../dom.js";
import { tableUrl } from "../server_url.js";
import { table as texts } from "../texts.js";
import { LogLines } from "./log_lines.js";

const MAX_SHOWN = 120;
const CODE = /(\S*[♥♦♣]\ufe0e)/;
const SUITS = { "♥": "heart", "♦": "diamond", "♣": "club" };

function timeElement(at) {
  return element("time", { class: "muted", datetime: machineTimeOf(at) }, timeOf(at));
}

export class Log {
  #page;
  #lines;
  #list = element("div", {
    role: "log", "aria-live": "off", "aria-label": texts.log, tabindex: 0, translate: "no",
  });
  #follows = true; // not scrolled away from the end
  #sizes = new ResizeObserver(() => this.measure()); // a line may grow below what is seen
  #lastAnnounced = 0; // id of a line

  constructor(container, page) {
    this.#page = page;
    this.#lines = new LogLines(() => page.table.seat);
    const toggle = element("button", {
      class: "borderless", type: "button", "aria-expanded": "false", "aria-controls": "log",
      onclick: () => {
        const open = container.classList.toggle("unfolded");
        toggle.setAttribute("aria-expanded", String(open));
        setText(toggle, open ? texts.showLess : texts.showLog);
        this.#follows = true;
        this.measure();
      },
    }, texts.showLog);
    this.#list.id = "log";
    let top = 0;
    this.#list.addEventListener("scroll", () => {
      const { scrollHeight, scrollTop, clientHeight } = this.#list;
      const isAtEnd = scrollHeight - scrollTop - clientHeight < 40;
      // While it is opened its lines may grow below what is seen; a person scrolls up.
      const isUp = scrollTop < top;
      this.#follows = isAtEnd || (this.#follows && !isUp);
      top = scrollTop;
      if (!isUp) this.measure();
    }, { passive: true });
    this.#sizes.observe(this.#list);
    container.setAttribute("aria-label", texts.log);
    const head = element("div", { class: "log-head" }, element("h2", {}, texts.log), toggle);
    container.append(head, this.#list);
  }

  /** @param {import("../client.js").TableEvent} event */
  add(event) {
    const { table } = this.#page;
    const stackOf = (slot) => Object.entries(table.state.round?.stacks ?? {}).find(
      ([, cards]) => cards.some((card) => card.slot === slot))?.[0];
    this.#lines.add(event, { seats: table.state.seats, stackOf });
  }

  /** A snapshot has replaced events. */
  addGap() {
    this.#lines.addGap(this.#page.table.state.at);
  }

  draw() {
    const lines = this.#lines.all.slice(-MAX_SHOWN).filter((line) => line.text(cardSign) !== null);
    // Whose turn it is, is seen at the chips, and only said to those who do not see them.
    reconcile(this.#list, lines.filter(({ kind }) => kind !== "turn"), {
      key: ({ id }) => id,
      create: ({ at, kind }) => {
        const item = element(
          "div", { "data-kind": kind }, timeElement(at), element("span", {}));
        this.#sizes.observe(item);
        return item;
      },
      update: (item, line) => this.#update(item, line),
    });
    this.#announceNew(lines);
  }

  /** Keep the end in view. Called after all is drawn, as it needs the layout. */
  measure() {
    if (this.#follows) this.#list.scrollTop = this.#list.scrollHeight;
  }

  #update(item, line) {
    const checkable = this.#isCheckable(line);
    const sentence = line.text(cardSign);
    if (item.dataset.text === sentence && item.dataset.checkable === String(checkable)) return;
    item.dataset.text = sentence;
    item.dataset.checkable = String(checkable);
    const text = item.children[1];
    const coloured = (part) => element("span", { class: SUITS[part.at(-2)] }, part);
    text.replaceChildren(...sentence.split(CODE).map((part, index) =>
      (index % 2 === 1 ? coloured(part) : part)));
    if (!checkable) return;
    const { id } = this.#page.table;
    text.append(" ", element("a", { href: tableUrl(id, `/${line.audit}`) }, texts.audit));
  }

  /** Whether the line links to the audit page: a shuffle only when its round is closed. */
  #isCheckable({ audit, shuffle }) {
    if (audit === undefined || audit === null) return false;
    const { round } = this.#page.table;
    return shuffle === undefined || round === null || round !== shuffle.round;
  }

  #announceNew(lines) {
    const fresh = lines.filter(
      ({ id, shuffle }) => id > this.#lastAnnounced && shuffle?.result !== null);
    if (fresh.length === 0) return;
    this.#lastAnnounced = fresh.at(-1).id;
    const live = fresh.filter((line) => line.live);
    if (live.length === 0) return;
    this.#page.announce(live.slice(-4).map((line) => line.text(cardName)).join(" "));
  }
}

/** A function that announces sentences in a live region; a repeated one is announced again. */
export function announcer(region) {
  return (sentence) =>
    setText(region, region.textContent === sentence ? `${sentence}\u00a0` : sentence);
}
