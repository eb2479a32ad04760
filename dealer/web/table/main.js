/**
 * The table page: connects, draws the table, and carries out the player's actions.
 *
 * Data flows one way: a change of the client's table causes one redraw of the page from
 * `table.state`, and cards that moved are animated. The page keeps no copy of the state.
 */

import { cardElement } from "../cards.js";
import { HouseCheated, Refused, browserStore } from "../client.js";
import { addCardPictures, addStyles } from "../late_styles.js";
import { REMOVED, keepOwnTable, persistent, stored } from "../page_storage.js";
import { errorText, table as texts } from "../texts.js";
import {
  REPEATED, actionForMove, actionNamed, disabledReason, foundationOf, turnOfColumn,
} from "./actions.js";
import { Bubbles } from "./bubbles.js";
import { openPile } from "./card_menus.js";
import { cardMoves } from "./card_moves.js";
import { Clicks, DOUBLE_TAP_MS } from "./clicks.js";
import { ConnectionBanner } from "./connection_banner.js";
import { addDialogStyles, dialog } from "./dialogs.js";
import {
  connectWithRetry, enter, hasJustJoined, isReload, showStorageNotice,
} from "./entrance.js";
import { FairnessBadge, accusation, showFraud } from "./fairness_badge.js";
import { hasNoHands } from "./game.js";
import { Hand } from "./hand.js";
import { HandOrder } from "./hand_order.js";
import { Header } from "./header.js";
import { isRemoval } from "./history.js";
import { JoinForm, keepRemoval, storedName, takeLink } from "./join_form.js";
import { inviteFirst, showInvitation } from "./links.js";
import { Log, announcer } from "./log.js";
import { seatMenu } from "./menu.js";
import { loadPresentation } from "./presentation.js";
import { questions } from "./questions.js";
import { QuickActions } from "./quick_actions.js";
import { RoundSheet } from "./round_sheet.js";
import { followOffers } from "./seat_change.js";
import { noteScores } from "./scores.js";
import { Seats } from "./seats.js";
import { handOf, nameAt, turnOf, wonBy } from "./selectors.js";
import { Shortcuts, shortcutHelp } from "./shortcuts.js";
import { soundOf } from "./sounds.js";
import { Stacks } from "./stacks.js";
import { toaster } from "./toast.js";
import { Toolbar } from "./toolbar.js";
import { TurnClock } from "./turn_clock.js";
import { Turns } from "./turns.js";

const MAX_COUNT = 52;
const PIPS = new URL("../pips.js", import.meta.url).href;
const DRAGGING = new URL("./dragging.js", import.meta.url).href;
const ANIMATION = new URL("./card_animation.js", import.meta.url).href;
const OF_TURN = ["draw", "play", "discard"]; // the rules of the moves that people take turns for

/** @returns {any} */
const find = (selector) => document.querySelector(selector);

/** The page's state besides the table's own: selection, count, and what is being carried out. */
class TablePage {
  id = location.pathname.split("/").at(-1);
  #link = takeLink(this.id);
  invite = this.#link.invite;
  greeting = this.#link.greeting;
  /** @type {import("../client.js").RemoteTable | null} */
  table = null;
  stopped = false;
  /** @type {Set<number>} slots */
  selected = new Set();
  count = 1;
  order = new HandOrder(this.id);
  ask = questions(this);
  bubbles = new Bubbles(() => this.draw());
  /** @type {any} those of the table when it was drawn last */
  markers = null;
  /** @type {Map<number, string> | null} of hands that are shown and compared, by seats */
  kinds = null;
  /** @type {((card: any) => boolean) | null} whether a card does not match, where that is played */
  isOff = null;
  announce = announcer(find("#announcer"));
  showToast = toaster(find("#toast"));
  #clicks = new Clicks();
  #tapped = { stack: "", timer: 0 }; // a pile whose menu opens unless it is tapped again
  #house = null;
  #banner = new ConnectionBanner(find("#connection"));
  #joinForm = new JoinForm(find("#join"), this);
  #arriving = hasJustJoined(this.id);
  #parts = [];
  #drawnState = null;
  #animation = null; // the module, once it is loaded
  #drawScheduled = false;
  #isComplete = false;
  #kept = ""; // of the table, as the lobby lists it
  moves = cardMoves(this);
  /** @type {Promise<void> | null} */
  #draggable = null;
  /** @type {Promise<any>} */
  #pending = Promise.resolve(); // settles when every action so far is done or refused

  /** The time by which the server dates events, in milliseconds since 1970. */
  get serverTime() {
    return this.#house.serverTime;
  }

  /** The slots of the selected cards of the hand, from left to right. */
  get slots() {
    return this.hand.chosen;
  }

  async start() {
    try {
      await this.#enter();
    } catch (error) {
      this.#stop(error); // another window may have taken over the seat while this one entered
    }
  }

  async #enter() {
    const store = browserStore(stored);
    if (!persistent) showStorageNotice(find("#notice"), this.id);
    const options = { name: storedName() || texts.guest, store, table: this.id };
    this.#house = await connectWithRetry(
      options, () => this.#banner.show(texts.connection.connecting));
    this.#house.on("connection", (status) => this.table ?? this.#banner.draw(status));
    const player = this.#house.kept(this.id).seat !== null;
    const returning = player && !this.#arriving && !isReload();
    // Before the table is there: none of its events may come while this waits.
    if (player || this.#link.seat !== null) await this.#loadDragging();
    try {
      const { table, refusal } = await enter(this.#house, this.id, this.#link);
      if (refusal !== null) this.showToast(refusal);
      this.#follow(table);
    } catch (error) {
      if (error instanceof HouseCheated) return this.#onCheated(error);
      if (!(error instanceof Refused)) throw error;
      if (error.reason === "unknown_table") {
        keepOwnTable(this.id, null);
        throw error;
      }
      return this.#joinForm.draw(errorText(error));
    }
    if (returning && this.table.seat !== null) {
      const welcome = texts.welcomeBack({ seat: this.table.seat });
      this.#banner.draw(this.table.connection, { welcome });
    }
    return undefined;
  }

  /** Take a seat; `options` are those of the client's `join`. */
  async join(options) {
    await this.#loadDragging();
    const table = await this.#house.join(this.table ?? this.id, options);
    if (this.table === null) this.#follow(table);
    this.draw();
  }

  /** Carry out a named action, or show why it is not possible. */
  async run(name) {
    await this.attempt(actionNamed(name));
  }

  /** Carry out a named action by a click on its button; a double click carries out most once. */
  async click(name, event) {
    if (REPEATED.includes(name)) await this.run(name);
    else await this.#clicks.once(event, () => this.run(name));
  }

  /**
   * Carry out an action `{ conditions, run, asks, counted }`; whether it was done. The action uses
   * the selection and the count at the time of the call, and sets the count back to 1. It waits for
   * earlier actions, and its conditions are checked again afterwards, because those may have
   * changed the table.
   *
   * @param {any} action
   * @param {{ slots?: number[], count?: number }} [options]
   * @returns {Promise<boolean>}
   */
  async attempt(action, { slots = this.slots, count = this.count } = {}) {
    const { table, ask } = this;
    const context = { table, slots, count, ask };
    if (!this.#isPossible(action, context)) return false;
    const answer = action.asks === null ? null : await action.asks(context);
    if (action.asks !== null && !answer) return false;
    if (action.counted) this.setCount(1);
    const done = this.#pending.then(
      () => this.#isPossible(action, context) && this.#execute(action, context, answer));
    this.#pending = done;
    if (!(await done) && action.counted && this.count === 1) this.setCount(count);
    return done;
  }

  #isPossible(action, context) {
    const reason = disabledReason(action, { ...context, stopped: this.stopped });
    if (reason !== null) this.showToast(reason);
    return reason === null;
  }

  async #execute(action, context, answer) {
    const turn = turnOf(this.table); // before the move
    try {
      await action.run(context, answer);
      // People decide: a move out of turn is done, and said.
      if (OF_TURN.includes(action.rule) && ![null, this.table.seat].includes(turn)) {
        this.showToast(texts.logLines.turn({ name: nameAt(this.table, turn) }));
      }
      // Drawing and dealing leave the selection as it is.
      if (!action.counted) for (const slot of context.slots) this.selected.delete(slot);
      this.draw();
      return true;
    } catch (error) {
      if (!(error instanceof HouseCheated)) this.showToast(errorText(error));
      return false;
    }
  }

  onSeatTap(seat) {
    if (this.selected.size > 0) this.dropOn(handOf(seat));
    else seatMenu().then(({ openSeat }) => openSeat(this, seat));
  }

  /** A second tap sends a card to the pile of its suit, where one is built: the menu waits for it. */
  onPileTap(stack, { detail }) {
    const turn = turnOfColumn(this.table, stack);
    const to = detail === 0 ? null : foundationOf(this.table, stack);
    const again = this.#tapped.stack === stack;
    clearTimeout(this.#tapped.timer);
    this.#tapped = { stack: "", timer: 0 };
    if (this.selected.size > 0) this.dropOn(stack);
    else if (turn !== null) this.attempt(turn);
    else if (to === null) openPile(this, stack);
    else if (again) this.attempt(actionForMove(this.table, { from: stack, to }));
    else {
      const open = () => {
        this.#tapped = { stack: "", timer: 0 };
        openPile(this, stack);
      };
      this.#tapped = { stack, timer: window.setTimeout(open, DOUBLE_TAP_MS) };
    }
  }

  /** Move the selected cards to a stack. */
  dropOn(stack) {
    const { slots } = this;
    const action = actionForMove(this.table, { from: handOf(this.table.seat), to: stack, slots });
    if (action !== null) this.attempt(action, { slots });
  }

  /** Set the number of cards for the next draw, deal, burn or cut. */
  setCount(count) {
    this.count = Math.max(1, Math.min(MAX_COUNT, count));
    this.draw();
  }

  help() {
    dialog(texts.help, () => shortcutHelp(this, this.shortcuts), { name: "wide" });
  }

  /** Draw also this part of the page from now on. */
  add(part) {
    this.#parts.push(part);
  }

  /** Schedule one redraw before the browser's next paint. */
  draw() {
    if (this.#drawScheduled || this.table === null) return;
    this.#drawScheduled = true;
    const run = () => {
      this.#drawScheduled = false;
      this.#drawNow();
    };
    if (document.hidden) setTimeout(run);
    else requestAnimationFrame(run);
  }

  #drawNow() {
    const { table } = this;
    const before = this.#animation?.positionsOf(this.#drawnState) ?? null;
    this.markers = { ...table.markers, turn: turnOf(table) };
    this.#loadTheRest();
    for (const part of this.#parts) part.draw();
    this.#joinForm.draw();
    const handless = hasNoHands() && table.round !== null && this.hand.slots.length === 0;
    find("#own").hidden = table.seat === null || handless;
    const own = table.seat === null ? null : handOf(table.seat);
    if (before !== null) this.#animation.animateMoves(before, table.state, own, cardElement);
    for (const part of this.#parts) part.measure?.();
    this.#drawnState = table.state;
    this.#keepOwn();
  }

  /** What only a player needs, or a deal: a newcomer sees the table without. */
  #loadTheRest() {
    const { seat, state: { round, closedRound } } = this.table;
    if (this.#isComplete || (seat ?? round ?? closedRound) === null) return;
    this.#isComplete = true;
    this.#loadDragging(); // piles are held, too
    addCardPictures();
    addDialogStyles();
    addStyles("table/player.css");
    import(PIPS).then(({ addPips }) => addPips(), () => {}); // without: one large suit
    import(ANIMATION).then((loaded) => { this.#animation = loaded; }, () => {}); // without: none
  }

  /** The lobby lists the tables at which this browser has a seat. */
  #keepOwn() {
    const { id, seat, closed, practice, state: { name } } = this.table;
    const own = `${seat}/${closed}`;
    if (own === this.#kept) return;
    this.#kept = own;
    if (seat !== null) stored.removeItem(REMOVED + id);
    const kept = { id, name, seat, closed, practice: practice !== null, deal: practice?.round };
    keepOwnTable(id, seat === null ? null : kept);
  }

  /** Celebrate the winner of a trick that has just been given. */
  #celebrate({ type, live, public: { from, to } }) {
    const winner = type === "CardMoved" && from === "pile:table" ? wonBy(to) : null;
    if (winner !== null && live) this.#animation?.celebrate(winner);
  }

  #follow(table) {
    this.table = table;
    this.#build();
    for (const event of table.history) this.log.add(event);
    const turns = new Turns(this);
    let { version, seat } = table;
    let name = table.seats.get(seat);
    table.on("event", (event) => {
      version = event.version;
      if (isRemoval(event) && event.public.seat === seat) keepRemoval(table.id, event, name);
      ({ seat } = table);
      name = table.seats.get(seat);
      this.log.add(event);
      this.bubbles.onEvent(event);
      turns.onEvent(event);
      noteScores(table, event).catch(() => {}); // a mark: a refusal changes no card
      soundOf(event);
      this.#celebrate(event);
    });
    table.on("changed", () => {
      if (table.version > version) this.log.addGap();
      version = table.version;
      this.draw();
    });
    table.on("connection", (status) => {
      this.#banner.draw(status);
      this.draw();
    });
    for (const kind of ["checked", "presence", "doubted"]) table.on(kind, () => this.draw());
    table.on("cheated", (error) => this.#onCheated(error));
    table.on("ended", (error) => this.#onEnded(error));
    this.draw();
    followOffers(this);
    loadPresentation(this, find("#notice")).then(() => this.#arriving && inviteFirst(this));
  }

  #build() {
    const toolbar = new Toolbar(find("#tools"), this);
    const stacks = new Stacks(find("#middle"), this);
    const sheet = new RoundSheet(find("#middle"), this);
    this.hand = new Hand(find("#own"), this);
    this.log = new Log(find("#log-panel"), this);
    const quick = new QuickActions(find("#middle"), this);
    const header = new Header(find("#header"), this);
    const badge = new FairnessBadge(find("#header .title"), this);
    const seats = new Seats(find("#seats"), this);
    const clock = new TurnClock(this);
    this.#parts = [toolbar, seats, stacks, sheet, this.hand, this.log, quick, badge, header, clock];
    this.shortcuts = new Shortcuts(this, {
      "?": () => this.help(), i: () => showInvitation(this), m: () => badge.open(),
      z: () => header.menu(), t: () => this.hand.sort("suit"), n: () => this.hand.sort("rank"),
      "+": () => this.setCount(this.count + 1), "-": () => this.setCount(this.count - 1),
      Escape: () => this.#clearSelection(),
      ...Object.fromEntries("123456789".split("").map(
        (digit) => [digit, () => this.setCount(Number(digit))])),
    });
  }

  /** Wait for what drags cards, which a spectator does without. */
  #loadDragging() {
    this.#draggable ??= import(DRAGGING).then(({ Dragging }) => {
      this.dragging = new Dragging(find("#felt"), this.moves);
    }, () => {}); // without: cards are tapped
    return this.#draggable;
  }

  #clearSelection() {
    this.selected.clear();
    this.draw();
  }

  #onCheated(error) {
    if (this.stopped) return;
    this.stopped = true;
    this.#banner.show(texts.cheated.line({ sentence: accusation(error) }));
    this.draw();
    showFraud(this, error);
  }

  #onEnded(error) {
    this.draw();
    if (error !== null && !(error instanceof HouseCheated)) this.#stop(error);
    else if (error === null && !this.table.closed) location.reload();
  }

  #stop(error) {
    this.stopped = true;
    this.#banner.showEnd(error);
    this.draw();
  }
}

new TablePage().start();
