/** A table as the program sees it: its verified state, and a method for each command. */

import { INSECURE, PRACTICE, readCheckpoint } from "../verify.js";
import { confirmed, placeOf } from "./answers.js";
import { DealerError, Refused, badRequest, optionsOf } from "./errors.js";
import { markersFold } from "./markers.js";
import { pastState, tableState } from "./table_state.js";
import { randomId } from "./timing.js";

/** @typedef {import("./table_session.js").TableSession} TableSession */
/** @typedef {import("../client.js").RemoteTable} Declared */

const MAX_SHUFFLES = 3; // that a command waits for if it is refused because one is running
const UNKNOWN = "??";
const STACK = /^(deck|hand:[1-9]\d*|pile:[!-~]{1,32})$/;

/** @implements {Declared} */
export class RemoteTable {
  #session;
  #verifier;
  #state = null;
  #known = 0; // faces, when that state was made
  #markers = markersFold();

  /** @param {TableSession} session */
  constructor(session) {
    this.#session = session;
    this.#verifier = session.verifier;
    session.table = this;
  }

  get id() {
    return this.#session.id;
  }

  get version() {
    return this.#verifier.version;
  }

  get seat() {
    return this.#verifier.seat;
  }

  get host() {
    const { hostSeat } = this.state;
    return hostSeat === null ? Boolean(this.#session.hostToken) : hostSeat === this.seat;
  }

  get seats() {
    return new Map(this.state.seats.map(({ seat, name }) => [seat, name]));
  }

  get round() {
    return this.#verifier.round?.number ?? null;
  }

  get shuffling() {
    return Boolean(this.#verifier.round?.shuffle);
  }

  get shuffled() {
    const { round } = this.#verifier;
    const deck = round?.stacks.get("deck") ?? [];
    return Boolean(round) && !round.shuffle && deck.every(({ reached }) => reached);
  }

  get hand() {
    return this.seat === null ? [] : this.stack(`hand:${this.seat}`);
  }

  get deckCount() {
    return this.#verifier.round?.stacks.get("deck")?.length ?? 0;
  }

  get piles() {
    const names = Object.keys(this.state.round?.stacks ?? {}).filter((n) => n.startsWith("pile:"));
    return new Map(names.sort().map((name) => [name.slice(5), this.stack(name)]));
  }

  get closed() {
    return this.#verifier.ledger.closed;
  }

  get key() {
    return this.#verifier.log.key;
  }

  get checkpoints() {
    return this.#session.store.heads.map(({ note }) => note);
  }

  get cosigner() {
    return this.#session.due.cosigner?.key ?? null;
  }

  get cosigned() {
    return this.#session.due.cosigned;
  }

  get evidence() {
    return this.#session.evidence;
  }

  get token() {
    this.#session.ownSeat.share();
    return this.#session.token;
  }

  get invite() {
    return this.#session.store.facts.invite ?? null;
  }

  get doubts() {
    const { due, verifier } = this.#session;
    const alarm = verifier.insecure ? [INSECURE] : [];
    return [...alarm, ...(this.practice === null ? [] : [PRACTICE]), ...due.entropy.doubts];
  }

  get insecure() {
    return this.#session.verifier.insecure;
  }

  get practice() {
    return this.#verifier.practice;
  }

  get error() {
    return this.#session.error;
  }

  get state() {
    const known = this.#verifier.faces.size;
    if (this.#state?.version !== this.version || this.#known !== known) {
      this.#state = tableState(this.#verifier);
      this.#known = known;
    }
    return this.#state;
  }

  get history() {
    return this.#session.history;
  }

  get markers() {
    return this.#markers.of(this.#session.history);
  }

  get connection() {
    return this.#session.status;
  }

  get presence() {
    return this.#session.presence;
  }

  get watching() {
    return this.#session.watching;
  }

  get checks() {
    return this.#session.checks.list();
  }

  /** @type {Declared["stack"]} */
  stack(name) {
    if (!STACK.test(name)) throw badRequest("A stack is deck, hand:<seat> or pile:<name>.");
    const cards = this.#verifier.round?.stacks.get(name) ?? [];
    return cards.map((card) => this.#verifier.face(card) ?? UNKNOWN);
  }

  /** @type {Declared["events"]} */
  events() {
    return this.#session.reader();
  }

  /** @type {Declared["on"]} */
  on(kind, callback) {
    return this.#session.emitter.on(kind, callback);
  }

  /** @type {Declared["until"]} */
  async until(predicate, options = {}) {
    const { timeout } = optionsOf(options, "timeout");
    await this.#session.until(() => predicate(this), timeout);
    return this;
  }

  async sealed() {
    await this.until((table) => !table.shuffling);
  }

  /** @type {Declared["roundOpen"]} */
  async roundOpen(options = {}) {
    const { deck, entropy, commitMs, revealMs } =
      optionsOf(options, "deck", "entropy", "commitMs", "revealMs");
    const requested = entropy ?? (this.#verifier.rules.entropy === "house" ? "house" : "players");
    const params = { deck, entropy, commit_ms: commitMs, reveal_ms: revealMs };
    const { round } = await this.call("round.open", params);
    this.#session.due.entropy.compare(round, this.#verifier.entropies.get(round), requested);
    return round;
  }

  async roundClose() {
    await this.call("round.close");
  }

  /** @type {Declared["shuffle"]} */
  async shuffle(options = {}) {
    const { pile, algorithm = "backward", steps, wait = true } =
      optionsOf(options, "pile", "algorithm", "steps", "wait");
    const method = pile == null ? "deck.shuffle" : "pile.shuffle";
    const { k } = await this.call(method, { pile, algorithm, steps });
    if (wait) await this.sealed();
    return k;
  }

  /** @type {Declared["deal"]} */
  async deal(each = 1, options = {}) {
    const { seats, piles } = optionsOf(options, "seats", "piles");
    return (await this.call("deck.deal", { each, seats, piles })).dealt;
  }

  /** @type {Declared["draw"]} */
  async draw(count = 1, options = {}) {
    const { end = "top" } = optionsOf(options, "end");
    return (await this.call("deck.draw", { count, from: end })).cards;
  }

  async burn(count = 1) {
    await this.call("deck.burn", { count });
  }

  async cut(at) {
    await this.call("deck.cut", { at });
  }

  /** @type {Declared["returnCards"]} */
  async returnCards(cards = null, options = {}) {
    const { count, source, where } = optionsOf(options, "count", "source", "where");
    await this.call("deck.return", { cards: listOf(cards), count, from: source, where });
  }

  /** @type {Declared["discard"]} */
  async discard(cards, options = {}) {
    const { pile, face } = optionsOf(options, "pile", "face");
    await this.call("hand.discard", { cards: listOf(cards), pile, face });
  }

  /** @type {Declared["play"]} */
  async play(cards, options = {}) {
    const { pile, face } = optionsOf(options, "pile", "face");
    await this.call("hand.play", { cards: listOf(cards), pile, face });
  }

  /** @type {Declared["vacate"]} */
  async vacate(seat, reason = "") {
    await this.call("seat.vacate", { seat, reason });
  }

  /** @type {Declared["moveSeat"]} */
  async moveSeat(to, options = {}) {
    const { seat } = optionsOf(options, "seat");
    await this.call("seat.move", { to, seat });
  }

  /** @type {Declared["transferHost"]} */
  async transferHost(seat) {
    await this.call("table.transfer_host", { seat });
  }

  /** @type {Declared["note"]} */
  async note(kind, text) {
    await this.call("table.note", { kind, text });
  }

  /** @type {Declared["give"]} */
  async give(cards, options) {
    const { to } = optionsOf(options, "to");
    await this.call("hand.give", { cards: listOf(cards), to });
  }

  /** @type {Declared["pass"]} */
  async pass(cards = null, options = {}) {
    const { to } = optionsOf(options, "to");
    await this.call("hand.pass", { cards: listOf(cards), to });
  }

  async takeBack() {
    await this.call("hand.take_back");
  }

  /** @type {Declared["show"]} */
  async show(cards, options = {}) {
    const { to, all } = optionsOf(options, "to", "all");
    await this.call("hand.show", { cards: listOf(cards), to, all });
  }

  /** @type {Declared["pileDraw"]} */
  async pileDraw(pile, count = null, options = {}) {
    const { end, cards, all } = optionsOf(options, "end", "cards", "all");
    const params = { pile, count, from: end, cards: listOf(cards), all };
    return (await this.call("pile.draw", params)).cards;
  }

  /** @type {Declared["move"]} */
  async move(source, options) {
    const { to, cards, count, where, face, all } =
      optionsOf(options, "to", "cards", "count", "where", "face", "all");
    const params = { from: source, to, cards: listOf(cards), count, where, face, all };
    await this.call("pile.move", params);
  }

  /** @type {Declared["pileTurn"]} */
  async pileTurn(pile, cards = null, options = {}) {
    const { all } = optionsOf(options, "all");
    await this.call("pile.turn", { pile, cards: listOf(cards), all });
  }

  async close() {
    await this.call("table.close");
  }

  /** @type {Declared["call"]} */
  async call(method, params = {}) {
    const members = { cmd: randomId(), ...definedMembers(params) };
    const verifier = this.#verifier;
    const { version, seat } = verifier;
    const before = placeOf(verifier);
    let result = null;
    for (let attempt = 0; result === null; attempt++) {
      try {
        result = await this.#session.request(method, members, { changes: true });
      } catch (error) {
        if (error.reason !== "shuffle_running" || attempt === MAX_SHUFFLES) throw error;
        await this.sealed();
      }
    }
    await this.#reached(method, result, version);
    const made = this.history.filter((event) =>
      event.version > version && event.version <= result.version);
    if (made.length < result.version - version) {
      throw new DealerError(`The server did ${method}, and sent a snapshot of the table in place ` +
        "of its events: what it brought is in the table's state.");
    }
    const seats = [seat, verifier.seat];
    const command = { method, params: members, result, before, seats, faces: verifier.faces };
    return this.#checked(method, () => confirmed(made, command));
  }

  /** Wait for the version in an answer, which is not before that at which it was asked. */
  async #reached(method, { version }, since) {
    this.#checked(method, () => Number.isSafeInteger(version) && version >= since);
    await this.until((table) => table.version >= version);
  }

  /** What `check` returns; if it returns nothing, or throws, the answer is held against the house. */
  #checked(method, check) {
    let value = null;
    try {
      value = check();
    } catch {
      // The answer has not the form of an answer to this method.
    }
    return value || this.#session.accuse(method);
  }

  async leave() {
    const [session, seated] = [this.#session, this.seat !== null];
    // At once: the next frame may be the answer to a join, which begins another session.
    const onResult = (result) => {
      session.ownSeat.release();
      if (result.host === true) return;
      // An answer was lost, and the repetition came from a host without a seat.
      if (seated && session.hostToken) session.resume();
      else session.end(null);
    };
    try {
      await session.request("table.leave", {}, { changes: true, onResult });
    } catch (error) {
      // The answer was lost with its socket, and the token was already invalid on the next one.
      const left = error instanceof Refused && error.reason === "bad_token";
      if (!left || this.seat === null) throw error;
      onResult({});
    }
  }

  /** @type {Declared["stateAt"]} */
  async stateAt(version) {
    const { state } = await this.#session.request("table.state", { at: version });
    return this.#checked("table.state", () => {
      const past = pastState(this.id, state);
      const { number, stacks = {} } = past.round ?? {};
      const { faces } = this.#verifier;
      const asOpened = Object.values(stacks).flat().every(({ slot, card }) =>
        card === null || card === (faces.get(`${number}/${slot}`) ?? card));
      return asOpened && past.version === version && past.key === this.key ? past : null;
    });
  }

  /** @type {Declared["broadcastLink"]} */
  async broadcastLink() {
    const { link } = await this.#session.request("broadcast.link", {});
    return `/tables/${this.id}/broadcast#${link}`;
  }

  /** @type {Declared["revokeBroadcast"]} */
  async revokeBroadcast() {
    return (await this.#session.request("broadcast.revoke", {})).revoked;
  }

  async bundle() {
    const since = this.version;
    const result = await this.#session.request("audit.bundle", {});
    await this.#reached("audit.bundle", result, since);
    return this.#checked("audit.bundle", () =>
      result.url === `/tables/${this.id}/bundle.jsonl` && result);
  }

  async cosign(note) {
    const cosignature = await this.#session.due.cosignature(note);
    await this.#session.request("table.cosign", { cosignature }, { changes: true });
    return readCheckpoint(note).size;
  }
}

/** A single card may be given without a list. */
function listOf(cards) {
  if (cards == null) return null;
  return typeof cards === "string" || typeof cards === "number" ? [cards] : [...cards];
}

/** The members that have a value. */
export const definedMembers = (members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value != null));
