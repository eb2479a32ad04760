/**
 * Persistent client state, such as tokens, nonces and signed heads, and the stores for it.
 *
 * Keys under `dealer/<table>/`:
 *
 *     seat                      token, host_token, invite, seat, since, key: what is known of them;
 *                               shared: whether other clients may play the seat, too
 *     nonce/<shuffle>/<digest>  { value, under }: nonce r, stored before its digest is sent, and
 *                               the root that r was revealed under, stored before r is sent
 *     nonce/<shuffle>           the digest of the nonce that was stored last
 *     drawn/<r>                 the shuffle that r was drawn for: no r is used twice
 *     heads                     the newest verified signed heads, each { size, note, edge }
 *     evidence                  evidence against a cheating server
 *     player                    the Ed25519 key (JWK) that this player cosigns with at the table
 */

import { ConfigurationError } from "./errors.js";

/** @typedef {import("../client.js").Store} Store */
/** @typedef {import("../client.js").Evidence} Evidence */
/** @typedef {{ size: number, note: string, edge: string[] }} SavedHead */
/** @typedef {{ value: string, under: string }} StoredNonce */

/**
 * The one shuffle that a nonce is drawn for; `since` is the version at which the seat was taken.
 *
 * @typedef {{ round: number, k: number, seat: number, since: number }} ShuffleSeat
 */

const MAX_HEADS = 64;
const SEAT_TOKEN = /^seat\.([1-9][0-9]{0,9})\.([1-9][0-9]{0,14})\./;

/** What is stored of a seat that was given up. */
export const NO_SEAT = { token: null, seat: null, since: null, shared: false };

/** @param {ShuffleSeat} shuffleSeat */
export const shuffleKey = ({ round, k, seat, since }) => `${round}-${k}-${seat}-${since}`;

/** What one store holds for one table. */
export class TableStore {
  #store;
  #path;

  /**
   * @param {string} table
   * @param {Store} store
   */
  constructor(table, store) {
    this.#store = store;
    this.#path = `dealer/${table}/`;
    this.reload();
  }

  reload() {
    /** @type {Record<string, any>} */
    this.facts = this.#withSeat(this.#read("seat") ?? {});
    /** @type {SavedHead[]} */
    this.heads = this.#read("heads") ?? [];
    /** @type {Evidence[]} */
    this.evidence = this.#read("evidence") ?? [];
  }

  /** Merge `facts` into what is known of this client's seat. */
  update(facts) {
    if (Object.entries(facts).every(([name, value]) => this.facts[name] === value)) return;
    Object.assign(this.facts, facts);
    this.#write("seat", this.facts);
  }

  /**
   * The stored nonce, in hex, with `under` empty as long as it was not revealed; null if there is
   * none. The default digest is that of the nonce stored last. Two pages of one browser may both
   * draw a nonce for a shuffle, so the one whose digest is in the log is found by its digest.
   *
   * @param {ShuffleSeat} shuffleSeat
   * @returns {StoredNonce | null}
   */
  nonce(shuffleSeat, digest = this.#read(`nonce/${shuffleKey(shuffleSeat)}`)) {
    return this.#read(`nonce/${shuffleKey(shuffleSeat)}/${digest}`);
  }

  /** Record that a nonce was drawn. Throws ConfigurationError if it was drawn before. */
  claimNonce(shuffleSeat, value) {
    if (this.#read(`drawn/${value}`) !== null) {
      throw new ConfigurationError("The random number generator of this machine returned the " +
        "same 32 bytes twice, so others may be able to predict it. Play on another machine.");
    }
    this.#write(`drawn/${value}`, shuffleKey(shuffleSeat));
  }

  saveNonce(shuffleSeat, digest, nonce) {
    this.#write(`nonce/${shuffleKey(shuffleSeat)}/${digest}`, nonce);
    this.#write(`nonce/${shuffleKey(shuffleSeat)}`, digest);
  }

  saveHead(head) {
    this.heads = [...this.heads, head].slice(-MAX_HEADS);
    this.#write("heads", this.heads);
  }

  /** If the store has no room for all of it, the leaves are left out: the notes are the proof. */
  saveEvidence(evidence) {
    this.evidence.push(evidence);
    try {
      this.#write("evidence", this.evidence);
    } catch {
      this.#write("evidence", this.evidence.map((one) => ({ ...one, leaves: [] })));
    }
  }

  /** The facts with `seat` and `since` of the token, which another program may have left out. */
  #withSeat(facts) {
    const { token, since } = facts;
    if (!token) return facts;
    const found = SEAT_TOKEN.exec(token);
    if (found) return { ...facts, seat: Number(found[1]), since: Number(found[2]) };
    if (Number.isSafeInteger(since)) return facts;
    throw new ConfigurationError(
      `The stored value ${this.#path}seat has a token of an unknown form, and no \`since\`, the ` +
      "version at which the seat was taken.",
    );
  }

  #read(name) {
    const text = this.#store.get(this.#path + name);
    try {
      return text == null ? null : JSON.parse(text);
    } catch {
      throw new ConfigurationError(`The stored value ${this.#path}${name} is damaged.`);
    }
  }

  #write(name, value) {
    try {
      this.#store.set(this.#path + name, JSON.stringify(value));
    } catch (error) {
      throw new ConfigurationError(
        `The client's state could not be stored, so it must not play on: ${error.message}`,
      );
    }
  }
}

/** @returns {Store} */
export function memoryStore() {
  const values = new Map();
  return {
    get: (key) => values.get(key) ?? null,
    set: (key, value) => void values.set(key, value),
  };
}

/**
 * @param {Pick<Storage, "getItem" | "setItem">} [storage]
 * @returns {Store}
 */
export function browserStore(storage = localStorageOfPage()) {
  return {
    get: (key) => storage.getItem(key),
    set: (key, value) => storage.setItem(key, value),
  };
}

function localStorageOfPage() {
  try {
    return globalThis.localStorage;
  } catch (error) {
    throw new ConfigurationError(
      "This browser denies the page its storage, so a seat would be lost with the page. Pass " +
      `memoryStore() to play nevertheless. (${error.message})`,
    );
  }
}

/**
 * @param {string} folder
 * @returns {Promise<Store>}
 */
export async function fileStore(folder) {
  const fs = await import("node:fs");
  const { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } = fs;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = (key) => `${folder}/${encodeURIComponent(key)}`;
  return {
    get: (key) => (existsSync(file(key)) ? readFileSync(file(key), "utf8") : null),
    set: (key, value) => {
      writeFileSync(`${file(key)}.new`, value, { mode: 0o600, flush: true });
      renameSync(`${file(key)}.new`, file(key));
    },
  };
}
