#!/usr/bin/env node
/**
 * Verifies the bundle of a table: whether the game was fair. One file without dependencies.
 *
 * This is the second verifier of dealer. It was written independently of the first one, in Python,
 * and shares no code and no tables with it; both must report the same first fault. Keep a copy that
 * you have read: a page served by a cheating server could show any result.
 *
 *     node verify.js FILE [--key HEX] [--saved FILE]… [--source FILE] [--json]
 *         exit code 0: fair, 1: not, 3: a practice table without a fault, which is no fair deal
 *     import { linesOf, restore, verify } from "./verify.js"        in a browser
 *
 * A bundle is a header line, one line for each event (a leaf of a Merkle tree), the openings of what
 * people wrote, and then the checkpoints that the house signed. The checks run in this order and stop
 * at the first fault:
 *
 *     1 form      each line is in canonical form
 *     2 heads     the house signed this log, wherever it had to
 *     3 saved     the log agrees with the checkpoints that you saved
 *     4 events    one by one; each event type belongs to one check:
 *         secrets   each commitment was opened correctly
 *         tape      each swap is the one that the tape of random words gives
 *         seals     each sealed or shown card is the one that the shuffle put there
 *         moves     every other event was legal, and each card was where it was taken from
 *
 * Notation:  H = SHA-256,  ‖ = concatenation,  be32, be64 = big-endian integers,
 * lp(x, …) = be32(length of x) ‖ x, for each x,  T(s) = "dealer/v1/" ‖ s ‖ 0x00.
 */

/** The release that this file is of. */
export const VERSION = "0.1.0";

const PROTOCOL = "dealer/v1";
export const CHECKS = ["form", "heads", "saved", "secrets", "tape", "seals", "moves"];
const PROGRESS_EVERY = 256;

/** The first fault of a bundle: the failed check, the line (of a leaf: its version), and why. */
class Fault extends Error {
  constructor(check, line, sentence) {
    super(sentence);
    this.check = check;
    this.line = line;
  }
}

/** Data that breaks a rule of the protocol. The caller adds the check and the line. */
export class RuleViolation extends Error {}

/** @returns {never} */
function fail(sentence) {
  throw new RuleViolation(sentence);
}

/** Run `step`, and turn its RuleViolation into a Fault of this check and line. */
async function inCheck(check, line, step) {
  try {
    return await step();
  } catch (error) {
    throw error instanceof RuleViolation ? new Fault(check, line, error.message) : error;
  }
}

/**
 * Verify a bundle. Any content of its lines is handled: this throws only if the platform lacks
 * WebCrypto or Ed25519.
 *
 * @typedef {{ check: string, line: number, sentence: string }} FaultReport
 * @typedef {{ version: number, round: number, k: number, step: number, i: number, j: number,
 *   words: number[], cards: string[] }} Swap
 * @typedef {{ table: string, round: number, version: number, root: string,
 *   source: "not given" | "open" | "proved" }} Practice
 * @typedef {{ fault: FaultReport | null, practice: Practice | null,
 *   remarks: ReturnType<typeof noRemarks>, swaps: Swap[],
 *   seals: number[], origin: string, key: string, saved: number, notes: string[],
 *   cosigners: { key: string, name: string, count: number, size: number }[],
 *   withheld_parts: number[], withheld_cosigners: Record<string, number> }} Report
 *
 * @param {Iterable<string | Uint8Array>} lines
 * @param {object} [options]
 * @param {Uint8Array | string | null} [options.key] the table's key if you know it, bytes or hex
 * @param {Iterable<string>} [options.saved] checkpoints that you saved
 * @param {string[]} [options.notes] what `restore` undid in the file
 * @param {Iterable<string | Uint8Array> | null} [options.source] of a practice table: the lines of
 *   the bundle that its cards were laid out from
 * @param {((done: number, total: number) => unknown) | null} [options.progress] called from time to
 *   time and awaited, so that a page can be painted
 * @param {((ledger: any, leaf: any) => void) | null} [options.after] called after each event
 * @returns {Promise<Report>} `remarks` are counted, and `swaps` (of closed rounds) listed, up to
 *   the end or the first fault
 */
export async function verify(
  lines,
  { key = null, saved = [], notes: undone = [], source = null, progress = null, after = null } = {},
) {
  await checkMachine();
  const bundle = Array.from(lines ?? []);
  const notes = Array.from(saved ?? []);
  const total = 2 * bundle.length;
  const report = {
    fault: null,
    practice: null, // of a practice table: { table, round, version, root, source }
    broadcast: null, // seconds after which hands were shown by a link, if the rules say so
    remarks: noRemarks(),
    swaps: [], // of closed rounds: { version, round, k, step, i, j, words, cards }
    seals: [], // of closed rounds: the first slot of each; a shuffle of one card has no swap
    origin: "", key: "", saved: notes.length, notes: undone,
    cosigners: [], // { key, name, count, size }: size of the newest head that key cosigned
    withheld_parts: [], // versions of the events whose opening is not in the bundle
    withheld_cosigners: {}, // by key: how often a player signed whom no opening names
  };
  try {
    const parts = await readForm(bundle, (done) => progress?.(done, total));
    report.origin = parts.origin;
    report.key = parts.key;
    report.withheld_parts = openParts(parts);
    const roots = await checkHeads(parts, key instanceof Uint8Array ? hex(key) : key, report);
    await checkSaved(parts, notes);
    report.practice = practiceOf(parts);
    report.broadcast = broadcastOf(parts.leaves[0].public.rules);
    const compare = source === null ? null : await comparing(source, report.practice, parts.leaves);
    await replay(parts, roots, report, async (ledger, leaf) => {
      compare?.(ledger, leaf);
      after?.(ledger, leaf);
      const done = leaf.version;
      if (done % PROGRESS_EVERY === 0) await progress?.(bundle.length + done, total);
    });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const kind = kindOf(error, bundle, undone);
    report.fault = { check: error.check, line: error.line, sentence: kind ?? error.message };
    // No bundle, or not the whole of it: nothing was repaired.
    if (kind !== null) report.notes = undone.filter((note) => note !== NOTES.newline);
  }
  await progress?.(total, total);
  return report;
}

const noRemarks = () => ({
  rounds: 0, open_rounds: 0, // opened; still open at the end, and so not proved
  shuffles: 0, voided: 0, house_only: 0, // started; voided; sealed without any player's bytes
  left_out: 0, withheld: 0, // seats without a digest; seats that did not reveal their nonce
  reused: 0, // reveals of a nonce that any seat had revealed earlier in this log
  not_top: 0, // draws of a card other than the top one
  cosigned: 0, // valid cosignatures by players' keys
  pinned: false, // whether the key was given by the caller
});

/** Bytes of the shortest line that a bundle may have, `{"checkpoint":""}`. */
const SHORTEST_LINE = 17;

/**
 * The lines of a bundle file. Only a newline ends a line; the last line may lack it.
 *
 * What follows a line of less than `SHORTEST_LINE` bytes is left as one: that line is a fault, and
 * millions of short lines would take a hundred times the memory of the file.
 *
 * @param {Uint8Array} file
 * @returns {Uint8Array[]}
 */
export function linesOf(file) {
  const data = file.at(-1) === LF ? file.subarray(0, -1) : file;
  const lines = [];
  let [start, length] = [0, SHORTEST_LINE];
  for (let end; length >= SHORTEST_LINE && (end = data.indexOf(LF, start)) >= 0; start = end + 1) {
    lines.push(data.subarray(start, end));
    length = end - start;
  }
  lines.push(data.subarray(start));
  return lines;
}


// ————————————————————————————————————————— saved files ——————————————————————————————————————————
//
// Other tools change a file when they save it. What is lossless is undone and noted: one layer of
// gzip, a byte order mark before the first line, CRLF at the end of every line, and other than one
// newline at the end. Nothing else is, above all no CR or mark elsewhere: canonical lines have none,
// so someone put it there.

/** What was undone, in this order. */
export const NOTES = {
  gzip: "the file was compressed with gzip; it was decompressed",
  mark: "a byte order mark was put before the first line; it was removed",
  crlf: "line ends were changed to CRLF; they were changed back",
  empty: "empty lines were added at the end; they were removed",
  newline: "the newline at the end was missing; it was added",
};

/** Most bytes of a decompressed file: in all, and for each byte of the compressed one. */
const LONGEST = 2 ** 30;
const LONGEST_RATIO = 20;

const [LF, CR] = [0x0a, 0x0d];
const beginsWith = (file, ...first) => first.every((byte, n) => file[n] === byte);

/**
 * A file as the server sent it, and notes of what was undone.
 *
 * @param {Uint8Array} file
 * @returns {Promise<{ bytes: Uint8Array, notes: string[] }>}
 */
export async function restore(file) {
  const notes = [];
  let bytes = new Uint8Array(file.buffer, file.byteOffset, file.length); // node's files are Buffers
  const whole = beginsWith(bytes, 0x1f, 0x8b) ? await gunzip(bytes) : null;
  if (whole !== null) {
    bytes = whole;
    notes.push(NOTES.gzip);
  }
  if (beginsWith(bytes, 0xef, 0xbb, 0xbf)) {
    bytes = bytes.subarray(3);
    notes.push(NOTES.mark);
  }
  if (hasCrlfOnly(bytes)) {
    bytes = bytes.filter((byte) => byte !== CR);
    notes.push(NOTES.crlf);
  }
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === LF) end -= 1;
  if (end === 0) return { bytes, notes };
  if (bytes.length > end + 1) notes.push(NOTES.empty);
  if (bytes.length === end) notes.push(NOTES.newline);
  bytes = bytes.length === end ? join(bytes, Uint8Array.of(LF)) : bytes.subarray(0, end + 1);
  return { bytes, notes };
}

/** Whether every CR stands before an LF, and every LF behind a CR, and there are any. */
function hasCrlfOnly(bytes) {
  let found = false;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === LF) return false;
    if (bytes[at] !== CR) continue;
    if (bytes[at + 1] !== LF) return false;
    found = true;
    at += 1;
  }
  return found;
}

/** The content of a gzip file; null if it is cut, damaged, too long, or followed by more. */
async function gunzip(bytes) {
  const most = Math.min(LONGEST, LONGEST_RATIO * bytes.length);
  const blob = new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytes)]);
  const reader = blob.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts = [];
  let length = 0;
  try {
    for (let read; !(read = await reader.read()).done; length += read.value.length) {
      if (length + read.value.length > most) {
        await reader.cancel();
        return null;
      }
      parts.push(read.value);
    }
  } catch {
    return null;
  }
  // Node ignores what follows: then the file does not end with the length of the content.
  const end = new DataView(bytes.buffer, bytes.byteOffset + bytes.length - 4);
  return end.getUint32(0, true) === length ? join(...parts) : null;
}

// What a file is instead of a bundle. Check, line and verdict of the fault stay.

const AGAIN = "Download the bundle again.";
const PACKED = "Unpack it, and verify the bundle that is in it.";
const NOT_CANONICAL = "This is JSON, but not in its canonical form.";

/** Kinds of files by their first bytes, which are written as characters U+0000–00FF. */
const BEGINNINGS = [
  ["\x1f\x8b", "This gzip file is cut, damaged, followed by something else, or when decompressed " +
    `longer than ${LONGEST_RATIO} times its length or ${LONGEST / 2 ** 20} MiB. Decompress it, and ` +
    "verify the result."],
  ["PK\x03\x04", `This is a zip archive, not a bundle. ${PACKED}`],
  ["PK\x05\x06", "This is an empty zip archive, not a bundle."],
  ["BZh", `This file is compressed with bzip2. ${PACKED}`],
  ["\xfd7zXZ\0", `This file is compressed with xz. ${PACKED}`],
  ["\x28\xb5\x2f\xfd", `This file is compressed with zstd. ${PACKED}`],
  ["7z\xbc\xaf\x27\x1c", `This is a 7z archive, not a bundle. ${PACKED}`],
  ["SQLite format 3\0", "This is an SQLite database, not a bundle: `dealer export` makes one."],
  ["%PDF-", `This is a PDF file, not a bundle. ${AGAIN}`],
  ["HTTP/", "This file begins with the headers of an HTTP answer. Save the bundle without them."],
];
const UTF_16 = ["\xff\xfe", "\xfe\xff", "{\0", "\0{"];

/** Members of the errors that servers and proxies send as JSON; `error` is also JSON-RPC's. */
const ERROR = ["error", "errors", "detail", "message"];
const ERROR_MAX = 64 * 1024; // bytes of a file that may be such an error

/** The first bytes of a line as characters U+0000–00FF. */
function beginningOf(line) {
  const bytes = typeof line === "string" ? utf8.encode(line.slice(0, 64)) : line;
  return bytes instanceof Uint8Array ? String.fromCharCode(...bytes.subarray(0, 64)) : "";
}

/** A sentence about the file if it is the cause of the fault, else null. */
function kindOf({ check, line, message }, lines, notes) {
  const end = lines.length - 1;
  if (check === "heads" && !beginningOf(lines[end]).startsWith('{"checkpoint":')) {
    return `The file ends after line ${end}, before the checkpoints: it was cut there, or they ` +
      `were removed. ${AGAIN}`;
  }
  if (check !== "form" || line > end) return null;
  const kind = line === 0 ? kindByBeginning(lines) : null;
  if (kind !== null) return kind;
  const given = lines[line];
  if (typeof given === "string" ? given.endsWith("\r") : given?.[given.length - 1] === CR) {
    return `This line ends with CR: only CRLF at the end of every line is undone. ${AGAIN}`;
  }
  if (beginningOf(given).startsWith("\xef\xbb\xbf")) {
    const where = line === 0 ? "left before the first line" : "inside the file";
    return `A byte order mark is ${where}: only one at its beginning is undone. ${AGAIN}`;
  }
  if (message === NOT_CANONICAL) {
    return "This line is JSON, but not in its canonical form: its spaces, escapes or numbers or " +
      `the order of its members were changed, as by a program that reads and writes JSON. ${AGAIN}`;
  }
  const cut = line === end && notes.includes(NOTES.newline) && beginningOf(given).startsWith("{");
  if (!cut || jsonOf([given]) !== undefined) return null;
  const held = line === 0 ? "no line holds" : `the header and ${line - 1} lines hold`;
  return `The file is cut at line ${line}; ${held}. Download the rest, or all of it.`;
}

function kindByBeginning(lines) {
  const first = beginningOf(lines[0]);
  let text = "";
  for (let n = 0; text === "" && n < lines.length; n++) text = firstText(lines[n]);
  if (text === "") return `The file is empty. ${AGAIN}`;
  for (const [beginning, sentence] of BEGINNINGS) if (first.startsWith(beginning)) return sentence;
  if (UTF_16.some((beginning) => first.startsWith(beginning))) {
    return "This is UTF-16 text; a bundle is UTF-8. Save it as UTF-8, or download it again.";
  }
  if (text.startsWith("<")) {
    const html = /^<(?:!doctype html|html|head|body)/i.test(text);
    return `This is ${html ? "an HTML page" : "HTML or XML"}, not a bundle. ${AGAIN}`;
  }
  if (text.startsWith("[")) {
    return `This is a JSON array; a bundle is lines, each with one JSON object. ${AGAIN}`;
  }
  if (isError(lines)) {
    return `This is an error of a server, not a bundle; its text says what failed. ${AGAIN}`;
  }
  if (text === "{") {
    return `This JSON was indented; each line of a bundle is one JSON object. ${AGAIN}`;
  }
  if (/^[A-Za-z"][^\0-\x08\x0b\x0c\x0e-\x1f\x7f]*$/.test(text)) {
    return `This is text, not a bundle; an error of a server says what failed. ${AGAIN}`;
  }
  return null;
}

/** The first bytes of a line after its spaces; of what was left as one line the first line. */
function firstText(line) {
  if (typeof line === "string") line = utf8.encode(line.replace(/^[ \t\r\n]+/, "").slice(0, 64));
  if (!(line instanceof Uint8Array)) return "";
  const start = line.findIndex((byte) => ![0x20, 0x09, CR, LF].includes(byte));
  if (start < 0) return "";
  const text = String.fromCharCode(...line.subarray(start, start + 64));
  return text.replace(/\n[^]*$/, "").replace(/[ \t\r\n]+$/, "");
}

/** Whether the file is a JSON object in which a server says what failed. */
function isError(lines) {
  if (lines.reduce((sum, line) => sum + (line?.length ?? 0), 0) > ERROR_MAX) return false;
  const value = jsonOf(lines);
  return isObject(value) && !Object.hasOwn(value, "bundle") &&
    ERROR.some((name) => Object.hasOwn(value, name));
}

/** The value of lines that are one JSON text; undefined if they are none. */
function jsonOf(lines) {
  try {
    const texts = lines.map((line) => (typeof line === "string" ? line : decodeUtf8(line)));
    return JSON.parse(texts.join("\n"));
  } catch {
    return undefined;
  }
}


// ——————————————————————————————————— bytes, hashes, signatures ———————————————————————————————————

const subtle = globalThis.crypto?.subtle;
const utf8 = new TextEncoder();

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * @param {Iterable<number>} bytes
 * @returns {string} lower-case hex
 */
export function hex(bytes) {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/**
 * The bytes of a text that is known to be lower-case hex.
 *
 * @param {string} text
 */
export function unhex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let n = 0; n < bytes.length; n++) bytes[n] = parseInt(text.slice(2 * n, 2 * n + 2), 16);
  return bytes;
}

/**
 * Concatenation.
 *
 * @param {...Uint8Array} parts
 */
export function join(...parts) {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

function be32(number) {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

function be64(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number));
  return bytes;
}

const lp = (...parts) => join(...parts.flatMap((part) => [be32(part.length), part]));
const T = (name) => utf8.encode(`dealer/v1/${name}\0`);

/**
 * SHA-256 (FIPS 180-4). WebCrypto's is asynchronous, which makes the ten thousands of small hashes
 * of a bundle ten times slower. A test compares the two.
 *
 * @param {Uint8Array} data
 */
export function sha256(data) {
  const padded = new Uint8Array((data.length + 72) & ~63); // data ‖ 0x80 ‖ 0… ‖ be64(bits)
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(data.length / 2 ** 29));
  view.setUint32(padded.length - 4, data.length << 3);
  const hash = SHA_START.slice();
  for (let at = 0; at < padded.length; at += 64) sha256Block(hash, view, at);
  const digest = new Uint8Array(32);
  const out = new DataView(digest.buffer);
  for (let t = 0; t < 8; t++) out.setUint32(4 * t, hash[t]);
  return digest;
}

const schedule = new Int32Array(64);

function sha256Block(hash, view, at) {
  const w = schedule;
  for (let t = 0; t < 16; t++) w[t] = view.getInt32(at + 4 * t);
  for (let t = 16; t < 64; t++) {
    const x = w[t - 15];
    const y = w[t - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  let a = hash[0], b = hash[1], c = hash[2], d = hash[3];
  let e = hash[4], f = hash[5], g = hash[6], h = hash[7];
  for (let t = 0; t < 64; t++) {
    const S1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const S0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t1 = (h + S1 + ((e & f) ^ (~e & g)) + SHA_K[t] + w[t]) | 0;
    const t2 = (S0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + t1) | 0;
    d = c; c = b; b = a; a = (t1 + t2) | 0;
  }
  hash[0] += a; hash[1] += b; hash[2] += c; hash[3] += d;
  hash[4] += e; hash[5] += f; hash[6] += g; hash[7] += h;
}

/** The first primes: the numbers of SHA-2 are, by definition, bits of their roots' fractions. */
const PRIMES = [2];
for (let n = 3; PRIMES.length < 80; n += 2) if (PRIMES.every((p) => n % p)) PRIMES.push(n);

// Of a number, Int32Array keeps the last 32 bits before the point.
const SHA_START = Int32Array.from(PRIMES.slice(0, 8), (prime) => Math.sqrt(prime) * 2 ** 32);
const SHA_K = Int32Array.from(PRIMES.slice(0, 64), (prime) => Math.cbrt(prime) * 2 ** 32);

/** HMAC (RFC 2104) with a hash of blocks of `size` bytes, under a key of at most so many. */
function hmac(hash, size, key, data) {
  const inner = new Uint8Array(size).fill(0x36);
  const outer = new Uint8Array(size).fill(0x5c);
  key.forEach((byte, n) => {
    inner[n] ^= byte;
    outer[n] ^= byte;
  });
  return hash(join(outer, hash(join(inner, data))));
}

export const hmac256 = (key, data) => hmac(sha256, 64, key, data);
const hmac512 = (key, data) => hmac(sha512, 128, key, data);

/** HKDF-SHA-512 (RFC 5869), of at most 64 bytes. */
async function hkdf512(ikm, salt, info, length) {
  if (!subtle) return plainHkdf512(ikm, salt, info).subarray(0, length);
  const key = await subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"]);
  const how = { name: "HKDF", hash: "SHA-512", salt, info };
  return new Uint8Array(await subtle.deriveBits(how, key, 8 * length));
}

/** The first 64 bytes of HKDF-SHA-512, for pages over plain http, where WebCrypto is missing. */
export function plainHkdf512(ikm, salt, info) {
  return hmac512(hmac512(salt, ikm), join(info, Uint8Array.of(1)));
}

/** SHA-512 (FIPS 180-4), for few and short inputs: BigInt arithmetic is slow. */
function sha512(data) {
  const padded = new Uint8Array((data.length + 144) & ~127);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(8 * data.length));
  const { start, k } = sha512Numbers();
  const hash = BigUint64Array.from(start);
  const w = new BigUint64Array(80);
  const rotate = (/** @type {bigint} */ x, /** @type {bigint} */ bits) =>
    (x >> bits) | BigInt.asUintN(64, x << (64n - bits));
  for (let at = 0; at < padded.length; at += 128) {
    for (let t = 0; t < 16; t++) w[t] = view.getBigUint64(at + 8 * t);
    for (let t = 16; t < 80; t++) {
      const s0 = rotate(w[t - 15], 1n) ^ rotate(w[t - 15], 8n) ^ (w[t - 15] >> 7n);
      const s1 = rotate(w[t - 2], 19n) ^ rotate(w[t - 2], 61n) ^ (w[t - 2] >> 6n);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let t = 0; t < 80; t++) {
      const S1 = rotate(e, 14n) ^ rotate(e, 18n) ^ rotate(e, 41n);
      const S0 = rotate(a, 28n) ^ rotate(a, 34n) ^ rotate(a, 39n);
      const t1 = h + S1 + ((e & f) ^ (~e & g)) + k[t] + w[t];
      const t2 = S0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g; g = f; f = e; e = BigInt.asUintN(64, d + t1);
      d = c; c = b; b = a; a = BigInt.asUintN(64, t1 + t2);
    }
    [a, b, c, d, e, f, g, h].forEach((word, n) => { hash[n] += word; });
  }
  const digest = new DataView(new ArrayBuffer(64));
  hash.forEach((word, n) => digest.setBigUint64(8 * n, word));
  return new Uint8Array(digest.buffer);
}

/** @type {{ start: bigint[], k: bigint[] } | null} */
let numbers512 = null;

/** The first 64 bits of the fractions, which floating-point numbers do not hold. */
function sha512Numbers() {
  if (numbers512) return numbers512;
  const bits = (prime, power) => {
    const aim = BigInt(prime) << (64n * power);
    let [low, high] = [0n, 1n << 70n];
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (middle ** power <= aim) low = middle;
      else high = middle;
    }
    return BigInt.asUintN(64, low);
  };
  numbers512 = {
    start: PRIMES.slice(0, 8).map((prime) => bits(prime, 2n)),
    k: PRIMES.map((prime) => bits(prime, 3n)),
  };
  return numbers512;
}

/** Whether an Ed25519 key signed a message. An invalid key has signed nothing. */
async function ed25519(key, signature, message) {
  if (signature.length !== 64 || !soundPoint(key) || !soundPoint(signature.subarray(0, 32))) {
    return false;
  }
  try {
    const publicKey = await subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
    return await subtle.verify("Ed25519", publicKey, signature, message);
  } catch (error) {
    if (error.name === "NotSupportedError") throw error;
    return false;
  }
}

/**
 * Whether 32 bytes are an acceptable point: y is below 2^255 − 19, and it is not one of the eight
 * points of small order. Anyone can sign for such a key, and libraries disagree about them.
 */
export function soundPoint(bytes) {
  const sign = 1n << 255n;
  const y = BigInt(`0x${hex(bytes.slice().reverse())}`) % sign;
  return y < FIELD && !SMALL_ORDER.includes(y);
}

const FIELD = 2n ** 255n - 19n;
const EIGHTH = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n; // y, order 8
const SMALL_ORDER = [0n, 1n, FIELD - 1n, EIGHTH, FIELD - EIGHTH];

/**
 * Throw if WebCrypto or its Ed25519 is missing: a platform that cannot check signatures must not
 * report that they are invalid.
 */
export async function checkMachine() {
  if (!subtle) throw new Error("No WebCrypto here: the page must be loaded over https.");
  const basePoint = new Uint8Array(32).fill(0x66);
  basePoint[0] = 0x58;
  await subtle.importKey("raw", basePoint, "Ed25519", false, ["verify"]).catch(() => {
    throw new Error("No Ed25519 here: use a newer browser, or node 20 or later.");
  });
}

/** The bytes of a text in canonical base64. */
export function unbase64(text) {
  let letters = null;
  try {
    letters = atob(text);
  } catch {
    fail("This is not base64.");
  }
  if (btoa(letters) !== text) fail("This base64 is not in its canonical form.");
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}


// ———————————————————————————————————————— canonical text ————————————————————————————————————————
//
// RFC 8785 over less than JSON: objects with keys [a-z][a-z0-9_]*, arrays, booleans, integers
// 0…2^53−1, strings of Unicode scalar values without control characters. Sorted keys, no spaces,
// raw UTF-8, and only the escapes \" and \\; in a note also \n for newline.
//
// JSON.parse accepts more (1.0, 1e2, repeated keys, \u00e9, 2^53+1 …), so its result is serialized
// again and compared. Nesting is limited to 256, so that no text can exhaust the stack.

const DEPTH_MAX = 256;
const UNFIT = /[\u0000-\u001f\u007f\p{Surrogate}]/u;
const UNFIT_IN_NOTE = /[\u0000-\u0009\u000b-\u001f\u007f\p{Surrogate}]/u;

/** The value of a line in canonical form, and the bytes of the line. */
export function decode(line) {
  const text = typeof line === "string" ? line : decodeUtf8(line);
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    fail("This is not JSON.");
  }
  checkValue(value, text.startsWith('{"checkpoint":') ? UNFIT_IN_NOTE : UNFIT, DEPTH_MAX);
  if (canonical(value) !== text) fail(NOT_CANONICAL);
  return { value, raw: utf8.encode(text) };
}

function decodeUtf8(bytes) {
  if (!(bytes instanceof Uint8Array)) fail("A line is not text.");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return fail("This is not UTF-8.");
  }
}

function checkValue(value, unfit, depth) {
  if (typeof value === "string") {
    if (unfit.test(value)) fail("A string contains a character that is not allowed.");
  } else if (typeof value === "number") {
    if (!isCount(value)) fail("A number is not an integer from 0 to 2^53−1.");
  } else if (typeof value === "object" && value !== null) {
    if (depth === 0) fail(`Arrays and objects are nested more than ${DEPTH_MAX} deep.`);
    for (const key of Array.isArray(value) ? [] : Object.keys(value)) {
      if (!/^[a-z][a-z0-9_]*$/.test(key)) fail("A key does not match [a-z][a-z0-9_]*.");
    }
    for (const member of Object.values(value)) checkValue(member, unfit, depth - 1);
  } else if (typeof value !== "boolean") {
    fail("A value is null.");
  }
}

/** Whether a value is an integer from 0 to 2^53−1. */
export const isCount = (value) => Number.isSafeInteger(value) && value >= 0;

/** The canonical text of a parsed leaf, or of an opened part. */
export function leafText(leaf) {
  checkValue(leaf, UNFIT, DEPTH_MAX);
  return canonical(leaf);
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) => `"${key}":${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}


// ————————————————————————————————————————————— form —————————————————————————————————————————————
//
// Line 0 is the header, then come leaves, then openings, then checkpoints. Each line is canonical and
// has exactly the members of its kind, with their types. A leaf's version is its line number, its
// table is the header's, its time is not before that of the previous leaf, and `v` is the schema of
// its type; TableOpened is the first leaf and no other; `commit` is present exactly where there is a
// hidden part or one that people wrote. Openings are in order of their versions, at most one of each,
// and only of leaves that have such a part. Whether they open it is checked with the event.

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value) => typeof value === "string";
const isTextUpTo = (most) => (value) => isText(value) && utf8.encode(value).length <= most;
const isInteger = (value) => typeof value === "number";
const isNumber = (value) => isInteger(value) && value < 2 ** 32;
const isFromOne = (value) => isNumber(value) && value >= 1;
const matches = (pattern) => (value) => isText(value) && pattern.test(value);
const is = (...words) => (value) => words.includes(value);

export const isBytes32 = matches(/^[0-9a-f]{64}$/);
export const isOrigin = matches(/^[^+\p{White_Space}]+\/t\/[0-9a-f]{32}$/u);
const isStackName = matches(/^(deck|hand:[1-9][0-9]{0,9}|pile:[!-~]{1,32})$/);
const isStack = (value) => isStackName(value) && (seatOf(value) ?? 1) < 2 ** 32;
const isCode = matches(/^[!#-[\]-~]{1,16}$/); // printable ASCII without space, " and \
const isCard = (value) => isCode(value) && value !== "??";
const isDeck = (value) =>
  Array.isArray(value) && value.length >= 1 && value.length <= 1024 && value.every(isCard) &&
  value.every((card) => card.length === value[0].length) && new Set(value).size === value.length;

/** The seat whose hand a stack is, or null. */
export const seatOf = (stack) => (stack.startsWith("hand:") ? Number(stack.slice(5)) : null);

const HEADER = { bundle: is(PROTOCOL), key: isBytes32, origin: isOrigin };
const CHECKPOINT = { checkpoint: isText };
const IN_ROUND = { round: isFromOne };
const IN_SHUFFLE = { round: isFromOne, k: isNumber };

/** The members of each event type's public part; a name with `?` is optional. */
const EVENT_MEMBERS = new Map(Object.entries({
  TableOpened: { protocol: is(PROTOCOL), origin: isOrigin, key: isBytes32, rules: isObject },
  SeatTaken: { seat: isFromOne, "bot?": (value) => value === true },
  SeatLeft: { seat: isFromOne },
  SeatVacated: { seat: isFromOne, by: is("host", "service") },
  HostTransferred: { seat: isFromOne },
  NoteAdded: { seat: isNumber, kind: matches(/^[a-z0-9._-]{1,64}$/) },
  RoundOpened: {
    ...IN_ROUND, deck: isDeck, entropy: is("players", "house"),
    commit_ms: isNumber, reveal_ms: isNumber, commitment: isBytes32,
  },
  ShuffleStarted: {
    ...IN_SHUFFLE, stack: isStack, n: isNumber, algorithm: is("backward", "forward"),
    steps: isNumber,
  },
  EntropyCommitted: { ...IN_SHUFFLE, seat: isFromOne, digest: isBytes32 },
  EntropyClosed: IN_SHUFFLE,
  ShuffleVoided: IN_SHUFFLE,
  EntropyRevealed: { ...IN_SHUFFLE, seat: isFromOne, nonce: isBytes32 },
  CardsSwapped: { ...IN_SHUFFLE, step: isNumber, i: isNumber },
  DeckSealed: {
    ...IN_SHUFFLE, first: isNumber,
    slots: (value) => Array.isArray(value) && value.every(isBytes32),
  },
  CardDrawn: { ...IN_ROUND, seat: isFromOne, from: isStack, slot: isNumber },
  CardMoved: { ...IN_ROUND, slot: isNumber, from: isStack, to: isStack, place: isNumber },
  CardShown: { ...IN_ROUND, slot: isNumber, card: isCard, salt: isBytes32 },
  CardPeeked: { ...IN_ROUND, slot: isNumber, seat: isFromOne },
  StackCut: { ...IN_ROUND, stack: isStack, at: isNumber },
  RoundClosed: { ...IN_ROUND, secret: matches(/^([0-9a-f]{2})+$/) },
  TableClosed: {},
}));

const isSeatChange = matches(/^[1-9][0-9]{0,9}-[1-9][0-9]{0,9}$/);

/** The texts of the notes that only the server writes, by kind: public, as they name no person. */
const SERVER_NOTES = new Map(Object.entries({
  take_back: matches(/^[1-9][0-9]{0,14}(-[1-9][0-9]{0,14})?$/),
  seat_move: isSeatChange,
  seat_offer: isSeatChange,
  program: matches(/^[ -~]{1,256}$/),
}));

/** The members of what people write, by type of event. */
const PARTS = new Map(Object.entries({
  TableOpened: { name: isText },
  SeatTaken: { name: isText, "key?": isBytes32 },
  SeatVacated: { reason: isTextUpTo(256) },
  NoteAdded: { text: isTextUpTo(2048) },
}));

/** The schema of a type of event; undefined of an unknown one. */
export const schemaOf = (type) => (EVENT_MEMBERS.has(type) ? (PARTS.has(type) ? 2 : 1) : undefined);

const LEAF = {
  at: isInteger, public: isObject, table: matches(/^[0-9a-f]{32}$/),
  type: (value) => EVENT_MEMBERS.has(value), v: isInteger, version: isInteger,
  "commit?": isBytes32,
};
const OPENING = { opened: isObject, salt: isBytes32, version: isInteger };

/** The members that the public part of an event must have. */
function membersOf({ type, public: { kind } }) {
  const text = type === "NoteAdded" ? SERVER_NOTES.get(kind) : undefined;
  return { ...EVENT_MEMBERS.get(type), ...(text && { text }) };
}

/** Whether a leaf must commit to something: j, a card that goes into a hand, or what people write. */
function mustCommit({ type, public: { to, kind } }) {
  if (type === "CardMoved") return seatOf(to) !== null;
  if (type === "NoteAdded") return !SERVER_NOTES.has(kind);
  return ["CardsSwapped", "CardDrawn", "SeatTaken", "SeatVacated"].includes(type);
}

/** Whether an event has an opened part: what people write, to which its leaf commits. */
const hasPart = ({ type, commit }) => PARTS.has(type) && commit !== undefined;

async function readForm(lines, progress) {
  if (lines.length === 0) throw new Fault("form", 0, "There is no header: the bundle is empty.");
  const parts = {
    key: "", origin: "", table: "", leaves: [], hashes: [], openings: [], notes: [],
    wrong: new Map(), // by version, what is wrong with its opening
  };
  for (let line = 0; line < lines.length; line++) {
    await inCheck("form", line, () => readLine(line, lines[line], parts));
    if (line % PROGRESS_EVERY === 0) await progress(line);
  }
  if (parts.leaves.length === 0) throw new Fault("form", 1, "There is no TableOpened.");
  return parts;
}

function readLine(line, text, parts) {
  const { value, raw } = decode(text);
  if (line === 0) {
    checkMembers("The header", value, HEADER);
    Object.assign(parts, { key: value.key, origin: value.origin, table: value.origin.slice(-32) });
  } else if (isObject(value) && Object.hasOwn(value, "checkpoint")) {
    checkMembers("A checkpoint's line", value, CHECKPOINT);
    parts.notes.push({ line, note: value.checkpoint });
  } else if (parts.notes.length) {
    fail("Only checkpoints may follow a checkpoint.");
  } else if (isObject(value) && Object.hasOwn(value, "opened")) {
    checkMembers("An opening", value, OPENING);
    const { version } = value;
    if (version <= (parts.openings.at(-1)?.version ?? 0)) {
      fail("Openings must be in order of version, at most one of each.");
    }
    if (!hasPart(parts.leaves[version - 1] ?? {})) fail(`Version ${version} has no opened part.`);
    parts.openings.push(value);
  } else if (parts.openings.length) {
    fail("Only openings and checkpoints may follow an opening.");
  } else {
    checkLeaf(line, value, parts);
    parts.leaves.push(value);
    parts.hashes.push(leafHash(raw));
  }
}

/**
 * Throw RuleViolation unless `leaf` is a well-formed leaf at this line.
 *
 * @param {number} line
 * @param {any} leaf
 * @param {{ table: string, leaves: { at: number }[] }} parts the leaves before it
 */
export function checkLeaf(line, leaf, parts) {
  checkMembers("A leaf", leaf, LEAF);
  checkMembers(`The public part of ${leaf.type}`, leaf.public, membersOf(leaf));
  if (leaf.v !== schemaOf(leaf.type)) fail(`The schema of ${leaf.type} is ${schemaOf(leaf.type)}.`);
  if (leaf.version !== line) fail(`The leaf of version ${line} is expected here.`);
  if (leaf.table !== parts.table) fail("This leaf belongs to another table.");
  if (leaf.at < (parts.leaves.at(-1)?.at ?? 0)) fail("Its time is before the previous leaf's.");
  if ((leaf.type === "TableOpened") !== (line === 1)) {
    fail("TableOpened must be the first event, and no other.");
  }
  if (leaf.type !== "TableOpened" && Object.hasOwn(leaf, "commit") !== mustCommit(leaf)) {
    fail("`commit` must be present exactly where there is a hidden or an opened part.");
  }
}

function checkMembers(what, value, shape) {
  if (!isObject(value)) fail(`${what} is not an object.`);
  const unknown = new Set(Object.keys(value));
  for (const [name, fits] of Object.entries(shape)) {
    const member = name.replace("?", "");
    if (!unknown.delete(member)) {
      if (member === name) fail(`${what} lacks its member "${member}".`);
    } else if (!fits(value[member])) {
      fail(`${what} has an invalid "${member}".`);
    }
  }
  for (const name of unknown) fail(`${what} has an unknown member "${name}".`);
}


// ————————————————————————————————————————————— heads ————————————————————————————————————————————
//
// First, the key that the caller gave is the header's (line 0), and TableOpened has the header's
// key and origin (line 1). Then each checkpoint (its own line): it is a well-formed note of this
// origin, covers more leaves than the one before and no more than there are; the house's key signed
// it; its root is that of the leaves; and each key in a right opening of some SeatTaken has at most
// one signature line, a valid cosignature (lines by other keys are ignored, as C2SP requires; if a
// SeatTaken is withheld they are listed, but not counted). Last, there is a checkpoint at every
// EntropyClosed, DeckSealed, RoundClosed and TableClosed, and at the last leaf (the line is that of
// the leaf without one).

/** After these events the player no longer holds the seat. */
export const SEAT_GIVEN_UP = ["SeatLeft", "SeatVacated"];

export const CHECKPOINT_TYPES = ["EntropyClosed", "DeckSealed", "RoundClosed", "TableClosed"];

/** The roots that the house signed, by size. */
async function checkHeads(parts, pinned, report) {
  if (pinned !== null && pinned !== undefined && pinned !== parts.key) {
    throw new Fault("heads", 0, "The table's key is not the one that you gave.");
  }
  const opened = parts.leaves[0].public;
  if (opened.key !== parts.key || opened.origin !== parts.origin) {
    throw new Fault("heads", 1, "TableOpened names another key or origin than the header.");
  }
  const cosigners = cosignersOf(parts.leaves);
  const withholdsPlayer =
    report.withheld_parts.some((version) => parts.leaves[version - 1].type === "SeatTaken");
  const roots = new Map();
  const tree = new Tree();
  for (const { line, note } of parts.notes) {
    await inCheck("heads", line, async () => {
      const head = await openNote(note, parts);
      if (roots.size && head.size <= tree.size) fail("Checkpoints must be in order of size.");
      if (head.size > parts.leaves.length) fail("It covers more leaves than there are.");
      while (tree.size < head.size) tree.append(parts.hashes[tree.size]);
      if (hex(tree.root()) !== hex(head.root)) fail("The house signed a different log.");
      if (withholdsPlayer) countUnknown(head, cosigners, report.withheld_cosigners);
      for (const key of await cosignedBy(head, cosigners)) {
        const cosigner = cosigners.get(key);
        cosigner.count += 1;
        cosigner.size = head.size;
      }
      roots.set(head.size, head.root);
    });
  }
  checkDue(parts.leaves, roots);
  report.cosigners = [...cosigners.values()].filter((cosigner) => cosigner.count > 0);
  report.remarks.cosigned = report.cosigners.reduce((sum, { count }) => sum + count, 0);
  report.remarks.pinned = pinned !== null && pinned !== undefined;
  return roots;
}

/** Every key that the opening of a SeatTaken names, with the last name that it was used with. */
function cosignersOf(leaves) {
  const cosigners = new Map();
  for (const { type, public: { key, name } } of leaves) {
    if (type !== "SeatTaken" || key === undefined) continue;
    cosigners.set(key, { key, name, count: 0, size: 0 });
  }
  return cosigners;
}

/** Count, by key, the lines of a checkpoint that may be those of players who are withheld. */
function countUnknown(head, cosigners, counts) {
  const keys = head.signatures.map(({ name }) => COSIGNER_NAME.exec(name)?.[1]);
  for (const key of [...new Set(keys)].sort()) {
    if (key && !cosigners.has(key)) counts[key] = (counts[key] ?? 0) + 1;
  }
}

function checkDue(leaves, roots) {
  for (const { type, version } of leaves) {
    if (CHECKPOINT_TYPES.includes(type) && !roots.has(version)) {
      throw new Fault("heads", version, `The checkpoint at ${type} is missing.`);
    }
  }
  if (!roots.has(leaves.length)) {
    throw new Fault("heads", leaves.length, "The last checkpoint does not cover the whole log.");
  }
}

/** Parse a checkpoint, which must be this table's and signed by the house. */
async function openNote(note, parts) {
  const head = readCheckpoint(note);
  if (head.origin !== parts.origin) fail("The checkpoint has another origin.");
  if (!(await signedBy(head, houseOf(parts.origin, parts.key)))) {
    fail("The house's key did not sign this checkpoint.");
  }
  return head;
}

// Merkle tree (RFC 6962): a leaf is H(0x00 ‖ leaf), a node H(0x01 ‖ left ‖ right), no leaves H().

export const leafHash = (raw) => sha256(join(Uint8Array.of(0), raw));
export const nodeHash = (left, right) => sha256(join(Uint8Array.of(1), left, right));

export class Tree {
  size = 0;
  edge = []; // roots of the full subtrees, one for each bit of the size, the largest first

  append(hash) {
    for (let bits = this.size; bits % 2 === 1; bits = Math.floor(bits / 2)) {
      hash = nodeHash(this.edge.pop(), hash);
    }
    this.edge.push(hash);
    this.size += 1;
  }

  root() {
    if (this.size === 0) return sha256(new Uint8Array(0));
    return this.edge.reduceRight((right, left) => nodeHash(left, right));
  }
}

// A checkpoint (C2SP tlog-checkpoint) is a signed note (C2SP signed-note): three lines,
//
//     <house>/t/<table>
//     <size, decimal>
//     <root, base64>
//
// an empty line, and signature lines "— <name> <base64(key id ‖ signature)>", where
// key id = H(name ‖ 0x0A ‖ type ‖ key)[:4]. A name is not empty and has no + and no character with
// Unicode's property White_Space; the note has no character below U+0020 except newlines. A line
// without a name and at least 5 bytes in canonical base64 invalidates the note. Lines with an
// unknown name or key id are ignored; a line by a known key that does not verify, or a second line
// by one key, invalidates the note.

export function readCheckpoint(note) {
  if (typeof note !== "string" || /[\u0000-\u0009\u000b-\u001f\p{Surrogate}]/u.test(note)) {
    fail("A note is not text, or has a control character other than newline.");
  }
  const blank = note.lastIndexOf("\n\n");
  if (blank < 1 || blank + 2 === note.length || !note.endsWith("\n")) {
    fail("A note must be a text, an empty line, and signatures, each ending in newline.");
  }
  const text = note.slice(0, blank + 1);
  const signatures = note.slice(blank + 2, -1).split("\n").map(readSignature);
  const lines = text.split("\n");
  if (lines.length !== 4) fail("A checkpoint must have exactly an origin, a size and a root.");
  const [origin, size, root] = [lines[0], lines[1], unbase64(lines[2])];
  if (!/^(0|[1-9][0-9]{0,15})$/.test(size) || Number(size) > Number.MAX_SAFE_INTEGER) {
    fail("The size of a checkpoint is not a decimal integer.");
  }
  if (root.length !== 32) fail("The root of a checkpoint is not 32 bytes long.");
  return { origin, size: Number(size), root, text, signatures };
}

function readSignature(line) {
  const [dash, name, base64, ...more] = line.split(" ");
  if (dash !== "\u2014" || base64 === undefined || more.length) {
    fail("A signature line must be a dash, a name and base64, with single spaces.");
  }
  if (!/^[^+\p{White_Space}]+$/u.test(name)) fail("A name is empty or has a space or +.");
  const blob = unbase64(base64);
  if (blob.length <= 4) fail("A signature line has no signature.");
  return { name, id: hex(blob.subarray(0, 4)), body: blob.subarray(4) };
}

const ED25519 = 1;
const COSIGNATURE = 4;
export const houseOf = (origin, key) => ({ name: origin, type: ED25519, key: unhex(key) });
export const playerOf = (key) => ({ name: `player/${key}`, type: COSIGNATURE, key: unhex(key) });

/** The key id: 4 bytes that distinguish keys of the same name. */
export const keyId = ({ name, type, key }) =>
  sha256(join(utf8.encode(`${name}\n`), Uint8Array.of(type), key)).subarray(0, 4);

/** Whether a key has signed a checkpoint; throws RuleViolation if its line is invalid. */
export async function signedBy(head, { name, type, key }) {
  const id = hex(keyId({ name, type, key }));
  const own = head.signatures.filter((line) => line.name === name && line.id === id);
  if (own.length === 0) return false;
  if (own.length > 1) fail("A key has signed twice.");
  let { body } = own[0];
  let signed = head.text;
  if (type === COSIGNATURE) {
    // cosignature/v1: body = be64(seconds) ‖ signature of these lines
    if (body.length !== 8 + 64) fail("A cosignature must be a time and a signature.");
    const time = new DataView(body.buffer, body.byteOffset).getBigUint64(0);
    if (time >= 2n ** 63n) fail("The time of a cosignature is above 2^63−1 seconds.");
    signed = `cosignature/v1\ntime ${time}\n${signed}`;
    body = body.subarray(8);
  }
  if (!(await ed25519(key, body, utf8.encode(signed)))) {
    fail("A signature is invalid.");
  }
  return true;
}

const COSIGNER_NAME = /^player\/([0-9a-f]{64})$/;

/**
 * Which keys cosigned a checkpoint; throws RuleViolation if a line by one of them is invalid.
 * `known` are the keys in hex. Only those that a line names are checked: both lists may be long.
 *
 * @param {ReturnType<typeof readCheckpoint>} head
 * @param {{ has(key: string): boolean }} known
 */
export async function cosignedBy(head, known) {
  const named = new Set(head.signatures.map(({ name }) => COSIGNER_NAME.exec(name)?.[1]));
  const keys = [];
  for (const key of named) {
    if (key && known.has(key) && (await signedBy(head, playerOf(key)))) keys.push(key);
  }
  return keys;
}

/** Refuse the checkpoint of an empty log: a table has at least one event. */
export function requireLeaves({ size }) {
  if (size === 0) fail("A saved checkpoint covers at least one event.");
}


// ————————————————————————————————————————————— saved ————————————————————————————————————————————
//
// First, each saved checkpoint is this table's, covers a leaf, is signed with the table's key, and
// has no invalid cosignature by a key that some SeatTaken opens (otherwise line 0). Then, in
// the order given: this log is at least as long, and has the checkpoint's root at its size
// (otherwise the line is that size).

async function checkSaved(parts, saved) {
  const cosigners = cosignersOf(parts.leaves);
  const heads = [];
  for (const note of saved) {
    await inCheck("saved", 0, async () => {
      const head = await openNote(note, parts);
      requireLeaves(head);
      await cosignedBy(head, cosigners);
      heads.push(head);
    });
  }
  let tree = new Tree();
  for (const { size, root } of heads) {
    await inCheck("saved", size, () => {
      if (size > parts.leaves.length) fail("You saved a longer log: this one was truncated.");
      if (size < tree.size) tree = new Tree();
      while (tree.size < size) tree.append(parts.hashes[tree.size]);
      if (hex(tree.root()) !== hex(root)) fail("You saved a different log.");
    });
  }
}


// ———————————————————————————————————————————— events ————————————————————————————————————————————
//
// Before its own check, the opening of what people wrote in an event is checked (secrets): it is
// there, unless the last event is TableClosed; it is what the leaf commits to; and the part has
// exactly the members of its type.
//
// The ledger is the table's state: the taken seats and, in the open round, the place of each card.
// A card is { face, slot, commitment, reached, shown }, with `reached` true once a shuffle may have
// put it anywhere, and `shown` from a CardShown to the next seal; a stack is an array of cards,
// bottom first. Until a stack is sealed for the first time its cards have no slot (−1), so no card
// can be drawn from it, moved or shown.
//
// The secret S of a round is unknown until the round is closed. In a round that stays open, what
// depends on S is not checked (swaps are not executed, so faces mean nothing); all else is.

const EVENTS = {
  TableOpened: ["moves", () => {}], // "form" checks its position, "heads" its content
  SeatTaken: ["moves", seatTaken],
  SeatLeft: ["moves", seatLeft],
  SeatVacated: ["moves", seatLeft],
  HostTransferred: ["moves", takenSeatOf],
  NoteAdded: ["moves", (ledger, event) => { if (event.seat !== 0) takenSeatOf(ledger, event); }],
  RoundOpened: ["secrets", roundOpened],
  ShuffleStarted: ["tape", shuffleStarted],
  EntropyCommitted: ["secrets", entropyCommitted],
  EntropyClosed: ["secrets", entropyClosed],
  EntropyRevealed: ["secrets", entropyRevealed],
  ShuffleVoided: ["secrets", shuffleVoided],
  CardsSwapped: ["tape", cardsSwapped],
  DeckSealed: ["seals", deckSealed],
  CardDrawn: ["moves", cardDrawn],
  CardMoved: ["moves", cardMoved],
  CardShown: ["seals", cardShown],
  CardPeeked: ["moves", cardPeeked],
  StackCut: ["moves", stackCut],
  RoundClosed: ["secrets", roundClosed],
  TableClosed: ["moves", tableClosed],
};

/** The ledger at the start of a log; `roots` are the signed ones, by size. */
export const newLedger = (table, roots) => ({
  table: unhex(table), roots,
  remarks: noRemarks(), swaps: [], seals: [],
  secrets: new Map(), // S by the version of the RoundOpened that committed to it
  seats: new Set(), // currently taken
  everSeated: new Set(), // taken now or earlier
  revealed: new Set(), // nonces in hex, of any seat and shuffle
  round: null, // the open round
  closed: false,
  laidOut: false, // a practice table: the swaps of its first shuffle are taken as they are
});

/** Check an event and apply it to the ledger. Some events return a promise if S is known. */
export function applyEvent(ledger, leaf) {
  if (ledger.closed) fail("The table is closed.");
  return EVENTS[leaf.type][1](ledger, leaf.public, leaf);
}

/** With this rule, whatever its value, a log is no proof (tape, line 1). */
export const INSECURE_RULE = "insecure_test_deck";
export const INSECURE =
  "This table was opened at a server with insecure test decks, which may choose the cards: it " +
  "proves nothing about them.";

/** Apply all events; after each `after` is called with the ledger and the leaf, and awaited. */
async function replay(parts, roots, { remarks, swaps, seals, practice }, after) {
  if (Object.hasOwn(parts.leaves[0].public.rules, INSECURE_RULE)) {
    throw new Fault("tape", parts.leaves[0].version, INSECURE);
  }
  const secrets = secretsOf(parts.leaves), laidOut = practice !== null;
  const ledger = newLedger(parts.table, roots);
  Object.assign(ledger, { remarks, swaps, seals, secrets, laidOut });
  for (const leaf of parts.leaves) {
    const wrong = parts.wrong.get(leaf.version);
    if (wrong !== undefined) throw new Fault("secrets", leaf.version, wrong);
    await inCheck(EVENTS[leaf.type][0], leaf.version, () => applyEvent(ledger, leaf));
    await after(ledger, leaf);
  }
  ledger.remarks.open_rounds = ledger.round === null ? 0 : 1;
}

/** The S of a round is in the first RoundClosed of its number before another RoundOpened. */
function secretsOf(leaves) {
  const secrets = new Map();
  let opened = null;
  for (const leaf of leaves) {
    if (leaf.type === "RoundOpened") opened = leaf;
    else if (leaf.type === "RoundClosed" && opened?.public.round === leaf.public.round) {
      secrets.set(opened.version, unhex(leaf.public.secret));
      opened = null;
    }
  }
  return secrets;
}

/** The open round, which must be the one that the event names. */
function roundOf(ledger, { round }) {
  if (ledger.round?.number !== round) fail(`Round ${round} is not open.`);
  return ledger.round;
}

/** The open round, in which no shuffle may be running: no card moves or is shown until its end. */
function stillRoundOf(ledger, event) {
  const round = roundOf(ledger, event);
  if (round.shuffle !== null) fail("A shuffle is running: no card may move before its seal.");
  return round;
}

/** The open round, in which shuffle k must be running. */
function shufflingRoundOf(ledger, event) {
  const round = roundOf(ledger, event);
  if (round.shuffle?.k !== event.k) fail(`Shuffle ${event.k} is not running.`);
  return round;
}

/** The cards of a stack, bottom first; a stack is empty until a card is put on it. */
function cardsOf(round, stack) {
  if (!round.stacks.has(stack)) round.stacks.set(stack, []);
  return round.stacks.get(stack);
}

/** The index of a slot in a stack. */
function placeOf(round, stack, slot) {
  const place = cardsOf(round, stack).findIndex((card) => card.slot === slot);
  if (place < 0) fail(`Slot ${slot} is not in that stack.`);
  return place;
}

/** The card of a slot, in any stack. */
export function cardIn(round, slot) {
  for (const cards of round.stacks.values()) {
    const card = cards.find((other) => other.slot === slot);
    if (card) return card;
  }
  return fail("This slot is in no stack.");
}

// event salt = HMAC-SHA-256(salt_key, T("event") ‖ be64(version))
// commit     = H(T("event") ‖ lp(table, be64(version), salt, hidden part))

function beforeHidden(table, saltKey, version) {
  const salt = hmac256(saltKey, join(T("event"), be64(version)));
  return join(T("event"), lp(table, be64(version), salt));
}

const commitTo = (before, hidden) => hex(sha256(join(before, lp(utf8.encode(hidden)))));

export const eventCommit = (table, saltKey, version, hidden) =>
  commitTo(beforeHidden(table, saltKey, version), hidden);

function checkHidden(ledger, round, leaf, hidden) {
  if (round.saltKey === null) return;
  if (eventCommit(ledger.table, round.saltKey, leaf.version, hidden) !== leaf.commit) {
    fail("The event's commitment does not match the secret and the log.");
  }
}


// ———————————————————————————————————————— events: openings ——————————————————————————————————————

// salt   = 32 random bytes, others for each event
// commit = H(T("opened") ‖ lp(table, be64(version), salt, part))

export const openedCommit = (table, version, salt, part) =>
  hex(sha256(join(T("opened"), lp(table, be64(version), salt, utf8.encode(leafText(part))))));

/** Throw RuleViolation unless part and salt open what people wrote in the event of this leaf. */
function checkOpening({ table, type, version, commit }, part, salt) {
  if (openedCommit(unhex(table), version, unhex(salt), part) !== commit) {
    fail("The opening does not match the commitment of this event.");
  }
  checkMembers(`The opened part of ${type}`, part, PARTS.get(type));
}

/**
 * What people wrote in the event of a leaf, as `opened` beside it says; throws RuleViolation if that
 * is wrong, or missing.
 */
export function partOf(leaf, opened) {
  if (hasPart(leaf) !== (opened !== undefined)) fail("An opening is missing, or one too many.");
  if (opened === undefined) return {};
  checkMembers("An opening", opened, { part: isObject, salt: isBytes32 });
  checkOpening(leaf, opened.part, opened.salt);
  return opened.part;
}

/**
 * Put what people wrote among the public members of its leaf, where it is opened rightly, and list in
 * `wrong` what is wrong elsewhere, by version. Returns the versions whose openings are withheld.
 */
function openParts(parts) {
  const { leaves, openings, wrong } = parts;
  const unopened = new Set(leaves.filter(hasPart).map(({ version }) => version));
  for (const { opened, salt, version } of openings) {
    const leaf = leaves[version - 1];
    unopened.delete(version);
    try {
      checkOpening(leaf, opened, salt);
      Object.assign(leaf.public, opened);
    } catch (error) {
      if (!(error instanceof RuleViolation)) throw error;
      wrong.set(version, error.message);
    }
  }
  if (leaves.at(-1).type === "TableClosed") return [...unopened];
  for (const version of unopened) {
    wrong.set(version, "The opening of this event is missing, and the table is not closed.");
  }
  return [];
}


// ———————————————————————————————————————— events: secrets ———————————————————————————————————————

// Rounds are numbered 1, 2, 3 …, and one is open at a time. If the round is closed later, its S has
// the length that the deck requires, and opens the commitment:
//
//     length     = 32 · ⌈(bitlen(n!) + 128) / 256⌉ bytes, for n cards
//     commitment = H(T("house") ‖ lp(table, be32(round), S))
//     salt_key   = HKDF-SHA-512(ikm = S, salt = table, info = T("salt") ‖ be32(round), 32 bytes)

export function secretLength(n) {
  let orders = 1n;
  for (let cards = 2; cards <= n; cards++) orders *= BigInt(cards);
  return 32 * Math.ceil((orders.toString(2).length + 128) / 256);
}

export const houseCommitment = (table, round, secret) =>
  hex(sha256(join(T("house"), lp(table, be32(round), secret))));

export const saltKeyOf = (table, round, secret) =>
  hkdf512(secret, table, join(T("salt"), be32(round)), 32);

function roundOpened(ledger, event, leaf) {
  const secret = ledger.secrets.get(leaf.version) ?? null;
  if (ledger.round !== null) fail(`Round ${ledger.round.number} is open.`);
  if (event.round !== ledger.remarks.rounds + 1) fail("Rounds must be numbered 1, 2, 3 …");
  if (secret !== null) {
    if (secret.length !== secretLength(event.deck.length)) {
      fail("The revealed secret has the wrong length for this deck.");
    }
    if (houseCommitment(ledger.table, event.round, secret) !== event.commitment) {
      fail("The revealed secret is not the one that the house committed to.");
    }
  }
  const fresh = event.deck.map((face) =>
    ({ face, slot: -1, commitment: null, reached: false, shown: false }));
  ledger.round = {
    number: event.round, entropy: event.entropy,
    secret, saltKey: null,
    stacks: new Map([["deck", fresh]]),
    slots: 0, // made so far
    k: 0, // of the running or the next shuffle
    shuffle: null, // the running one
    earlyDigests: new Map(), // digests for the next shuffle, by seat
    withheld: new Set(), // seats that contribute no more entropy
  };
  ledger.remarks.rounds = event.round;
  return secret && takeSaltKey(ledger, ledger.round);
}

async function takeSaltKey({ table }, round) {
  round.saltKey = await saltKeyOf(table, round.number, round.secret);
}

// RoundClosed closes the open round, while no shuffle is running.

function roundClosed(ledger, event) {
  stillRoundOf(ledger, event);
  ledger.round = null;
}

// In a round with players' entropy, each taken seat that has not withheld may commit one digest for
// each k: for the running shuffle, before its EntropyClosed, or, if none is running, for the next.

function entropyCommitted(ledger, event) {
  const round = roundOf(ledger, event);
  const digests = round.shuffle === null ? round.earlyDigests : round.shuffle.digests;
  if (round.entropy !== "players") fail("This round's shuffles use no players' bytes.");
  if (event.k !== round.k) fail(`Digests are currently accepted for shuffle ${round.k}.`);
  if (round.shuffle?.closed) fail("The digests of this shuffle are closed.");
  if (!ledger.seats.has(event.seat)) fail("This seat is free.");
  if (round.withheld.has(event.seat)) fail("This seat has withheld in this round.");
  if (digests.has(event.seat)) fail("This seat has already committed a digest for this shuffle.");
  digests.set(event.seat, event.digest);
}

// Digests are closed once for each shuffle; no verifier can check when. The version of the event is
// the size of checkpoint C1. A seat that could have committed a digest and has none is left out.

function entropyClosed(ledger, event, leaf) {
  const round = shufflingRoundOf(ledger, event);
  if (round.shuffle.closed) fail("The digests of this shuffle are already closed.");
  round.shuffle.closed = leaf.version;
  if (round.entropy !== "players") return;
  for (const seat of ledger.seats) {
    if (!round.shuffle.digests.has(seat) && !round.withheld.has(seat)) ledger.remarks.left_out += 1;
  }
}

// A seat reveals its nonce, 32 bytes r, once, after EntropyClosed; r opens its digest:
//
//     digest = H(T("player") ‖ lp(table, be32(round), be32(k), be32(seat), r))
//
// An r that this log has revealed before is counted; it is no fault: it harms only its player.

export const playerDigest = (table, round, k, seat, nonce) =>
  hex(sha256(join(T("player"), lp(table, be32(round), be32(k), be32(seat), nonce))));

function entropyRevealed(ledger, event) {
  const { shuffle } = shufflingRoundOf(ledger, event);
  const nonce = unhex(event.nonce);
  if (!shuffle.closed) fail("A nonce was revealed before EntropyClosed.");
  if (!shuffle.digests.has(event.seat) || shuffle.nonces.has(event.seat)) {
    fail("No nonce is expected from this seat.");
  }
  const digest = playerDigest(ledger.table, event.round, event.k, event.seat, nonce);
  if (digest !== shuffle.digests.get(event.seat)) fail("The nonce does not open the digest.");
  shuffle.nonces.set(event.seat, nonce);
  if (ledger.revealed.has(event.nonce)) ledger.remarks.reused += 1;
  ledger.revealed.add(event.nonce);
}

/** The seats that have committed a digest and not revealed their nonce. */
function missing({ digests, nonces }) {
  return [...digests.keys()].filter((seat) => !nonces.has(seat));
}

// A shuffle may be voided after EntropyClosed, and only while a nonce is missing. Seats that
// withheld contribute no entropy for the rest of the round; the next shuffle is k + 1.

function shuffleVoided(ledger, event) {
  const round = shufflingRoundOf(ledger, event);
  const silent = missing(round.shuffle);
  if (!round.shuffle.closed || silent.length === 0) {
    fail("A shuffle was voided though no nonce was missing after EntropyClosed.");
  }
  for (const seat of silent) round.withheld.add(seat);
  round.k += 1;
  round.shuffle = null;
  ledger.remarks.voided += 1;
  ledger.remarks.withheld += silent.length;
}


// ———————————————————————————————————————— events: tape ——————————————————————————————————————————

const allSteps = (n) => Math.max(n - 1, 0);

// A shuffle starts while none is running: with the next k, of the deck or a pile, with all of its n
// cards; it has at most max(n − 1, 0) steps, and exactly that many for `forward`.

function shuffleStarted(ledger, event) {
  const round = stillRoundOf(ledger, event);
  const { k, stack, n, algorithm, steps } = event;
  const cards = cardsOf(round, stack);
  if (k !== round.k) fail(`The next shuffle of this round is ${round.k}.`);
  if (seatOf(stack) !== null) fail("A hand cannot be shuffled.");
  if (n !== cards.length) fail(`The stack has ${cards.length} cards.`);
  if (steps > allSteps(n) || (algorithm === "forward" && steps !== allSteps(n))) {
    fail(`A shuffle of ${n} cards has at most ${allSteps(n)} steps; \`forward\` has all of them.`);
  }
  round.shuffle = {
    k, stack, n, algorithm, steps,
    digests: round.earlyDigests, nonces: new Map(), // by seat
    closed: 0, // version of its EntropyClosed
    done: 0, // number of steps so far
    plan: null, // the steps that the tape gives
  };
  round.earlyDigests = new Map();
  ledger.remarks.shuffles += 1;
}

/** The house may shuffle only after EntropyClosed, when all nonces were revealed. */
function checkEntropy(shuffle) {
  if (!shuffle.closed) fail("The house shuffled before EntropyClosed.");
  if (missing(shuffle).length) fail("The house shuffled while a nonce was missing.");
}

// The tape is the concatenation of segments 0, 1, 2 …, each of 32 big-endian 16-bit words:
//
//     ikm       = lp(S, r, …)                        the r in order of seats
//     salt      = root of C1 ‖ be32(k) ‖ be32(n) ‖ be32(s)
//     segment s = HKDF-SHA-512(ikm, salt, info = T("shuffle"), 64 bytes)
//
// below(b): the next word w; while w ≥ 65536 − (65536 mod b), the next; then w mod b.

export class Tape {
  words = []; // of the segments derived so far
  next = 0;

  constructor(secret, nonces, root, k, n) {
    this.ikm = lp(secret, ...nonces);
    this.salt = join(root, be32(k), be32(n));
  }

  async word() {
    if (this.next === this.words.length) {
      const salt = join(this.salt, be32(this.words.length / 32));
      const segment = new DataView((await hkdf512(this.ikm, salt, T("shuffle"), 64)).buffer);
      for (let at = 0; at < 64; at += 2) this.words.push(segment.getUint16(at));
    }
    return this.words[this.next++];
  }

  /** A number 0 … b−1, and the words read for it: the last was used, those before it rejected. */
  async below(b) {
    const read = [];
    do read.push(await this.word());
    while (read.at(-1) >= 65536 - (65536 % b));
    return { number: read.at(-1) % b, words: read };
  }
}

// backward: step = 0 … steps−1:  i = n − 1 − step,  j = below(i + 1)
// forward:  step = 0 … n−2:      i = step,          j = i + below(n − i)

const iOf = ({ algorithm, n }, step) => (algorithm === "backward" ? n - 1 - step : step);

export async function planOf({ algorithm, n, steps }, tape) {
  const plan = [];
  for (let step = 0; step < steps; step++) {
    const i = iOf({ algorithm, n }, step);
    const { number, words } = await tape.below(algorithm === "backward" ? i + 1 : n - i);
    plan.push({ i, j: algorithm === "backward" ? number : i + number, words });
  }
  return plan;
}

// Each swap has the next step, that step's i and, if S is known, the tape's j, hidden as {"j":j}. In
// the first shuffle of a practice table j is the one that the swap commits to.

function cardsSwapped(ledger, event, leaf) {
  const round = shufflingRoundOf(ledger, event);
  const { shuffle } = round;
  checkEntropy(shuffle);
  const step = shuffle.done;
  if (step >= shuffle.steps) fail("This shuffle has no more steps.");
  if (event.step !== step) fail(`The next step is ${step}.`);
  if (event.i !== iOf(shuffle, step)) fail(`The i of step ${step} is ${iOf(shuffle, step)}.`);
  shuffle.done += 1;
  return round.secret && swap(ledger, round, leaf);
}

async function swap(ledger, round, leaf) {
  const { number, shuffle } = round;
  const { version, public: { step } } = leaf;
  const laidOut = ledger.laidOut && number === 1 && shuffle.k === 0;
  if (!laidOut) shuffle.plan ??= await planOf(shuffle, tapeOf(ledger, round));
  const { i, j, words } = laidOut ? committedStep(ledger, round, leaf) : shuffle.plan[step];
  checkHidden(ledger, round, leaf, `{"j":${j}}`);
  const cards = cardsOf(round, shuffle.stack);
  const faces = [cards[i].face, cards[j].face];
  ledger.swaps.push({ version, round: number, k: shuffle.k, step, i, j, words, cards: faces });
  [cards[i], cards[j]] = [cards[j], cards[i]];
}

/** The step that a swap commits to, among all that it may make; no word of the tape gave it. */
function committedStep({ table }, { saltKey, shuffle }, { version, commit, public: { i } }) {
  const [first, last] = shuffle.algorithm === "backward" ? [0, i] : [i, shuffle.n - 1];
  const before = beforeHidden(table, saltKey, version);
  for (let j = first; j <= last; j++) {
    if (commitTo(before, `{"j":${j}}`) === commit) return { i, j, words: [] };
  }
  return fail("The commitment is to no place that this step may exchange.");
}

function tapeOf(ledger, { secret, shuffle }) {
  const seats = [...shuffle.nonces.keys()].sort((a, b) => a - b);
  const nonces = seats.map((seat) => shuffle.nonces.get(seat));
  return new Tape(secret, nonces, ledger.roots.get(shuffle.closed), shuffle.k, shuffle.n);
}


// ———————————————————————————————————————— events: seals —————————————————————————————————————————

// The seal ends a shuffle: all nonces and all steps are there, `first` is the number of slots made
// so far in the round, and the card at index p gets slot first + p, with a commitment to it:
//
//     salt   = HMAC-SHA-256(salt_key, T("card") ‖ be32(slot))
//     commit = H(T("card") ‖ lp(table, be32(round), be32(slot), salt, card))

export const slotSalt = (saltKey, slot) => hmac256(saltKey, join(T("card"), be32(slot)));

export const slotCommitment = (table, round, slot, salt, card) =>
  hex(sha256(join(T("card"), lp(table, be32(round), be32(slot), salt, utf8.encode(card)))));

function deckSealed(ledger, event) {
  const round = shufflingRoundOf(ledger, event);
  const { shuffle } = round;
  const cards = cardsOf(round, shuffle.stack);
  checkEntropy(shuffle);
  if (shuffle.done !== shuffle.steps) fail(`${shuffle.steps - shuffle.done} steps are missing.`);
  if (event.first !== round.slots) fail(`The first slot must be ${round.slots}.`);
  if (event.slots.length !== shuffle.n) fail(`The seal must have ${shuffle.n} slots.`);
  if (round.saltKey !== null) {
    cards.forEach((card, place) => {
      const slot = event.first + place;
      const salt = slotSalt(round.saltKey, slot);
      const wanted = slotCommitment(ledger.table, round.number, slot, salt, card.face);
      if (wanted !== event.slots[place]) fail(`Slot ${slot} commits to another card.`);
    });
    ledger.seals.push(event.first);
  }
  giveSlots(cards, event, shuffle);
  round.slots += shuffle.n;
  round.k += 1;
  round.shuffle = null;
  if (shuffle.nonces.size === 0) ledger.remarks.house_only += 1;
}

// After a partial shuffle only the top `steps` cards may go into a hand, because only they are a
// uniform sample; unless a shuffle had reached every card before, and then all stay reached.

function giveSlots(cards, { first, slots }, { n, steps }) {
  const all = steps === allSteps(n) || cards.every((card) => card.reached);
  cards.forEach((card, place) => {
    card.slot = first + place;
    card.commitment = slots[place];
    card.shown = false;
    card.reached = all || place >= n - steps;
  });
}

// CardShown opens the commitment of a slot that is in some stack.

function cardShown(ledger, event) {
  const round = stillRoundOf(ledger, event);
  const card = cardIn(round, event.slot);
  const salt = unhex(event.salt);
  if (slotCommitment(ledger.table, event.round, event.slot, salt, event.card) !== card.commitment) {
    fail("Card and salt do not open the slot's commitment.");
  }
  card.shown = true;
}


// ———————————————————————————————————————— events: moves —————————————————————————————————————————

function seatTaken(ledger, { seat }) {
  if (ledger.seats.has(seat)) fail("This seat is taken.");
  ledger.seats.add(seat);
  ledger.everSeated.add(seat);
}

// The seat of HostTransferred, and of a NoteAdded unless it is 0, is taken; neither moves a card, so
// both may come during a shuffle.

function takenSeatOf(ledger, { seat }) {
  if (!ledger.seats.has(seat)) fail("This seat is free.");
}

// Leaving a seat, or being removed from it (SeatVacated), withdraws its digest, until EntropyClosed.
// The hand stays.

function seatLeft(ledger, event) {
  takenSeatOf(ledger, event);
  const { seat } = event;
  ledger.seats.delete(seat);
  ledger.round?.earlyDigests.delete(seat);
  if (!ledger.round?.shuffle?.closed) ledger.round?.shuffle?.digests.delete(seat);
}

// CardDrawn moves a card from the deck or a pile, where its slot must be, into the hand of a taken
// seat. Hidden part: {"card":code}.

function cardDrawn(ledger, event, leaf) {
  const round = stillRoundOf(ledger, event);
  if (seatOf(event.from) !== null) fail("A card cannot be drawn from a hand.");
  takenSeatOf(ledger, event);
  const from = cardsOf(round, event.from);
  const place = placeOf(round, event.from, event.slot);
  checkIntoHand(ledger, round, leaf, from[place]);
  if (place !== from.length - 1) ledger.remarks.not_top += 1;
  cardsOf(round, `hand:${event.seat}`).push(...from.splice(place, 1));
}

// CardMoved moves a card from the stack that has its slot to an index from 0 to the length of the
// target without it: any pile, the deck, or the hand of any seat that was ever taken.

function cardMoved(ledger, event, leaf) {
  const round = stillRoundOf(ledger, event);
  const from = cardsOf(round, event.from);
  const to = cardsOf(round, event.to);
  const place = placeOf(round, event.from, event.slot);
  const seat = seatOf(event.to);
  if (seat !== null) {
    if (!ledger.everSeated.has(seat)) fail("This seat was never taken.");
    checkIntoHand(ledger, round, leaf, from[place]);
  }
  const room = to.length - (to === from ? 1 : 0);
  if (event.place > room) fail(`The index must be 0 to ${room}.`);
  to.splice(event.place, 0, ...from.splice(place, 1));
}

function checkIntoHand(ledger, round, leaf, card) {
  if (!card.reached) fail("No shuffle has reached this card, so it may not go into a hand.");
  checkHidden(ledger, round, leaf, `{"card":"${card.face}"}`);
}

function cardPeeked(ledger, event) {
  cardIn(stillRoundOf(ledger, event), event.slot);
  takenSeatOf(ledger, event);
}

// StackCut puts the cards from index `at` on at the bottom, and those below it on top.

function stackCut(ledger, event) {
  const round = stillRoundOf(ledger, event);
  const cards = cardsOf(round, event.stack);
  if (seatOf(event.stack) !== null) fail("A hand cannot be cut.");
  if (event.at > cards.length) fail(`The stack has ${cards.length} cards.`);
  cards.push(...cards.splice(0, event.at));
}

function tableClosed(ledger) {
  if (ledger.round !== null) fail("A round is open: its secret was not revealed.");
  ledger.closed = true;
}


// ———————————————————————————————————————— practice tables ———————————————————————————————————————
//
// With the rule `practice` the first shuffle laid out the cards of a closed round of another table,
// the source, as they lay at one version, and the events after it put them into hands and piles.
// That is no fair deal, and no fault. Faults, in line 1 (tape), are a rule of another form and, given
// the source's bundle, no rule, or a source with a fault, of another table, or without the round
// closed, the version in it, or the root at a head over its end; and at the end of the layout
// (moves) a card that lies elsewhere or otherwise than there.

/** With this rule the log is of a practice table. */
export const PRACTICE_RULE = "practice";
export const PRACTICE =
  "This is a practice table: the cards of its first round were laid out as in another round, " +
  "which is no fair deal.";
const PRACTICE_FORM =
  /^\{"root":"[0-9a-f]{64}","round":[1-9][0-9]*,"table":"[0-9a-f]{32}","version":[1-9][0-9]*\}$/;

const ofSource = (sentence) => new Fault("tape", 1, sentence);

/** What the rule names, { table, round, version, root, source }; null without one. */
function practiceOf({ leaves }) {
  const { rules } = leaves[0].public;
  if (!Object.hasOwn(rules, PRACTICE_RULE)) return null;
  const rule = rules[PRACTICE_RULE];
  if (!PRACTICE_FORM.test(JSON.stringify(rule))) { // its members are sorted, as in each line
    throw ofSource("The rule `practice` must name table, round, version and root of a source.");
  }
  return { ...rule, source: "not given" };
}

/** Seconds after which a broadcast link shows what players have seen; null if never. */
export function broadcastOf({ broadcast }) {
  return Number.isInteger(broadcast) && broadcast >= 0 && broadcast <= 86400 ? broadcast : null;
}

/** Each card of the open round, by stack and place, and whether it lies face up. */
const placementOf = ({ round }) =>
  [...round?.stacks ?? []].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([stack, cards]) =>
    cards.map(({ face, shown }) => ({ stack, face, shown })));

/** How many events lay these cards out, after RoundOpened to the SeatLeft of the last hand. */
function layoutLength(cards) {
  const hands = new Set(cards.map(({ stack }) => stack).filter((stack) => seatOf(stack) !== null));
  const placed = cards.filter(({ stack }) => stack !== "deck").length;
  const shown = cards.filter((card) => card.shown).length;
  return 2 + allSteps(cards.length) + 1 + placed + shown + hands.size;
}

/** A function to be called after each event, which compares the layout with its source. */
async function comparing(source, practice, leaves) {
  if (practice === null) {
    throw ofSource(
      "This table names no source: it has no rule `practice`, and its cards must be its own.");
  }
  const wanted = await placementIn(source, practice);
  const opened = leaves.find(({ type }) => type === "RoundOpened")?.version ?? leaves.length;
  const end = Math.min(opened + layoutLength(wanted), leaves.length);
  return (ledger, { version }) => {
    if (version !== end) return;
    if (ledger.round !== null && ledger.round.secret === null) practice.source = "open";
    else if (JSON.stringify(placementOf(ledger)) === JSON.stringify(wanted)) {
      practice.source = "proved";
    } else throw new Fault("moves", end, "The cards were not laid out as they lie in the source.");
  };
}

/** Where the cards lay at the version that the rule names, as the source's bundle proves. */
async function placementIn(source, { table, round, version, root }) {
  let placement = null, closed = null, roots = null;
  const { fault, origin } = await verify(source, {
    after(ledger, leaf) {
      ({ roots } = ledger);
      const isOpen = ledger.round?.number === round;
      if (leaf.version === version && isOpen) placement = placementOf(ledger);
      if (leaf.type === "RoundClosed" && leaf.public.round === round) closed = leaf.version;
    },
  });
  const signed = [...roots ?? []].some(([size, one]) => size >= closed && hex(one) === root);
  const wrong =
    fault !== null ? `The source has a fault itself, in line ${fault.line}: ${fault.sentence}`
    : !origin.endsWith(table) ? "The source is of another table than the rule names."
    : closed === null ? `The source has no closed round ${round}.`
    : !signed ? "The house signed no such root of the source after that round."
    : placement === null ? `Version ${version} of the source is not of round ${round}.` : null;
  if (wrong !== null) throw ofSource(wrong);
  return placement;
}


// ———————————————————————————————————————— report as text ————————————————————————————————————————

const SENTENCES = {
  form: "every line is in canonical form",
  heads: "the house signed these checkpoints, and they match the log",
  saved: "the log agrees with the checkpoints you saved",
  secrets: "secrets and players' bytes open their commitments",
  tape: "every swap is the one that these bytes give",
  seals: "every sealed or shown card is the one the shuffle put there",
  moves: "every other event was legal, and each card was where it was taken from",
};

const meaning = (check, { practice }) => (check === "tape" && practice !== null
  ? "every swap after the first shuffle, which was laid out, is the one that these bytes give"
  : SENTENCES[check]);

const NOT_CHECKED = {
  earlier: "an earlier check failed",
  unsaved: "no saved checkpoint was given",
  unreached: "no shuffle of a closed round was reached",
};
const PARTLY = "; not checked in the round that is still open";

/** The names of the checks for readers: the same on the command line and on the pages. */
export const TITLES = {
  form: "Each line is well formed",
  heads: "The house has signed",
  saved: "The log is the one you saw",
  secrets: "Each commitment was opened correctly",
  tape: "Each swap follows from the random bytes",
  seals: "Each card is the sealed one",
  moves: "Each move is legal",
};

/**
 * The report as lines of text for programs, which keep their form: one for each check, then the
 * counts. `reportLines` says the same for readers.
 *
 * @param {Report} report
 * @returns {string[]}
 */
export function verdicts(report) {
  return [...CHECKS.map((check) => `${check}: ${answer(check, report)}`), ...counted(report)];
}

/**
 * The report as lines of text for readers: one for each check, then the counts, then the notes.
 *
 * @param {Report} report
 * @returns {string[]}
 */
export function reportLines(report) {
  const lines = results(report).map(({ check, state, sentence }) =>
    `${state}: ${TITLES[check]} (${check}): ${sentence}${sentence.endsWith(".") ? "" : "."}`);
  return [...lines, ...counted(report), ...report.notes.map((note) => `note: ${note}.`)];
}

/**
 * The result of each check. It has passed only if it was made of something: without a saved
 * checkpoint, `saved` was not, and without a closed round neither the swaps nor the sealed cards
 * were. `note` says for programs what `sentence` adds to what the check means.
 *
 * @param {Report} report
 * @returns {{ check: string, state: "passed" | "failed" | "not checked", sentence: string,
 *   note: null | "fault" | "earlier" | "unsaved" | "unreached" | "upTo" | "partly" }[]}
 */
export function results(report) {
  return CHECKS.map((check) => {
    const { fault } = report;
    const why = whyNotChecked(check, report);
    if (why !== null) return { check, state: "not checked", sentence: NOT_CHECKED[why], note: why };
    if (fault?.check === check) {
      const sentence = `line ${fault.line}: ${fault.sentence}`;
      return { check, state: "failed", sentence, note: "fault" };
    }
    const note = upTo(check, report);
    const more = { upTo: `, up to line ${fault?.line}, where the replay stopped`, partly: PARTLY };
    return { check, state: "passed", sentence: meaning(check, report) + (more[note] ?? ""), note };
  });
}

const order = (check) => CHECKS.indexOf(check);
const isOfEvents = (check) => order(check) >= order("secrets");
const isOfClosedRounds = (check) => check === "tape" || check === "seals";

function whyNotChecked(check, { fault, saved, swaps, seals }) {
  if (fault?.check === check) return null;
  if (fault && !isOfEvents(fault.check) && order(check) > order(fault.check)) {
    return "earlier";
  }
  if (check === "saved" && !saved) return "unsaved";
  if (isOfClosedRounds(check) && swaps.length + seals.length === 0) {
    return "unreached";
  }
  return null;
}

/** How far a check went: "upTo" the fault, or "partly"; null to the end of the log. */
function upTo(check, { fault, remarks }) {
  if (fault && isOfEvents(check)) return "upTo";
  return !fault && isOfClosedRounds(check) && remarks.open_rounds > 0 ? "partly" : null;
}

function answer(check, report) {
  const { fault, saved } = report;
  if (fault?.check === check) return `no, in line ${fault.line}: ${fault.sentence}`;
  if (fault && isOfEvents(fault.check) && isOfEvents(check)) return `yes, before line ${fault.line}`;
  if (fault && order(check) > order(fault.check)) return "not checked";
  if (check === "saved" && !saved) return "yes, but you gave no saved checkpoint";
  return `yes, ${meaning(check, report)}`;
}

const OF_SOURCE = {
  "not given": "Whether they lay so is not checked: give that table's bundle as the source.",
  open: "Whether they lay so is not checked: round 1 is still open.",
  proved: "They lay so: the source proves it.",
};

function ofPractice({ fault, practice }) {
  if (practice === null) return [];
  const { table, round, version, source } = practice;
  return [
    `practice: not a fair deal. By its rule the first shuffle laid out the cards of round ${round}` +
      ` of table ${table} as they lay at version ${version}.`,
    ...(fault === null ? [OF_SOURCE[source]] : []),
  ];
}

function counted(report) {
  const { fault, remarks: r, cosigners, withheld_parts, withheld_cosigners } = report;
  if (fault && !isOfEvents(fault.check)) return ["Nothing was counted: no event was checked."];
  const times = (count) => `${count} time${count === 1 ? "" : "s"}`;
  return [
    ...ofPractice(report),
    ...(report.broadcast === null ? [] : [
      `broadcast: by a rule of this table, hands were shown ${report.broadcast} seconds after each ` +
        "event to those who had a link to its broadcast.",
    ]),
    `Rounds: ${r.rounds}` +
      (r.open_rounds > 0 ? `, ${r.open_rounds} of them still open and so not proved.` : "."),
    `Shuffles: ${r.shuffles}, ${r.voided} of them voided, ${r.house_only} without any player's` +
      (r.house_only > 0
        ? " bytes: these prove only that the cards were fixed before the deal." : " bytes."),
    `Seats left out of a shuffle: ${r.left_out}; that did not reveal their bytes: ${r.withheld}.` +
      (r.left_out + r.withheld > 0
        ? " Only the players concerned know whether the house reports that correctly." : ""),
    `Reused nonces: ${r.reused}.` +
      (r.reused > 0 ? " A reused nonce harms only the player who sent it." : ""),
    `Draws that did not take the top card: ${r.not_top}.`,
    `Cosignatures: ${r.cosigned}.`,
    ...cosigners.map(({ key, name, count, size }) =>
      `Cosigned by ${name} ${times(count)}, last at size ${size}, under the key ${key}.`),
    ...Object.entries(withheld_cosigners).map(([key, count]) =>
      `Cosignatures that are not counted, since their player is withheld or unknown: ${count}, ` +
        `under the key ${key}.`),
    ...(withheld_parts.length === 0 ? [] : [
      `Names or texts withheld: ${withheld_parts.length} (of the versions ` +
        `${withheld_parts.join(", ")}). Nothing else of the log is missing.`,
    ]),
    r.pinned
      ? "The table's key is the one you gave."
      : "The table's key was taken from the bundle; give the key you know to be sure.",
  ];
}


// ———————————————————————————————————————— command line ——————————————————————————————————————————

const USAGE = "usage: node verify.js FILE [--key HEX] [--saved FILE]… [--source FILE] [--json]";

/** The notes in a file: either one note, or many, each in a JSON line with a member `note`. */
function notesIn(text) {
  if (!text.startsWith("{")) return [text];
  return text.trimEnd().split("\n").map((line) => JSON.parse(line).note);
}

// Texts that players chose are shown by the rule of `dealer/game/names.py`.
const INVISIBLE = /[\u{16fe4}\p{DI}\ufff9-\ufffc\u{13430}-\u{13442}\u{1d159}]/u;
const UNSAFE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/u;
const SELECTOR = /[\u180b-\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;
const JOINED = /[\u0590-\u1fff\u2190-\ud7ff\uf900-\u{dffff}]/u;
const VARIED = /[#*0-9\u00a9\u00ae\u1000-\ud7ff\uf900-\ufdfa\u{10000}-\u{dffff}]/u;
const FLAG = /(\u{1f3f4}[\u{e0020}-\u{e007e}]{1,16}\u{e007f})/u;
const MARK = /[\p{Mn}\p{Me}]/u;
const MARKS_MAX = 4;

/** Whether a character without a form belongs to the one before it. */
function belongs(before, character) {
  const joiner = character === "\u200c" || character === "\u200d";
  if (joiner) return JOINED.test(before);
  return SELECTOR.test(character) && VARIED.test(before);
}

function safePart(text) {
  const characters = [...text];
  let safe = "", marks = 0;
  for (const [place, character] of characters.entries()) {
    const formless = INVISIBLE.test(character) && !belongs(characters[place - 1] ?? "", character);
    const kept = formless || UNSAFE.test(character) ? "\ufffd" : character;
    if (!INVISIBLE.test(kept)) marks = MARK.test(kept) ? marks + 1 : 0;
    if (marks <= MARKS_MAX) safe += kept;
  }
  return safe;
}

/** A text that cannot hide, move or cover other text, as `dealer verify` prints it. */
export const safeText = (text) =>
  text.split(FLAG).map((part, index) => (index % 2 === 1 ? part : safePart(part))).join("");

async function commandLine(given, readFile) {
  const options = { key: null, saved: [], notes: [], source: null };
  const files = [];
  let json = false;
  for (const once of ["--json", "--key", "--source"]) {
    if (given.indexOf(once) !== given.lastIndexOf(once)) {
      throw new Error(`${once} is given more than once.`);
    }
  }
  for (let n = 0; n < given.length; n++) {
    if (given[n] === "--json") json = true;
    else if (given[n] === "--key" && n + 1 < given.length) options.key = given[++n].toLowerCase();
    else if (["--saved", "--source"].includes(given[n]) && n + 1 < given.length) {
      const option = given[n];
      const kept = await restore(readFile(given[++n]));
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      if (option === "--source") options.source = linesOf(kept.bytes);
      else options.saved.push(...notesIn(decoder.decode(kept.bytes)));
      options.notes.push(...kept.notes.map((note) => `${given[n]}: ${note}`));
    } else files.push(given[n]);
  }
  if (files.length !== 1 || files[0].startsWith("--")) throw new Error(USAGE);
  const { bytes, notes } = await restore(readFile(files[0]));
  options.notes.unshift(...notes);
  const report = await verify(linesOf(bytes), options);
  if (json) console.log(JSON.stringify(report));
  else for (const line of reportLines(report)) console.log(safeText(line));
  if (report.fault !== null) return 1;
  return report.practice === null ? 0 : 3;
}

if (globalThis.process?.versions?.node && process.argv[1]) {
  const { existsSync, readFileSync, realpathSync, statSync } = await import("node:fs");
  const { pathToFileURL } = await import("node:url");
  // With `node -e` the first argument is any text.
  const program = existsSync(process.argv[1]) && realpathSync(process.argv[1]);
  if (program && pathToFileURL(program).href === import.meta.url) {
    const read = (name) => {
      if (!existsSync(name)) throw new Error(`There is no file ${name}.`);
      if (statSync(name).isDirectory()) throw new Error(`${name} is a folder: name a file in it.`);
      return readFileSync(name);
    };
    process.exitCode = await commandLine(process.argv.slice(2), read).catch((error) => {
      console.error(error.message);
      return 2;
    });
  }
}
