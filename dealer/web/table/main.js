/**
 * The table that one sits at: comes in, draws what the client tells, and carries out wishes.
 *
 * One way: what the client tells leads to one drawing of the whole from `table.state`, and from the
 * difference to cards that fly. Nothing on the page is kept that the state says.
 */

import { HouseCheated, Refused, SessionEnded, browserStore, connect } from "../client.js";
import { make, write } from "../make.js";
import { table as texts } from "../texts/table.js";
import { COUNTED, actionNamed, dropped, hindrance } from "./actions.js";
import { dialog, questions } from "./asking.js";
import { Bar } from "./bar.js";
import { Dragging } from "./dragging.js";
import { fly, lookAt } from "./flights.js";
import { Hand } from "./hand.js";
import { Keys, helpFor } from "./keys.js";
import { Line } from "./line.js";
import { Log, speaker } from "./log.js";
import { Mark, accuse } from "./mark.js";
import { Order } from "./order.js";
import { handOf } from "./reading.js";
import { Seats } from "./seats.js";
import { openPile, openSeat } from "./sheets.js";
import { Sitting, rememberedName, takeInvite } from "./sitting.js";
import { Stacks } from "./stacks.js";
import { Toolbar } from "./toolbar.js";

const TOAST_MS = 6000;
const KNOCK_AGAIN_MS = 2000;
const COUNT_MAX = 52;
const ARRIVING = "dealer/page/arriving";
/** The code that a house closes the older of two connections of one seat with. */
const SUPERSEDED = 4409;

const find = (selector) => document.querySelector(selector);

/** The page's one game: the client's table, and what this player is about to do with it. */
class Game {
  id = location.pathname.split("/")[2];
  invite = takeInvite(this.id);
  table = null;
  stopped = false;
  selected = new Set();
  count = 1;
  order = new Order(this.id);
  ask = questions(this);
  say = speaker(find("#said"));
  #house = null;
  #line = new Line(find("#line"));
  #sitting = new Sitting(find("#sitting"), this);
  #parts = [];
  #shown = null;
  #due = false;
  #toast = null;
  #wished = Promise.resolve(); // settled when every wish is done or refused

  /** The slots of the hand's chosen cards, from left to right. */
  get slots() {
    return this.hand.chosen;
  }

  async start() {
    const store = browserStore();
    this.#house = await this.#knock({ name: rememberedName() || texts.guest, store });
    this.#house.on("connection", (status) => this.table ?? this.#line.draw(status));
    const back = this.#house.kept(this.id).seat !== null && !arriving(this.id);
    try {
      this.#follow(await this.#house.enter(this.id));
    } catch (error) {
      if (error instanceof HouseCheated) return this.#cheated(error);
      if (!(error instanceof Refused) || error.reason === "unknown_table") throw error;
      return this.#sitting.draw(error.message);
    }
    if (back && this.table.seat !== null) {
      this.#line.draw(this.table.connection, { welcome: texts.welcomeBack(this.table.seat) });
    }
    return undefined;
  }

  /** A seat for this player; `options` are those of the client's `join`. */
  async sit(options) {
    const table = await this.#house.join(this.table ?? this.id, options);
    if (this.table === null) this.#follow(table);
    this.draw();
  }

  /** Do what an action says, or say why not. */
  async run(name) {
    const { count } = this;
    const done = await this.attempt(actionNamed(name));
    if (done && COUNTED.includes(name) && this.count === count) this.setCount(1);
  }

  /**
   * Carry out something that has `conditions`, `run` and `asks`; whether it was done. Each wish is
   * about what was chosen when it was made, and waits until those before it are done: what another
   * one left may hinder it then.
   */
  async attempt(action) {
    const { table, slots, count, ask } = this;
    const wish = { table, slots, count, ask };
    if (!this.#can(action, wish)) return false;
    const answer = await action.asks?.(wish);
    if (action.asks !== null && !answer) return false;
    this.#wished = this.#wished.then(
      () => this.#can(action, wish) && this.#carryOut(action, wish, answer));
    return this.#wished;
  }

  #can(action, wish) {
    const reason = hindrance(action, { ...wish, stopped: this.stopped });
    if (reason !== null) this.refuse(reason);
    return reason === null;
  }

  async #carryOut(action, wish, answer) {
    try {
      await action.run(wish, answer);
      for (const slot of wish.slots) this.selected.delete(slot);
      this.draw();
      return true;
    } catch (error) {
      if (!(error instanceof HouseCheated)) this.refuse(error.message);
      return false;
    }
  }

  /** Say a refusal, in sight and aloud. */
  refuse(sentence) {
    const toast = find("#toast");
    clearTimeout(this.#toast);
    toast.replaceChildren(make("p", {}, sentence));
    this.#toast = setTimeout(() => toast.replaceChildren(), TOAST_MS);
  }

  touchedSeat(seat) {
    if (this.selected.size > 0) this.dropOn(handOf(seat));
    else openSeat(this, seat);
  }

  touchedPile(stack) {
    if (this.selected.size > 0) this.dropOn(stack);
    else openPile(this, stack);
  }

  /** Put the chosen cards on a place. */
  dropOn(stack) {
    const action = dropped(this, handOf(this.table.seat), stack, this.slots);
    if (action !== null) this.attempt(action);
  }

  /** Set how many cards the next draw, deal, burn or cut is about. */
  setCount(count) {
    this.count = Math.max(1, Math.min(COUNT_MAX, count));
    this.draw();
  }

  help() {
    dialog(texts.help, () => helpFor(this, this.keys), { name: "wide" });
  }

  /** Draw everything anew, before the browser paints next. */
  draw() {
    if (this.#due || this.table === null) return;
    this.#due = true;
    const now = () => {
      this.#due = false;
      this.#drawNow();
    };
    if (document.hidden) setTimeout(now);
    else requestAnimationFrame(now);
  }

  #drawNow() {
    const { table } = this;
    const before = this.#shown === null ? null : lookAt(this.#shown);
    for (const part of this.#parts) part.draw();
    this.#sitting.draw();
    find("#own").hidden = table.seat === null;
    document.body.dataset.stopped = String(this.stopped);
    const own = table.seat === null ? null : handOf(table.seat);
    if (before !== null) fly(before, table.state, own);
    this.#shown = table.state;
  }

  async #knock(options) {
    for (;;) {
      try {
        return await connect(null, options);
      } catch {
        this.#line.say(texts.lineSays.connecting);
        await new Promise((resolve) => setTimeout(resolve, KNOCK_AGAIN_MS));
      }
    }
  }

  #follow(table) {
    this.table = table;
    this.#build();
    for (const happened of table.history) this.log.add(happened);
    let version = table.version;
    table.on("event", (happened) => {
      version = happened.version;
      this.log.add(happened);
    });
    table.on("changed", () => {
      if (table.version > version) this.log.skip();
      version = table.version;
      this.draw();
    });
    table.on("connection", (status) => {
      this.#line.draw(status);
      this.draw();
    });
    for (const kind of ["checked", "presence", "doubted"]) table.on(kind, () => this.draw());
    table.on("cheated", (error) => this.#cheated(error));
    table.on("ended", (error) => this.#ended(error));
    this.draw();
  }

  #build() {
    const toolbar = new Toolbar(find("#tools"), this);
    const stacks = new Stacks(find("#middle"), this);
    this.hand = new Hand(find("#own"), this);
    this.log = new Log(find("#story"), this);
    const mark = new Mark(find("#middle"), this);
    const bar = new Bar(find("#bar"), this);
    const seats = new Seats(find("#seats"), this);
    this.#parts = [toolbar, seats, stacks, this.hand, this.log, mark, bar];
    this.keys = new Keys(this, {
      "?": () => this.help(), i: () => bar.invite(), m: () => mark.open(), z: () => bar.menu(),
      t: () => this.hand.sort("suit"), n: () => this.hand.sort("rank"),
      "+": () => this.setCount(this.count + 1), "-": () => this.setCount(this.count - 1),
      Escape: () => this.#letGo(),
      ...Object.fromEntries("123456789".split("").map(
        (digit) => [digit, () => this.setCount(Number(digit))])),
    });
    this.dragging = new Dragging(find("#felt"), this.#drags());
  }

  #letGo() {
    this.selected.clear();
    this.draw();
  }

  /** What dragging needs to know of this game. */
  #drags() {
    const own = () => handOf(this.table.seat);
    return {
      lifted: (element) => {
        const { slot, drag } = element.dataset;
        if (slot === undefined) {
          const picture = Array.from(element.querySelectorAll(".card")).at(-1);
          return { from: drag, slots: [], pictures: [picture] };
        }
        const number = Number(slot);
        const slots = this.selected.has(number) ? this.slots : [number];
        const pictures = slots.map((one) => find(`#hand [data-slot="${one}"] .card`));
        return { from: own(), slots, pictures };
      },
      accepts: ({ from, slots }, to) => {
        if (from === to) return from === own();
        const action = dropped(this, from, to, slots);
        return action !== null && hindrance(action, this) === null;
      },
      drop: ({ from, slots }, to, x) => {
        if (from === to && from === own()) {
          this.order.move(this.hand.slots, slots, this.hand.before(x, slots));
          this.draw();
          return;
        }
        const action = dropped(this, from, to, slots);
        if (action !== null) this.attempt(action);
      },
      tap: (slot) => this.hand.toggle(slot),
    };
  }

  #cheated(error) {
    if (this.stopped) return;
    this.stopped = true;
    this.#line.say(texts.cheated.line(error.message));
    this.draw();
    accuse(this, error);
  }

  #ended(error) {
    this.draw();
    if (error !== null && !(error instanceof HouseCheated)) {
      this.stopped = true;
      const elsewhere = error instanceof SessionEnded && error.code === SUPERSEDED;
      const again = [texts.playHere, () => location.reload()];
      this.#line.say(elsewhere ? texts.elsewhere : error.message, elsewhere ? again : null);
      this.draw();
    } else if (error === null && !this.table.closed) {
      location.reload();
    }
  }
}

/** Whether one sat down in the lobby a moment ago; asked once. */
function arriving(id) {
  const there = sessionStorage.getItem(ARRIVING);
  sessionStorage.removeItem(ARRIVING);
  return there === id;
}

const game = new Game();
game.start().catch((error) => {
  write(find("#line"), error.message);
  find("#line").hidden = false;
});
