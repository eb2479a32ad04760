/**
 * The JavaScript client of dealer: plays at a table of any server and verifies all that it is sent.
 *
 *     import { connect, browserStore } from "./client.js";
 *
 *     const store = browserStore();
 *     const house = await connect("wss://cards.example/ws", { name: "Ada", store });
 *     const table = await house.join(await house.open({ deck: "52" }));
 *     await table.roundOpen();
 *     await table.shuffle();
 *     console.log(await table.draw(2), table.hand, table.deckCount);
 *     await house.close();
 *
 * The client reconnects when the connection is lost, and every command is executed once. It adds
 * its own random bytes to each shuffle, keeps its own Merkle tree of the log, and checks each card
 * against its commitment from before the deal; it throws HouseCheated when a check fails. CLIENT.md
 * in the same folder says more. All times are milliseconds.
 */

/** The release that the client is of, such as "0.1.0". */
export const VERSION: string;

// ——————————————————————————————————————————— connecting ———————————————————————————————————————————

/**
 * Connect to the server at `url`, "ws://…/ws" or "wss://…/ws", also under a path; on a page, by
 * default, to `/ws` of the page's origin. Rejects with HouseUnreachable if there is no dealer server,
 * and with ConfigurationError if something else than a WebSocket is at the address.
 */
export function connect(url?: string | URL | null, options?: ConnectOptions): Promise<House>;

export interface ConnectOptions {
  /** The player's name, unless `join` is given another; default "Guest" and a number. */
  name?: string;
  /** Where tokens, random bytes and signed heads are stored; default `memoryStore()`. */
  store?: Store;
  /**
   * The key that cosigns verified checkpoints. `true`, the default: a key of its own for each
   * table, generated at `join` and stored; none without WebCrypto and its Ed25519. `false`: none.
   */
  cosigner?: Cosigner | boolean | null;
  retry?: Partial<RetryPolicy>;
  /**
   * The id of the table that will be joined or watched, if it is known: a load balancer then
   * connects to its node at once.
   */
  table?: string | null;
  /**
   * A service key, for a program that opens tables for others; every socket's first request has it.
   * Never in a page: its visitors could read the key. A key that is not valid, or that is revoked
   * later, ends the connection with SessionEnded and the code 4401.
   */
  key?: string | null;
  /** The WebSocket class; default `globalThis.WebSocket` (browsers, node 22 and later). */
  WebSocket?: any;
}

/** Timeouts and back-off, in milliseconds, and the number of attempts. */
export interface RetryPolicy {
  /** To open a socket; 10,000. */
  open: number;
  /** Without a frame, before a ping is sent; 20,000, and on a page 4,000. */
  silence: number;
  /** For an answer to the ping; then the socket is aborted; 10,000, and on a page 3,500. */
  answer: number;
  /** Before the first reconnect, doubled each time, with jitter; 200. */
  backoff: number;
  /** The longest back-off; 10,000. */
  backoffMax: number;
  /** Without a server, before the client gives up; 300,000, and on a page Infinity. */
  away: number;
  /** Of one request that is refused temporarily; 8. */
  attempts: number;
}

/** A connection to a server; it reconnects automatically. */
export interface House {
  readonly url: string;
  readonly connection: ConnectionStatus;
  /** The time of the server, in milliseconds since 1970; a device's own clock may be minutes off. */
  readonly serverTime: number;
  /** The public key, 64 hex digits, of the given cosigner; null if each table has its own. */
  readonly cosigner: string | null;

  /** Open a table as its host; to play as well, `join` it. */
  open(options?: OpenOptions): Promise<RemoteTable>;
  /**
   * Take a seat at a table, or return to the stored seat. For a table that this client already
   * follows (`watch`, `open`) it resolves with the same object. Rejects with HouseCheated if this
   * client has left the table because the server cheated.
   */
  join(table: string | RemoteTable, options?: JoinOptions): Promise<RemoteTable>;
  /** Follow a table as a spectator. */
  watch(table: string, options?: { key?: string }): Promise<RemoteTable>;
  /**
   * Watch what each player has seen, as late as the table's rule `broadcast` says; `link` is the
   * address `…/tables/<id>/broadcast#<secret>`. Rejects with the refusal `bad_token` for a link that
   * is not valid, and `too_early` before the broadcast has begun.
   */
  broadcast(link: string): Promise<RemoteTable>;
  /**
   * Follow a table with the stored tokens, as seat or host, or otherwise as a spectator. A page
   * calls this when it is loaded; `join` then takes a seat. `token` is that of a seat from another
   * device (`RemoteTable.token`), whose place this client takes.
   */
  enter(table: string, options?: { key?: string; token?: string }): Promise<RemoteTable>;
  /** What is stored about a table. */
  kept(table: string): { seat: number | null; host: boolean; invite: string | null };
  /** The open tables that the server lists publicly, or the closed ones. */
  tables(options?: { closed?: boolean }): Promise<ListedTable[]>;
  /** Close the connection. Seats are kept: return with `join` or `enter` and the same store. */
  close(): Promise<void>;
  /** Call back on each change of `connection`; returns a function that stops that. */
  on(kind: "connection", callback: (status: ConnectionStatus) => void): () => void;
}

export interface ConnectionStatus {
  /**
   * connecting  the server has not answered yet
   * connected   (of a table: and its missing events have come)
   * resuming    the connection was lost, or a table is fetching missing events; nothing is lost
   * draining    the server has disconnected this client to stop, at a time that it had announced
   * away        several attempts to reconnect have failed; more follow, unless `error` is set;
   *             also after `close`, which is not reported to `on`
   */
  readonly state: "connecting" | "connected" | "resuming" | "draining" | "away";
  /** Since when, in milliseconds since 1970. */
  readonly since: number;
  /** Why the connection has ended for good; null while it has not. */
  readonly error: DealerError | null;
}

export interface OpenOptions {
  deck?: Deck;
  seats?: number;
  rules?: Rules;
  /** The name of the table. */
  name?: string;
  /** A service's own id of the table: again it is the same table. Needs a service key. */
  ref?: string;
  /** False: no host token, so that this client acts by the rights of its service key alone. */
  host?: boolean;
  /** For a practice table: the closed round whose cards it has; without `deck`, `seats`, `rules`. */
  from?: PracticeFrom;
}

/** A moment of a closed round, from which a practice table plays on. */
export interface PracticeFrom {
  /** The id of a table that anyone may watch, or that this client has a token of. */
  table: string;
  round: number;
  /** Any version of the round. Default: after its first shuffle, with nothing dealt. */
  version?: number;
  /** Of a seat or the host of that table. Default: the stored one. */
  token?: string;
}

export interface JoinOptions {
  name?: string;
  /** Default: the lowest free one. */
  seat?: number;
  invite?: string;
  /** A ticket, from the server of your account: it gives the name and the right to a seat. */
  ticket?: string;
  /** A JWT of an issuer that the server trusts; it may give the name. */
  jwt?: string;
  /** The table's key, 64 hex digits, if it is known; otherwise the first one seen is trusted. */
  key?: string;
  /** Whether this player is a program, which the log and the pages then show. */
  bot?: boolean;
}

/** "52", "54" (with two jokers), codes, or several decks as one. */
export type Deck =
  | "52"
  | "54"
  | readonly string[]
  | { decks?: number; jokers?: number; cards?: readonly string[] };

/** Who may do what. The preset sets all actions; a member named like an action overrides it. */
export interface Rules extends Partial<Record<Action, Who>> {
  preset?: "free" | "dealer" | "shared";
  join?: "anyone" | "invite";
  watch?: "anyone" | "nobody";
  /** Seconds after which hands are shown by broadcast links; without it they never are. */
  broadcast?: number;
  entropy?: "players" | "house";
  deck?: Deck;
  seats?: number;
  name?: string;
  /** Whether the lobby may list the table; default true. */
  listed?: boolean;
  /** The name of the pack that pages draw the cards with. */
  pack?: string;
  /** Who may move the cards of other players' hands; default "nobody". */
  collect?: Who;
  [other: string]: unknown;
}

export type Action =
  | "open" | "close" | "shuffle" | "deal" | "collect"
  | "draw" | "burn" | "cut" | "pile" | "turn"
  | "discard" | "play" | "give" | "show" | "return" | "annotate"
  | "pass" | "take_back" | "move_seat";

/** `players` are the host and every seated player. */
export type Who = "host" | "players" | "nobody";

/** An entry of the server's list of tables; it may have other members. */
export interface ListedTable {
  table: string;
  name?: string | null;
  /** True for a practice table. */
  practice?: boolean;
  [other: string]: unknown;
}

// ———————————————————————————————————————————— a table ————————————————————————————————————————————

/**
 * One table, up to date and verified; the properties are its current state. If the server cheats,
 * all pending waits, commands and iterators end with HouseCheated, and `evidence` is stored.
 */
export interface RemoteTable {
  /** 32 hex digits. */
  readonly id: string;
  readonly version: number;
  /** This client's seat; null for a host without one, and for a spectator. */
  readonly seat: number | null;
  /** Whether this client is the host. */
  readonly host: boolean;
  /** The players' names by seat, in order of seats. */
  readonly seats: Map<number, string>;
  /** The number of the open round. */
  readonly round: number | null;
  readonly shuffling: boolean;
  /** Whether the deck can be drawn from: a shuffle has ended that reached all of its cards. */
  readonly shuffled: boolean;
  /** The codes of this player's cards, in the order in which they came. */
  readonly hand: string[];
  readonly deckCount: number;
  /** The codes of each pile's cards, bottom first, by the pile's name (`discard`, `burn`, …). */
  readonly piles: Map<string, string[]>;
  readonly closed: boolean;
  /** The key that this table's checkpoints are signed with, 64 hex digits. */
  readonly key: string | null;
  /** Verified checkpoints, oldest first: what a verifier takes as `saved`. */
  readonly checkpoints: string[];
  /** The public key that this client cosigns with here, 64 hex digits; null if it does not. */
  readonly cosigner: string | null;
  /** Size of the newest checkpoint whose cosignature the server has accepted; 0 if none. */
  readonly cosigned: number;
  /** The evidence that the server cheated; null if it has not. */
  readonly evidence: Evidence | null;
  /**
   * The secret token of this player's seat, for another device of the player; null without. Once it
   * was read, digests that come for the seat while this client is away are no doubt.
   */
  readonly token: string | null;
  /** The invitation that others need to join, if the rules require one; known to the host. */
  readonly invite: string | null;
  /** Suspicions that only this player can have, because they cannot be proved: sentences. */
  readonly doubts: string[];
  /**
   * Whether the server has insecure test decks, so that it may choose the cards. Such a table is for
   * tests: its rounds are not replayed, and the check `round` has failed from the beginning.
   */
  readonly insecure: boolean;
  /**
   * What a practice table was laid out from; null for another table. The cards of its first round are
   * no fair deal, which `doubts` say.
   */
  readonly practice: { table: string; round: number; version: number; root: string } | null;
  /** Why this session has ended: HouseCheated, SessionEnded, leaving, …; null while it has not. */
  readonly error: DealerError | null;

  /** The codes of a stack's cards, bottom first; `??` for cards that this viewer may not know. */
  stack(name: string): string[];
  /** The whole table as this viewer may know it: a new, read-only object for each version. */
  readonly state: TableState;
  /** The events, oldest first: all of the table's, or the newest where the server sends a snapshot. */
  readonly history: readonly TableEvent[];
  /** What the notes in `history` say about the turn, the dealer button, scores and so on. */
  readonly markers: Markers;

  /** The connection of this table: `connected` only when no event is missing. */
  readonly connection: ConnectionStatus;
  /** Whether each player is connected, by seat; empty if the server does not say. */
  readonly presence: Map<number, Presence>;
  /** The number of spectators; null if the server does not say. */
  readonly watching: number | null;
  /** The results of this client's checks of the current or the last shuffle and round. */
  readonly checks: Check[];

  /**
   * The events from now on: `for await (const { version, type, public } of table.events())`. The
   * iterator ends when the table is closed or left, and throws any other reason.
   */
  events(): AsyncIterableIterator<TableEvent>;

  /** Call back on notices of this kind; returns a function that stops that. */
  on<Kind extends keyof TableNotices>(
    kind: Kind,
    callback: (notice: TableNotices[Kind]) => void,
  ): () => void;
  /**
   * Wait until `predicate(table)` is true; it is evaluated now and after every change. A state
   * that has passed before the call is not noticed, so wait for what stays true, or read `events()`.
   * After `timeout` milliseconds it rejects with a DOMException named TimeoutError.
   */
  until(
    predicate: (table: RemoteTable) => unknown,
    options?: { timeout?: number },
  ): Promise<RemoteTable>;
  /** Wait until no shuffle is running. */
  sealed(): Promise<void>;

  // The commands of players and hosts. Each resolves when this client has seen its events, and
  // rejects with Refused, whose message is the reason, if the server refuses it. Piles are named
  // without `pile:`. A command that arrives during a shuffle waits for its seal.

  /**
   * Open a round with a fresh deck, by default the table's; resolves with its number. A round that
   * takes other random bytes than `entropy` is one of the `doubts`.
   */
  roundOpen(options?: {
    deck?: Deck;
    entropy?: "players" | "house";
    commitMs?: number;
    revealMs?: number;
  }): Promise<number>;
  /** Close the round: the house reveals its secret, and this client replays what it saw. */
  roundClose(): Promise<void>;
  /**
   * Shuffle the deck or a pile and, unless `wait` is false, wait for the seal; its shuffle index:
   * the number of the shuffle in its round, from 0.
   */
  shuffle(options?: {
    pile?: string;
    algorithm?: "backward" | "forward";
    steps?: number;
    wait?: boolean;
  }): Promise<number>;
  /**
   * Deal `each` cards, one at a time, to these seats or to all, and then `count` cards to each of
   * `piles`; the number of dealt cards.
   */
  deal(
    each?: number,
    options?: { seats?: readonly number[]; piles?: readonly DealtPile[] },
  ): Promise<number>;
  /** Draw from the deck into this player's hand; the codes. */
  draw(count?: number, options?: { end?: End }): Promise<string[]>;
  burn(count?: number): Promise<void>;
  /** Move the cards from index `at` on to the bottom. */
  cut(at: number): Promise<void>;
  /** Return cards to the deck, from this player's hand or from `pile:<name>`. */
  returnCards(
    cards?: Cards | null,
    options?: { count?: number; source?: string; where?: Where },
  ): Promise<void>;
  /** Put cards of the hand onto a pile; default: face down onto `discard`. */
  discard(cards: Cards, options?: { pile?: string; face?: Face }): Promise<void>;
  /** Put cards of the hand onto a pile; default: face up onto `table`. */
  play(cards: Cards, options?: { pile?: string; face?: Face }): Promise<void>;
  /**
   * Remove the player of a seat, as the host; `reason` has at most 256 bytes. Other players may do it
   * when that player has had no connection for two minutes.
   */
  vacate(seat: number, reason?: string): Promise<void>;
  /**
   * Move to the free seat `to`, with the same token, while no card is before this player and no
   * shuffle is running. With `seat`, as the host: ask the player of that seat to move there.
   */
  moveSeat(to: number, options?: { seat?: number }): Promise<void>;
  /**
   * Make the player of a seat the host, for as long as that player stays. A player may make themself
   * host when the host has had no connection for two minutes.
   */
  transferHost(seat: number): Promise<void>;
  /** Add a text of at most 2,048 bytes to the log, for everyone; `kind` is [a-z0-9._-]{1,64}. */
  note(kind: string, text: string): Promise<void>;
  /** Give cards of the hand to the seat `to`. */
  give(cards: Cards, options: { to: number }): Promise<void>;
  /**
   * Pass cards of the hand to the seat `to`: they wait face down, and are delivered together when
   * all seats with cards have passed. Without cards: deliver what was passed, if no seat is awaited
   * or this player is the host.
   */
  pass(cards?: Cards | null, options?: { to?: number }): Promise<void>;
  /** Take back this player's last move, or its pass, if it showed no card to anyone. */
  takeBack(): Promise<void>;
  /** Show cards of the hand, or `all` of them, to all, or only to the seat `to`. */
  show(cards: Cards | null, options?: { to?: number; all?: boolean }): Promise<void>;
  /** Draw from a pile, from one end, the given cards, or `all`; the codes. */
  pileDraw(
    pile: string,
    count?: number | null,
    options?: { end?: End; cards?: Cards; all?: boolean },
  ): Promise<string[]>;
  /**
   * Move cards from any stack to another: `deck`, `hand`, `hand:<seat>`, or a pile's name. `all`
   * cards of a stack keep their order.
   */
  move(
    source: string,
    options: {
      to: string; cards?: Cards; count?: number; where?: Where; face?: Face; all?: boolean;
    },
  ): Promise<void>;
  /** Turn up the top card of a pile, the given cards, or `all`. */
  pileTurn(pile: string, cards?: Cards | null, options?: { all?: boolean }): Promise<void>;
  /** Close the table permanently, and with it an open round. */
  close(): Promise<void>;
  /**
   * Leave the seat, where the cards of the hand stay, and the table. A client with the host token
   * stays at the table without a seat; call it again to leave. If other players are seated, one of
   * them becomes host.
   */
  leave(): Promise<void>;
  /**
   * The table at an earlier version, with the cards that this viewer could see then. It is as the
   * server reports it, and verified only as far as its cards were opened to this client; rejects with
   * Refused (`bad_request`) without such a version.
   */
  stateAt(version: number): Promise<TableState>;
  /**
   * The path of the table's broadcast, for its host or service: the same until `revokeBroadcast`.
   * Rejects with Refused (`bad_request`) at a table without the rule `broadcast`.
   */
  broadcastLink(): Promise<string>;
  /** Take back the link, which ends those who watch by it; whether there was one. */
  revokeBroadcast(): Promise<boolean>;
  /** The path of the table's bundle, for a verifier, and the current version. */
  bundle(): Promise<{ url: string; version: number }>;
  /** Cosign one of `checkpoints` with this player's key; its size. */
  cosign(note: string): Promise<number>;
  /** Call any other RPC method that changes something, with a new `cmd`; its result. */
  call(method: string, params?: Record<string, unknown>): Promise<Record<string, any>>;
}

/** A visible card by its code, any card by its slot; a single card or a list. */
export type Cards = string | number | readonly (string | number)[];
/** A pile that gets cards of a deal; face down unless `face` is "up". */
export interface DealtPile {
  name: string;
  count: number;
  face?: Face;
}
export type End = "top" | "bottom" | "random";
export type Face = "up" | "down";
/** An end of a stack, or an index in it from 0, the bottom. */
export type Where = "top" | "bottom" | number;

/** The arguments of the callbacks of `on`, by kind. */
export interface TableNotices {
  /** One event, after it was verified and applied to `state`. */
  event: TableEvent;
  /** `state` has changed: after events, and after a snapshot that replaces many of them. */
  changed: RemoteTable;
  connection: ConnectionStatus;
  checked: Check[];
  /** Once, as the last notice: the client has left the table, and `evidence` is stored. */
  cheated: HouseCheated;
  /** A sentence was added to `doubts`. */
  doubted: string;
  presence: Map<number, Presence>;
  /** There will be no more events: the table was closed or left (null), or there was an error. */
  ended: DealerError | null;
}

export interface Presence {
  readonly here: boolean;
  /** Since when, in milliseconds since 1970; null if the server does not know. */
  readonly since: number | null;
}

/**
 * The result of one check of this client:
 *
 * entropy     our own random bytes are in the shuffle (`done` of `of` shuffles of this round);
 *             unavailable: we have no seat, or the round takes only the house's bytes
 * commitment  the house signed all players' commitments before any nonce was revealed
 * seal        each card of the shuffled stack was sealed before one of them was dealt
 * cards       each card shown to us opens the commitment of its slot (`done` of them)
 * roots       each checkpoint has the root of our own Merkle tree of the log (`done` of them)
 * signatures  each checkpoint is signed with this table's key (`done` of them); unavailable: a page
 *             over plain http has no WebCrypto
 * moves       each event can follow the events before it (`done` of them)
 * round       the closed round, replayed with the house's secret: commitment, swaps, seals, cards
 */
export interface Check {
  readonly name:
    | "entropy" | "commitment" | "seal" | "cards" | "roots" | "signatures" | "moves" | "round";
  readonly state: "yes" | "waiting" | "no" | "unavailable";
  /** How often the check passed. */
  readonly done: number;
  /** How often it could have passed, if that is known. */
  readonly of: number | null;
  /** With "no" the failure, with "unavailable" the reason, with "yes" a remark or null. */
  readonly sentence: string | null;
  /** Which sentence that is, for programs that write it in other words; null for all others. */
  readonly because: "house_only" | "no_seat" | "other_client" | "not_seen" | "replayed_partly" | null;
}

// ———————————————————————————————————————————— the state ————————————————————————————————————————————

export interface TableState {
  readonly version: number;
  /** Time of the last event, in milliseconds since 1970. */
  readonly at: number;
  /** `<house>/t/<table>` */
  readonly origin: string;
  /** The key that its checkpoints are signed with, 64 hex digits. */
  readonly key: string | null;
  /** The table's name; null if it has none. */
  readonly name: string | null;
  /** The rules as they were given, with the name. */
  readonly rules: Rules;
  /** Who may do each action, with the preset filled in. */
  readonly who: Readonly<Record<Action, Who>>;
  /** The number of seats. */
  readonly seatsMax: number;
  /** Whether players need an invitation to take a seat. */
  readonly invited: boolean;
  /** Whether spectators may watch. */
  readonly watched: boolean;
  readonly closed: boolean;
  /** The number of rounds opened so far. */
  readonly rounds: number;
  /** In order of seats. */
  readonly seats: readonly Seat[];
  /** The seat of the player whom the host made host; null while it is who opened the table. */
  readonly hostSeat: number | null;
  /** The open round. */
  readonly round: RoundState | null;
  /**
   * The last round as it was when it was closed, with all its cards, until the next one opens. Null
   * if there is none, or if a snapshot has replaced its events.
   */
  readonly closedRound: RoundState | null;
}

/** The newest notes of the kinds that have a meaning in every game; null or empty without one. */
export interface Markers {
  /** The seat whose turn it is. */
  readonly turn: number | null;
  /** The seconds that a turn lasts, from the last note of the kind `turn` on; 0 for no clock. */
  readonly clock: number;
  readonly dealerButton: number | null;
  /** By seat. */
  readonly scores: ReadonlyMap<number, number>;
  /** By name. */
  readonly counters: ReadonlyMap<string, number>;
  /** The key of a phrase, and the seat that said it: 0 for the host or a service. */
  readonly phrase: { readonly seat: number; readonly text: string } | null;
  readonly reaction: { readonly seat: number; readonly text: string } | null;
}

export interface Seat {
  readonly seat: number;
  readonly name: string;
  /** The player's own key, 64 hex digits. */
  readonly key: string | null;
  /** The version at which the player took the seat. */
  readonly since: number;
  /** Whether it is a program, as its owner says. */
  readonly bot: boolean;
}

export interface RoundState {
  readonly number: number;
  /** The codes of its deck at the start, bottom first. */
  readonly deck: readonly string[];
  readonly entropy: "players" | "house";
  readonly commitMs: number;
  readonly revealMs: number;
  /** The commitment to the house's secret, 64 hex digits. */
  readonly commitment: string;
  /** The number of the running or the next shuffle, from 0; `k` in the log. */
  readonly shuffleIndex: number;
  /** How many shuffles were voided since this client joined. */
  readonly voided: number;
  /** Cards by stack (`deck`, `hand:<seat>`, `pile:<name>`), bottom first. */
  readonly stacks: Readonly<Record<string, readonly Card[]>>;
  /** Seats that have committed to bytes for the next shuffle. */
  readonly ahead: readonly number[];
  /** Seats that contribute no more bytes in this round, because they did not reveal their nonce. */
  readonly withheld: readonly number[];
  /** The running shuffle. */
  readonly shuffle: ShuffleState | null;
}

export interface Card {
  /** The card's number until its stack is sealed again: its slot, or before that −1 − index. */
  readonly id: number;
  /** null before the first seal: such a card cannot be drawn, moved or shown. */
  readonly slot: number | null;
  /** Its code; null if this viewer may not know it. */
  readonly card: string | null;
  /** Whether it is face up, so that everyone may know it. */
  readonly shown: boolean;
  /** Whether a shuffle has reached it, so that it may go into a hand. */
  readonly drawable: boolean;
}

export interface ShuffleState {
  /** The number of the shuffle in its round, from 0; `k` in the log. */
  readonly shuffleIndex: number;
  readonly stack: string;
  readonly n: number;
  readonly algorithm: "backward" | "forward";
  /** The number of its swaps, and how many of them have come. */
  readonly steps: number;
  readonly swaps: number;
  readonly startedAt: number;
  /** When, and at which version, commitments were closed; null before. */
  readonly closedAt: number | null;
  readonly closedVersion: number | null;
  /** Seats that have committed to bytes, and those of them that have revealed them. */
  readonly promised: readonly number[];
  readonly revealed: readonly number[];
}

// ————————————————————————————————————————————— events —————————————————————————————————————————————

/** One event as this viewer saw it. */
export type TableEvent = { [Type in keyof Events]: TableEventOf<Type> }[keyof Events];

export interface TableEventOf<Type extends keyof Events> {
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly type: Type;
  /** What all may know: the public part of the log, and what people wrote, which it commits to. */
  readonly public: Readonly<Events[Type]>;
  /** The code of the card that was drawn, moved, shown or peeked at, if this viewer may know it. */
  readonly card: string | null;
  /** False for an earlier event that was sent to catch up. */
  readonly live: boolean;
}

/** What all may know of each type of event. Digests, nonces and salts are 64 hex digits. */
export interface Events {
  TableOpened: { protocol: string; origin: string; key: string; rules: Rules; name?: string };
  SeatTaken: { seat: number; name: string; key?: string; bot?: true };
  SeatLeft: { seat: number };
  SeatVacated: { seat: number; by: "host" | "service"; reason: string };
  HostTransferred: { seat: number };
  NoteAdded: { seat: number; kind: string; text: string };
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

/** The base of all errors that this client throws on purpose; `message` is a sentence for users. */
export class DealerError extends Error {}

/** A command or request that the server refused; nothing was changed. */
export class Refused extends DealerError {
  /** For programs: `not_entitled`, `deck_empty`, `card_not_in_hand`, … */
  readonly reason: string;
  /** The JSON-RPC error code. */
  readonly code: number;
  readonly temporary: boolean;
  /** With `rate_limited`. */
  readonly retryAfterMs: number | null;
}

/** The server contradicted itself or broke a rule. The client has left the table for good. */
export class HouseCheated extends DealerError {
  /** Null if it happened before anything of the table was known. */
  readonly evidence: Evidence | null;
  /** Which of the `checks` failed. */
  readonly check: Check["name"];
}

/** There is no dealer server at the address, or the connection to it was lost for good. */
export class HouseUnreachable extends DealerError {}

/** The server closed the connection with a final code (4401, 4403, 4408, 4409, 1009). */
export class SessionEnded extends DealerError {
  readonly code: number;
}

/** An address, a key or a store that this client cannot work with. */
export class ConfigurationError extends DealerError {}

/** Signed checkpoints, and the frames that contradict them. Plain JSON. */
export interface Evidence {
  table: string;
  /** 64 hex digits; empty if none was known. */
  key: string;
  sentence: string;
  version: number;
  /** C2SP signed notes. */
  notes: string[];
  frames: unknown[];
  /** Leaves of the open round, as far as this client has seen it. */
  leaves: string[];
}

// ————————————————————————————————————————— stores and keys —————————————————————————————————————————

/**
 * A key-value store of texts. A value must be stored when `set` returns. Keys are
 * `dealer/<table>/…` and `dealer/player`. The store gives access to the player's seats: keep it
 * private.
 */
export interface Store {
  get(key: string): string | null | undefined;
  set(key: string, value: string): void;
}

/** A store in memory, for as long as the page or the process. */
export function memoryStore(): Store;
/**
 * The browser's localStorage: survives a reload; one store for each origin. Throws
 * ConfigurationError where the browser denies it, as some do in frames of other sites.
 */
export function browserStore(storage?: Pick<Storage, "getItem" | "setItem">): Store;
/** A folder of small files that only this user can read; on node only. */
export function fileStore(folder: string): Promise<Store>;

/** An Ed25519 key for cosignatures. */
export interface Cosigner {
  /** 64 hex digits. */
  readonly key: string;
  /** The signature of a message, 64 bytes. */
  sign(message: Uint8Array): Promise<Uint8Array>;
}

/**
 * A player's own key in a store: the one for a `table`, or one for all. It is generated if there is
 * none, unless `draw` is false. Null without a key, and without WebCrypto and its Ed25519.
 */
export function playerKey(
  store: Store,
  options?: { table?: string | null; draw?: boolean },
): Promise<Cosigner | null>;
