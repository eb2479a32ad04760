/**
 * A connection to a server that survives the loss of its socket: it reconnects with back-off, and
 * each request stays pending, across any number of sockets, until it is answered. A request that
 * changes something carries a `cmd` id, so the server executes it once however often it is sent.
 */

import { Emitter } from "./emitter.js";
import { HouseUnreachable, SessionEnded, refusedFrom } from "./errors.js";
import { explained, openSocket } from "./socket.js";
import { IN_BROWSER, jittered, now, randomId } from "./timing.js";

/** @typedef {import("../client.js").RetryPolicy} RetryPolicy */
/** @typedef {import("../client.js").ConnectionStatus} ConnectionStatus */

/**
 * @typedef {object} PendingRequest
 * @property {number} id
 * @property {string} method
 * @property {Record<string, any>} params
 * @property {string | null} table held back until the socket follows this table
 * @property {((result: any) => void) | null} onResult called before any later frame is read
 * @property {number} attempts
 * @property {boolean} sent on the current socket
 * @property {boolean} cancelled
 * @property {ReturnType<typeof setTimeout> | null} timer until the next attempt
 * @property {Promise<any>} promise of the result
 * @property {(result: any) => void} resolve
 * @property {(error: Error) => void} reject
 */

/**
 * What follows a table over this connection.
 *
 * @typedef {object} TableListener
 * @property {(method: string, params: any) => void} onNotification
 * @property {() => void} resume called on each new socket
 * @property {boolean} over whether the table is closed, so that no more events will come
 * @property {(error: Error) => void} end called when the connection ends for good
 */

const KEY_REFUSED = 4401;
const FINAL_CODES = {
  1009: "The message is longer than the server accepts.",
  4401: "The server no longer accepts this client's key or link.",
  4403: "The server does not admit this client.",
  4408: "The server closed the connection because the client sent no request in time.",
  4409: "A newer connection has taken over this seat.",
};

/** Temporary refusals that last too long for the connection to retry them. */
const NOT_RETRIED = new Set(["shuffle_running", "disabled"]);
const AWAY_AFTER = 3; // failed attempts in a row
const TABLE_ID = /^[0-9a-f]{32}$/;

export class Connection {
  /** @type {Map<string, TableListener>} by table */
  listeners = new Map();
  /** @type {Set<string>} tables that the current socket follows */
  attached = new Set();
  /** @type {Set<string>} methods that this server does not have */
  unknownMethods = new Set();
  socketCount = 0; // opened so far
  closing = false; // by this program, which needs no report of it
  emitter = new Emitter();
  /** @type {ConnectionStatus} */
  status = { state: "connecting", since: Date.now(), error: null };
  #zero = Date.now() - now(); // the server's time when the monotonic clock was 0
  #WebSocketClass;
  #policy;
  /** @type {Map<number, PendingRequest>} */
  #requests = new Map();
  #nextId = 0;
  #socket = null;
  #notBefore = 0; // when a draining server is left, and not earlier; 0 without one
  #backoff; // before the next attempt
  #lostAt = 0; // when the connection was lost; 0 while it is up
  #failures = 0;
  #error = null;
  #endWait = null; // ends a pause early
  #key; // a service key, or null
  #identified = false; // whether the current socket may be used: with a key, once it is accepted
  #routedTo = null; // the table whose address sockets are opened at
  #byTable = false; // whether the server asked for one address for each table
  #onPageActive = () => this.#checkNow();

  /**
   * @param {string} url
   * @param {any} WebSocketClass
   * @param {RetryPolicy} policy
   * @param {object} [options]
   * @param {string | null} [options.table] that will be followed, if it is known
   * @param {string | null} [options.key] a service key: each socket's first request sends it
   */
  constructor(url, WebSocketClass, policy, { table = null, key = null } = {}) {
    this.url = url;
    this.#key = key;
    this.routeTo(table);
    this.#WebSocketClass = WebSocketClass;
    this.#policy = policy;
    this.#backoff = policy.backoff;
  }

  async start() {
    const hello = this.#hello();
    try {
      this.#use(await this.#openSocket());
    } catch (error) {
      throw await explained(this.url, this.#policy.answer, error);
    }
    const late = new HouseUnreachable(`The server at ${this.url} does not answer session.hello.`);
    const timer = setTimeout(() => this.#fail(late), this.#policy.open);
    try {
      await hello.promise;
    } catch (error) {
      this.#socket?.abort();
      throw this.#error ?? error;
    } finally {
      clearTimeout(timer);
    }
    if (IN_BROWSER) {
      globalThis.addEventListener("online", this.#onPageActive);
      document.addEventListener("visibilitychange", this.#onPageActive);
    }
  }

  /** The server's time, in milliseconds since 1970; that of the device may be off. */
  get serverTime() {
    return Math.round(this.#zero + now());
  }

  async close() {
    this.closing = true;
    this.#fail(new HouseUnreachable("This client has closed its connection."));
    await this.#socket?.close();
  }

  /**
   * Send a request. Its `promise` resolves with the result, across reconnects, or rejects with
   * Refused.
   *
   * @param {string} method
   * @param {Record<string, any>} params
   * @param {object} [options]
   * @param {string | null} [options.table] hold the request back until this table is followed
   * @param {boolean} [options.changes] add a `cmd` id
   * @param {((result: any) => void) | null} [options.onResult] called before a later frame is read
   * @returns {PendingRequest}
   */
  request(method, params, { table = null, changes = false, onResult = null } = {}) {
    if (changes && !("cmd" in params)) params = { ...params, cmd: randomId() };
    const request = /** @type {PendingRequest} */ ({
      id: ++this.#nextId, method, params, table, onResult,
      attempts: 0, sent: false, cancelled: false, timer: null,
    });
    request.promise = new Promise((resolve, reject) => Object.assign(request, { resolve, reject }));
    if (this.#error) {
      request.reject(this.#error);
    } else {
      this.#requests.set(request.id, request);
      this.#send(request);
    }
    return request;
  }

  /** Ignore a later answer; the request's promise stays pending. */
  cancel(request) {
    clearTimeout(request.timer);
    request.cancelled = true;
    this.#requests.delete(request.id);
  }

  /** Mark the table as followed on this socket, and send the requests that were held back. */
  attach(table) {
    this.attached.add(table);
    this.#sendAll();
  }

  /** Stop following a table: its requests fail, and its notifications are ignored. */
  detach(table, error) {
    this.listeners.delete(table);
    this.attached.delete(table);
    for (const request of [...this.#requests.values()]) {
      if (request.table === table) this.#reject(request, error);
    }
  }

  /**
   * Open sockets at this table's address, unless this connection follows another table: a load
   * balancer routes the clients of a table to one node. If the server asked for that, an open
   * socket without pending requests is replaced now.
   */
  routeTo(table) {
    const others = [...this.listeners.keys()].some((one) => one !== table);
    if (others || table === this.#routedTo || !TABLE_ID.test(table)) return;
    this.#routedTo = table;
    const busy = [...this.#requests.values()].some((request) => request.sent);
    if (this.#byTable && this.#socket && !busy) this.#move();
  }

  async #move() {
    const socket = this.#socket;
    this.#socket = null;
    await socket.close();
    if (!this.#error) await this.#reconnect(true);
  }

  #hello() {
    const onResult = (result) => {
      this.#byTable = result.by_table === true;
      if (Number.isSafeInteger(result.at)) this.#zero = result.at - now();
      this.#identified = true;
      this.#onConnected();
      this.#sendAll();
    };
    const params = this.#key === null ? {} : { key: this.#key };
    const hello = this.request("session.hello", params, { onResult });
    hello.promise.catch((error) => {
      if (this.#key !== null) this.#refuseKey(error);
    });
    return hello;
  }

  /** The first request of a socket was refused: without its key this is no service's connection. */
  #refuseKey(error) {
    const sentence = "The server does not accept this service key.";
    this.#fail(error.reason === "bad_key" ? new SessionEnded(sentence, KEY_REFUSED) : error);
    this.#socket?.abort();
  }

  #sendAll() {
    for (const request of [...this.#requests.values()]) this.#send(request);
  }

  #send(request) {
    const { id, method, params, table } = request;
    // Without its key, a request would not be this service's.
    const identified = this.#identified || this.#key === null || method === "session.hello";
    const ready = identified && (table === null || this.attached.has(table));
    if (!this.#socket || request.sent || request.timer !== null || !ready) return;
    request.sent = true;
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  }

  async #openSocket() {
    const url = tableUrl(this.url, this.#routedTo);
    const socket = await openSocket(url, this.#WebSocketClass, this.#policy);
    this.socketCount += 1;
    return socket;
  }

  #use(socket) {
    this.#socket = socket;
    this.#identified = false;
    socket.listen({
      onMessage: (text) => this.#onMessage(text),
      onLost: (code) => this.#onLost(code),
    });
    this.#sendAll();
  }

  /** The socket was closed or lost: reconnect, unless the close code is final. */
  #onLost(code) {
    this.#socket = null;
    this.attached.clear();
    for (const request of this.#requests.values()) request.sent = false;
    if (Object.hasOwn(FINAL_CODES, code)) this.#fail(new SessionEnded(FINAL_CODES[code], code));
    if (this.#error) return;
    this.#setState(this.#notBefore ? "draining" : "resuming");
    this.#reconnect(this.#notBefore > 0);
  }

  /**
   * Open a new socket, with exponential back-off and jitter between attempts, and before the first
   * unless `immediately`, as after a drain: its server gives each client a time of its own.
   */
  async #reconnect(immediately = false) {
    this.#lostAt ||= now();
    for (let attempt = 0; ; attempt += 1) {
      const drained = Math.max(this.#notBefore - now(), 0);
      await this.#wait(drained + (immediately && !attempt ? 0 : jittered(this.#backoff)));
      this.#notBefore = 0; // served its purpose: the next loss is of another server
      if (this.#error) return;
      this.#backoff = Math.min(2 * this.#backoff, this.#policy.backoffMax);
      if (now() - this.#lostAt > this.#policy.away + drained) {
        this.#fail(new HouseUnreachable(`The server at ${this.url} was away for too long.`));
        return;
      }
      try {
        const socket = await this.#openSocket();
        if (this.#error) socket.abort();
        else this.#resume(socket);
        return;
      } catch (error) {
        if (!(error instanceof HouseUnreachable)) throw error;
        this.#failures += 1;
        if (this.#failures >= AWAY_AFTER) this.#setState("away");
      }
    }
  }

  /**
   * On a new socket: first hello, then a resume of each table (of a closed one only for a pending
   * request), then all pending requests.
   */
  #resume(socket) {
    const pending = this.#requests;
    this.#requests = new Map();
    this.#hello();
    const awaited = new Set([...pending.values()].map(({ table }) => table));
    for (const [table, listener] of this.listeners) {
      if (!listener.over || awaited.has(table)) listener.resume();
    }
    // A listener cancels the resume requests of the previous socket and sends new ones.
    for (const [id, request] of pending) if (!request.cancelled) this.#requests.set(id, request);
    this.#use(socket);
  }

  #onConnected() {
    this.#backoff = this.#policy.backoff;
    this.#lostAt = this.#failures = 0;
    this.#setState("connected");
  }

  #wait(delay) {
    return /** @type {Promise<void>} */ (new Promise((resolve) => {
      const timer = setTimeout(resolve, delay);
      this.#endWait = () => {
        clearTimeout(timer);
        resolve();
      };
    }));
  }

  /** The network or the page became active again: probe the socket, or reconnect immediately. */
  #checkNow() {
    if (document.visibilityState === "hidden") return;
    if (this.#socket) this.#socket.probe();
    else if (this.#notBefore <= now()) this.#endWait?.();
  }

  #onMessage(text) {
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      return; // not JSON: ignored
    }
    if (typeof frame?.method === "string") this.#onNotification(frame.method, frame.params);
    else if (frame) this.#onResponse(frame);
  }

  #onNotification(method, params) {
    if (method === "session.drain") {
      const wait = Number(params?.reconnect_in_ms) || 0;
      this.#notBefore = now() + Math.min(wait, this.#policy.away);
    } else if (method === "events" && Array.isArray(params?.list)) {
      for (const one of params.list) this.#onNotification("event", one);
    } else if (typeof params === "object" && params !== null) {
      this.listeners.get(params.table)?.onNotification(method, params);
    }
  }

  #onResponse({ id, result, error }) {
    const request = this.#requests.get(id);
    if (!request) return;
    if (error) {
      this.#onError(request, refusedFrom(error));
      return;
    }
    this.#requests.delete(id);
    try {
      request.onResult?.(result ?? {});
    } catch (fault) {
      request.reject(new HouseUnreachable(
        `The server's answer to ${request.method} has an unexpected form: ${fault.message}`,
      ));
      return;
    }
    request.resolve(result ?? {});
  }

  /** Send a request that was refused temporarily again, with the same `cmd`. */
  #onError(request, error) {
    request.attempts += 1;
    // A request with `expect` would conflict again.
    const stale = error.reason === "conflict" && "expect" in request.params;
    const retried = error.temporary && !stale && !NOT_RETRIED.has(error.reason);
    if (!retried || request.attempts >= this.#policy.attempts) {
      this.#reject(request, error);
      return;
    }
    const delay = jittered(this.#policy.backoff * 2 ** request.attempts);
    request.sent = false;
    request.timer = setTimeout(() => {
      request.timer = null;
      this.#send(request);
    }, delay + (error.retryAfterMs ?? 0));
  }

  #reject(request, error) {
    this.cancel(request);
    request.reject(error);
  }

  /** End the connection for good. */
  #fail(error) {
    if (this.#error) return;
    this.#error = error;
    globalThis.removeEventListener?.("online", this.#onPageActive);
    if (IN_BROWSER) document.removeEventListener("visibilitychange", this.#onPageActive);
    this.#setState("away"); // before the tables end, which report a state of their own
    for (const listener of [...this.listeners.values()]) listener.end(error);
    this.listeners.clear();
    for (const request of [...this.#requests.values()]) {
      request.promise.catch(() => {});
      this.#reject(request, error);
    }
    this.#endWait?.();
  }

  #setState(state) {
    if (this.status.state === state && this.status.error === this.#error) return;
    this.status = { state, since: Date.now(), error: this.#error };
    if (!this.closing) this.emitter.emit("connection", this.status);
  }
}

/** The address of a table at the server at `url`; `url` itself if that is no "…/ws". */
function tableUrl(url, table) {
  return table && /\/ws\/?$/.test(url) ? `${url.replace(/\/$/, "")}/${table}` : url;
}
