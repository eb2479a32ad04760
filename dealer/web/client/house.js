/** The entry point: connects to a server, and opens, joins and watches its tables. */

import { checkMachine } from "../verify.js";
import { Connection } from "./connection.js";
import { playerKey } from "./cosigner.js";
import { ConfigurationError, DIFFERENT_KEY, HouseCheated, optionsOf } from "./errors.js";
import { RemoteTable, definedMembers } from "./remote_table.js";
import { NO_SEAT, TableStore, memoryStore } from "./stores.js";
import { TableSession } from "./table_session.js";
import { DEFAULT_RETRY_POLICY, IN_BROWSER } from "./timing.js";

const BROADCAST = /([0-9a-f]{32})\/broadcast#([0-9a-f.]+)$/;

/** @typedef {import("../client.js").ConnectOptions} ConnectOptions */
/** @typedef {import("../client.js").House} Declared */

/**
 * @param {string | URL | null} [url]
 * @param {ConnectOptions} [options]
 */
export async function connect(url = null, options = {}) {
  optionsOf(options, "name", "store", "cosigner", "retry", "table", "key", "WebSocket");
  const { WebSocket: WebSocketClass = globalThis.WebSocket, store = memoryStore() } = options;
  const { cosigner = true } = options; // true: a key of its own at each table
  const policy = { ...DEFAULT_RETRY_POLICY, ...options.retry };
  if (!WebSocketClass) {
    throw new ConfigurationError("There is no WebSocket class here: use node 22 or later, or " +
      "node 20 with --experimental-websocket, or pass one as the option `WebSocket`.");
  }
  const noSignatures = await checkMachine().then(() => null, (error) => error.message);
  const address = String(url ?? ownServer());
  const { table = null, key = null } = options;
  const connection = new Connection(address, WebSocketClass, policy, { table, key });
  await connection.start();
  return new House(connection, { name: options.name, store, cosigner, noSignatures });
}

/** The address of the server that this page came from. */
function ownServer() {
  if (!IN_BROWSER) {
    throw new ConfigurationError("No server address was given: ws://…/ws or wss://…/ws.");
  }
  const { protocol, host } = globalThis.location;
  return `${protocol === "https:" ? "wss" : "ws"}://${host}/ws`;
}

/** @implements {Declared} */
class House {
  #connection;
  #options;
  /** @type {Map<string, TableSession>} */
  #sessions = new Map();
  /** @type {Map<string, RemoteTable>} */
  #tables = new Map();

  constructor(connection, options) {
    this.#connection = connection;
    this.#options = options;
  }

  get url() {
    return this.#connection.url;
  }

  get connection() {
    return this.#connection.status;
  }

  get serverTime() {
    return this.#connection.serverTime;
  }

  get cosigner() {
    return this.#options.cosigner?.key ?? null;
  }

  /** @type {Declared["on"]} */
  on(kind, callback) {
    return this.#connection.emitter.on(kind, callback);
  }

  /** @type {Declared["open"]} */
  async open(options = {}) {
    const { deck, seats, rules, name, ref, host, from } =
      optionsOf(options, "deck", "seats", "rules", "name", "ref", "host", "from");
    const onResult = (result) => {
      const { host_token, invite, key } = result;
      this.#storeOf(result.table).update({ host_token, invite, key });
    };
    const source = from && this.#withToken(from);
    const params = definedMembers({ deck, seats, rules, name, ref, host, from: source });
    const result = await this.#request("table.open", params, onResult);
    this.#connection.routeTo(result.table);
    const session = await this.#follow(result.table, result.key);
    await session.start();
    return this.#upToDate(this.#tables.get(result.table), result.version);
  }

  /** The source of a practice table, with the stored token of one's seat or table there. */
  #withToken(source) {
    const { token, host_token } = this.#storeOf(source.table).facts;
    return definedMembers({ token: token ?? host_token, ...source });
  }

  /** @type {Declared["join"]} */
  async join(table, options = {}) {
    const { name, seat, invite, key, ticket, jwt, bot } =
      optionsOf(options, "name", "seat", "invite", "key", "ticket", "jwt", "bot");
    const id = typeof table === "string" ? table : table.id;
    this.#connection.routeTo(id);
    const store = this.#storeOf(id);
    const active = this.#active(id);
    if (active && active.verifier.seat !== null) return this.#tables.get(id);
    // A ticket or a JWT may be another user's than the one whose seat this browser has stored.
    const named = ticket === undefined && jwt === undefined;
    if (named && store.facts.token && !active) {
      const returned = await this.#returnTo(id, store, key);
      if (returned?.seat) return returned;
    }
    const session = await this.#follow(id, key);
    session.due.cosigner = await this.#cosignerAt(id, { draw: true });
    const params = definedMembers({
      table: id,
      name: name ?? this.#options.name ?? (named ? unnamed() : undefined),
      ticket,
      jwt,
      seat,
      invite: invite ?? store.facts.invite,
      key: session.due.cosigner?.key,
      bot: bot || undefined,
    });
    return this.#begin("table.join", params, session);
  }

  /** @type {Declared["watch"]} */
  async watch(table, options = {}) {
    const { key } = optionsOf(options, "key");
    if (this.#active(table)) return this.#tables.get(table);
    this.#connection.routeTo(table);
    const session = await this.#follow(table, key);
    return this.#begin("table.watch", { table }, session);
  }

  /** @type {Declared["broadcast"]} */
  async broadcast(link) {
    const [, table, secret] = BROADCAST.exec(link) ?? [];
    if (table === undefined) {
      throw new ConfigurationError("A broadcast link ends with tables/<id>/broadcast#<secret>.");
    }
    if (this.#active(table)) {
      throw new ConfigurationError("This client is at the table already; connect another one.");
    }
    this.#connection.routeTo(table);
    // A player's heads, where this is a player's store too, are ahead of the broadcast.
    const store = new TableStore(table, memoryStore());
    const session = this.#newSession(table, store, { key: null, cosigner: null, link: secret });
    const { version } = await session.start();
    return this.#upToDate(this.#tables.get(table), version);
  }

  /** @type {Declared["enter"]} */
  async enter(table, options = {}) {
    const { key, token } = optionsOf(options, "key", "token");
    if (!this.#active(table)) {
      this.#connection.routeTo(table);
      const store = this.#storeOf(table);
      const { token: own = null, seat = null, since = null, shared = false } = store.facts;
      if (token) store.update({ token, ...seatOf(token), shared: true });
      const returned = await this.#returnTo(table, store, key);
      if (returned?.seat) return returned;
      if (token && own !== null && own !== token) {
        // The given seat was left; this one may not be.
        store.update({ token: own, seat, since, shared });
        const again = await this.#returnTo(table, store, key);
        if (again) return again;
      }
      if (returned) return returned;
    }
    return this.watch(table, { key });
  }

  /** @type {Declared["kept"]} */
  kept(table) {
    const { seat = null, host_token, invite = null } = this.#storeOf(table).facts;
    return { seat, host: Boolean(host_token), invite };
  }

  async tables(options = {}) {
    const { closed = false } = optionsOf(options, "closed");
    const which = closed ? { state: "closed" } : {};
    return (await this.#connection.request("table.list", which).promise).tables;
  }

  async close() {
    await this.#connection.close();
  }

  #storeOf(table) {
    return new TableStore(table, this.#options.store);
  }

  /** The session of a table that this client follows and has not left. */
  #active(id) {
    const session = this.#sessions.get(id);
    return session && session.error === null ? session : null;
  }

  /** Return to a table with the stored tokens; null if none of them is valid any more. */
  async #returnTo(id, store, key) {
    while (store.facts.token || store.facts.host_token) {
      try {
        const session = await this.#follow(id, key);
        const result = await session.start();
        return await this.#upToDate(this.#tables.get(id), result.version);
      } catch (error) {
        if (error.reason !== "bad_token") throw error;
        store.reload();
        if (store.facts.token) store.update(NO_SEAT);
        else store.update({ host_token: null });
      }
    }
    return null;
  }

  /** The key that cosigns at a table; if the store has none, one is generated for `draw`. */
  async #cosignerAt(id, { draw = false } = {}) {
    const { cosigner, store } = this.#options;
    return cosigner === true ? playerKey(store, { table: id, draw }) : cosigner || null;
  }

  async #follow(id, key) {
    const cosigner = this.#active(id)?.due.cosigner ?? await this.#cosignerAt(id);
    const active = this.#active(id);
    if (active) return active;
    const store = this.#storeOf(id);
    if (store.evidence.length) {
      const evidence = store.evidence.at(-1);
      const message = `This client left the table because the server cheated: ${evidence.sentence}`;
      throw new HouseCheated(message, { evidence });
    }
    const pinned = store.facts.key ?? null;
    if (key && pinned && key !== pinned) throw new HouseCheated(DIFFERENT_KEY);
    return this.#newSession(id, store, { key: key ?? pinned, cosigner });
  }

  #newSession(id, store, { key, cosigner, link = null }) {
    const { noSignatures } = this.#options;
    const session = new TableSession(id, this.#connection, store, {
      key, cosigner, noSignatures, link,
    });
    this.#sessions.set(id, session);
    this.#tables.set(id, new RemoteTable(session));
    return session;
  }

  /**
   * Join or watch, and begin the session with the answer; another session if it ended before the
   * answer came, where the table is left meanwhile. An answer with a seat that is not newer than
   * what the session had is that of a seat which was left since.
   */
  async #begin(method, params, session) {
    const { id, store, verifier, due } = session;
    const seated = verifier.seat !== null;
    let table = this.#tables.get(id);
    const result = await this.#request(method, params, (answer) => {
      if (session.error !== null) {
        const wasLeft = "seat" in answer && answer.version <= verifier.version;
        const accused = store.evidence.length || session.error instanceof HouseCheated;
        if (wasLeft || accused) return;
        const { key } = verifier.log;
        session = this.#active(id) ?? this.#newSession(id, store, { key, cosigner: due.cosigner });
        table = this.#tables.get(id);
      }
      session.begin(answer, { shared: "ticket" in params || "jwt" in params });
    });
    await this.#upToDate(table, result.version);
    if (method === "table.join" && table.seat !== null && !seated) {
      const player = session.verifier.players.get(table.seat);
      const own = player?.name === params.name && player?.key === (params.key ?? null);
      // With a ticket or a JWT, name and key may be those of the player's other device.
      if (!player || !(own || "ticket" in params || "jwt" in params)) session.accuse(method);
    }
    return table;
  }

  #request(method, params, onResult) {
    const changes = method !== "table.watch";
    return this.#connection.request(method, params, { changes, onResult }).promise;
  }

  #upToDate(table, version) {
    return table.until((table) => table.version >= version);
  }
}

/** The seat of a token, and the version at which it was taken; the server checks the token. */
function seatOf(token) {
  const [, seat, since] = token.split(".").map(Number);
  return { seat: seat || null, since: since || null };
}

/** A name for a player who gives none; names are unique at a table. */
function unnamed() {
  const [number] = crypto.getRandomValues(new Uint16Array(1));
  return `Guest ${1000 + (number % 9000)}`;
}
