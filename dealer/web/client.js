/**
 * A player at the other end of the wire, who believes nothing that can be checked.
 *
 *     import { connect, browserStore } from "./client.js";
 *
 *     const house = await connect("wss://cards.example/ws", { name: "Ada", store: browserStore() });
 *     const table = await house.join(await house.open({ deck: "52" }));
 *
 * What every public name does stands in client.d.ts, how to use them in CLIENT.md. This file runs
 * in a browser and on node; beside itself it needs only verify.js, for the formulas and for the
 * books of what can happen. From top to bottom:
 *
 *     the way in          connect, House
 *     a table             RemoteTable: how it stands, and every wish
 *     following           frames go to the witness, and what is due goes back
 *     the witness         reads every event, and notices when it was lied to
 *     the story           our own tree of the log, and the signed heads that must agree with it
 *     the round           made again when the house's secret is known
 *     our own chance      32 random bytes for each shuffle, promised first and shown later
 *     checks              what this client itself found to hold
 *     the line            a socket that is built again; nothing is asked for twice
 *     stores, keys        what must outlive a reload
 *     errors
 */

import {
  DUE, PUBLIC, Tree, Wrong, believe, cardIn, checkLeaf, checkMachine, emptyBooks, hex,
  houseCommitment, houseOf, isOrigin, join, keyId, leafHash, leafText, nodeHash, playerDigest,
  playerOf, readCheckpoint, saltKeyOf, secretLength, signedBy, slotCommitment, slotSalt,
  unhex,
} from "./verify.js";

const utf8 = new TextEncoder();
const onPage = typeof document !== "undefined";


// ——————————————————————————————————————————— the way in ——————————————————————————————————————————

export async function connect(url = null, options = {}) {
  const { WebSocket: Socket = globalThis.WebSocket, store = memoryStore() } = options;
  const { cosigner = true } = options; // true: a key of its own at each table
  const patience = { ...PATIENCE, ...options.patience };
  if (!Socket) {
    throw new SetupError("No WebSocket here: take node 22, or 20 with --experimental-websocket.");
  }
  const unable = await checkMachine().then(() => null, (error) => error.message);
  const connection = new Connection(String(url ?? ownHouse()), Socket, patience);
  await connection.start();
  return new House(connection, { name: options.name, store, cosigner, unable });
}

function ownHouse() {
  if (!onPage) throw new SetupError("Name the house: ws://…/ws or wss://…/ws.");
  const { protocol, host } = globalThis.location;
  return `${protocol === "https:" ? "wss" : "ws"}://${host}/ws`;
}

class House {
  #connection;
  #options;
  #followings = new Map();
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

  get cosigner() {
    return this.#options.cosigner?.key ?? null;
  }

  on(kind, callback) {
    return this.#connection.news.on(kind, callback);
  }

  async open({ deck, seats, rules, name } = {}) {
    const answered = (result) => {
      const { host_token, invite, key } = result;
      new TableStore(result.table, this.#options.store).learn({ host_token, invite, key });
    };
    const result = await this.#ask("table.open", given({ deck, seats, rules, name }), answered);
    const following = await this.#follow(result.table, result.key);
    await following.start();
    return this.#caughtUp(result.table, result.version);
  }

  async join(table, { name, seat, invite, key } = {}) {
    const id = typeof table === "string" ? table : table.id;
    const kept = new TableStore(id, this.#options.store);
    const alive = this.#alive(id);
    if (alive && alive.witness.seat !== null) return this.#tables.get(id);
    if (kept.facts.token && !alive) {
      const table = await this.#comeBack(id, kept, key);
      if (table?.seat) return table;
    }
    const following = await this.#follow(id, key);
    following.cosigner = await this.#cosignerAt(id, { draw: true });
    const params = given({
      table: id,
      name: name ?? this.#options.name ?? "Guest",
      seat,
      invite: invite ?? kept.facts.invite,
      key: following.cosigner?.key,
    });
    const result = await this.#ask("table.join", params, (answer) => following.joined(answer));
    return this.#caughtUp(id, result.version);
  }

  async watch(table, { key } = {}) {
    if (this.#alive(table)) return this.#tables.get(table);
    const following = await this.#follow(table, key);
    const params = { table };
    const result = await this.#ask("table.watch", params, (answer) => following.joined(answer));
    return this.#caughtUp(table, result.version);
  }

  async enter(table, { key } = {}) {
    const kept = new TableStore(table, this.#options.store);
    if (!this.#alive(table)) {
      const back = await this.#comeBack(table, kept, key);
      if (back) return back;
    }
    return this.watch(table, { key });
  }

  kept(table) {
    const { facts } = new TableStore(table, this.#options.store);
    const { seat = null, host_token, invite = null } = facts;
    return { seat, host: Boolean(host_token), invite };
  }

  async tables() {
    return (await this.#connection.ask("table.list", {}).promise).tables;
  }

  async close() {
    await this.#connection.close();
  }

  /** What this house's client follows, and has not left. */
  #alive(id) {
    const following = this.#followings.get(id);
    return following && following.error === null ? following : null;
  }

  /** The table as whom its tokens say; null where they open nothing any more. */
  async #comeBack(id, kept, key) {
    while (kept.facts.token || kept.facts.host_token) {
      try {
        const following = await this.#follow(id, key);
        const result = await following.start();
        return await this.#caughtUp(id, result.version);
      } catch (error) {
        if (error.reason !== "bad_token") throw error;
        kept.reload();
        if (kept.facts.token) kept.learn({ token: null, seat: null, since: null });
        else kept.learn({ host_token: null });
      }
    }
    return null;
  }

  /** The key that cosigns at a table; one of its own is drawn where the store has none. */
  async #cosignerAt(id, { draw = false } = {}) {
    const { cosigner, store } = this.#options;
    return cosigner === true ? playerKey(store, { table: id, draw }) : cosigner || null;
  }

  async #follow(id, key) {
    const cosigner = this.#alive(id)?.cosigner ?? await this.#cosignerAt(id);
    const alive = this.#alive(id);
    if (alive) return alive;
    const kept = new TableStore(id, this.#options.store);
    if (kept.evidence.length) {
      const evidence = kept.evidence.at(-1);
      const sentence = `This table was left because the house cheated: ${evidence.sentence}`;
      throw new HouseCheated(sentence, { evidence });
    }
    const pinned = kept.facts.key ?? null;
    if (key && pinned && key !== pinned) throw new HouseCheated(OTHER_KEY);
    const { unable } = this.#options;
    const following = new Following(id, this.#connection, kept, {
      key: key ?? pinned, cosigner, unable,
    });
    this.#followings.set(id, following);
    this.#tables.set(id, new RemoteTable(following));
    return following;
  }

  #ask(method, params, answered) {
    const changes = method !== "table.watch";
    return this.#connection.ask(method, params, { changes, answered }).promise;
  }

  #caughtUp(id, version) {
    return this.#tables.get(id).until((table) => table.version >= version);
  }
}

/** The members that were given a value. */
const given = (members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value != null));


// ———————————————————————————————————————————— a table ———————————————————————————————————————————

const SHUFFLES_MAX = 3; // that a wish waits for which is refused because one is running
const UNKNOWN = "??";

class RemoteTable {
  #following;
  #witness;
  #state = null;

  constructor(following) {
    this.#following = following;
    this.#witness = following.witness;
    following.table = this;
  }

  get id() {
    return this.#following.id;
  }

  get version() {
    return this.#witness.version;
  }

  get seat() {
    return this.#witness.seat;
  }

  get host() {
    return Boolean(this.#following.hostToken);
  }

  get seats() {
    return new Map(this.state.seats.map(({ seat, name }) => [seat, name]));
  }

  get round() {
    return this.#witness.round?.number ?? null;
  }

  get shuffling() {
    return Boolean(this.#witness.round?.shuffle);
  }

  get hand() {
    return this.seat === null ? [] : this.stack(`hand:${this.seat}`);
  }

  get deckCount() {
    return this.#witness.round?.stacks.get("deck")?.length ?? 0;
  }

  get piles() {
    const names = Object.keys(this.state.round?.stacks ?? {}).filter((n) => n.startsWith("pile:"));
    return new Map(names.sort().map((name) => [name.slice(5), this.stack(name)]));
  }

  get closed() {
    return this.#witness.books.closed;
  }

  get key() {
    return this.#witness.story.key;
  }

  get checkpoints() {
    return this.#following.store.heads.map(({ note }) => note);
  }

  get cosigner() {
    return this.#following.cosigner?.key ?? null;
  }

  get cosigned() {
    return this.#following.cosigned;
  }

  get evidence() {
    return this.#following.evidence;
  }

  get invite() {
    return this.#following.store.facts.invite ?? null;
  }

  get doubts() {
    return [...this.#following.entropy.doubts];
  }

  get error() {
    return this.#following.error;
  }

  get state() {
    if (this.#state?.version !== this.version) this.#state = describe(this.#witness);
    return this.#state;
  }

  get history() {
    return this.#following.history;
  }

  get connection() {
    return this.#following.status;
  }

  get presence() {
    return this.#following.presence;
  }

  get watching() {
    return this.#following.watching;
  }

  get checks() {
    return this.#following.checks.list();
  }

  stack(name) {
    const cards = this.#witness.round?.stacks.get(name) ?? [];
    return cards.map((card) => this.#witness.face(card) ?? UNKNOWN);
  }

  events() {
    return this.#following.reader();
  }

  on(kind, callback) {
    return this.#following.news.on(kind, callback);
  }

  async until(predicate) {
    await this.#following.until(() => predicate(this));
    return this;
  }

  async sealed() {
    await this.until((table) => !table.shuffling);
  }

  async roundOpen({ deck, entropy, commitMs, revealMs } = {}) {
    const asked = entropy ?? (this.#witness.rules.entropy === "house" ? "house" : "players");
    const params = { deck, entropy, commit_ms: commitMs, reveal_ms: revealMs };
    const { round } = await this.change("round.open", params);
    this.#following.entropy.compare(round, this.#witness.entropies.get(round), asked);
    return round;
  }

  async roundClose() {
    await this.change("round.close");
  }

  async shuffle({ pile, algorithm = "backward", steps, wait = true } = {}) {
    const method = pile == null ? "deck.shuffle" : "pile.shuffle";
    const { k } = await this.change(method, { pile, algorithm, steps });
    if (wait) await this.sealed();
    return k;
  }

  async deal(each = 1, { seats } = {}) {
    return (await this.change("deck.deal", { each, seats })).dealt;
  }

  async draw(count = 1, { end = "top" } = {}) {
    return this.#changeSeen("deck.draw", { count, from: end });
  }

  async burn(count = 1) {
    await this.change("deck.burn", { count });
  }

  async cut(at) {
    await this.change("deck.cut", { at });
  }

  async return(cards = null, { count, source, where } = {}) {
    await this.change("deck.return", { cards: listed(cards), count, from: source, where });
  }

  async discard(cards, { pile, face } = {}) {
    await this.change("hand.discard", { cards: listed(cards), pile, face });
  }

  async play(cards, { pile, face } = {}) {
    await this.change("hand.play", { cards: listed(cards), pile, face });
  }

  async give(cards, { to }) {
    await this.change("hand.give", { cards: listed(cards), to });
  }

  async show(cards, { to } = {}) {
    await this.change("hand.show", { cards: listed(cards), to });
  }

  async handReturn(cards, { where } = {}) {
    await this.change("hand.return", { cards: listed(cards), where });
  }

  async pileDraw(pile, count = null, { end, cards } = {}) {
    return this.#changeSeen("pile.draw", { pile, count, from: end, cards: listed(cards) });
  }

  async pileMove(source, { to, cards, count, where, face }) {
    const params = { from: source, to, cards: listed(cards), count, where, face };
    await this.change("pile.move", params);
  }

  async pileTurn(pile, cards = null) {
    await this.change("pile.turn", { pile, cards: listed(cards) });
  }

  async close() {
    await this.change("table.close");
  }

  async change(method, params = {}) {
    const members = { cmd: randomId(), ...given(params) };
    let result = null;
    for (let attempt = 0; result === null; attempt++) {
      try {
        result = await this.#following.ask(method, members, { changes: true });
      } catch (error) {
        if (error.reason !== "shuffle_running" || attempt === SHUFFLES_MAX) throw error;
        await this.sealed();
      }
    }
    await this.until((table) => table.version >= result.version);
    return result;
  }

  /** Codes, as this client saw them opened, of the cards that a wish brought. */
  async #changeSeen(method, params) {
    const round = this.round;
    const { slots } = await this.change(method, params);
    return slots.map((slot) => this.#witness.faces.get(`${round}/${slot}`) ?? UNKNOWN);
  }

  async leave() {
    const following = this.#following;
    try {
      await following.ask("table.leave", {}, { changes: true });
    } catch (error) {
      // The answer was lost with a socket, and the seat's token opens nothing on the next.
      if (error.reason !== "bad_token" || this.seat === null) throw error;
    }
    following.gotUp();
    if (!following.hostToken) following.end(null);
  }

  async bundle() {
    return this.#following.ask("audit.bundle", {});
  }

  async cosign(note) {
    const cosignature = await this.#following.cosignature(note);
    return (await this.#following.ask("table.cosign", { cosignature }, { changes: true })).size;
  }
}

/** One card may be named without a list around it. */
function listed(cards) {
  if (cards == null) return null;
  return typeof cards === "string" || typeof cards === "number" ? [cards] : [...cards];
}

const ACTIONS = {
  open: "host", close: "host", shuffle: "host", deal: "host", collect: "host",
  draw: "players", burn: "players", cut: "players", pile: "players", turn: "players",
  discard: "players", play: "players", give: "players", show: "players", return: "players",
};
const PRESETS = {
  free: ACTIONS,
  dealer: { ...ACTIONS, draw: "host", burn: "host", cut: "host", pile: "host", turn: "host" },
  shared: {
    ...ACTIONS, open: "players", close: "players", shuffle: "players", deal: "players",
  },
};
const WHO = ["host", "players", "nobody"];

/** What the rules mean; what they do not mean is passed over. */
function readRules(rules) {
  const preset = Object.hasOwn(PRESETS, rules.preset) ? PRESETS[rules.preset] : PRESETS.free;
  const own = Object.entries(rules).filter(([n, who]) => n in ACTIONS && WHO.includes(who));
  return {
    rules,
    name: typeof rules.name === "string" ? rules.name : null,
    who: { ...preset, ...Object.fromEntries(own) },
    seatsMax: Number.isInteger(rules.seats) && rules.seats > 0 ? rules.seats : 10,
    invited: rules.join === "invite",
    watched: rules.watch !== "nobody",
  };
}

/** The table as `TableState` has it, of a witness. */
function describe(witness) {
  const { version, at, origin, key, rules, players, rounds, books } = witness;
  const seats = [...players].sort(([a], [b]) => a - b);
  return {
    version, at, origin, key, ...readRules(rules), closed: books.closed, rounds,
    seats: seats.map(([seat, player]) => ({ seat, ...player })),
    round: books.round && describeRound(books.round, witness),
  };
}

function describeRound(round, witness) {
  const { number, deck, entropy, commitMs, revealMs, commitment, k, voided, shuffle } = round;
  const card = (one) => ({
    id: one.id,
    slot: one.slot < 0 ? null : one.slot,
    card: witness.face(one),
    shown: one.slot < 0 || round.shown.has(one.slot),
    drawable: one.reached,
  });
  const stacks = [...round.stacks].map(([name, cards]) => [name, cards.map(card)]);
  return {
    number, deck, entropy, commitMs, revealMs, commitment, k, voided,
    stacks: Object.fromEntries(stacks),
    ahead: [...round.ahead.keys()],
    withheld: [...round.withheld],
    shuffle: shuffle && {
      k: shuffle.k, stack: shuffle.stack, n: shuffle.n, algorithm: shuffle.algorithm,
      steps: shuffle.steps, swaps: shuffle.done,
      startedAt: shuffle.startedAt,
      closedAt: shuffle.closed ? shuffle.closedAt : null,
      closedVersion: shuffle.closed || null,
      promised: [...shuffle.digests.keys()],
      revealed: [...shuffle.nonces.keys()],
    },
  };
}


// ——————————————————————————————————————————— following ——————————————————————————————————————————
//
// Frames are taken one after the other: some checks take their time, and nobody here is told of
// anything before it was checked. If the house cheats, the table is left for good: the evidence is
// kept, and whoever waits for something hears why.

const RESUMES_MAX = 4; // times a missing event is asked for again before the table is left
const LEFT = "You have left this table.";
const METHOD_NOT_FOUND = -32601;

class Following {
  evidence = null;
  error = null;
  table = null;
  news = new News();
  history = [];
  presence = new Map();
  watching = null;
  cosigned = 0; // size of the newest checkpoint that the house took our signature of
  #readers = new Set();
  #over = false; // whether no more events come, though all is well
  #waiting = []; // { truth, resolve, reject }
  #steps = []; // what is still to be taken in
  #busy = false;
  #told = 0; // the version that was told last
  #asked = []; // questions that resume, until their answers are taken in
  #askedAfter = 0; // what the resume that was answered last began after
  #started = null;
  #target = 0; // the version that the house was at when it last said so
  #gap = { version: 0, times: 0 };
  #status = null;
  #due = 0; // version of the latest event after which a checkpoint is due
  #uncosigned = ""; // the newest checkpoint that was verified and not cosigned yet

  constructor(id, connection, store, { key, cosigner, unable }) {
    this.id = id;
    this.connection = connection;
    this.store = store;
    this.cosigner = cosigner;
    this.witness = new Witness(id, { key, saved: store.heads, unable });
    this.witness.seat = store.facts.seat ?? null;
    this.entropy = new Entropy(id, store, (sentence) => this.news.tell("doubted", sentence));
    this.checks = new Checks(this.witness, this.entropy, unable);
    connection.news.on("connection", () => this.#look());
    this.#look();
  }

  get token() {
    return this.store.facts.token ?? null;
  }

  get hostToken() {
    return this.store.facts.host_token ?? null;
  }

  // Who waits, and who reads

  until(truth) {
    if (this.error) return Promise.reject(this.error);
    if (truth()) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ truth, resolve, reject }));
  }

  reader() {
    const reader = new Reader((gone) => this.#readers.delete(gone));
    if (this.error || this.#over) reader.end(this.error?.message === LEFT ? null : this.error);
    else this.#readers.add(reader);
    return reader;
  }

  ask(method, params, { changes = false } = {}) {
    if (this.error) return Promise.reject(this.error);
    const members = { ...params, table: this.id };
    return this.connection.ask(method, members, { table: this.id, changes }).promise;
  }

  /** No more comes: readers stop, who waits is told. */
  end(error) {
    const reason = error ?? new DealerError(LEFT);
    this.connection.drop(this.id, reason);
    if (this.error) return;
    this.error = reason;
    this.#steps.length = 0;
    this.#finish(error);
    this.#started?.reject(reason);
    const waiting = this.#waiting.splice(0);
    for (const { reject } of waiting) reject(reason);
    this.#look();
  }

  #finish(error) {
    if (this.#over) return;
    this.#over = true;
    for (const reader of this.#readers) reader.end(error);
    this.news.tell("ended", error);
  }

  get status() {
    return this.#status;
  }

  #look() {
    const line = this.connection.status;
    const behind = line.state === "connected" && !this.#current;
    const state = behind ? "resuming" : line.state;
    const error = this.error ?? line.error;
    if (this.#status?.state === state && this.#status.error === error) return;
    this.#status = { state, since: Date.now(), error };
    this.news.tell("connection", this.#status);
  }

  /** Whether all that the house has is here. */
  get #current() {
    const attached = this.connection.attached.has(this.id);
    return attached && !this.#resuming && this.witness.version >= this.#target;
  }

  // Beginnings

  /** Follow this table from its first event on; the answer to the resume. */
  start() {
    const started = new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
    });
    this.connection.followers.set(this.id, this);
    this.attach();
    return started;
  }

  /** Ask for everything after the last event that came, as seat, host or onlooker. */
  attach() {
    for (const question of this.#asked) this.connection.forget(question);
    // The seat goes first: as host alone one would be sent the same events without its cards.
    const tokens = [this.token, this.hostToken].filter(Boolean);
    if (tokens.length === 0) tokens.push(null);
    this.#asked = tokens.map((token, n) => this.#resume(token, n === tokens.length - 1));
    this.#look();
  }

  get #resuming() {
    return this.#asked.some((question) => !question.takenIn);
  }

  #resume(token, last) {
    const after = this.witness.story.resumeAfter();
    const params = { table: this.id, after, ...(token && { token }) };
    const method = token ? "table.resume" : "table.watch";
    const answered = (result) => {
      const socket = this.connection.sockets;
      this.#take(async () => {
        question.takenIn = true;
        this.#target = result.version;
        this.#askedAfter = after;
        await this.witness.whole(result.checkpoint);
        if (last && this.error === null) {
          if (socket === this.connection.sockets) this.#attached();
          this.#started?.resolve(result);
        }
      });
    };
    const question = this.connection.ask(method, params, { answered });
    question.promise.catch((error) => {
      question.takenIn = true;
      if (error.reason === "bad_token" && !last) this.gotUp(); // the host stays, without a seat
      else this.end(error);
    });
    return question;
  }

  /** Begin with the answer to `table.join` or `table.watch`. */
  joined(result) {
    this.#target = result.version;
    if ("seat" in result) {
      const { seat, token } = result;
      const taken = result.state.seats.find((player) => player.seat === seat);
      this.witness.seat = seat;
      this.store.learn({ token, seat, since: taken?.since ?? result.version });
    }
    this.connection.followers.set(this.id, this);
    this.#attached();
    this.#take(async () => {
      await this.witness.begin(snapshotOf(result));
      if (this.witness.version < result.version || !this.witness.story.linked) this.attach();
    });
  }

  #attached() {
    this.connection.attach(this.id);
    this.#askWhoIsHere();
  }

  // Frames

  notified(method, params) {
    if (method === "presence") this.#seePresence(params);
    else if (method === "event") this.#take(() => this.#event(params));
    else if (method === "checkpoint") this.#take(() => this.witness.checkpoint(params.note));
    else if (method === "snapshot") this.#take(() => this.#reset(params));
    else this.#take(() => {});
  }

  #take(step) {
    if (this.error) return;
    this.#steps.push(step);
    if (!this.#busy) this.#takeAll();
  }

  async #takeAll() {
    this.#busy = true;
    while (this.#steps.length && !this.error) {
      try {
        await this.#steps.shift()();
        if (this.error) break;
        this.#doDuties();
        this.#wake();
      } catch (error) {
        if (error instanceof Gap) this.#askForGap();
        else if (error instanceof HouseCheated) this.#caught(error);
        else this.end(error instanceof DealerError ? error : new SetupError(String(error)));
      }
    }
    this.#busy = false;
    this.#tell();
  }

  /** News of how it stands now, once for all that came together. */
  #tell() {
    this.#look();
    if (this.#told !== this.witness.version) {
      this.#told = this.witness.version;
      this.news.tell("changed", this.table);
    }
    if (this.checks.changed()) this.news.tell("checked", this.checks.list());
  }

  async #event(frame) {
    const happened = await this.witness.event(frame);
    if (happened === null || this.error) return;
    const { type, version } = happened;
    happened.live = !this.#resuming && version > this.#target;
    this.checks.saw(happened, this.store.facts.since ?? 0);
    const ours = type === "SeatLeft" && happened.public.seat === this.witness.seat;
    // Before `since` it was somebody else who sat there.
    if (ours && version > (this.store.facts.since ?? 0)) this.gotUp();
    this.history.push(happened);
    for (const reader of this.#readers) reader.put(happened);
    this.news.tell("event", happened);
    if (type === "TableClosed") this.#finish(null);
  }

  /** The seat was given up; the token that stood for it opens nothing any more. */
  gotUp() {
    this.store.learn({ token: null, seat: null, since: null });
    this.witness.seat = null;
  }

  /** A snapshot in place of events, because they are too many, or are no more. */
  async #reset(params) {
    if (this.witness.version) {
      const { proof = null } = params;
      const after = this.#askedAfter;
      if (await this.witness.reset(snapshotOf(params), { proof, after })) this.checks.leapt();
    } else {
      await this.witness.begin(snapshotOf(params));
      if (!this.witness.story.linked) this.attach();
    }
  }

  #wake() {
    const waiting = this.#waiting.splice(0);
    for (const one of waiting) {
      try {
        if (one.truth()) one.resolve();
        else this.#waiting.push(one);
      } catch (error) {
        one.reject(error); // the caller's own test fails: no reason to accuse the house
      }
    }
  }

  // Duties: heads are kept, digests sent, bytes shown

  #doDuties() {
    const { story, seat, books } = this.witness;
    if (story.key) this.store.learn({ key: story.key });
    const last = this.history.at(-1);
    if (last && DUE.includes(last.type)) this.#due = last.version;
    for (const head of story.fresh.splice(0)) {
      this.store.keepHead(head);
      if (head.size === this.#due) this.#uncosigned = head.note;
    }
    if (seat === null || !this.#seated()) return;
    if (!(this.witness.version >= this.#target && !this.#resuming && story.linked)) {
      this.entropy.look(books.round, this.#sitting());
      return;
    }
    const step = this.entropy.nextStep(books.round, this.#sitting(), this.witness);
    // A refusal here means that the time was up; the log then says so to everybody.
    if (step) this.ask(step.method, step.params, { changes: true }).catch(() => {});
    this.#cosignNewest().catch(() => {});
  }

  /** The newest checkpoint alone: after a resume it covers those that were missed. */
  async #cosignNewest() {
    const note = this.#uncosigned;
    this.#uncosigned = "";
    const { key } = this.witness.players.get(this.witness.seat);
    if (!note || !this.cosigner || this.cosigner.key !== key) return;
    const cosignature = await this.cosignature(note);
    const { size } = await this.ask("table.cosign", { cosignature }, { changes: true });
    this.cosigned = Math.max(this.cosigned, size);
    this.#wake();
  }

  async cosignature(note) {
    if (!this.cosigner) {
      throw new SetupError("This client has no key to cosign with: `connect` was given " +
        "`cosigner: false`, or this browser lends it no cryptography.");
    }
    return cosign(this.cosigner, note);
  }

  /** Whether it is this player who sits there, and not who had the seat before or after. */
  #seated() {
    return this.witness.players.get(this.witness.seat)?.since === this.store.facts.since;
  }

  #sitting() {
    return { seat: this.witness.seat, since: this.store.facts.since };
  }

  // What goes wrong

  /** Events are missing: resume after the last one that came, but not for ever. */
  #askForGap() {
    if (this.#resuming) return;
    const { version } = this.witness;
    const times = version === this.#gap.version ? this.#gap.times + 1 : 1;
    this.#gap = { version, times };
    if (times > RESUMES_MAX) {
      const sentence = "The house leaves out an event again and again: this client leaves.";
      this.#caught(new HouseCheated(sentence, { evidence: this.witness.evidence(sentence) }));
    } else {
      this.attach();
    }
  }

  /** Keep the evidence, get up, and have no more to do with this table. */
  #caught(fault) {
    this.evidence = fault.evidence;
    if (fault.evidence) this.store.keepEvidence(fault.evidence);
    this.checks.failed(fault);
    if (this.token) {
      const params = { table: this.id, token: this.token };
      this.connection.ask("table.leave", params, { changes: true }).promise.catch(() => {});
    }
    this.end(fault);
    this.news.tell("cheated", fault);
  }

  // Who is here

  #askWhoIsHere() {
    if (this.connection.unknown.has("table.presence")) return;
    this.ask("table.presence", {}).then(
      (result) => this.#seePresence(result),
      (error) => {
        if (error.code === METHOD_NOT_FOUND) this.connection.unknown.add("table.presence");
      },
    );
  }

  #seePresence({ seats, watching = null }) {
    if (!Array.isArray(seats)) return;
    const read = ({ seat, here, since = null }) => [seat, { here: here === true, since }];
    this.presence = new Map(seats.map(read));
    this.watching = watching;
    this.news.tell("presence", this.presence);
    this.#wake();
  }
}

/** The parts of a snapshot; the witness judges those that are missing, too. */
const snapshotOf = ({ version, state, edge, checkpoint }) => ({
  version, state, edge, note: checkpoint,
});

/** A player's line under a head, C2SP cosignature/v1, at this time. */
async function cosign({ key, sign }, note) {
  const { text } = readCheckpoint(note);
  const time = Math.floor(Date.now() / 1000);
  const stamp = new Uint8Array(8);
  new DataView(stamp.buffer).setBigUint64(0, BigInt(time));
  const signature = await sign(utf8.encode(`cosignature/v1\ntime ${time}\n${text}`));
  const player = playerOf(key);
  const blob = join(keyId(player), stamp, signature);
  return `\u2014 ${player.name} ${btoa(String.fromCharCode(...blob))}\n`;
}

/** Callbacks by kind; what one of them throws is its own affair. */
class News {
  #callbacks = new Map();

  on(kind, callback) {
    const one = { callback }; // the same function may be given twice
    if (!this.#callbacks.has(kind)) this.#callbacks.set(kind, new Set());
    this.#callbacks.get(kind).add(one);
    return () => this.#callbacks.get(kind).delete(one);
  }

  tell(kind, news) {
    for (const { callback } of [...(this.#callbacks.get(kind) ?? [])]) {
      try {
        callback(news);
      } catch (error) {
        setTimeout(() => { throw error; });
      }
    }
  }
}

/** An asynchronous iterator over what is put into it. */
class Reader {
  #items = [];
  #wanted = [];
  #end = null; // { error } once no more comes
  #leave;

  constructor(leave) {
    this.#leave = leave;
  }

  put(value) {
    if (this.#wanted.length) this.#wanted.shift().resolve({ value, done: false });
    else this.#items.push(value);
  }

  end(error) {
    this.#end ??= { error };
    for (const wanted of this.#wanted.splice(0)) {
      if (error) wanted.reject(error);
      else wanted.resolve({ value: undefined, done: true });
    }
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async next() {
    if (this.#items.length) return { value: this.#items.shift(), done: false };
    if (this.#end?.error) throw this.#end.error;
    if (this.#end) return { value: undefined, done: true };
    return new Promise((resolve, reject) => this.#wanted.push({ resolve, reject }));
  }

  async return() {
    this.#leave(this);
    this.#items.length = 0;
    this.end(null);
    return { value: undefined, done: true };
  }
}


// —————————————————————————————————————————— the witness —————————————————————————————————————————
//
// Each event becomes a leaf of our own tree; it must be one that can happen next, which the books
// of verify.js say; and each card that is shown must open the commitment that was published before
// it was dealt. A card of the books is { face, slot, commitment, reached, id }; before its stack
// was first sealed its face is public and its id −1 − place, then its id is its slot.

const TOO_OLD = "The house writes events that this program is too old to read: take a newer one.";
const OTHER_KEY = "This table's key is not the one it had: it is another table.";
const OF_CHECK = { DeckSealed: "seal", CardShown: "cards", EntropyRevealed: "commitment" };

class Witness {
  seat = null; // the viewer's own
  at = 0;
  origin = "";
  rules = {};
  players = new Map(); // by seat: { name, key, since }
  rounds = 0; // opened so far
  digests = new Set(); // that came as leaves of the open round
  entropies = new Map(); // whose bytes are taken, by round: "players" or "house"
  faces = new Map(); // codes by `round/slot`, as far as they were opened to this viewer
  openings = new Set(); // slots of the open round that were opened to this viewer
  wholly = true; // whether the round that was made again last was seen from its beginning
  #record = null; // how the open round stood when we first saw it
  #leaves = []; // of the open round, as they came

  constructor(table, { key, saved, unable }) {
    this.id = table;
    this.story = new Story(table, { key, saved, unable });
    this.books = this.#emptyBooks();
  }

  get version() {
    return this.story.version;
  }

  get round() {
    return this.books.round;
  }

  get key() {
    return this.story.key;
  }

  /** A card's code, if this viewer may know it; else null. */
  face(card) {
    return card.slot < 0 ? card.face : this.faces.get(`${this.round.number}/${card.slot}`) ?? null;
  }

  /** Start in the middle. Who follows the table already only compares. */
  begin(described) {
    return this.#judging([], async () => {
      const { version, note } = described;
      if (this.version) {
        await this.story.compare(described);
        return;
      }
      const restored = await this.#described(described);
      if (version !== restored.version) {
        cheat("The house described another table than it signed.", { notes: [note] });
      }
      this.story.begin(described);
      this.#restart(restored, described.state);
    });
  }

  /** Start again at a snapshot in place of the events after `after`; whether that was needed. */
  reset(described, { proof, after }) {
    return this.#judging([], async () => {
      const restored = await this.#described(described);
      if (described.version !== restored.version) {
        cheat("The house described another table than it signed.", { notes: [described.note] });
      }
      const anew = this.story.reset(described, { proof, after });
      if (anew) this.#restart(restored, described.state);
      return anew;
    });
  }

  /** Take a signed head. */
  checkpoint(note) {
    return this.#judging([], () => this.story.checkpoint(note));
  }

  /** Take the signed head over all that the house has of this table just now. */
  whole(note) {
    return this.#judging([], () => this.story.whole(note));
  }

  /** Take one event; null if it had come before, or only proves what was saved. */
  event(frame) {
    return this.#judging([frame], () => this.#event(frame));
  }

  /** What would be kept, were `sentence` the accusation. */
  evidence(sentence, notes = [], frames = []) {
    const all = [this.story.newest, ...notes, this.story.latest];
    const kept = new Set(all.filter((note) => typeof note === "string" && note));
    return {
      table: this.id, key: this.key ?? "", sentence, version: this.version,
      notes: [...kept], frames, leaves: [...this.#leaves],
    };
  }

  /** Put the evidence to an accusation; what cannot even be read is one. */
  async #judging(frames, step) {
    try {
      return await step();
    } catch (error) {
      if (error instanceof Gap) throw error;
      if (error instanceof DealerError && !(error instanceof HouseCheated)) throw error;
      const fault = error instanceof HouseCheated ? error : accusation(error, frames[0]?.type);
      fault.evidence = this.evidence(fault.message, fault.notes, frames);
      throw fault;
    }
  }

  async #event(frame) {
    const { private: opened, ...leaf } = frame;
    const { version, type, at } = leaf;
    if (!Number.isSafeInteger(version)) cheat("The house wrote an event without a version.");
    const text = leafText(leaf);
    const hash = leafHash(utf8.encode(text));
    if (version <= this.version) {
      this.story.again(version, hash);
      return null;
    }
    if (version > this.version + 1) throw new Gap();
    if (isNewer(leaf)) throw new SetupError(TOO_OLD);
    checkLeaf(version, leaf, { table: this.id, leaves: [{ at: this.at }] });
    if (type === "RoundClosed") await this.#reckon(leaf.public.secret);
    believe(this.books, leaf); // in full when it returns: no secret is known to these books
    this.at = at;
    this.#evolve(leaf);
    const card = this.#seen(leaf, opened);
    this.#leaves.push(text);
    this.story.grow(hash, DUE.includes(type));
    await this.story.settleEarly();
    return { version, at, type, public: leaf.public, card, live: true };
  }

  /** What the books of the verifier need not know. */
  #evolve({ version, type, at, public: event }) {
    const { round } = this;
    if (type === "TableOpened") {
      this.origin = event.origin;
      this.rules = event.rules;
      this.story.pin(event.key);
    } else if (type === "SeatTaken") {
      const { seat, name, key = null } = event;
      this.players.set(seat, { name, key, since: version });
    } else if (type === "SeatLeft") {
      this.players.delete(event.seat);
    } else if (type === "RoundOpened") {
      this.#openRound(event);
    } else if (type === "ShuffleStarted") {
      round.shuffle.startedAt = at;
    } else if (type === "EntropyClosed") {
      round.shuffle.closedAt = at;
    } else if (type === "ShuffleVoided") {
      round.voided += 1;
    } else if (type === "EntropyCommitted") {
      this.digests.add(event.digest);
    } else if (type === "DeckSealed") {
      for (const cards of round.stacks.values()) for (const card of cards) nameCard(card);
    } else if (type === "CardShown") {
      round.shown.add(event.slot);
    }
  }

  #openRound(event) {
    const { deck, commit_ms: commitMs, reveal_ms: revealMs, commitment } = event;
    this.rounds = event.round;
    this.entropies.set(event.round, event.entropy);
    const { round } = this;
    Object.assign(round, { deck, commitMs, revealMs, commitment, voided: 0, shown: new Set() });
    round.stacks.get("deck").forEach((card, place) => { card.id = -1 - place; });
    this.#record = { base: null, seats: new Set(this.books.seats) };
    this.#leaves = [];
    this.digests.clear();
    this.openings.clear();
  }

  /** The code of the card that an event moves or shows, as far as it is known; openings hold. */
  #seen({ type, public: event }, opened) {
    if (type === "CardShown") {
      this.#open(event);
      return event.card;
    }
    if (opened !== undefined) {
      if (Object.keys(opened).sort().join() !== "card,salt,slot") {
        cheat("The house opened a card in a form that proves nothing.", { check: "cards" });
      }
      const opens = ["CardDrawn", "CardMoved", "CardPeeked"].includes(type);
      if (!opens || opened.slot !== event.slot) {
        cheat("The house opened another card than the one that was moved.", { check: "cards" });
      }
      this.#open(opened);
    }
    const moves = type === "CardDrawn" || type === "CardMoved" || type === "CardPeeked";
    return moves ? this.faces.get(`${event.round}/${event.slot}`) ?? null : null;
  }

  /** An opening against its seal. */
  #open({ slot, card, salt }) {
    const { round } = this;
    if (!round?.deck.includes(card)) {
      cheat("The house showed a card that is not in this round's deck.", { check: "cards" });
    }
    const { commitment } = cardIn(round, slot);
    const isSalt = typeof salt === "string" && /^[0-9a-f]{64}$/.test(salt);
    const table = unhex(this.id);
    if (
      !isSalt || slotCommitment(table, round.number, slot, unhex(salt), card) !== commitment
    ) {
      cheat(
        "A card that you were shown is not the one that was sealed before the deal.",
        { check: "cards" },
      );
    }
    this.faces.set(`${round.number}/${slot}`, card);
    this.openings.add(slot);
  }

  async #described({ state, note }) {
    let restored = null;
    try {
      restored = restore(state, this.#emptyBooks());
    } catch (error) {
      if (error instanceof DealerError) throw error;
      cheat("The house described the table in a way that cannot be: this client leaves it.");
    }
    this.story.pin(state.key);
    await this.story.read(note);
    return restored;
  }

  #restart({ version: _, ...restored }, state) {
    Object.assign(this, restored);
    const { round } = this;
    if (round) this.entropies.set(round.number, round.entropy);
    this.openings.clear();
    this.#leaves = [];
    for (const [slot, card, salt] of state.round?.cards ?? []) this.#open({ slot, card, salt });
    const seats = new Set(this.books.seats);
    this.#record = round && { base: structuredClone(round), seats };
  }

  #emptyBooks() {
    const roots = {
      get: (size) => {
        const root = this.story.rootAt(size);
        return root === null ? undefined : unhex(root);
      },
    };
    return emptyBooks(this.id, roots);
  }

  /** The reckoning when a round closes: was it all as it was promised? */
  async #reckon(secret) {
    const record = this.#record;
    this.#record = null;
    if (record === null) return;
    this.wholly = record.base === null;
    try {
      await playAgain(this.#emptyBooks(), record, {
        leaves: this.#leaves.map((text) => JSON.parse(text)),
        secret: unhex(secret),
      });
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      cheat(
        `The house's secret, now shown, does not give what was played. ${error.message}`,
        { check: "round" },
      );
    }
  }
}

function nameCard(card) {
  if (card.slot >= 0) card.id = card.slot;
}

const isNewer = ({ type, v }) =>
  typeof type === "string" && Number.isSafeInteger(v) && (v > 1 || !PUBLIC.has(type));

function accusation(error, type) {
  const check = Object.hasOwn(OF_CHECK, type ?? "") ? OF_CHECK[type] : "moves";
  const what = error instanceof Wrong ? "cannot have happened" : "makes no sense here";
  return new HouseCheated(`The house wrote something that ${what}: ${error.message}`, { check });
}

/** Accuse the house. `notes` are signed heads that speak against it. */
function cheat(sentence, { check = "moves", notes = [] } = {}) {
  throw new HouseCheated(sentence, { check, notes });
}

/**
 * The table that a snapshot describes: the same members as the house's own view of a table, read
 * into `books` that events can be believed onto. Throws whatever, where it cannot be.
 */
function restore(state, books) {
  const { version, at, origin, key, rules, closed, rounds, seats, round } = state;
  demand(isCount(version) && isCount(at) && isOrigin(origin) && isHash(key));
  demand(typeof rules === "object" && rules !== null && typeof closed === "boolean");
  demand(isCount(rounds) && Array.isArray(seats));
  const players = new Map();
  for (const { seat, name, since, key: own = null } of seats) {
    demand(isCount(seat) && typeof name === "string" && isCount(since));
    demand(own === null || isHash(own));
    players.set(seat, { name, key: own, since });
  }
  books.seats = new Set(players.keys());
  books.sat = { add() {}, has: () => true }; // who sat there before nobody told us
  books.remarks.rounds = rounds;
  books.closed = closed;
  books.round = round === undefined ? null : restoreRound(round);
  return { version, at, origin, rules, rounds, players, books };
}

function restoreRound(view) {
  const { round: number, deck, entropy, commit_ms, reveal_ms, commitment, k, slots } = view;
  demand(isCount(number) && Array.isArray(deck) && deck.length > 0 && isCount(slots) && isCount(k));
  demand(deck.every((code) => typeof code === "string") && isHash(commitment));
  const commitments = new Map(view.commitments);
  const drawable = new Set(view.drawable);
  const lying = new Set();
  const card = (id) => {
    demand(Number.isSafeInteger(id) && id >= -deck.length && id < slots && !lying.has(id));
    lying.add(id);
    if (id < 0) return { id, face: deck[-1 - id], slot: -1, commitment: null, reached: false };
    demand(isHash(commitments.get(id)));
    const [sealed, reached] = [commitments.get(id), drawable.has(id)];
    return { id, face: null, slot: id, commitment: sealed, reached };
  };
  const stacks = Object.entries(view.stacks).map(([name, ids]) => [name, ids.map(card)]);
  demand(lying.size === deck.length && Array.isArray(view.cards));
  return {
    number, entropy, secret: null, saltKey: null,
    stacks: new Map(stacks), slots, k,
    shuffle: view.shuffle === undefined ? null : restoreShuffle(view.shuffle),
    ahead: new Map(view.ahead), withheld: new Set(view.withheld),
    deck, commitMs: commit_ms, revealMs: reveal_ms, commitment, voided: 0,
    shown: new Set(view.shown),
  };
}

function restoreShuffle(view) {
  const { k, stack, n, algorithm, steps, started_at, closed_version, closed_at } = view;
  demand(isCount(k) && isCount(n) && isCount(steps) && isCount(closed_version));
  const nonces = view.nonces.map(([seat, nonce]) => {
    demand(isHash(nonce));
    return [seat, unhex(nonce)];
  });
  return {
    k, stack, n, algorithm, steps, digests: new Map(view.digests), nonces: new Map(nonces),
    closed: closed_version, done: 0, plan: null, startedAt: started_at, closedAt: closed_at,
  };
}

const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isHash = (value) => typeof value === "string" && /^[0-9a-f]{64}$/.test(value);

function demand(holds) {
  if (!holds) throw new Wrong("It lacks something.");
}


// ——————————————————————————————————————————— the story ——————————————————————————————————————————
//
// A house that tells two stories has to sign two trees, or break a hash. Roots and edges are hex.
// A head is { size, note, edge }. Signatures take their time, so `read` has to have been through
// with a note before anything else is; `#open` then gives its size and root at once.

const ANOTHER_LOG = "The house signed another log than the one that it showed here.";
const WENT_BACK = "The house went back behind what it had shown of this table.";

/** A version is missing: resume after the last one that came. */
class Gap extends Error {}

class Story {
  heads = new Map(); // size → root, where a signed note was compared
  fresh = []; // heads that were checked; the caller keeps them
  latest = ""; // over all that the house had when it was last asked
  signatures = 0; // that were good
  #opened = new Map(); // note → { size, root }
  #early = []; // notes that came before the key that they are signed with
  #link = null; // tree from the newest saved head towards `start`
  #linkedFrom = ""; // the note of that head
  #bases = new Map(); // roots that a reset was proved from
  #start = 0;
  #firstEdge = []; // of the tree at `start`
  #tree = new Tree();
  #hashes = []; // of leaves start+1, start+2, …
  #marks = new Map(); // roots of our own tree that are asked for again, by size
  #saved;
  #sizes;
  #awaited;

  constructor(table, { key, saved, unable }) {
    this.table = table;
    this.key = key;
    this.unable = unable; // why signatures cannot be checked here
    this.newest = saved.at(-1)?.note ?? "";
    this.#saved = [...saved].sort((a, b) => a.size - b.size);
    this.#sizes = new Set(saved.map(({ size }) => size));
    this.#awaited = new Map(saved.map(({ size, note }) => [size, note]));
    this.#marks.set(0, hex(this.#tree.root()));
    // They were checked when they were kept.
    for (const { note } of saved) this.#opened.set(note, headOf(readCheckpoint(note)));
  }

  get version() {
    return this.#tree.size;
  }

  /** Whether what is followed is known to continue what was saved earlier. */
  get linked() {
    return this.#link === null;
  }

  /** The version after which events are needed. */
  resumeAfter() {
    return this.#link === null ? this.version : this.#link.size;
  }

  /** Root of our own tree at an earlier size; null from before we were there. */
  rootAt(size) {
    if (this.#start <= size && size <= this.version) {
      if (!this.#marks.has(size)) this.#marks.set(size, hex(this.#treeAt(size).root()));
      return this.#marks.get(size);
    }
    return this.#link !== null && size === this.#link.size ? hex(this.#link.root()) : null;
  }

  /** This is the table's key, from the first time on. */
  pin(key) {
    if (this.key === null) this.key = key;
    else if (key !== this.key) cheat(OTHER_KEY, { check: "signatures" });
  }

  /** Look at the signature of a note. */
  async read(note) {
    if (this.#opened.has(note)) return;
    if (this.key === null) {
      cheat("The house signed a head before it named this table's key.", { notes: [note] });
    }
    try {
      const head = readCheckpoint(note);
      if (!isOrigin(head.origin) || head.origin.slice(-32) !== this.table) {
        throw new Wrong("This is a checkpoint of another table.");
      }
      if (this.unable === null) {
        if (!(await signedBy(head, houseOf(head.origin, this.key)))) {
          throw new Wrong("The house's key did not sign this checkpoint.");
        }
        this.signatures += 1;
      }
      this.#opened.set(note, headOf(head));
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      const sentence = `A head of the log is not signed with this table's key. ${error.message}`;
      cheat(sentence, { check: "signatures", notes: [note] });
    }
  }

  /** Add the next event by its leaf's hash, and compare the head that was awaited there. */
  grow(leaf, mark) {
    this.#tree.append(leaf);
    this.#hashes.push(leaf);
    if (mark) this.rootAt(this.version);
    const note = this.#awaited.get(this.version);
    this.#awaited.delete(this.version);
    if (note) this.#settle(this.version, note);
  }

  /** Heads that came before the table's key. */
  async settleEarly() {
    if (this.key === null) return;
    for (const note of this.#early.splice(0)) await this.checkpoint(note);
  }

  /** An event that came before is the same one; one from before our start is a link to it. */
  again(version, leaf) {
    if (version > this.#start) {
      if (hex(this.#hashes[version - this.#start - 1]) !== hex(leaf)) {
        cheat(`The house told event ${version} in two different ways.`, { check: "roots" });
      }
      return;
    }
    const link = this.#link;
    if (link === null || version <= link.size) return;
    if (version > link.size + 1) throw new Gap();
    link.append(leaf);
    if (link.size === this.#start) {
      if (hex(link.root()) !== this.rootAt(this.#start)) {
        const sentence = "The house's log does not continue the one that was saved.";
        cheat(sentence, { check: "roots", notes: [this.#linkedFrom] });
      }
      this.#linked();
    }
  }

  /** Take a signed head; it is compared now, or when the events under it have come. */
  async checkpoint(note) {
    if (this.key === null) {
      this.#early.push(note);
      return;
    }
    await this.read(note);
    const { size, root } = this.#open(note);
    if (size <= this.version) {
      this.#settle(size, note);
      return;
    }
    const known = this.#awaited.get(size) ?? note;
    this.#awaited.set(size, known);
    if (this.#open(known).root !== root) {
      const sentence = "The house signed two different logs of one length.";
      cheat(sentence, { check: "roots", notes: [known, note] });
    }
  }

  /** Take the head over all that the house has: no less than it ever signed before. */
  async whole(note) {
    this.latest = note;
    const known = Math.max(0, ...this.#sizes, ...this.#awaited.keys());
    if (known && this.key !== null) {
      await this.read(note);
      if (this.#open(note).size < known) cheat(WENT_BACK, { check: "roots", notes: [note] });
    }
    await this.checkpoint(note);
  }

  /** Start in the middle: the tree's edge and the signed head at `version`, which was read. */
  begin({ version, edge, note }) {
    const known = Math.max(0, ...this.#sizes, ...this.#awaited.keys());
    this.latest = note;
    if (this.#open(note).size < known) cheat(WENT_BACK, { check: "roots", notes: [note] });
    this.#await(note);
    this.#restart(this.#treeOf(version, edge, note), note);
    const behind = this.#saved.filter(({ size }) => size < version).at(-1);
    if (behind) {
      this.#link = treeFrom(behind.size, behind.edge.map(unhex));
      this.#linkedFrom = behind.note;
    }
  }

  /** What who begins here is told must be what we hold, as far as we are. */
  async compare({ version, edge, note }) {
    await this.read(note);
    const root = hex(this.#treeOf(version, edge, note).root());
    const ours = this.rootAt(version);
    if (ours !== null && ours !== root) cheat(ANOTHER_LOG, { check: "roots", notes: [note] });
    await this.checkpoint(note);
  }

  /**
   * Go on at `version` in place of the events after `after`; whether the tree began anew.
   *
   * `proof` is the RFC 6962 consistency proof from `after`. A snapshot of what we hold already, as
   * somebody who is host and player gets it twice, needs none, unless we hold more. Throws Gap
   * where it leads on from the empty log, which proves nothing about what we hold.
   */
  reset({ version, edge, note }, { proof, after }) {
    const less = version < after || (proof === null && version < this.version);
    if (less) cheat(WENT_BACK, { check: "roots", notes: [note] });
    const tree = this.#treeOf(version, edge, note);
    const root = hex(tree.root());
    const ours = this.rootAt(version);
    if (ours !== null && ours !== root) cheat(ANOTHER_LOG, { check: "roots", notes: [note] });
    // Asked for twice, as host and as player, before anything was held: the link to what was
    // saved earlier is proved by the resume that begins there, and by nothing else.
    if (ours !== null && (this.#link === null || after !== this.#link.size)) return false;
    const oldRoot = this.#bases.get(after) ?? this.rootAt(after);
    if (oldRoot === null && after === 0) throw new Gap();
    const notes = [this.#linkedFrom, note];
    if (oldRoot === null || proof === null) cheat(WENT_BACK, { check: "roots", notes });
    const [before, now] = [{ size: after, root: oldRoot }, { size: version, root }];
    if (!isConsistent(before, now, this.#unhex(proof, note))) {
      const sentence = "The house's log does not continue the one that this client saw.";
      cheat(sentence, { check: "roots", notes });
    }
    this.#linked();
    if (ours !== null) return false;
    this.#bases.set(after, oldRoot);
    this.#restart(tree, note);
    return true;
  }

  #linked() {
    this.#link = null;
    for (const size of this.#awaited.keys()) {
      if (size <= this.#start) this.#awaited.delete(size);
    }
  }

  #restart(tree, note) {
    this.#tree = tree;
    this.#start = tree.size;
    this.#firstEdge = [...tree.edge];
    this.#hashes = [];
    this.#marks = new Map([[tree.size, hex(tree.root())]]);
    this.#awaited.delete(tree.size);
    this.#settle(tree.size, note);
  }

  #await(note) {
    const { size, root } = this.#open(note);
    const known = this.#awaited.get(size);
    if (known && this.#open(known).root !== root) {
      const sentence = "The house signed two different logs of one length.";
      cheat(sentence, { check: "roots", notes: [known, note] });
    }
  }

  #settle(size, note) {
    const { root } = this.#open(note);
    const ours = this.rootAt(size);
    if (ours === null) return;
    if (root !== ours) cheat(ANOTHER_LOG, { check: "roots", notes: [note] });
    if (this.heads.has(size)) return;
    this.heads.set(size, root);
    this.newest = note;
    // One that came late is kept, too, unless a later one is, which covers it: bytes are shown
    // under it, so it must be known again after a restart.
    const latest = Math.max(0, ...this.#sizes);
    if (!this.#sizes.has(size) && (size === this.version || size > latest)) {
      this.fresh.push({ size, note, edge: this.#treeAt(size).edge.map(hex) });
      this.#sizes.add(size);
    }
  }

  /** Our own tree at an earlier size, from our start on. */
  #treeAt(size) {
    if (size === this.version) return this.#tree;
    const tree = treeFrom(this.#start, this.#firstEdge);
    for (const hash of this.#hashes.slice(0, size - this.#start)) tree.append(hash);
    return tree;
  }

  /** The tree with this edge, if the house's signed head is over just that. */
  #treeOf(version, edge, note) {
    const { size, root } = this.#open(note);
    const hashes = this.#unhex(edge, note);
    if (!isCount(version) || bitsOf(version) !== hashes.length) {
      cheat("The house gave a tree that cannot be.", { check: "roots", notes: [note] });
    }
    const tree = treeFrom(version, hashes);
    if (size !== version || root !== hex(tree.root())) {
      cheat(ANOTHER_LOG, { check: "roots", notes: [note] });
    }
    return tree;
  }

  #open(note) {
    return this.#opened.get(note);
  }

  #unhex(texts, note) {
    if (!Array.isArray(texts) || !texts.every(isHash)) {
      const sentence = "The house gave hashes in a form that proves nothing.";
      cheat(sentence, { check: "roots", notes: [note] });
    }
    return texts.map(unhex);
  }
}

const headOf = ({ size, root }) => ({ size, root: hex(root) });
const treeFrom = (size, edge) => Object.assign(new Tree(), { size, edge: [...edge] });
const bitsOf = (size) => size.toString(2).replaceAll("0", "").length;

/**
 * Whether the tree `now` began as the tree `before`, each { size, root }: RFC 9162, 2.1.4.2.
 * Every tree began as the empty one.
 */
function isConsistent(before, now, proof) {
  if (before.size > now.size) return false;
  if (before.size === now.size) return proof.length === 0 && before.root === now.root;
  if (before.size === 0) return proof.length === 0;
  const path = bitsOf(before.size) === 1 ? [unhex(before.root), ...proof] : proof;
  if (path.length === 0) return false;
  const up = (place) => Math.floor(place / 2);
  let [node, last] = [before.size - 1, now.size - 1];
  for (; node % 2 === 1; node = up(node)) last = up(last);
  let [was, is] = [path[0], path[0]];
  for (const other of path.slice(1)) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      was = nodeHash(other, was);
      is = nodeHash(other, is);
      for (; node % 2 === 0 && node > 0; node = up(node)) last = up(last);
    } else {
      is = nodeHash(is, other);
    }
    [node, last] = [up(node), up(last)];
  }
  return last === 0 && hex(was) === before.root && hex(is) === now.root;
}


// ——————————————————————————————————————————— the round ——————————————————————————————————————————
//
// With the secret shown, the tape is spun again, every swap made again, every card followed, and
// each commitment compared: to the secret, the swaps, the drawn cards, the sealed slots. The books
// of verify.js do that. Who came in the middle knows no faces: they are found by their seals.

/** Throws Wrong at the first thing that differs. What was opened to us opened these same seals. */
async function playAgain(books, { base, seats }, { leaves, secret }) {
  const { number } = base ?? { number: leaves[0].public.round };
  books.seats = seats;
  books.sat = { add() {}, has: () => true };
  books.remarks.rounds = base === null ? number - 1 : number;
  const saltKey = await saltKeyOf(books.table, number, secret);
  if (base === null) books.secrets.set(leaves[0].version, secret);
  else enterRound(books, base, { secret, saltKey });
  for (const leaf of leaves) {
    if (leaf.type === "RoundClosed") break;
    await believe(books, leaf);
    const over = leaf.type === "DeckSealed" || leaf.type === "ShuffleVoided";
    if (over && books.round.secret === null) openSlots(books, { secret, saltKey });
  }
}

/** The books of a round that we came into. */
function enterRound(books, base, { secret, saltKey }) {
  const { deck, number, commitment, shuffle } = base;
  if (
    secret.length !== secretLength(deck.length) ||
    houseCommitment(books.table, number, secret) !== commitment
  ) {
    throw new Wrong("The secret that the house showed is not the one it committed to.");
  }
  books.round = base;
  openSlots(books, { secret, saltKey });
  // The tape of a shuffle whose C1 is from before we were there is not known: it is let pass,
  // and what it sealed is looked at then.
  const blind = shuffle?.closed && books.roots.get(shuffle.closed) === undefined;
  if (blind) Object.assign(base, { secret: null, saltKey: null });
}

/** From here on the secret is known: find the face of every sealed card on the table. */
function openSlots({ table, round }, { secret, saltKey }) {
  Object.assign(round, { secret, saltKey });
  const cards = [...round.stacks.values()].flat();
  const left = new Set(round.deck);
  for (const card of cards.filter(({ slot }) => slot < 0)) left.delete(card.face);
  for (const card of cards.filter(({ slot }) => slot >= 0)) {
    const { number } = round;
    const salt = slotSalt(saltKey, card.slot);
    const opens = (code) =>
      slotCommitment(table, number, card.slot, salt, code) === card.commitment;
    card.face = [...left].find(opens) ?? null;
    if (card.face === null) {
      throw new Wrong("A slot was sealed over something that is no card of this round's deck.");
    }
    left.delete(card.face);
  }
}


// ———————————————————————————————————————— our own chance ————————————————————————————————————————
//
// 32 fresh random bytes r in every shuffle. A digest of them may go ahead of its shuffle; the bytes
// themselves only under a signed head that has the digest in it, for from then on the house can
// change nothing any more. They are kept before anything of them is sent, and never promised twice.

class Entropy {
  doubts = []; // what only this player can know and nobody can prove
  #promised = new Set();
  #revealed = new Set();
  #doubted = new Set();
  #table;
  #store;
  #tell;

  constructor(table, store, tell) {
    this.#table = unhex(table);
    this.#store = store;
    this.#tell = tell;
  }

  /** The method and params to be sent now; null for nothing. `heads` and `digests` were checked. */
  nextStep(round, { seat, since }, { story: { heads }, digests }) {
    if (round === null || round.entropy !== "players") return null;
    const sitting = { round: round.number, k: round.k, seat, since };
    if (round.withheld.has(seat)) {
      this.#checkWithheld(sitting);
      return null;
    }
    const { shuffle } = round;
    if (shuffle === null) return this.#promise(round.ahead, sitting);
    if (!shuffle.closed) return this.#promise(shuffle.digests, sitting);
    this.look(round, { seat, since });
    // A snapshot may say that our digest is there: a head proves it only of leaves.
    if (!digests.has(shuffle.digests.get(seat))) return null;
    return this.#reveal(shuffle, heads.get(shuffle.closed), sitting);
  }

  /**
   * Doubt a shuffle whose digests were closed without ours, though nothing was to be sent: a house
   * that says that it is still telling what was before keeps a client from promising.
   */
  look(round, { seat, since }) {
    const shuffle = round?.shuffle;
    if (!shuffle || round.entropy !== "players" || round.withheld.has(seat)) return;
    if (since >= shuffle.closed) return;
    const sitting = { round: round.number, k: shuffle.k, seat, since };
    if (!shuffle.digests.has(seat)) {
      const sentence = `Shuffle ${shuffle.k} of round ${round.number} goes without our bytes.`;
      this.#doubt(sitting, sentence);
    } else if (this.#own(shuffle.digests.get(seat), sitting) === null) {
      this.#doubt(sitting, `Another digest than ours stands for shuffle ${shuffle.k}.`);
    }
  }

  /** Doubt a round that takes other bytes than we asked for: only we know what we asked. */
  compare(round, taken, asked) {
    if (taken === undefined || taken === asked) return;
    this.#say(`Round ${round} takes ${BYTES_OF[taken]}, though ${BYTES_OF[asked]} were asked for.`);
  }

  /** Whether these bytes, in hex, are those that we drew for a shuffle. */
  isOurs({ round, k, seat, since, nonce }) {
    const sitting = { round, k, seat, since };
    return this.#own(this.#digest(sitting, nonce), sitting) !== null;
  }

  #promise(given, sitting) {
    const { round, k, seat } = sitting;
    const name = nameOf(sitting);
    if (this.#promised.has(name)) return null;
    if (given.has(seat)) {
      if (this.#own(given.get(seat), sitting) === null) {
        this.#doubt(sitting, `Another digest than ours stands for shuffle ${k}.`);
      }
      return null;
    }
    const kept = this.#store.nonce(sitting);
    // Bytes that were shown once are known to the house: they must never be promised again.
    const fresh = kept === null || kept.under !== "";
    const value = fresh ? hex(crypto.getRandomValues(new Uint8Array(32))) : kept.value;
    const digest = this.#digest(sitting, value);
    if (fresh) {
      this.#store.claimNonce(sitting, value);
      this.#store.keepNonce(sitting, digest, { value, under: "" });
    }
    this.#promised.add(name);
    return { method: "entropy.commit", params: { round, k, digest } };
  }

  #reveal(shuffle, root, sitting) {
    const { round, k, seat } = sitting;
    const name = nameOf(sitting);
    if (root === undefined || shuffle.nonces.has(seat) || this.#revealed.has(name)) return null;
    const digest = shuffle.digests.get(seat);
    const value = this.#own(digest, sitting);
    if (value === null) {
      this.#doubt(sitting, `Another digest than ours stands for shuffle ${k}.`);
      return null;
    }
    const { under } = this.#store.nonce(sitting, digest);
    if (under && under !== root) {
      this.#doubt(sitting, "Our bytes were shown under another signed head before.");
      return null;
    }
    if (!under) this.#store.keepNonce(sitting, digest, { value, under: root });
    this.#revealed.add(name);
    return { method: "entropy.reveal", params: { round, k, nonce: value } };
  }

  #checkWithheld(sitting) {
    const voided = { ...sitting, k: sitting.k - 1 };
    const nonce = this.#store.nonce(voided);
    if (nonce === null) return;
    const why = nonce.under
      ? "though we sent our bytes"
      : "and we could not open our bytes, for no signed head with our digest had come";
    const { k, round } = voided;
    this.#doubt(voided, `The house counts us as silent in shuffle ${k} of round ${round}, ${why}.`);
  }

  /** Our bytes behind a digest; null if it is not of ours. */
  #own(digest, sitting) {
    const nonce = this.#store.nonce(sitting, digest);
    return nonce !== null && this.#digest(sitting, nonce.value) === digest ? nonce.value : null;
  }

  #digest({ round, k, seat }, nonce) {
    return playerDigest(this.#table, round, k, seat, unhex(nonce));
  }

  #doubt(sitting, sentence) {
    const name = nameOf(sitting);
    if (this.#doubted.has(name)) return;
    this.#doubted.add(name);
    this.#say(sentence);
  }

  #say(sentence) {
    this.doubts.push(sentence);
    this.#tell(sentence);
  }
}

const BYTES_OF = { players: "the players' bytes", house: "the house's bytes alone" };

/** What one nonce is drawn for: round, k, seat, and the version at which the seat was taken. */
const nameOf = ({ round, k, seat, since }) => `${round}-${k}-${seat}-${since}`;


// ———————————————————————————————————————————— checks ————————————————————————————————————————————

const HOUSE_ALONE =
  "This round takes only the house's bytes: that its cards were fixed before the deal can be " +
  "checked, that nobody chose them cannot.";

class Checks {
  #witness;
  #entropy;
  #unable;
  #moves = 0;
  #seals = []; // versions of the DeckSealed of this round
  #closings = []; // versions of the EntropyClosed of this round
  #chances = 0; // shuffles of this round that our bytes could have been in
  #given = 0; // that they are in
  #doubts = 0; // before this round
  #reckoned = 0;
  #fault = null;
  #last = "";

  constructor(witness, entropy, unable) {
    this.#witness = witness;
    this.#entropy = entropy;
    this.#unable = unable;
  }

  saw({ type, version, public: event }, since) {
    const { seat, round } = this.#witness;
    this.#moves += 1;
    if (type === "RoundOpened") {
      this.leapt();
      this.#doubts = this.#entropy.doubts.length;
    } else if (type === "EntropyClosed") {
      this.#closings.push(version);
      const could = seat !== null && since < version && !round.withheld.has(seat);
      if (round.entropy === "players" && could) this.#chances += 1;
    } else if (type === "EntropyRevealed" && event.seat === seat) {
      if (this.#entropy.isOurs({ ...event, since })) this.#given += 1;
    } else if (type === "DeckSealed") {
      this.#seals.push(version);
    } else if (type === "RoundClosed") {
      this.#reckoned += 1;
    }
  }

  failed(fault) {
    this.#fault = fault;
  }

  /** A snapshot came in place of events: what held of the shuffles before says nothing of now. */
  leapt() {
    this.#chances = this.#given = 0;
    this.#seals = [];
    this.#closings = [];
  }

  /** Whether the list is another than when this was asked before. */
  changed() {
    const now = JSON.stringify(this.list());
    const changed = now !== this.#last;
    this.#last = now;
    return changed;
  }

  list() {
    const { story, openings, round, wholly } = this.#witness;
    const running = Boolean(round?.shuffle);
    const signedOf = (versions) => versions.filter((version) => story.heads.has(version)).length;
    const [held, seals] = [signedOf(this.#closings), signedOf(this.#seals)];
    // A seal that is not signed could be another one for everybody who is told of it.
    const sealed = seals > 0 && seals === this.#seals.length && !running;
    const reckoned = this.#reckoned > 0 && round === null;
    const partly = reckoned && !wholly ? "Made again from where this client came in." : null;
    const signed = this.#unable === null ? null : `Signatures are not checked: ${this.#unable}`;
    return [
      this.#ownBytes(running),
      this.#check("commitment", held > 0 && held === this.#closings.length, held,
        { of: this.#closings.length }),
      this.#check("seal", sealed, seals),
      this.#check("cards", openings.size > 0, openings.size),
      this.#check("roots", story.heads.size > 0, story.heads.size),
      this.#check("signatures", story.signatures > 0, story.signatures, { unavailable: signed }),
      this.#check("moves", this.#moves > 0, this.#moves),
      this.#check("round", reckoned, this.#reckoned, { partly }),
    ];
  }

  #ownBytes(running) {
    const { seat, round, rounds, entropies } = this.#witness;
    const doubt = this.#entropy.doubts.slice(this.#doubts).at(-1) ?? null;
    let unavailable = null;
    if (entropies.get(rounds) === "house") unavailable = HOUSE_ALONE;
    else if (seat === null) unavailable = "Who has no seat brings no bytes.";
    const all = this.#given > 0 && this.#given === this.#chances;
    const waits = running && round.k === round.shuffle.k && !round.shuffle.nonces.has(seat);
    return this.#check("entropy", all && !waits, this.#given, {
      of: this.#chances, unavailable, no: doubt,
    });
  }

  #check(name, holds, done, { of = null, unavailable = null, no = null, partly = null } = {}) {
    if (this.#fault?.check === name) no = this.#fault.message;
    const state = no ? "no" : unavailable ? "unavailable" : holds ? "yes" : "waiting";
    return { name, state, done, of, sentence: no ?? unavailable ?? partly };
  }
}


// ——————————————————————————————————————————— the line ———————————————————————————————————————————
//
// Every question waits until it is answered, across any number of sockets. What would change
// something carries its own id, so the house does it once however often it hears it.

const PATIENCE = {
  open: 10_000,
  silence: 20_000,
  answer: 10_000,
  backoff: 200,
  backoffMax: 10_000,
  away: onPage ? Infinity : 300_000,
  attempts: 8,
};
const FINAL = {
  1009: "The house will not read messages as long as the one that was sent.",
  4401: "The house does not accept this client's token.",
  4403: "The house does not let this client in.",
  4408: "The house closed the connection because nothing was asked in time.",
  4409: "The same seat is played from a newer connection.",
};
const CUT_OFF = 1006;
const FOR_A_WHILE = new Set(["shuffle_running", "disabled"]); // passes, but not while one waits
const AWAY_AFTER = 3; // attempts in a row, before the house counts as away

class Connection {
  followers = new Map(); // by table
  attached = new Set(); // tables that the socket follows
  unknown = new Set(); // methods that this house does not have
  sockets = 0; // opened so far
  news = new News();
  status = { state: "connecting", since: Date.now(), error: null };
  #Socket;
  #patience;
  #questions = new Map();
  #nextId = 0;
  #line = null;
  #notBefore = 0; // when a house that is closing wants to be asked again
  #pause; // before the next attempt
  #lostAt = 0; // since when no house has greeted; 0 while one is there
  #failures = 0;
  #error = null;
  #hurry = null; // ends a pause
  #looksUp = () => this.#lookUp();

  constructor(url, Socket, patience) {
    this.url = url;
    this.#Socket = Socket;
    this.#patience = patience;
    this.#pause = patience.backoff;
  }

  async start() {
    const hello = this.ask("session.hello", {}, { answered: () => this.#greeted() });
    hello.promise.catch(() => {});
    this.#use(await this.#open());
    const late = new HouseUnreachable(`At ${this.url} nobody answers as a house would.`);
    const timer = setTimeout(() => this.#giveUp(late), this.#patience.open);
    try {
      await hello.promise;
    } catch (error) {
      this.#line?.abort();
      throw error;
    } finally {
      clearTimeout(timer);
    }
    if (onPage) {
      globalThis.addEventListener("online", this.#looksUp);
      document.addEventListener("visibilitychange", this.#looksUp);
    }
  }

  async close() {
    this.#giveUp(new HouseUnreachable("This client has hung up."));
    await this.#line?.close();
  }

  /**
   * A question; its `promise` is of the result, across reconnects, or of its refusal. `changes`
   * gives it a `cmd` of its own. `table` holds it back until that table is followed on the socket.
   * `answered` is called with the result before any later frame is read.
   */
  ask(method, params, { table = null, changes = false, answered = null } = {}) {
    if (changes && !("cmd" in params)) params = { ...params, cmd: randomId() };
    const question = { id: ++this.#nextId, method, params, table, answered, attempts: 0 };
    question.sent = false;
    question.timer = null;
    question.promise = new Promise((resolve, reject) => {
      question.resolve = resolve;
      question.reject = reject;
    });
    if (this.#error) {
      question.reject(this.#error);
    } else {
      this.#questions.set(question.id, question);
      this.#send(question);
    }
    return question;
  }

  /** Wait no longer for an answer; nobody hears of it. */
  forget(question) {
    clearTimeout(question.timer);
    this.#questions.delete(question.id);
  }

  /** Note that the socket follows this table, and send what waited for that. */
  attach(table) {
    this.attached.add(table);
    for (const question of this.#questions.values()) {
      if (question.table === table) this.#send(question);
    }
  }

  /** Have done with a table: its questions fail, its frames are passed over. */
  drop(table, error) {
    this.followers.delete(table);
    this.attached.delete(table);
    for (const question of [...this.#questions.values()]) {
      if (question.table === table) this.#fail(question, error);
    }
  }

  #send(question) {
    const ready = question.table === null || this.attached.has(question.table);
    if (!this.#line || question.sent || question.timer !== null || !ready) return;
    const { id, method, params } = question;
    question.sent = true;
    this.#line.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  }

  async #open() {
    const line = await openLine(this.url, this.#Socket, this.#patience);
    this.sockets += 1;
    return line;
  }

  #use(line) {
    this.#line = line;
    line.begin({
      receive: (text) => this.#receive(text),
      lost: (code) => this.#lost(code),
    });
    for (const question of [...this.#questions.values()]) this.#send(question);
  }

  /** A socket has ended: the next is sought, unless that was for good. */
  #lost(code) {
    this.#line = null;
    this.attached.clear();
    for (const question of this.#questions.values()) question.sent = false;
    if (Object.hasOwn(FINAL, code)) this.#giveUp(new SessionEnded(FINAL[code], code));
    if (this.#error) return;
    this.#set(this.#notBefore > now() ? "draining" : "resuming");
    this.#reopen();
  }

  /** A new socket, sought with pauses that grow and vary, so that not all come at once. */
  async #reopen() {
    this.#lostAt ||= now();
    for (;;) {
      const drained = Math.max(this.#notBefore - now(), 0);
      await this.#rest(drained + jittered(this.#pause));
      if (this.#error) return;
      this.#pause = Math.min(2 * this.#pause, this.#patience.backoffMax);
      if (now() - this.#lostAt > this.#patience.away + drained) {
        const sentence = `The house at ${this.url} has been away for too long.`;
        this.#giveUp(new HouseUnreachable(sentence));
        return;
      }
      try {
        const line = await this.#open();
        if (this.#error) line.abort();
        else this.#resume(line);
        return;
      } catch (error) {
        if (!(error instanceof HouseUnreachable)) throw error;
        this.#failures += 1;
        if (this.#failures >= AWAY_AFTER) this.#set("away");
      }
    }
  }

  /** After a break: say hello, ask each table for what was missed, then all else again. */
  #resume(line) {
    const waiting = this.#questions;
    this.#questions = new Map();
    const hello = this.ask("session.hello", {}, { answered: () => this.#greeted() });
    hello.promise.catch(() => {});
    for (const follower of this.followers.values()) follower.attach();
    // Those that followers asked before are forgotten: they were asked again.
    for (const [id, question] of waiting) if (!question.takenIn) this.#questions.set(id, question);
    this.#use(line);
  }

  /** A house is there: the next time the line breaks, it is sought afresh. */
  #greeted() {
    this.#pause = this.#patience.backoff;
    this.#lostAt = this.#notBefore = this.#failures = 0;
    this.#set("connected");
  }

  #rest(wait) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.#hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The network, or whoever looks at this page, is back: see at once whether the house is, too. */
  #lookUp() {
    if (document.visibilityState === "hidden") return;
    if (this.#line) this.#line.probe();
    else if (this.#notBefore <= now()) this.#hurry?.();
  }

  #receive(text) {
    let frame = null;
    try {
      frame = JSON.parse(text);
    } catch {
      return; // what is no frame is passed over
    }
    if (typeof frame?.method === "string") this.#notified(frame.method, frame.params);
    else if (frame) this.#answered(frame);
  }

  #notified(method, params) {
    if (method === "session.drain") {
      const wait = Number(params?.reconnect_in_ms) || 0;
      this.#notBefore = now() + Math.min(wait, this.#patience.away);
      this.#set("draining");
    } else if (method === "events" && Array.isArray(params?.list)) {
      for (const one of params.list) this.#notified("event", one);
    } else if (typeof params === "object" && params !== null) {
      this.followers.get(params.table)?.notified(method, params);
    }
  }

  #answered({ id, result, error }) {
    const question = this.#questions.get(id);
    if (!question) return;
    if (error) {
      this.#refused(question, refusal(error));
      return;
    }
    this.#questions.delete(id);
    try {
      question.answered?.(result ?? {});
    } catch (fault) {
      const sentence = `The house answered ${question.method} with something else: ${fault.message}`;
      question.reject(new HouseUnreachable(sentence));
      return;
    }
    question.resolve(result ?? {});
  }

  /** What is refused for the moment is asked again, under the same id. */
  #refused(question, error) {
    question.attempts += 1;
    // An `expect` would fail again, and when a shuffle is over the table knows better.
    const stale = error.reason === "conflict" && "expect" in question.params;
    const again = error.temporary && !stale && !FOR_A_WHILE.has(error.reason);
    if (!again || question.attempts >= this.#patience.attempts) {
      this.#fail(question, error);
      return;
    }
    const wait = jittered(this.#patience.backoff * 2 ** question.attempts);
    question.sent = false;
    question.timer = setTimeout(() => {
      question.timer = null;
      this.#send(question);
    }, wait + (error.retryAfterMs ?? 0));
  }

  #fail(question, error) {
    this.forget(question);
    question.reject(error);
  }

  #giveUp(error) {
    if (this.#error) return;
    this.#error = error;
    globalThis.removeEventListener?.("online", this.#looksUp);
    if (onPage) document.removeEventListener("visibilitychange", this.#looksUp);
    for (const follower of [...this.followers.values()]) follower.end(error);
    this.followers.clear();
    for (const question of [...this.#questions.values()]) {
      question.promise.catch(() => {});
      this.#fail(question, error);
    }
    this.#hurry?.();
    this.#set("away");
  }

  #set(state) {
    if (this.status.state === state && this.status.error === this.#error) return;
    this.status = { state, since: Date.now(), error: this.#error };
    this.news.tell("connection", this.status);
  }
}

/** The refusal that a JSON-RPC error object stands for. */
function refusal({ code = 0, message = "The house refused.", data }) {
  const known = { reason: "refused", temporary: false, ...data };
  if (code < 0) {
    const unwell = code === -32603;
    Object.assign(known, { reason: unwell ? "unavailable" : "bad_request", temporary: unwell });
  }
  return new Refused(message, { code, ...known });
}

/** A socket that is open; HouseUnreachable if it cannot be had. */
function openLine(url, Socket, patience) {
  return new Promise((resolve, reject) => {
    let socket = null;
    try {
      socket = new Socket(url, "dealer.v1");
    } catch (error) {
      reject(new HouseUnreachable(`${url} is no address of a house: ${error.message}`));
      return;
    }
    const fail = () => {
      clearTimeout(timer);
      letGo(socket);
      reject(new HouseUnreachable(`The house at ${url} does not answer.`));
    };
    const timer = setTimeout(fail, patience.open);
    socket.onclose = socket.onerror = fail;
    socket.onopen = () => {
      clearTimeout(timer);
      resolve(new Line(socket, patience));
    };
  });
}

/** Have no more to do with a socket; one whose other end is gone may take minutes to close. */
function letGo(socket) {
  socket.onopen = socket.onmessage = socket.onclose = null;
  socket.onerror = () => {};
  socket.close();
}

/** One socket, which is given up as soon as nobody seems to be at its other end. */
class Line {
  #socket;
  #patience;
  #timer = null;
  #lost = () => {};

  constructor(socket, patience) {
    this.#socket = socket;
    this.#patience = patience;
    // Of two that come in one go with the opening, none may be missed.
    this.early = [];
    socket.onmessage = ({ data }) => this.early.push(data);
    socket.onclose = ({ code }) => { this.ended = code; };
  }

  begin({ receive, lost }) {
    const socket = this.#socket;
    this.#lost = lost;
    socket.onmessage = ({ data }) => {
      this.#heard();
      receive(data);
    };
    socket.onclose = ({ code }) => this.#end(code || CUT_OFF);
    socket.onerror = () => {}; // what follows is its close
    this.#heard();
    for (const data of this.early.splice(0)) receive(data);
    if (this.ended) queueMicrotask(() => this.#end(this.ended));
  }

  send(text) {
    if (this.#socket.readyState === 1) this.#socket.send(text);
  }

  /** Ask whether anybody is there; without an answer in time nobody is. */
  probe() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.abort(), this.#patience.answer);
    this.send('{"jsonrpc":"2.0","id":"ping","method":"ping","params":{}}');
  }

  abort() {
    letGo(this.#socket);
    this.#end(CUT_OFF);
  }

  /** Say goodbye, but do not wait long for an answer. */
  close() {
    return new Promise((resolve) => {
      const late = setTimeout(() => this.abort(), 1000);
      this.#lost = () => {
        clearTimeout(late);
        resolve();
      };
      this.#socket.close(1000);
    });
  }

  #heard() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.probe(), this.#patience.silence);
  }

  #end(code) {
    clearTimeout(this.#timer);
    const lost = this.#lost;
    this.#lost = () => {};
    lost(code);
  }
}

const now = () => performance.now();

/** Any time up to so many milliseconds, so that not all who wait come back at once. */
const jittered = (wait) => wait * Math.random();

/** An id that nobody guesses; `crypto.randomUUID` is not there on a page over plain http. */
const randomId = () => hex(crypto.getRandomValues(new Uint8Array(16)));


// ————————————————————————————————————————— stores, keys —————————————————————————————————————————
//
// Under `dealer/<table>/`:
//
//     seat                      token, host_token, invite, seat, since, key … as far as known
//     nonce/<sitting>/<digest>  { value, under }: r before its digest goes, the root before r goes
//     nonce/<sitting>           the digest of that which was kept last
//     drawn/<r>                 the sitting that r was drawn for: no r is drawn twice
//     heads                     the newest signed heads that were checked, each { size, note, edge }
//     evidence                  what was kept when the house was caught
//     player                    the Ed25519 key, a JWK, that this player cosigns with at the table

const HEADS_MAX = 64;

class TableStore {
  #store;
  #path;

  constructor(table, store) {
    this.#store = store;
    this.#path = `dealer/${table}/`;
    this.reload();
  }

  reload() {
    this.facts = this.#read("seat") ?? {};
    this.heads = this.#read("heads") ?? [];
    this.evidence = this.#read("evidence") ?? [];
  }

  learn(facts) {
    if (Object.entries(facts).every(([name, value]) => this.facts[name] === value)) return;
    Object.assign(this.facts, facts);
    this.#write("seat", this.facts);
  }

  /**
   * { value, under } in hex, `under` empty before r was shown; null if there is none. Without a
   * digest, of what was kept last: two pages of one browser may both have drawn bytes at once, and
   * those that the log promises are not to be lost for it.
   */
  nonce(sitting, digest = this.#read(`nonce/${nameOf(sitting)}`)) {
    return this.#read(`nonce/${nameOf(sitting)}/${digest}`);
  }

  /** Note that r is drawn; throws SetupError if it was before, whatever for. */
  claimNonce(sitting, value) {
    if (this.#read(`drawn/${value}`) !== null) {
      throw new SetupError("This machine's source of random bytes gave the same 32 bytes twice, " +
        "so others could know them: play from another machine.");
    }
    this.#write(`drawn/${value}`, nameOf(sitting));
  }

  keepNonce(sitting, digest, nonce) {
    this.#write(`nonce/${nameOf(sitting)}/${digest}`, nonce);
    this.#write(`nonce/${nameOf(sitting)}`, digest);
  }

  keepHead(head) {
    this.heads = [...this.heads, head].slice(-HEADS_MAX);
    this.#write("heads", this.heads);
  }

  /** Where there is no room for all of it, without the leaves: the notes are what counts. */
  keepEvidence(evidence) {
    this.evidence.push(evidence);
    try {
      this.#write("evidence", this.evidence);
    } catch {
      this.#write("evidence", this.evidence.map((one) => ({ ...one, leaves: [] })));
    }
  }

  #read(name) {
    const text = this.#store.get(this.#path + name);
    try {
      return text == null ? null : JSON.parse(text);
    } catch {
      throw new SetupError(`What this client keeps under ${this.#path}${name} is damaged.`);
    }
  }

  #write(name, value) {
    try {
      this.#store.set(this.#path + name, JSON.stringify(value));
    } catch (error) {
      throw new SetupError(`What this client must not lose cannot be kept: ${error.message}`);
    }
  }
}

export function memoryStore() {
  const kept = new Map();
  return { get: (key) => kept.get(key) ?? null, set: (key, value) => void kept.set(key, value) };
}

export function browserStore() {
  const { localStorage } = globalThis;
  return {
    get: (key) => localStorage.getItem(key),
    set: (key, value) => localStorage.setItem(key, value),
  };
}

export async function fileStore(folder) {
  const { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } = await import("node:fs");
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

export async function playerKey(store, { table = null, draw = true } = {}) {
  if (!globalThis.crypto?.subtle) return null;
  const { subtle } = globalThis.crypto;
  const path = table === null ? "dealer/player" : `dealer/${table}/player`;
  try {
    let kept = store.get(path);
    if (!kept && !draw) return null;
    const fresh = kept ? null : JSON.stringify(await freshKey(subtle));
    kept ||= store.get(path); // another page of this browser may have drawn one meanwhile
    if (!kept) store.set(path, fresh);
    const jwk = JSON.parse(kept || fresh);
    const secret = await subtle.importKey("jwk", jwk, "Ed25519", false, ["sign"]);
    const letters = atob(jwk.x.replaceAll("-", "+").replaceAll("_", "/"));
    return {
      key: hex(Uint8Array.from(letters, (letter) => letter.charCodeAt(0))),
      sign: async (message) => new Uint8Array(await subtle.sign("Ed25519", secret, message)),
    };
  } catch (error) {
    if (error.name === "NotSupportedError") return null;
    throw new SetupError(`The player's key cannot be used: ${error.message}`);
  }
}

async function freshKey(subtle) {
  const pair = await subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const { kty, crv, d, x } = await subtle.exportKey("jwk", pair.privateKey);
  return { kty, crv, d, x };
}


// ———————————————————————————————————————————— errors ————————————————————————————————————————————

export class DealerError extends Error {
  get name() {
    return this.constructor.name;
  }
}

export class Refused extends DealerError {
  constructor(sentence, { reason, code, temporary, retry_after_ms }) {
    super(sentence);
    Object.assign(this, { reason, code, temporary, retryAfterMs: retry_after_ms ?? null });
  }
}

export class HouseCheated extends DealerError {
  constructor(sentence, { check = "moves", notes = [], evidence = null } = {}) {
    super(sentence);
    Object.assign(this, { check, notes, evidence });
  }
}

export class HouseUnreachable extends DealerError {}

export class SessionEnded extends DealerError {
  constructor(sentence, code) {
    super(sentence);
    this.code = code;
  }
}

export class SetupError extends DealerError {}
