/**
 * A player at the other end of the wire, who believes nothing that can be checked.
 *
 *     import { connect, browserStore } from "./client.js";
 *
 *     const house = await connect("wss://cards.example/ws", { name: "Ada", store: browserStore() });
 *     const table = await house.join(await house.open({ deck: "52" }));
 *     await table.roundOpen();
 *     await table.shuffle();
 *     console.log(await table.draw(2), table.hand, table.deckCount);
 *     await house.close();
 *
 * The connection is built again when it breaks, and every wish is carried out once. The client
 * brings its own random bytes to each shuffle, keeps its own tree of the log, and checks each card
 * against what was sealed before the deal; HouseCheated says when the house did not play fair.
 * CLIENT.md beside this file is the long version. All times are milliseconds.
 */

// ——————————————————————————————————————————— the way in ———————————————————————————————————————————

/**
 * The house at `url`, "ws://…/ws" or "wss://…/ws"; on a page, its own house if none is named.
 * Rejects with HouseUnreachable if nobody answers there as a house would.
 */
export function connect(url?: string | URL | null, options?: ConnectOptions): Promise<House>;

export interface ConnectOptions {
  /** Who sits down when `join` is told no other name; "Guest" without it. */
  name?: string;
  /** Where tokens, random bytes and signed heads are kept; `memoryStore()` without it. */
  store?: Store;
  /**
   * The key that cosigns heads that were checked. `true`, the default: one of this player's own for
   * each table, drawn at `join` and kept in the store; none where there is no WebCrypto with
   * Ed25519. `false`: none.
   */
  cosigner?: Cosigner | boolean | null;
  patience?: Partial<Patience>;
  /** The class of sockets; `globalThis.WebSocket` without it (browsers, node 22 and later). */
  WebSocket?: unknown;
}

/** How long the client waits for what, in milliseconds, and how often it asks again. */
export interface Patience {
  /** For a socket; 10,000. */
  open: number;
  /** Without a frame, before it asks whether anybody is there; 20,000. */
  silence: number;
  /** To that; then the socket is given up; 10,000. */
  answer: number;
  /** Before the first new attempt, doubled each time, with jitter; 200. */
  backoff: number;
  /** 10,000. */
  backoffMax: number;
  /** Without any house, before it is given up: 300,000, and on a page for ever (Infinity). */
  away: number;
  /** For one question that is refused for the moment; 8. */
  attempts: number;
}

/** A connection to a house; it is built again by itself when it breaks. */
export interface House {
  readonly url: string;
  readonly connection: ConnectionStatus;
  /** The public key, 64 hex digits, of a cosigner that was given; else see the table's. */
  readonly cosigner: string | null;

  /** Open a table, as its host; `join` it to play, too. */
  open(options?: OpenOptions): Promise<RemoteTable>;
  /**
   * Sit down at a table, or come back to the seat that the store remembers. A table that this
   * house already follows (`watch`, `open`) stays the same object. Rejects with HouseCheated at a
   * table that was left because of that.
   */
  join(table: string | RemoteTable, options?: JoinOptions): Promise<RemoteTable>;
  /** Look on without a seat. */
  watch(table: string, options?: { key?: string }): Promise<RemoteTable>;
  /**
   * Come in as whom the store remembers: to one's seat, as host, or else to watch. What a page
   * does when it is opened; `join` then takes a seat.
   */
  enter(table: string, options?: { key?: string }): Promise<RemoteTable>;
  /** What the store remembers of a table. */
  kept(table: string): { seat: number | null; host: boolean; invite: string | null };
  /** The tables that the house lists for everybody. */
  tables(): Promise<ListedTable[]>;
  /** Hang up. Seats are kept: one comes back with `join` or `enter` and the same store. */
  close(): Promise<void>;
  /** Call back at each change of `connection`; gives what ends that. */
  on(kind: "connection", callback: (status: ConnectionStatus) => void): () => void;
}

export interface ConnectionStatus {
  /**
   * connecting  no house has answered yet
   * connected   (a table: and all that it was missing has come)
   * resuming    the line broke, or a table is fetching what it missed; nothing is lost
   * draining    the house said that it is about to stop, and when to come back
   * away        the house has not answered several attempts; more follow, unless `error` is there
   */
  readonly state: "connecting" | "connected" | "resuming" | "draining" | "away";
  /** Since when, in milliseconds since 1970. */
  readonly since: number;
  /** Why it is over for good; null while it is not. */
  readonly error: DealerError | null;
}

export interface OpenOptions {
  deck?: Deck;
  seats?: number;
  rules?: Rules;
  /** The table's. */
  name?: string;
}

export interface JoinOptions {
  name?: string;
  /** The lowest free one without it. */
  seat?: number;
  invite?: string;
  /** The table's key, 64 hex digits, if it is known from elsewhere; else the first is trusted. */
  key?: string;
}

/** "52", "54" (with two jokers), codes, or several decks as one. */
export type Deck =
  | "52"
  | "54"
  | readonly string[]
  | { decks?: number; jokers?: number; cards?: readonly string[] };

/** Who may do what. A preset says it for each action; a member of an action's name overrides it. */
export interface Rules extends Partial<Record<Action, Who>> {
  preset?: "free" | "dealer" | "shared";
  join?: "anyone" | "invite";
  watch?: "anyone" | "nobody";
  entropy?: "players" | "house";
  deck?: Deck;
  seats?: number;
  name?: string;
  /** Who may move the cards of another's hand onto a stack; "nobody" at a table opened without. */
  collect?: Who;
  [other: string]: unknown;
}

export type Action =
  | "open" | "close" | "shuffle" | "deal" | "collect"
  | "draw" | "burn" | "cut" | "pile" | "turn"
  | "discard" | "play" | "give" | "show" | "return";

/** `players` are the host and every seated player. */
export type Who = "host" | "players" | "nobody";

/** A line of the house's list; other members may stand beside these. */
export interface ListedTable {
  table: string;
  [other: string]: unknown;
}

// ———————————————————————————————————————————— a table ————————————————————————————————————————————

/**
 * One table, kept up to date and checked. Properties tell how it stands now. If the house cheats,
 * HouseCheated ends each wait, wish and iterator, and `evidence` is kept.
 */
export interface RemoteTable {
  /** 32 hex digits. */
  readonly id: string;
  readonly version: number;
  /** This client's seat; null for a host without one, and for who only watches. */
  readonly seat: number | null;
  /** Whether this client opened the table. */
  readonly host: boolean;
  /** Who sits where: names by seat, in order of seats. */
  readonly seats: Map<number, string>;
  /** The number of the open round. */
  readonly round: number | null;
  readonly shuffling: boolean;
  /** Codes of one's own cards, in the order in which they came. */
  readonly hand: string[];
  readonly deckCount: number;
  /** Codes of each pile's cards, bottom first, by the pile's name (`discard`, `burn`, …). */
  readonly piles: Map<string, string[]>;
  readonly closed: boolean;
  /** The key that this table's heads are signed with, 64 hex digits. */
  readonly key: string | null;
  /** Signed heads that were checked, oldest first: what a verifier takes as `saved`. */
  readonly checkpoints: string[];
  /** The public key that this client cosigns with here, 64 hex digits; null where it does not. */
  readonly cosigner: string | null;
  /** Size of the newest checkpoint whose cosignature the house took from this client; 0 of none. */
  readonly cosigned: number;
  /** What was kept when the house was caught; null as long as all is well. */
  readonly evidence: Evidence | null;
  /** What lets others join, where the rules ask for it; known to who opened the table. */
  readonly invite: string | null;
  /** What only this player can know, and nobody can prove: sentences. */
  readonly doubts: string[];
  /** Why it is over: HouseCheated, SessionEnded, … or that one has left; null while it is not. */
  readonly error: DealerError | null;

  /** Codes of a stack's cards, bottom first, `??` where this viewer may not know. */
  stack(name: string): string[];
  /** The whole table as far as this viewer may know it. Not to be changed; a new one each version. */
  readonly state: TableState;
  /** What this client itself has seen happen, oldest first; it begins where this client began. */
  readonly history: readonly Happened[];

  /** The line and this table on it: `connected` only when nothing is missing. */
  readonly connection: ConnectionStatus;
  /** Who is here, by seat, as far as the house tells; empty if it does not. */
  readonly presence: Map<number, Presence>;
  /** How many look on without a seat; null if the house does not say. */
  readonly watching: number | null;
  /** What this client itself checked of the current, or else the last, shuffle and round. */
  readonly checks: Check[];

  /**
   * What happens from now on: `for await (const { version, type, public } of table.events())`. It
   * ends with the table, or when one has left it, and throws what ended it otherwise.
   */
  events(): AsyncIterableIterator<Happened>;

  /** Call back whenever that happens; gives what ends it. */
  on<Kind extends keyof TableNews>(kind: Kind, callback: (news: TableNews[Kind]) => void): () => void;
  /** Wait until `predicate(table)` holds; it is looked at after every change. */
  until(predicate: (table: RemoteTable) => unknown): Promise<RemoteTable>;
  /** Wait until no shuffle is running. */
  sealed(): Promise<void>;

  // Everything a player or a host can wish for. Each resolves when this client has seen what came
  // of the wish, and rejects with Refused, whose message says why, when the house does not grant
  // it. Piles are named without `pile:`. A wish that meets a shuffle waits for its seal.

  /**
   * Open a round with a fresh deck (the table's, unless one is named); its number. If it takes
   * other bytes than those of `entropy`, that is one of the `doubts`.
   */
  roundOpen(options?: {
    deck?: Deck;
    entropy?: "players" | "house";
    commitMs?: number;
    revealMs?: number;
  }): Promise<number>;
  /** Close the round; the house shows its secret, and this client checks all it saw. */
  roundClose(): Promise<void>;
  /** Shuffle the deck or a pile and wait for the seal, unless not wanted; the shuffle's k. */
  shuffle(options?: {
    pile?: string;
    algorithm?: "backward" | "forward";
    steps?: number;
    wait?: boolean;
  }): Promise<number>;
  /** Deal `each` cards, one at a time, to these seats or to all; how many were dealt. */
  deal(each?: number, options?: { seats?: readonly number[] }): Promise<number>;
  /** Draw from the deck into one's hand; the codes. */
  draw(count?: number, options?: { end?: End }): Promise<string[]>;
  burn(count?: number): Promise<void>;
  /** Bring the cards from place `at` on to the bottom. */
  cut(at: number): Promise<void>;
  /** Put cards back into the deck, from one's hand or from `pile:<name>`. */
  return(
    cards?: Cards | null,
    options?: { count?: number; source?: string; where?: Where },
  ): Promise<void>;
  /** Face down onto `discard`, unless said otherwise. */
  discard(cards: Cards, options?: { pile?: string; face?: Face }): Promise<void>;
  /** Face up onto `table`, unless said otherwise. */
  play(cards: Cards, options?: { pile?: string; face?: Face }): Promise<void>;
  /** Give cards of one's hand to the seat `to`. */
  give(cards: Cards, options: { to: number }): Promise<void>;
  /** Show cards of one's hand to all, or to the seat `to` alone. */
  show(cards: Cards, options?: { to?: number }): Promise<void>;
  /** Put cards of one's hand back into the deck. */
  handReturn(cards: Cards, options?: { where?: Where }): Promise<void>;
  /** Draw from a pile, from an end or cards that are named; the codes. */
  pileDraw(pile: string, count?: number | null, options?: { end?: End; cards?: Cards }): Promise<string[]>;
  /** Move cards from any stack to another: `deck`, `hand`, `hand:<seat>`, or a pile's name. */
  pileMove(
    source: string,
    options: { to: string; cards?: Cards; count?: number; where?: Where; face?: Face },
  ): Promise<void>;
  /** Turn up the top card of a pile, or those that are named. */
  pileTurn(pile: string, cards?: Cards | null): Promise<void>;
  /** Close the table for good, and with it an open round. */
  close(): Promise<void>;
  /** Give up one's seat; the cards of its hand stay where they are. The host stays host. */
  leave(): Promise<void>;
  /** Where the whole log can be fetched for a verifier: a path, and how long the log is. */
  bundle(): Promise<{ url: string; version: number }>;
  /** Sign a head, one of `checkpoints`, with this player's key; its size. */
  cosign(note: string): Promise<number>;
  /** Any other method of the wire that changes something, under a `cmd` of its own; its result. */
  change(method: string, params?: Record<string, unknown>): Promise<Record<string, any>>;
}

/** A card that one sees, by its code; any card, by its slot. One needs no list around it. */
export type Cards = string | number | readonly (string | number)[];
export type End = "top" | "bottom" | "random";
export type Face = "up" | "down";
/** An end of a stack, or a place in it counted from 0, the bottom. */
export type Where = "top" | "bottom" | number;

/** What `on` calls back with, by kind. */
export interface TableNews {
  /** One event, after it was checked and `state` has it. */
  event: Happened;
  /** `state` is another: after each event, and after a snapshot that stands in for many. */
  changed: RemoteTable;
  connection: ConnectionStatus;
  checked: Check[];
  /** Once, and nothing after it: the table was left, `evidence` is kept. */
  cheated: HouseCheated;
  /** A sentence was added to `doubts`. */
  doubted: string;
  presence: Map<number, Presence>;
  /** Nothing more comes: the table was closed or left (null), or what ended it. */
  ended: DealerError | null;
}

export interface Presence {
  readonly here: boolean;
  /** Since when, in milliseconds since 1970; null if the house does not know. */
  readonly since: number | null;
}

/**
 * One thing that this client checks by itself:
 *
 * entropy     our own random bytes are in the shuffle (`done` of `of` shuffles of this round);
 *             unavailable: we have no seat, or the round takes only the house's bytes
 * commitment  C1: the house signed all players' promises before any of them was opened
 * seal        each place of the shuffled stack was sealed before a card of it was dealt
 * cards       each card shown to us opens the seal of its slot (`done` of them)
 * roots       each head is the root of our own tree of the log (`done` of them)
 * signatures  each head is signed with this table's key (`done` of them); unavailable: there is no
 *             WebCrypto on a page that came over plain http
 * moves       each event is one that can follow those before it (`done` of them)
 * round       the closed round, made again with the house's secret: commitment, swaps, seals, cards
 */
export interface Check {
  readonly name:
    | "entropy" | "commitment" | "seal" | "cards" | "roots" | "signatures" | "moves" | "round";
  readonly state: "yes" | "waiting" | "no" | "unavailable";
  /** How often it held. */
  readonly done: number;
  /** How often it could have, where that is known. */
  readonly of: number | null;
  /** With "no": what did not hold. Also with "unavailable": why. */
  readonly sentence: string | null;
}

// ———————————————————————————————————————————— the state ————————————————————————————————————————————

export interface TableState {
  readonly version: number;
  /** Time of the last event, in milliseconds since 1970. */
  readonly at: number;
  /** `<house>/t/<table>` */
  readonly origin: string;
  /** The table's, as its rules have it; null if it has none. */
  readonly name: string | null;
  /** The rules as they were given, word for word. */
  readonly rules: Rules;
  /** Who may do each action, presets filled in. */
  readonly who: Readonly<Record<Action, Who>>;
  /** How many may sit. */
  readonly seatsMax: number;
  /** Whether a seat is only for who holds the invitation. */
  readonly invited: boolean;
  /** Whether somebody without a seat may watch. */
  readonly watched: boolean;
  readonly closed: boolean;
  /** How many rounds were opened so far. */
  readonly rounds: number;
  /** In order of seats. */
  readonly seats: readonly Seat[];
  /** The open one. */
  readonly round: RoundState | null;
}

export interface Seat {
  readonly seat: number;
  readonly name: string;
  /** The player's own key, 64 hex digits. */
  readonly key: string | null;
  /** The version at which they sat down. */
  readonly since: number;
}

export interface RoundState {
  readonly number: number;
  /** The codes of its deck, as it began, bottom first. */
  readonly deck: readonly string[];
  readonly entropy: "players" | "house";
  readonly commitMs: number;
  readonly revealMs: number;
  /** To the house's secret, 64 hex digits. */
  readonly commitment: string;
  /** Of the shuffle that runs or comes next; so many were sealed or voided before. */
  readonly k: number;
  /** How many of these were voided since this client came; seats then `withheld`. */
  readonly voided: number;
  /** By name, `deck`, `hand:<seat>`, `pile:<name>`; bottom first. */
  readonly stacks: Readonly<Record<string, readonly Card[]>>;
  /** Seats whose bytes for the next shuffle are promised. */
  readonly ahead: readonly number[];
  /** Seats that bring no bytes for the rest of the round. */
  readonly withheld: readonly number[];
  /** The one that runs. */
  readonly shuffle: ShuffleState | null;
}

export interface Card {
  /** The same number for the same card until its stack is sealed anew: its slot, or −1 − place. */
  readonly id: number;
  /** null before the first seal: then nothing can be drawn, moved or shown. */
  readonly slot: number | null;
  /** Its code, if this viewer may know it. */
  readonly card: string | null;
  /** Whether everybody may know it: it lies face up. */
  readonly shown: boolean;
  /** Whether a shuffle has reached it, so that it may come into a hand. */
  readonly drawable: boolean;
}

export interface ShuffleState {
  readonly k: number;
  readonly stack: string;
  readonly n: number;
  readonly algorithm: "backward" | "forward";
  /** How many swaps it has, and how many of them have come. */
  readonly steps: number;
  readonly swaps: number;
  readonly startedAt: number;
  /** When and at which version promises were closed; null while they are awaited. */
  readonly closedAt: number | null;
  readonly closedVersion: number | null;
  /** Seats whose promise counts, and those of them whose bytes are there. */
  readonly promised: readonly number[];
  readonly revealed: readonly number[];
}

// ———————————————————————————————————————————— what happens ————————————————————————————————————————————

/** One event as this viewer saw it. */
export type Happened = { [Type in keyof Events]: HappenedOf<Type> }[keyof Events];

export interface HappenedOf<Type extends keyof Events> {
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly type: Type;
  /** What everybody sees of it, as the log has it. */
  readonly public: Readonly<Events[Type]>;
  /** The code of the card that was drawn, moved, shown or peeked at, if this viewer may know it. */
  readonly card: string | null;
  /** Whether it happens now, and is not told afterwards. */
  readonly live: boolean;
}

/** The public part of each type of event. Digests, nonces and salts are 64 hex digits. */
export interface Events {
  TableOpened: { protocol: string; origin: string; key: string; rules: Rules };
  SeatTaken: { seat: number; name: string; key?: string };
  SeatLeft: { seat: number };
  RoundOpened: {
    round: number; deck: string[]; entropy: "players" | "house";
    commit_ms: number; reveal_ms: number; commitment: string;
  };
  ShuffleStarted: {
    round: number; k: number; stack: string; n: number;
    algorithm: "backward" | "forward"; steps: number;
  };
  EntropyCommitted: { round: number; k: number; seat: number; digest: string };
  EntropyClosed: { round: number; k: number };
  ShuffleVoided: { round: number; k: number };
  EntropyRevealed: { round: number; k: number; seat: number; nonce: string };
  CardsSwapped: { round: number; k: number; step: number; i: number };
  DeckSealed: { round: number; k: number; first: number; slots: string[] };
  CardDrawn: { round: number; seat: number; from: string; slot: number };
  CardMoved: { round: number; slot: number; from: string; to: string; place: number };
  CardShown: { round: number; slot: number; card: string; salt: string };
  CardPeeked: { round: number; slot: number; seat: number };
  StackCut: { round: number; stack: string; at: number };
  RoundClosed: { round: number; secret: string };
  TableClosed: Record<string, never>;
}

// ————————————————————————————————————————————— errors —————————————————————————————————————————————

/** Anything this client throws on purpose; `message` is a sentence that a person can act on. */
export class DealerError extends Error {}

/** A wish that the house does not grant; nothing was changed. */
export class Refused extends DealerError {
  /** One word for machines: `not_entitled`, `deck_empty`, `card_not_in_hand`, … */
  readonly reason: string;
  /** The JSON-RPC error code. */
  readonly code: number;
  readonly temporary: boolean;
  /** With `rate_limited`. */
  readonly retryAfterMs: number | null;
}

/** The house told this client two things that cannot both be true. The table was left for good. */
export class HouseCheated extends DealerError {
  /** Null where it was found before anything of the table was known. */
  readonly evidence: Evidence | null;
  /** Which of `checks` did not hold. */
  readonly check: Check["name"];
}

/** The house does not answer at its address, or the connection to it does not hold. */
export class HouseUnreachable extends DealerError {}

/** The house closed the connection with a code (4401, 4403, 4408, 4409, 1009) that is final. */
export class SessionEnded extends DealerError {
  readonly code: number;
}

/** An address, a key or a store that this client cannot work with. */
export class SetupError extends DealerError {}

/** What contradicts what: signed heads and the frames that do not fit them. Plain JSON. */
export interface Evidence {
  table: string;
  /** 64 hex digits; empty if none was known. */
  key: string;
  sentence: string;
  version: number;
  /** C2SP signed notes. */
  notes: string[];
  frames: unknown[];
  /** Leaves of the open round, or what was seen of it, as they came. */
  leaves: string[];
}

// ————————————————————————————————————————— stores and keys —————————————————————————————————————————

/**
 * Texts by key, kept when `set` returns. Keys are `dealer/<table>/…` and `dealer/player`. What is
 * kept opens one's seat: it belongs to nobody else.
 */
export interface Store {
  get(key: string): string | null | undefined;
  set(key: string, value: string): void;
}

/** Forgets everything with the page or the process. */
export function memoryStore(): Store;
/** The browser's localStorage: outlives a reload; one store for each origin. */
export function browserStore(): Store;
/** A folder of small files that nobody else can read; on node alone. */
export function fileStore(folder: string): Promise<Store>;

/** An Ed25519 key that cosigns. */
export interface Cosigner {
  /** 64 hex digits. */
  readonly key: string;
  /** The signature of a message, 64 bytes. */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

/**
 * A player's own key in a store: the one for a `table`, or one for all. It is drawn if there is none,
 * unless `draw` is false; null without one, and where there is no WebCrypto with Ed25519.
 */
export function playerKey(
  store: Store,
  options?: { table?: string | null; draw?: boolean },
): Promise<Cosigner | null>;
