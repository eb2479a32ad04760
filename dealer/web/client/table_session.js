/**
 * One table that the client follows: takes its notifications in order, has each one verified, and
 * resumes after a lost connection.
 *
 * Notifications are processed one after the other, because some checks are asynchronous, and
 * nothing is reported before it was verified. If the server cheats, the client leaves the table for
 * good: it stores the evidence, and every waiter gets HouseCheated.
 */

import { Checks } from "./checks.js";
import { DueRequests } from "./due_requests.js";
import { AsyncQueue, Emitter, Waiters } from "./emitter.js";
import {
  ConfigurationError, DealerError, HouseCheated, MissingEvents, SUPERSEDED, SessionEnded,
} from "./errors.js";
import { EventVerifier } from "./event_verifier.js";
import { OwnSeat } from "./own_seat.js";

/** @typedef {import("../client.js").ConnectionStatus} ConnectionStatus */
/** @typedef {import("../client.js").Cosigner} Cosigner */
/** @typedef {import("../client.js").Evidence} Evidence */
/** @typedef {import("../client.js").Presence} Presence */
/** @typedef {import("./connection.js").Connection} Connection */
/** @typedef {import("./stores.js").TableStore} TableStore */

const MAX_RESUMES = 4; // for one missing event
const LEFT = "You have left this table.";
const METHOD_NOT_FOUND = -32601;

export class TableSession {
  /** @type {Evidence | null} */
  evidence = null;
  /** @type {Error | null} why the session is over */
  error = null;
  /** @type {any} the RemoteTable that callbacks are given */
  table = null;
  emitter = new Emitter();
  history = [];
  /** @type {Map<number, Presence>} by seat */
  presence = new Map();
  /** @type {number | null} */
  watching = null;
  #readers = new Set();
  #finished = false; // no more events will come
  #waiters = new Waiters();
  #steps = []; // notifications to process
  #processing = false;
  #reportedVersion = 0;
  #resumes = []; // resume requests of the current socket
  #resumedAfter = 0; // the version that the last answered resume began after
  /** @type {number | null} the seat that it gave */
  #resumedSeat = null;
  #started = null;
  #target = 0; // the server's version, as far as it has said
  #gap = { version: 0, times: 0 };
  #learned = ""; // the round and the seat's beginning of which the hand was asked for
  /** @type {ConnectionStatus | null} */
  #status = null;

  /**
   * @param {string} id
   * @param {Connection} connection
   * @param {TableStore} store
   * @param {{ key: string | null, cosigner: Cosigner | null, noSignatures: string | null,
   *   link?: string | null }} options `link`: it watches the table's broadcast
   */
  constructor(id, connection, store, { key, cosigner, noSignatures, link = null }) {
    this.id = id;
    this.link = link;
    this.connection = connection;
    this.store = store;
    this.verifier = new EventVerifier(id, { key, saved: store.heads, noSignatures });
    this.verifier.seat = store.facts.seat ?? null;
    this.ownSeat = new OwnSeat(this.verifier, store);
    this.due = new DueRequests(this.verifier, store, {
      cosigner,
      request: (method, params) => this.request(method, params, { changes: true }),
      onDoubt: (sentence) => this.emitter.emit("doubted", sentence),
      onCosigned: () => this.#waiters.wake(),
    });
    this.checks = new Checks(this.verifier, this.due.entropy, noSignatures);
    connection.emitter.on("connection", () => this.#updateStatus());
    this.#updateStatus();
  }

  get token() {
    return this.store.facts.token ?? null;
  }

  get hostToken() {
    return this.store.facts.host_token ?? null;
  }

  get status() {
    return this.#status;
  }

  /** Whether the table is closed: no more events will come. */
  get over() {
    return this.verifier.ledger.closed;
  }

  // ————— For the program —————

  /**
   * @param {() => unknown} condition evaluated after every change
   * @param {number} [timeout] in milliseconds
   * @returns {Promise<void>}
   */
  until(condition, timeout) {
    if (this.error) return Promise.reject(this.error);
    if (condition()) return Promise.resolve();
    return this.#waiters.add(condition, timeout);
  }

  /** An iterator over the events from now on. */
  reader() {
    const reader = new AsyncQueue((gone) => this.#readers.delete(gone));
    if (this.error || this.#finished) reader.end(this.error?.message === LEFT ? null : this.error);
    else this.#readers.add(reader);
    return reader;
  }

  /**
   * Send a request about this table as soon as the socket follows it.
   *
   * @param {string} method
   * @param {Record<string, any>} params
   * @param {{ changes?: boolean, onResult?: ((result: any) => void) | null }} [options]
   */
  request(method, params, { changes = false, onResult = null } = {}) {
    if (this.error) return Promise.reject(this.error);
    const members = { ...params, table: this.id };
    const options = { table: this.id, changes, onResult };
    const { promise } = this.connection.request(method, members, options);
    // A closed table is not resumed on a new socket before it is needed.
    if (this.over && !this.connection.attached.has(this.id) && !this.#resuming) this.resume();
    return promise;
  }

  /** End the session. Without an error the player has left. */
  end(error) {
    const reason = error ?? new DealerError(LEFT);
    const follower = this.connection.listeners.get(this.id) ?? this; // another one after a join
    if (follower === this) this.connection.detach(this.id, reason);
    if (this.error) return;
    // Another client plays this seat, and commits to bytes that this one does not know.
    if (error instanceof SessionEnded && error.code === SUPERSEDED) this.ownSeat.share();
    for (const request of this.#resumes) this.connection.cancel(request);
    this.error = reason;
    this.#steps.length = 0;
    this.#finish(error);
    this.#started?.reject(reason);
    this.#waiters.reject(reason);
    this.#updateStatus();
  }

  #finish(error) {
    if (this.#finished) return;
    this.#finished = true;
    for (const reader of this.#readers) reader.end(error);
    this.emitter.emit("ended", error);
  }

  #updateStatus() {
    const { status } = this.connection;
    const lagging = status.state === "connected" && !this.#upToDate;
    const state = lagging ? "resuming" : status.state;
    const error = /** @type {any} */ (this.error ?? status.error);
    if (this.#status?.state === state && this.#status.error === error) return;
    this.#status = { state, since: Date.now(), error };
    if (!this.connection.closing) this.emitter.emit("connection", this.#status);
  }

  get #upToDate() {
    const attached = this.over || this.connection.attached.has(this.id);
    return attached && !this.#resuming && this.verifier.version >= this.#target;
  }

  // ————— Subscribing —————

  /** Follow the table from its first event on. Resolves with the answer to the resume. */
  start() {
    const started = new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
    });
    this.connection.listeners.set(this.id, this);
    this.resume();
    return started;
  }

  /** Request the events after the last one, as seat and as host, or as spectator. */
  resume() {
    for (const request of this.#resumes) this.connection.cancel(request);
    // The seat goes first: the host alone would be sent the events without the seat's cards.
    const tokens = [this.token, this.hostToken].filter(Boolean);
    if (tokens.length === 0) tokens.push(null);
    this.#resumes = tokens.map((token, n) => this.#requestResume(token, n === tokens.length - 1));
    this.#updateStatus();
  }

  get #resuming() {
    return this.#resumes.some((request) => !request.done);
  }

  #requestResume(token, last) {
    const after = this.verifier.log.resumeAfter();
    const by = token === null ? this.link && { link: this.link } : { token };
    const params = { table: this.id, after, ...by };
    const method = token ? "table.resume" : "table.watch";
    const onResult = (result) => {
      const socket = this.connection.socketCount;
      this.#enqueue(async () => {
        request.done = true;
        this.#target = result.version;
        this.#resumedAfter = after;
        this.#resumedSeat = result.seat ?? null;
        await this.verifier.takeLatest(result.checkpoint);
        if (last && this.error === null) {
          if (socket === this.connection.socketCount) this.#attach();
          this.#started?.resolve(result);
        }
      });
    };
    /** @type {any} */
    const request = this.connection.request(method, params, { onResult });
    request.promise.catch((error) => {
      request.done = true;
      if (error.reason !== "bad_token" || last) this.end(error);
      else if (token === this.token) this.ownSeat.release(); // continue as host alone
    });
    return request;
  }

  /**
   * Begin with the result of `table.join` or `table.watch`; `shared` says whether the seat may be one
   * that the player has on other devices, too.
   */
  begin(result, { shared }) {
    this.#target = result.version;
    if ("seat" in result) {
      const { seat, token } = result;
      const taken = result.state.seats.find((player) => player.seat === seat);
      this.verifier.seat = seat;
      this.store.update({ token, seat, since: taken?.since ?? result.version, shared });
    }
    this.connection.listeners.set(this.id, this);
    this.#attach();
    this.#enqueue(async () => {
      // The notes of a game, such as whose turn it is, are in its events and not in a snapshot.
      if (this.verifier.version) await this.verifier.begin(snapshotOf(result));
      if (this.verifier.version < result.version || !this.verifier.log.linked) this.resume();
    });
  }

  #attach() {
    this.connection.attach(this.id);
    this.#requestPresence();
  }

  // ————— Notifications —————

  onNotification(method, params) {
    if (method === "presence") this.#updatePresence(params);
    else if (method === "event") this.#enqueue(() => this.#onEvent(params));
    else if (method === "snapshot") this.#enqueue(() => this.#onSnapshot(params));
    else if (method === "checkpoint") {
      this.#enqueue(() => this.verifier.takeCheckpoint(params.note));
    } else this.#enqueue(() => {});
  }

  #enqueue(step) {
    if (this.error) return;
    this.#steps.push(step);
    if (!this.#processing) this.#process();
  }

  async #process() {
    this.#processing = true;
    while (this.#steps.length && !this.error) {
      try {
        await this.#steps.shift()();
        if (this.error) break;
        this.#sendDue();
        this.#waiters.wake();
      } catch (error) {
        if (error instanceof MissingEvents) this.#resumeAfterGap();
        else if (error instanceof HouseCheated) this.#leaveCheater(error);
        else this.end(error instanceof DealerError ? error : new ConfigurationError(String(error)));
      }
    }
    this.#processing = false;
    this.#report();
  }

  #sendDue() {
    this.due.save(this.history.at(-1));
    const { version, log } = this.verifier;
    const upToDate = version >= this.#target && !this.#resuming && log.linked;
    this.due.send({ upToDate, away: version <= this.#target });
    if (upToDate && this.verifier.isBlind) this.#learnHand();
  }

  /** The events of a hand are private to the player who held it then: a later one asks for it. */
  #learnHand() {
    const hand = `${this.verifier.round.number}/${this.ownSeat.since}`;
    if (hand === this.#learned) return;
    this.#learned = hand;
    this.request("table.state", {}).then(
      ({ state }) => this.#enqueue(async () => {
        await this.verifier.learn(state);
        this.#reportedVersion = 0;
      }),
      () => {}, // the table was left, or the seat was lost
    );
  }

  /** Emit the state once for all notifications that were processed together. */
  #report() {
    this.#updateStatus();
    if (this.#reportedVersion !== this.verifier.version) {
      this.#reportedVersion = this.verifier.version;
      this.emitter.emit("changed", this.table);
    }
    if (this.checks.changed()) this.emitter.emit("checked", this.checks.list());
  }

  async #onEvent(frame) {
    const event = await this.verifier.takeEvent(frame);
    if (event === null || this.error) return;
    const { type, version } = event;
    event.live = !this.#resuming && version > this.#target;
    this.checks.onEvent(event, this.ownSeat.since);
    // The server pushes the new seat's cards from the answer to a resume on.
    if (this.ownSeat.onEvent(event) && version > this.#target) this.resume();
    this.history.push(event);
    for (const reader of this.#readers) reader.push(event);
    this.emitter.emit("event", event);
    if (type === "TableClosed") this.#finish(null);
  }

  /** A snapshot replaces events that are too many to send, or that the server has lost. */
  async #onSnapshot(params) {
    const snapshot = snapshotOf(params);
    if (this.verifier.version) {
      const { proof = null } = params;
      const after = this.#resumedAfter;
      if (await this.verifier.reset(snapshot, { proof, after })) this.checks.onReset();
    } else {
      await this.verifier.begin(snapshot);
      if (!this.verifier.log.linked) this.resume();
    }
    if (this.#resumedSeat !== null) this.ownSeat.follow(this.#resumedSeat);
  }

  // ————— Faults —————

  /** Events are missing: resume after the last one, a limited number of times. */
  #resumeAfterGap() {
    if (this.#resuming) return;
    const { version } = this.verifier;
    const times = version === this.#gap.version ? this.#gap.times + 1 : 1;
    this.#gap = { version, times };
    if (times > MAX_RESUMES) {
      const message = "The server omits an event repeatedly: the client leaves the table.";
      this.#leaveCheater(
        new HouseCheated(message, { evidence: this.verifier.evidence(message) }),
      );
    } else {
      this.resume();
    }
  }

  /**
   * Leave the table, because the answer to `method` is not what its events say.
   *
   * @param {string} method
   * @returns {never}
   */
  accuse(method) {
    const message = `The server's answer to ${method} is not what the table's events say.`;
    this.#leaveCheater(new HouseCheated(message, { evidence: this.verifier.evidence(message) }));
    throw this.error;
  }

  /** Store the evidence, give up the seat, and end the session. */
  #leaveCheater(fault) {
    this.evidence = fault.evidence;
    if (fault.evidence) this.store.saveEvidence(fault.evidence);
    this.checks.onFault(fault);
    if (this.token) {
      const params = { table: this.id, token: this.token };
      this.connection.request("table.leave", params, { changes: true }).promise.catch(() => {});
    }
    this.end(fault);
    this.emitter.emit("cheated", fault);
  }

  // ————— Presence —————

  #requestPresence() {
    const { unknownMethods } = this.connection;
    if (this.link !== null) return; // a broadcast does not say who is here now
    if (unknownMethods.has("table.presence")) return;
    this.request("table.presence", {}).then(
      (result) => this.#updatePresence(result),
      (error) => {
        if (error.code === METHOD_NOT_FOUND) unknownMethods.add("table.presence");
      },
    );
  }

  #updatePresence({ seats, watching = null }) {
    if (!Array.isArray(seats)) return;
    this.presence = new Map();
    for (const { seat, here, since = null } of seats) {
      this.presence.set(seat, { here: here === true, since });
    }
    this.watching = watching;
    this.emitter.emit("presence", this.presence);
    this.#waiters.wake();
  }
}

/** The members of a snapshot; the verifier handles those that are missing. */
const snapshotOf = ({ version, state, edge, checkpoint }) => ({
  version, state, edge, note: checkpoint,
});
