/**
 * The verifier of tables: whether a game was fair. verify.js itself describes every check.
 *
 *     import { linesOf, reportLines, restore, verify } from "./verify.js";
 *
 *     const { bytes, notes } = await restore(file);
 *     const report = await verify(linesOf(bytes), { key, saved, notes });
 *     const { fault, practice } = report;
 *     console.log(fault !== null ? fault.sentence : practice !== null ? "practice" : "fair");
 */

// ————————————————————————————————————————— verification ———————————————————————————————————————————

/** The release that the file is of, such as "0.1.0". */
export const VERSION: string;

/** The checks, in their order; the last four are made of each event. */
export type Check = "form" | "heads" | "saved" | "secrets" | "tape" | "seals" | "moves";
export const CHECKS: Check[];
/** The names of the checks for readers. */
export const TITLES: Record<Check, string>;

/**
 * Verify a bundle, given as its lines. Any content of them is handled: it rejects only if the
 * platform lacks WebCrypto or Ed25519. Counts and swaps go up to the end or the first fault.
 */
export function verify(
  lines: Iterable<string | Uint8Array>,
  options?: {
    /** The table's key if you know it: 32 bytes, or 64 hex digits. */
    key?: Uint8Array | string | null;
    /** Checkpoints that you saved. */
    saved?: Iterable<string>;
    /** What `restore` undid in the file. */
    notes?: string[];
    /** Of a practice table: the lines of the bundle that its cards were laid out from. */
    source?: Iterable<string | Uint8Array> | null;
    /** Called from time to time and awaited, so that a page can be painted. */
    progress?: ((done: number, total: number) => unknown) | null;
  },
): Promise<Report>;
/** The lines of a bundle file. Only a newline ends a line; the last line may lack it. */
export function linesOf(file: Uint8Array): Uint8Array[];
/**
 * A file as the server sent it: gzip, a byte order mark at the beginning, CRLF at the end of every
 * line, and none or several newlines at the end are undone, and nothing else. `notes` say what was.
 */
export function restore(file: Uint8Array): Promise<{ bytes: Uint8Array; notes: string[] }>;
/** All possible notes. */
export const NOTES: Record<"gzip" | "mark" | "crlf" | "empty" | "newline", string>;

export interface Report {
  /** Null for a game without a fault: a fair one, unless it was a practice table. */
  fault: FaultReport | null;
  /** Null unless it is a practice table, whose first shuffle laid cards out: no fair deal. */
  practice: Practice | null;
  /** Seconds after which hands were shown by a link to the table's broadcast; null if never. */
  broadcast: number | null;
  remarks: Remarks;
  /** The recomputed swaps of closed rounds. */
  swaps: Swap[];
  /** The first slot of each shuffle of a closed round whose sealed cards were checked. */
  seals: number[];
  origin: string;
  /** The table's key, 64 hex digits. */
  key: string;
  /** The number of saved checkpoints. */
  saved: number;
  /** What was undone in the file. */
  notes: string[];
  /** `size`: of the newest checkpoint that the key cosigned. */
  cosigners: { key: string; name: string; count: number; size: number }[];
  /** The versions of the events whose opening, what people wrote in them, is withheld. */
  withheld_parts: number[];
  /** If a player is withheld, by key: the heads signed by players whom no opening names. */
  withheld_cosigners: Record<string, number>;
}

/** What a practice table was laid out from by its rule, and what the given source proves of that. */
export interface Practice {
  table: string;
  round: number;
  version: number;
  root: string;
  /** "open": the practice table's round 1 is not closed, so that its cards are not known yet. */
  source: "not given" | "open" | "proved";
}

/** The first fault: the failed check, the line (of a leaf: its version), and why. */
export interface FaultReport {
  check: Check;
  line: number;
  sentence: string;
}

export interface Remarks {
  rounds: number;
  /** Of them still open, and so not proved. */
  open_rounds: number;
  shuffles: number;
  voided: number;
  /** Sealed without any player's bytes. */
  house_only: number;
  /** Seats without a digest. */
  left_out: number;
  /** Seats that did not reveal their nonce. */
  withheld: number;
  /** Reveals of a nonce that this log had before. */
  reused: number;
  /** Draws of a card other than the top one. */
  not_top: number;
  /** Valid cosignatures. */
  cosigned: number;
  /** Whether the key was given by the caller. */
  pinned: boolean;
}

/** Step `step` of shuffle `k` of the round: it exchanged places i and j, which had `cards`. */
export interface Swap {
  version: number;
  round: number;
  k: number;
  step: number;
  i: number;
  j: number;
  /** The words of the tape that gave j, the last one, and those rejected before it; or none. */
  words: number[];
  cards: string[];
}

/** The result of each check; `note` says for programs what `sentence` adds. */
export function results(report: Report): {
  check: Check;
  state: "passed" | "failed" | "not checked";
  sentence: string;
  note: null | "fault" | "earlier" | "unsaved" | "unreached" | "upTo" | "partly";
}[];
/** The report as lines for readers: one for each check, then the counts. */
export function reportLines(report: Report): string[];
/** A text that players chose, as it is shown: what could hide, move or cover other text is replaced. */
/** Seconds after which a broadcast link shows what players have seen; null if never. */
export function broadcastOf(rules: { broadcast?: unknown }): number | null;

export function safeText(text: string): string;
/** The report as lines for programs, which keep their form. */
export function verdicts(report: Report): string[];

// ——————————————————————————————————————————— formulas ——————————————————————————————————————————————
//
// For other programs that check or play. `table` is the table's id as 16 bytes, `round` counts from
// 1, `k` is the shuffle index, secrets, nonces, salts and roots are bytes, and digests and
// commitments are 64 hex digits. A RuleViolation is thrown for data that breaks a rule.

export class RuleViolation extends Error {}

export function hex(bytes: Iterable<number>): string;
export function unhex(text: string): Uint8Array;
export function unbase64(text: string): Uint8Array;
export function join(...parts: Uint8Array[]): Uint8Array;
export function sha256(data: Uint8Array): Uint8Array;
export function hmac256(key: Uint8Array, data: Uint8Array): Uint8Array;
export function plainHkdf512(
  ikm: Uint8Array, salt: Uint8Array, info: Uint8Array,
): Uint8Array;
/** Rejects if WebCrypto or its Ed25519 is missing. */
export function checkMachine(): Promise<void>;
export function soundPoint(bytes: Uint8Array): boolean;

export function secretLength(n: number): number;
export function houseCommitment(table: Uint8Array, round: number, secret: Uint8Array): string;
export function saltKeyOf(
  table: Uint8Array, round: number, secret: Uint8Array,
): Promise<Uint8Array>;
export function playerDigest(
  table: Uint8Array, round: number, k: number, seat: number, nonce: Uint8Array,
): string;
export function slotSalt(saltKey: Uint8Array, slot: number): Uint8Array;
export function slotCommitment(
  table: Uint8Array, round: number, slot: number, salt: Uint8Array, card: string,
): string;
export function eventCommit(
  table: Uint8Array, saltKey: Uint8Array, version: number, hidden: string,
): string;
/** The commitment to what people wrote in an event. */
export function openedCommit(
  table: Uint8Array, version: number, salt: Uint8Array, part: Record<string, unknown>,
): string;
/** The random words of a shuffle of `n` cards, with a read position. */
export class Tape {
  constructor(secret: Uint8Array, nonces: Uint8Array[], root: Uint8Array, k: number, n: number);
  /** The next word, 0…65535. */
  word(): Promise<number>;
  /** An unbiased number 0…bound−1, and the words that it took. */
  below(bound: number): Promise<{ number: number; words: number[] }>;
}
/** The swaps of a shuffle, in their order. */
export function planOf(
  shuffle: { algorithm: "backward" | "forward"; n: number; steps: number }, tape: Tape,
): Promise<{ i: number; j: number; words: number[] }[]>;

export function leafHash(raw: Uint8Array): Uint8Array;
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array;
/** A Merkle tree (RFC 6962) of leaf hashes, by its right edge. */
export class Tree {
  size: number;
  edge: Uint8Array[];
  append(hash: Uint8Array): void;
  root(): Uint8Array;
}
/** A parsed C2SP note. */
export function readCheckpoint(note: string): {
  text: string; origin: string; size: number; root: Uint8Array;
  signatures: { name: string; id: string; body: Uint8Array }[];
};
export interface Signer { name: string; type: number; key: Uint8Array }
export function houseOf(origin: string, key: string): Signer;
export function playerOf(key: string): Signer;
export function keyId(signer: Signer): Uint8Array;
export function signedBy(head: ReturnType<typeof readCheckpoint>, signer: Signer): Promise<boolean>;
/** Those of the `known` keys, in hex, that cosigned; throws for an invalid line of one of them. */
export function cosignedBy(
  head: ReturnType<typeof readCheckpoint>, known: { has(key: string): boolean },
): Promise<string[]>;
/** Throws for the checkpoint of an empty log. */
export function requireLeaves(head: { size: number }): void;

// What follows is for the client of this package. Its types may change in any release.

export function decode(line: string | Uint8Array): { value: any; raw: Uint8Array };
export function isCount(value: unknown): boolean;
export function isBytes32(value: unknown): boolean;
export function isOrigin(value: unknown): boolean;
export function leafText(leaf: any): string;
export function seatOf(stack: string): number | null;
export function checkLeaf(line: number, leaf: any, parts: any): void;
export function schemaOf(type: unknown): number | undefined;
export function partOf(leaf: any, opened: any): any;
export const SEAT_GIVEN_UP: string[];
export const CHECKPOINT_TYPES: string[];
export const INSECURE_RULE: string;
export const INSECURE: string;
export const PRACTICE_RULE: string;
export const PRACTICE: string;
export function newLedger(table: string, roots: any): any;
export function applyEvent(ledger: any, leaf: any): any;
export function cardIn(round: any, slot: number): any;
