/** One WebSocket with keep-alive: it is aborted when its peer stays silent for too long. */

import { ConfigurationError, HouseUnreachable } from "./errors.js";

/** @typedef {import("../client.js").RetryPolicy} RetryPolicy */

/** The close code that browsers report for a connection that was lost without a close frame. */
const ABNORMAL_CLOSURE = 1006;

/**
 * HTTP statuses of an address that has something else than a WebSocket, or nothing. Not 426: that
 * is what a server answers to HTTP where it has one, also while it refuses connections.
 */
const NO_WEBSOCKET = [200, 404, 405, 410];

/** @param {string} url */
const noWebSocket = (url) => new ConfigurationError(`There is no WebSocket at ${url}: its address ` +
  "is like ws://127.0.0.1:8080/ws, or wss://dealer.example/ws.");

/**
 * Open a socket.
 *
 * @param {string} url
 * @param {any} WebSocketClass
 * @param {RetryPolicy} policy
 * @returns {Promise<Socket>} rejects with HouseUnreachable, or ConfigurationError for no address
 */
export function openSocket(url, WebSocketClass, policy) {
  return new Promise((resolve, reject) => {
    let socket = null;
    try {
      socket = new WebSocketClass(url, "dealer.v1");
    } catch {
      reject(noWebSocket(url));
      return;
    }
    const fail = () => {
      clearTimeout(timer);
      discard(socket);
      reject(new HouseUnreachable(`The server at ${url} does not answer.`));
    };
    const timer = setTimeout(fail, policy.open);
    socket.onclose = socket.onerror = fail;
    socket.onopen = () => {
      clearTimeout(timer);
      resolve(new Socket(socket, policy));
    };
  });
}

/**
 * Why the first socket could not be opened: a WebSocket hides the status of HTTP, so the address
 * is asked again. `error` itself, unless something else than a WebSocket answers there.
 *
 * @param {string} url
 * @param {number} timeout in milliseconds
 * @param {Error} error
 */
export async function explained(url, timeout, error) {
  try {
    const signal = AbortSignal.timeout(timeout);
    const { status } = await fetch(url.replace(/^ws/, "http"), { signal });
    return NO_WEBSOCKET.includes(status) ? noWebSocket(url) : error;
  } catch {
    return error;
  }
}

/** Stop listening to a socket and close it; without a live peer the close may take minutes. */
function discard(socket) {
  socket.onopen = socket.onmessage = socket.onclose = null;
  socket.onerror = () => {};
  socket.close();
}

export class Socket {
  #socket;
  #policy;
  #timer = null;
  #onLost = (_code) => {};
  #early = []; // frames that came before `listen`: none may be missed
  #earlyCode = 0; // the close code, if the socket closed before `listen`

  constructor(socket, policy) {
    this.#socket = socket;
    this.#policy = policy;
    socket.onmessage = ({ data }) => this.#early.push(data);
    socket.onclose = ({ code }) => { this.#earlyCode = code || ABNORMAL_CLOSURE; };
  }

  /**
   * @param {object} handlers
   * @param {(text: string) => void} handlers.onMessage
   * @param {(code: number) => void} handlers.onLost called once, with the close code
   */
  listen({ onMessage, onLost }) {
    const socket = this.#socket;
    this.#onLost = onLost;
    socket.onmessage = ({ data }) => {
      this.#restartTimer();
      onMessage(data);
    };
    socket.onclose = ({ code }) => this.#end(code || ABNORMAL_CLOSURE);
    socket.onerror = () => {}; // a close event follows
    this.#restartTimer();
    for (const data of this.#early.splice(0)) onMessage(data);
    if (this.#earlyCode) queueMicrotask(() => this.#end(this.#earlyCode));
  }

  send(text) {
    if (this.#socket.readyState === 1) this.#socket.send(text);
  }

  /** Send a ping, and abort the socket unless a frame arrives in time. */
  probe() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.abort(), this.#policy.answer);
    this.send('{"jsonrpc":"2.0","id":"ping","method":"ping","params":{}}');
  }

  abort() {
    discard(this.#socket);
    this.#end(ABNORMAL_CLOSURE);
  }

  /** Close normally, but wait at most one second for the peer's close frame. */
  close() {
    return /** @type {Promise<void>} */ (new Promise((resolve) => {
      const late = setTimeout(() => this.abort(), 1000);
      this.#onLost = () => {
        clearTimeout(late);
        resolve();
      };
      this.#socket.close(1000);
    }));
  }

  #restartTimer() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.probe(), this.#policy.silence);
  }

  #end(code) {
    clearTimeout(this.#timer);
    const onLost = this.#onLost;
    this.#onLost = () => {};
    onLost(code);
  }
}
