#!/usr/bin/env node
/**
 * Was the game fair? This file alone answers, from the bundle of a table, and trusts nobody.
 *
 * It is the second verifier of dealer: written from the text of the protocol, with no line and no
 * table of the first one, which is Python. Both must name the same first fault. Keep a copy that
 * you have read; the house's own page could show you anything.
 *
 *     node verify.js FILE [--key HEX] [--saved FILE]… [--json]      exit code 0: fair, 1: not
 *     import { linesOf, verify } from "./verify.js"                 in a browser
 *
 * A bundle is one line of header, one line for each event (a leaf of a Merkle tree), and then the
 * checkpoints that the house signed. The checks come in this order, and the first fault ends them:
 *
 *     1 form      each line is written in its one form
 *     2 heads     the house signed this log, wherever it had to
 *     3 saved     the log is the one whose checkpoints you kept
 *     4 events    one by one, and each falls under one check:
 *         secrets   what was committed to is what was opened
 *         tape      each swap is the one that the tape of random words gives
 *         seals     each sealed or shown card is the one that the shuffle left there
 *         moves     everything else was legal, and each card lay where it was taken from
 *
 * Signs used in the formulas:  H = SHA-256,  ‖ = joined,  be32, be64 = big-endian numbers,
 * lp(x, …) = be32(length of x) ‖ x, for each x,  T(s) = "dealer/v1/" ‖ s ‖ 0x00.
 */

const PROTOCOL = "dealer/v1";
export const CHECKS = ["form", "heads", "saved", "secrets", "tape", "seals", "moves"];
const PROGRESS_EVERY = 256;

/** A bundle does not hold: the check that says so, the line (a leaf's is its version), and why. */
class Fault extends Error {
  constructor(check, line, sentence) {
    super(sentence);
    Object.assign(this, { check, line, sentence });
  }
}

/** Something is wrong; whoever catches it knows in which check and line. */
export class Wrong extends Error {}

function refuse(sentence) {
  throw new Wrong(sentence);
}

async function under(check, line, judge) {
  try {
    return await judge();
  } catch (error) {
    throw error instanceof Wrong ? new Fault(check, line, error.message) : error;
  }
}

/**
 * What is true of a bundle, whatever stands in its lines (strings or Uint8Arrays).
 *
 * key       the table's 32 bytes, or their hex, as you know them from elsewhere
 * saved     texts of checkpoints that you kept
 * progress  progress(done, total) is called now and then and awaited, so that a page can be drawn
 *
 * Gives { fault, remarks, swaps, … }: fault is null or { check, line, sentence }; remarks are
 * counted, and swaps told, up to the end or the fault. Throws only where the machine is unfit.
 */
export async function verify(lines, { key = null, saved = [], progress = null } = {}) {
  await checkMachine();
  const bundle = Array.from(lines ?? []);
  const notes = Array.from(saved ?? []);
  const total = 2 * bundle.length;
  const report = {
    fault: null,
    remarks: noRemarks(),
    swaps: [], // of closed rounds: { version, round, k, step, i, j, words, cards }
    origin: "", key: "", saved: notes.length,
    cosigners: [], // { key, name, count, size }: size of the newest head that key cosigned
  };
  try {
    const parts = await readForm(bundle, (done) => progress?.(done, total));
    report.origin = parts.origin;
    report.key = parts.key;
    const roots = await checkHeads(parts, key instanceof Uint8Array ? hex(key) : key, report);
    await checkSaved(parts, notes);
    await replay(parts, roots, report, (done) => progress?.(bundle.length + done, total));
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    report.fault = { check: error.check, line: error.line, sentence: error.sentence };
  }
  await progress?.(total, total);
  return report;
}

const noRemarks = () => ({
  rounds: 0, open_rounds: 0, // opened; open at the end, and so not proved
  shuffles: 0, voided: 0, house_only: 0, // started; given up; sealed with no player's bytes
  left_out: 0, withheld: 0, // seats without a digest; seats that did not open theirs
  reused: 0, // reveals of a nonce that this log had revealed before, from whichever seat
  not_top: 0, // draws of another card than the top one
  cosigned: 0, // good cosignatures by players' keys
  pinned: false, // whether the key is the one that you named
});

/** The lines of a bundle's file: newline and nothing else ends one; the last may lack its own. */
export function linesOf(file) {
  const lines = [];
  let start = 0;
  for (let end; (end = file.indexOf(0x0a, start)) >= 0; start = end + 1) {
    lines.push(file.subarray(start, end));
  }
  if (start < file.length || start === 0) lines.push(file.subarray(start));
  return lines;
}


// ——————————————————————————————————— bytes, hashes, signatures ———————————————————————————————————

const subtle = globalThis.crypto?.subtle;
const utf8 = new TextEncoder();

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function hex(bytes) {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** Bytes of a text that is known to be lower-case hex. */
export function unhex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let n = 0; n < bytes.length; n++) bytes[n] = parseInt(text.slice(2 * n, 2 * n + 2), 16);
  return bytes;
}

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
 * SHA-256 (FIPS 180-4). WebCrypto has it too, but only as a promise for each hash: of the ten
 * thousands that a bundle asks for, each then takes ten times as long. A test compares the two.
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

const SHA_START = Int32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
);
const SHA_K = Int32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
);

/** HMAC-SHA-256 (RFC 2104) under a key of at most 64 bytes. */
export function hmac256(key, data) {
  const inner = new Uint8Array(64).fill(0x36);
  const outer = new Uint8Array(64).fill(0x5c);
  key.forEach((byte, n) => {
    inner[n] ^= byte;
    outer[n] ^= byte;
  });
  return sha256(join(outer, sha256(join(inner, data))));
}

/** HKDF-SHA-512 (RFC 5869), of at most 64 bytes. */
async function hkdf512(ikm, salt, info, length) {
  if (!subtle) return plainHkdf512(ikm, salt, info).subarray(0, length);
  const key = await subtle.importKey("raw", ikm, "HKDF", false, ["deriveBits"]);
  const how = { name: "HKDF", hash: "SHA-512", salt, info };
  return new Uint8Array(await subtle.deriveBits(how, key, 8 * length));
}

/** The first 64 bytes of HKDF-SHA-512, for a page that came over plain http: no WebCrypto there. */
export function plainHkdf512(ikm, salt, info) {
  return hmac512(hmac512(salt, ikm), join(info, Uint8Array.of(1)));
}

/** HMAC-SHA-512 (RFC 2104) under a key of at most 128 bytes. */
function hmac512(key, data) {
  const [inner, outer] = [0x36, 0x5c].map((pad) => new Uint8Array(128).fill(pad));
  key.forEach((byte, n) => {
    inner[n] ^= byte;
    outer[n] ^= byte;
  });
  return sha512(join(outer, sha512(join(inner, data))));
}

/** SHA-512 (FIPS 180-4), for few and short texts: numbers of any length are slow. */
function sha512(data) {
  const padded = new Uint8Array((data.length + 144) & ~127);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(8 * data.length));
  const { start, k } = sha512Numbers();
  const hash = BigUint64Array.from(start);
  const w = new BigUint64Array(80);
  const turn = (x, bits) => (x >> bits) | BigInt.asUintN(64, x << (64n - bits));
  for (let at = 0; at < padded.length; at += 128) {
    for (let t = 0; t < 16; t++) w[t] = view.getBigUint64(at + 8 * t);
    for (let t = 16; t < 80; t++) {
      const s0 = turn(w[t - 15], 1n) ^ turn(w[t - 15], 8n) ^ (w[t - 15] >> 7n);
      const s1 = turn(w[t - 2], 19n) ^ turn(w[t - 2], 61n) ^ (w[t - 2] >> 6n);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let t = 0; t < 80; t++) {
      const S1 = turn(e, 14n) ^ turn(e, 18n) ^ turn(e, 41n);
      const S0 = turn(a, 28n) ^ turn(a, 34n) ^ turn(a, 39n);
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

let numbers512 = null;

/** By definition: 64 bits behind the point of the square and cube roots of the first primes. */
function sha512Numbers() {
  if (numbers512) return numbers512;
  const primes = [];
  for (let n = 2; primes.length < 80; n++) if (primes.every((p) => n % p)) primes.push(n);
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
    start: primes.slice(0, 8).map((prime) => bits(prime, 2n)),
    k: primes.map((prime) => bits(prime, 3n)),
  };
  return numbers512;
}

/** Whether an Ed25519 key signed a message. A key that nobody can have signed nothing. */
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
 * Whether 32 bytes may stand for a point: y below 2^255 − 19, and not that of one of the eight
 * points of small order. Under such a key anybody can sign; libraries do not agree about these.
 */
export function soundPoint(bytes) {
  const sign = 1n << 255n;
  const y = BigInt(`0x${hex(bytes.slice().reverse())}`) % sign;
  return y < FIELD && !SMALL_ORDER.includes(y);
}

const FIELD = 2n ** 255n - 19n;
const EIGHTH = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n; // y, order 8
const SMALL_ORDER = [0n, 1n, FIELD - 1n, EIGHTH, FIELD - EIGHTH];

/** A machine that cannot check signatures must not say that they are wrong. */
export async function checkMachine() {
  if (!subtle) throw new Error("No WebCrypto here: the page must come over https.");
  const basePoint = new Uint8Array(32).fill(0x66);
  basePoint[0] = 0x58;
  await subtle.importKey("raw", basePoint, "Ed25519", false, ["verify"]).catch(() => {
    throw new Error("No Ed25519 here: take a newer browser, or node 20 or later.");
  });
}

/** Bytes that a text is the only base64 of. */
export function unbase64(text) {
  let letters = null;
  try {
    letters = atob(text);
  } catch {
    refuse("Something that should be base64 is not.");
  }
  if (btoa(letters) !== text) refuse("Something is base64, but not as it is written.");
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}


// ———————————————————————————————————————— canonical text ————————————————————————————————————————
//
// RFC 8785 over less than JSON: objects with keys [a-z][a-z0-9_]*, arrays, booleans, integers
// 0…2^53−1, strings of Unicode scalar values without control characters. Sorted keys, no spaces,
// raw UTF-8, and the escapes \" and \\ are all of it; in a note also \n for newline.
//
// JSON.parse is lax (1.0, 1e2, doubled keys, \u00e9, 2^53+1 …), so what it gives is written again
// and must be the same. Nesting ends at 256, so that no text can exhaust anybody's stack.

const DEPTH_MAX = 256;
const UNFIT = /[\u0000-\u001f\u007f\p{Surrogate}]/u;
const UNFIT_IN_NOTE = /[\u0000-\u0009\u000b-\u001f\u007f\p{Surrogate}]/u;

/** The value that a line is the canonical form of, and the bytes of the line. */
export function decode(line) {
  const text = typeof line === "string" ? line : decodeUtf8(line);
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    refuse("This is not JSON.");
  }
  checkValue(value, text.startsWith('{"checkpoint":') ? UNFIT_IN_NOTE : UNFIT, DEPTH_MAX);
  if (canonical(value) !== text) refuse("This is JSON, but not in its canonical form.");
  return { value, raw: utf8.encode(text) };
}

function decodeUtf8(bytes) {
  if (!(bytes instanceof Uint8Array)) refuse("A line is text.");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refuse("This is not UTF-8.");
  }
}

function checkValue(value, unfit, depth) {
  if (typeof value === "string") {
    if (unfit.test(value)) refuse("A string holds a character that has no place here.");
  } else if (typeof value === "number") {
    if (!Number.isSafeInteger(value) || value < 0) refuse("A number is not 0 to 2^53−1.");
  } else if (typeof value === "object" && value !== null) {
    if (depth === 0) refuse(`Arrays and objects stand more than ${DEPTH_MAX} deep.`);
    for (const key of Array.isArray(value) ? [] : Object.keys(value)) {
      if (!/^[a-z][a-z0-9_]*$/.test(key)) refuse("A key is not a–z and then a–z, 0–9 and _.");
    }
    for (const member of Object.values(value)) checkValue(member, unfit, depth - 1);
  } else if (typeof value !== "boolean") {
    refuse("There is a null.");
  }
}

/** The canonical text of a leaf that was parsed already. */
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
// Line 0 is the header, then come leaves, then checkpoints. Each line is canonical, and has the
// members of its kind, of their types, and no others. A leaf's version is its line, its table that
// of the header, its time not before that of the leaf above; `v` is 1; the first and only the
// first is TableOpened; `commit` stands where there is a hidden part, and nowhere else.

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value) => typeof value === "string";
const isInteger = (value) => typeof value === "number";
const isNumber = (value) => isInteger(value) && value < 2 ** 32;
const isFromOne = (value) => isNumber(value) && value >= 1;
const matches = (pattern) => (value) => isText(value) && pattern.test(value);
const is = (...words) => (value) => words.includes(value);

const isBytes32 = matches(/^[0-9a-f]{64}$/);
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

/** The public part of each type; a name with `?` may be missing. */
export const PUBLIC = new Map(Object.entries({
  TableOpened: { protocol: is(PROTOCOL), origin: isOrigin, key: isBytes32, rules: isObject },
  SeatTaken: { seat: isFromOne, name: isText, "key?": isBytes32 },
  SeatLeft: { seat: isFromOne },
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

const LEAF = {
  at: isInteger, public: isObject, table: matches(/^[0-9a-f]{32}$/),
  type: (value) => PUBLIC.has(value), v: is(1), version: isInteger, "commit?": isBytes32,
};

/** CardsSwapped hides j; CardDrawn, and CardMoved to a hand, hide the card. */
const hides = (leaf) =>
  leaf.type === "CardsSwapped" || leaf.type === "CardDrawn" ||
  (leaf.type === "CardMoved" && seatOf(leaf.public.to) !== null);

async function readForm(lines, progress) {
  if (lines.length === 0) throw new Fault("form", 0, "There is no header: the bundle is empty.");
  const parts = { key: "", origin: "", table: "", leaves: [], hashes: [], notes: [] };
  for (let line = 0; line < lines.length; line++) {
    await under("form", line, () => readLine(line, lines[line], parts));
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
  } else {
    if (parts.notes.length) refuse("Behind a checkpoint only checkpoints may come.");
    checkLeaf(line, value, parts);
    parts.leaves.push(value);
    parts.hashes.push(leafHash(raw));
  }
}

/** Refuse what is no leaf at this line, behind the `leaves` of a `table`. */
export function checkLeaf(line, leaf, parts) {
  checkMembers("A leaf", leaf, LEAF);
  checkMembers(`The public part of ${leaf.type}`, leaf.public, PUBLIC.get(leaf.type));
  if (leaf.version !== line) refuse(`Here the leaf of version ${line} should stand.`);
  if (leaf.table !== parts.table) refuse("This leaf is another table's.");
  if (leaf.at < (parts.leaves.at(-1)?.at ?? 0)) refuse("Time ran backwards.");
  if ((leaf.type === "TableOpened") !== (line === 1)) {
    refuse("TableOpened is the first event, and only the first.");
  }
  if (Object.hasOwn(leaf, "commit") !== hides(leaf)) {
    refuse("`commit` stands where there is a hidden part, and nowhere else.");
  }
}

function checkMembers(what, value, shape) {
  if (!isObject(value)) refuse(`${what} is no object.`);
  const unknown = new Set(Object.keys(value));
  for (const [name, fits] of Object.entries(shape)) {
    const member = name.replace("?", "");
    if (!unknown.delete(member)) {
      if (member === name) refuse(`${what} lacks its member "${member}".`);
    } else if (!fits(value[member])) {
      refuse(`${what} has a "${member}" that it cannot have.`);
    }
  }
  for (const name of unknown) refuse(`${what} has a member "${name}" too many.`);
}


// ————————————————————————————————————————————— heads ————————————————————————————————————————————
//
// First, the key that you named is the header's (line 0), and TableOpened has the header's key and
// origin (line 1). Then each checkpoint (its own line): a well-formed note of this origin, over
// more leaves than the one before and no more than there are; the house's key signed it; its root
// is that of the leaves; every other line is a good cosignature by a key that some SeatTaken names
// (a stranger's line has no business here: so no byte can change unnoticed). Last, there is a
// checkpoint at every EntropyClosed, DeckSealed, RoundClosed and TableClosed, and at the last leaf
// (the line is that of the leaf without one).

export const DUE = ["EntropyClosed", "DeckSealed", "RoundClosed", "TableClosed"];

/** The proved roots, by size. */
async function checkHeads(parts, pinned, report) {
  if (pinned !== null && pinned !== undefined && pinned !== parts.key) {
    throw new Fault("heads", 0, "The table's key is not the one that you named.");
  }
  const opened = parts.leaves[0].public;
  if (opened.key !== parts.key || opened.origin !== parts.origin) {
    throw new Fault("heads", 1, "TableOpened names another key or origin than the header.");
  }
  const cosigners = cosignersOf(parts.leaves);
  const roots = new Map();
  const tree = new Tree();
  for (const { line, note } of parts.notes) {
    await under("heads", line, async () => {
      const head = await openNote(note, parts);
      if (roots.size && head.size <= tree.size) refuse("Checkpoints are ordered by size.");
      if (head.size > parts.leaves.length) refuse("There are fewer leaves than this is over.");
      while (tree.size < head.size) tree.append(parts.hashes[tree.size]);
      if (hex(tree.root()) !== hex(head.root)) refuse("The house signed another log.");
      let known = 1; // the house's own line
      // Whose name is on no line is not asked about: both could be thousands.
      for (const name of new Set(head.signatures.map((line) => line.name))) {
        const cosigner = cosigners.get(name.replace(/^player\//, ""));
        if (cosigner && (await signedBy(head, playerOf(cosigner.key)))) {
          cosigner.count += 1;
          cosigner.size = head.size;
          known += 1;
        }
      }
      if (known < head.signatures.length) refuse("Nobody who sat here signed one of the lines.");
      roots.set(head.size, head.root);
    });
  }
  checkDue(parts.leaves, roots);
  report.cosigners = [...cosigners.values()].filter((cosigner) => cosigner.count > 0);
  report.remarks.cosigned = report.cosigners.reduce((sum, { count }) => sum + count, 0);
  report.remarks.pinned = pinned !== null && pinned !== undefined;
  return roots;
}

/** Every key that a SeatTaken names, with the last name that went with it. */
function cosignersOf(leaves) {
  const cosigners = new Map();
  for (const { type, public: { key, name } } of leaves) {
    if (type !== "SeatTaken" || key === undefined) continue;
    cosigners.set(key, { key, name, count: 0, size: 0 });
  }
  return cosigners;
}

function checkDue(leaves, roots) {
  for (const { type, version } of leaves) {
    if (DUE.includes(type) && !roots.has(version)) {
      throw new Fault("heads", version, `The house owes a checkpoint at ${type}.`);
    }
  }
  if (!roots.has(leaves.length)) {
    throw new Fault("heads", leaves.length, "The last checkpoint does not cover the whole log.");
  }
}

/** A checkpoint of this table that the house signed. */
async function openNote(note, parts) {
  const head = readCheckpoint(note);
  if (head.origin !== parts.origin) refuse("The note is of another origin.");
  if (!(await signedBy(head, houseOf(parts.origin, parts.key)))) {
    refuse("The house's key did not sign this checkpoint.");
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
// key id = H(name ‖ 0x0A ‖ type ‖ key)[:4]. Lines of an unknown name or key id are passed over; a
// line by a known key that does not verify, and a second line by one key, spoil the note.

export function readCheckpoint(note) {
  if (typeof note !== "string" || UNFIT_IN_NOTE.test(note)) {
    refuse("A note is text without control characters but newline.");
  }
  const blank = note.lastIndexOf("\n\n");
  if (blank < 1 || blank + 2 === note.length || !note.endsWith("\n")) {
    refuse("A note is a text, an empty line, and signatures, each ending in newline.");
  }
  const text = note.slice(0, blank + 1);
  const signatures = note.slice(blank + 2, -1).split("\n").map(readSignature);
  const lines = text.split("\n");
  if (lines.length !== 4) refuse("A checkpoint has an origin, a size, a root, and nothing more.");
  const [origin, size, root] = [lines[0], lines[1], unbase64(lines[2])];
  if (!/^(0|[1-9][0-9]{0,15})$/.test(size) || Number(size) > Number.MAX_SAFE_INTEGER) {
    refuse("The size of a checkpoint is not a plain decimal number.");
  }
  if (root.length !== 32) refuse("The root of a checkpoint does not have 32 bytes.");
  return { origin, size: Number(size), root, text, signatures };
}

function readSignature(line) {
  const [dash, name, base64, ...more] = line.split(" ");
  if (dash !== "\u2014" || base64 === undefined || more.length) {
    refuse("A signature line is a dash, a name and base64, with single spaces.");
  }
  if (!/^[^+\p{White_Space}]+$/u.test(name)) refuse("A name has no space and no +.");
  const blob = unbase64(base64);
  if (blob.length <= 4) refuse("A signature line has no signature.");
  return { name, id: hex(blob.subarray(0, 4)), body: blob.subarray(4) };
}

const ED25519 = 1;
const COSIGNATURE = 4;
export const houseOf = (origin, key) => ({ name: origin, type: ED25519, key: unhex(key) });
export const playerOf = (key) => ({ name: `player/${key}`, type: COSIGNATURE, key: unhex(key) });

/** What tells a key's lines from others of the same name: 4 bytes. */
export const keyId = ({ name, type, key }) =>
  sha256(join(utf8.encode(`${name}\n`), Uint8Array.of(type), key)).subarray(0, 4);

/** Whether a known key has its line under a checkpoint; the note is refused if that is bad. */
export async function signedBy(head, { name, type, key }) {
  const id = hex(keyId({ name, type, key }));
  const own = head.signatures.filter((line) => line.name === name && line.id === id);
  if (own.length === 0) return false;
  if (own.length > 1) refuse("A key signed twice.");
  let { body } = own[0];
  let signed = head.text;
  if (type === COSIGNATURE) {
    // cosignature/v1: body = be64(seconds) ‖ signature of these lines
    if (body.length !== 8 + 64) refuse("A cosignature is a time and a signature.");
    const time = new DataView(body.buffer, body.byteOffset).getBigUint64(0);
    if (time >= 2n ** 63n) refuse("The time of a cosignature is 0 to 2^63−1 seconds.");
    signed = `cosignature/v1\ntime ${time}\n${signed}`;
    body = body.subarray(8);
  }
  if (!(await ed25519(key, body, utf8.encode(signed)))) {
    refuse("A signature is not that of the key whose name it bears.");
  }
  return true;
}


// ————————————————————————————————————————————— saved ————————————————————————————————————————————
//
// First, each checkpoint that you kept is this table's, and its key signed it (else line 0). Then
// each, in the order given: this log is at least as long, and has its root at its size (else that
// size is the line).

async function checkSaved(parts, saved) {
  const heads = [];
  for (const note of saved) heads.push(await under("saved", 0, () => openNote(note, parts)));
  let tree = new Tree();
  for (const { size, root } of heads) {
    await under("saved", size, () => {
      if (size > parts.leaves.length) refuse("You saved a longer log: this one was cut short.");
      if (size < tree.size) tree = new Tree();
      while (tree.size < size) tree.append(parts.hashes[tree.size]);
      if (hex(tree.root()) !== hex(root)) refuse("You saved another log: this one was changed.");
    });
  }
}


// ———————————————————————————————————————————— events ————————————————————————————————————————————
//
// The books: who sits where, and in the open round where each card lies. A card is an object
// { face, slot, commitment, reached }; a stack is an array of them, bottom first. Until a stack is
// first sealed its cards have no slot (−1), so nothing can be drawn from it, or moved or shown.
//
// In a round that is not closed S is unknown: what S alone can tell is left open (its swaps are
// not carried out, so faces mean nothing there), and everything else is checked.

const EVENTS = {
  TableOpened: ["moves", () => {}], // its place is a matter of form, its content of the heads
  SeatTaken: ["moves", seatTaken],
  SeatLeft: ["moves", seatLeft],
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

/** Books at the start of a log; `roots` are the proved ones, by size. */
export const emptyBooks = (table, roots) => ({
  table: unhex(table), roots,
  remarks: noRemarks(), swaps: [],
  secrets: new Map(), // S by the version of the RoundOpened that committed to it
  seats: new Set(), // taken now
  sat: new Set(), // taken now or before
  revealed: new Set(), // nonces in hex, of any seat and shuffle
  round: null, // the open one
  closed: false,
});

/** Let an event be true of the books, if it can be; where S is known, some take their time. */
export function believe(books, leaf) {
  if (books.closed) refuse("The table was closed.");
  return EVENTS[leaf.type][1](books, leaf.public, leaf);
}

async function replay(parts, roots, report, progress) {
  const books = emptyBooks(parts.table, roots);
  const { remarks, swaps } = report;
  Object.assign(books, { remarks, swaps, secrets: secretsOf(parts.leaves) });
  for (const leaf of parts.leaves) {
    await under(EVENTS[leaf.type][0], leaf.version, () => believe(books, leaf));
    if (leaf.version % PROGRESS_EVERY === 0) await progress(leaf.version);
  }
  books.remarks.open_rounds = books.round === null ? 0 : 1;
}

/** A round's S is in the first RoundClosed of its number before another RoundOpened. */
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

/** The open round, if it is the one that an event names. */
function roundOf(books, { round }) {
  if (books.round?.number !== round) refuse(`Round ${round} is not open.`);
  return books.round;
}

/** The same, if no shuffle runs: until its seal or its end no card moves or is shown. */
function stillRoundOf(books, event) {
  const round = roundOf(books, event);
  if (round.shuffle !== null) refuse("A shuffle runs: till its seal no card moves or is shown.");
  return round;
}

/** The open round whose shuffle k runs. */
function shufflingRoundOf(books, event) {
  const round = roundOf(books, event);
  if (round.shuffle?.k !== event.k) refuse(`Shuffle ${event.k} does not run.`);
  return round;
}

/** The cards of a stack, bottom first; of one that nothing was put on, none. */
function cardsOf(round, stack) {
  if (!round.stacks.has(stack)) round.stacks.set(stack, []);
  return round.stacks.get(stack);
}

/** Place of a slot in a stack. */
function placeOf(round, stack, slot) {
  const place = cardsOf(round, stack).findIndex((card) => card.slot === slot);
  if (place < 0) refuse(`Slot ${slot} does not lie there.`);
  return place;
}

/** The card of a slot, wherever it lies now. */
export function cardIn(round, slot) {
  for (const cards of round.stacks.values()) {
    const card = cards.find((other) => other.slot === slot);
    if (card) return card;
  }
  return refuse("This slot lies nowhere.");
}

// event salt = HMAC-SHA-256(salt_key, T("event") ‖ be64(version))
// commit     = H(T("event") ‖ lp(table, be64(version), salt, hidden part))

export function eventCommit(table, saltKey, version, hidden) {
  const salt = hmac256(saltKey, join(T("event"), be64(version)));
  return hex(sha256(join(T("event"), lp(table, be64(version), salt, utf8.encode(hidden)))));
}

function checkHidden(books, round, leaf, hidden) {
  if (round.saltKey === null) return;
  if (eventCommit(books.table, round.saltKey, leaf.version, hidden) !== leaf.commit) {
    refuse("The event commits to something else than the secret and the log give.");
  }
}


// ———————————————————————————————————————— events: secrets ———————————————————————————————————————

// Rounds count 1, 2, 3 …, one at a time. If the round is closed later, its S has the length that
// the deck asks for, and opens the commitment:
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

function roundOpened(books, event, leaf) {
  const secret = books.secrets.get(leaf.version) ?? null;
  if (books.round !== null) refuse(`Round ${books.round.number} is open.`);
  if (event.round !== books.remarks.rounds + 1) refuse("Rounds count 1, 2, 3 …");
  if (secret !== null) {
    if (secret.length !== secretLength(event.deck.length)) {
      refuse("The secret that the house showed has not the length for this deck.");
    }
    if (houseCommitment(books.table, event.round, secret) !== event.commitment) {
      refuse("The secret that the house showed is not the one it committed to.");
    }
  }
  const fresh = event.deck.map((face) => ({ face, slot: -1, commitment: null, reached: false }));
  books.round = {
    number: event.round, entropy: event.entropy,
    secret, saltKey: null,
    stacks: new Map([["deck", fresh]]),
    slots: 0, // made so far
    k: 0, // of the shuffle that runs or comes next
    shuffle: null, // the one that runs
    ahead: new Map(), // digests for the shuffle that comes next, by seat
    withheld: new Set(), // seats that bring no entropy any more
  };
  books.remarks.rounds = event.round;
  return secret && takeSaltKey(books, books.round);
}

async function takeSaltKey({ table }, round) {
  round.saltKey = await saltKeyOf(table, round.number, round.secret);
}

// Closed is the round that is open, while no shuffle runs.

function roundClosed(books, event) {
  stillRoundOf(books, event);
  books.round = null;
}

// A digest comes, in a round with players' entropy, from a seat that is taken and did not withhold
// in this round, once for a k: for the shuffle that runs, before its EntropyClosed, or, while none
// runs, for the next.

function entropyCommitted(books, event) {
  const round = roundOf(books, event);
  const digests = round.shuffle === null ? round.ahead : round.shuffle.digests;
  if (round.entropy !== "players") refuse("This round's shuffles take no players' bytes.");
  if (event.k !== round.k) refuse(`Digests are now taken for shuffle ${round.k}.`);
  if (round.shuffle?.closed) refuse("The digests of this shuffle are closed.");
  if (!books.seats.has(event.seat)) refuse("Nobody sits there.");
  if (round.withheld.has(event.seat)) refuse("This seat withheld, and brings no entropy any more.");
  if (digests.has(event.seat)) refuse("This seat has sent its digest for this shuffle.");
  digests.set(event.seat, event.digest);
}

// Digests are closed once a shuffle. When that is, no verifier can judge. The version is the size
// of checkpoint C1. A seat that could have sent a digest and has none is left out.

function entropyClosed(books, event, leaf) {
  const round = shufflingRoundOf(books, event);
  if (round.shuffle.closed) refuse("The digests of this shuffle were closed before.");
  round.shuffle.closed = leaf.version;
  if (round.entropy !== "players") return;
  for (const seat of books.seats) {
    if (!round.shuffle.digests.has(seat) && !round.withheld.has(seat)) books.remarks.left_out += 1;
  }
}

// A seat's 32 bytes r come after EntropyClosed, once, and open its digest:
//
//     digest = H(T("player") ‖ lp(table, be32(round), be32(k), be32(seat), r))
//
// An r that this log revealed before is counted; it is no fault, for it harms only its player.

export const playerDigest = (table, round, k, seat, nonce) =>
  hex(sha256(join(T("player"), lp(table, be32(round), be32(k), be32(seat), nonce))));

function entropyRevealed(books, event) {
  const { shuffle } = shufflingRoundOf(books, event);
  const nonce = unhex(event.nonce);
  if (!shuffle.closed) refuse("No reveal comes before EntropyClosed.");
  if (!shuffle.digests.has(event.seat) || shuffle.nonces.has(event.seat)) {
    refuse("No reveal is awaited from this seat.");
  }
  const digest = playerDigest(books.table, event.round, event.k, event.seat, nonce);
  if (digest !== shuffle.digests.get(event.seat)) refuse("These bytes do not open the digest.");
  shuffle.nonces.set(event.seat, nonce);
  if (books.revealed.has(event.nonce)) books.remarks.reused += 1;
  books.revealed.add(event.nonce);
}

/** Seats whose digest counts and is not opened. */
function missing({ digests, nonces }) {
  return [...digests.keys()].filter((seat) => !nonces.has(seat));
}

// Given up is a shuffle after EntropyClosed, and only while a reveal is missing. Who withheld
// brings no entropy for the rest of the round; the next shuffle is k + 1.

function shuffleVoided(books, event) {
  const round = shufflingRoundOf(books, event);
  const silent = missing(round.shuffle);
  if (!round.shuffle.closed || silent.length === 0) {
    refuse("A shuffle is voided only when a reveal is missing after EntropyClosed.");
  }
  for (const seat of silent) round.withheld.add(seat);
  round.k += 1;
  round.shuffle = null;
  books.remarks.voided += 1;
  books.remarks.withheld += silent.length;
}


// ———————————————————————————————————————— events: tape ——————————————————————————————————————————

const allSteps = (n) => Math.max(n - 1, 0);

// A shuffle starts while none runs: the next k, of the deck or a pile, with all of its n cards; at
// most max(n − 1, 0) steps, and exactly these for `forward`.

function shuffleStarted(books, event) {
  const round = stillRoundOf(books, event);
  const { k, stack, n, algorithm, steps } = event;
  const cards = cardsOf(round, stack);
  if (k !== round.k) refuse(`The next shuffle of this round is ${round.k}.`);
  if (seatOf(stack) !== null) refuse("A hand is not shuffled.");
  if (n !== cards.length) refuse(`The stack has ${cards.length} cards.`);
  if (steps > allSteps(n) || (algorithm === "forward" && steps !== allSteps(n))) {
    refuse(`A shuffle of ${n} cards has at most ${allSteps(n)} steps, forward exactly these.`);
  }
  round.shuffle = {
    k, stack, n, algorithm, steps,
    digests: round.ahead, nonces: new Map(), // by seat
    closed: 0, // version of its EntropyClosed
    done: 0, // steps
    plan: null, // the steps that the tape gives
  };
  round.ahead = new Map();
  books.remarks.shuffles += 1;
}

/** Only when the digests are closed and all of them opened may the house shuffle. */
function checkEntropy(shuffle) {
  if (!shuffle.closed) refuse("The house may not shuffle before EntropyClosed.");
  if (missing(shuffle).length) refuse("The house may not shuffle while a reveal is missing.");
}

// The tape is segments 0, 1, 2 … joined, each of 32 big-endian words of 16 bits:
//
//     ikm       = lp(S, r, …)                        the r in order of seats
//     salt      = root of C1 ‖ be32(k) ‖ be32(n) ‖ be32(s)
//     segment s = HKDF-SHA-512(ikm, salt, info = T("shuffle"), 64 bytes)
//
// below(b): the next word w; while w ≥ 65536 − (65536 mod b), the next; then w mod b.

export class Tape {
  words = []; // as far as segments were made
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

  /** A number 0 … b−1, and the words read for it: the last was taken, those before it refused. */
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

// Each swap is the next step, its i, and, once S is known, the tape's j. What is hidden is {"j":j}.

function cardsSwapped(books, event, leaf) {
  const round = shufflingRoundOf(books, event);
  const { shuffle } = round;
  checkEntropy(shuffle);
  const step = shuffle.done;
  if (step >= shuffle.steps) refuse("All steps of this shuffle are done.");
  if (event.step !== step) refuse(`The next step is ${step}.`);
  if (event.i !== iOf(shuffle, step)) refuse(`Step ${step} exchanges place ${iOf(shuffle, step)}.`);
  shuffle.done += 1;
  return round.secret && swap(books, round, leaf);
}

async function swap(books, round, leaf) {
  const { number, shuffle } = round;
  const { version, public: { step } } = leaf;
  shuffle.plan ??= await planOf(shuffle, tapeOf(books, round));
  const { i, j, words } = shuffle.plan[step];
  checkHidden(books, round, leaf, `{"j":${j}}`);
  const cards = cardsOf(round, shuffle.stack);
  const faces = [cards[i].face, cards[j].face];
  books.swaps.push({ version, round: number, k: shuffle.k, step, i, j, words, cards: faces });
  [cards[i], cards[j]] = [cards[j], cards[i]];
}

function tapeOf(books, { secret, shuffle }) {
  const seats = [...shuffle.nonces.keys()].sort((a, b) => a - b);
  const nonces = seats.map((seat) => shuffle.nonces.get(seat));
  return new Tape(secret, nonces, books.roots.get(shuffle.closed), shuffle.k, shuffle.n);
}


// ———————————————————————————————————————— events: seals —————————————————————————————————————————

// The seal ends a shuffle: all reveals and all steps are done, `first` is the number of slots made
// before in the round, and place p gets slot first + p, with a commitment to the card there:
//
//     salt   = HMAC-SHA-256(salt_key, T("card") ‖ be32(slot))
//     commit = H(T("card") ‖ lp(table, be32(round), be32(slot), salt, card))

export const slotSalt = (saltKey, slot) => hmac256(saltKey, join(T("card"), be32(slot)));

export const slotCommitment = (table, round, slot, salt, card) =>
  hex(sha256(join(T("card"), lp(table, be32(round), be32(slot), salt, utf8.encode(card)))));

function deckSealed(books, event) {
  const round = shufflingRoundOf(books, event);
  const { shuffle } = round;
  const cards = cardsOf(round, shuffle.stack);
  checkEntropy(shuffle);
  if (shuffle.done !== shuffle.steps) refuse(`${shuffle.steps - shuffle.done} steps are missing.`);
  if (event.first !== round.slots) refuse(`${round.slots} slots were made before in this round.`);
  if (event.slots.length !== shuffle.n) refuse(`${shuffle.n} cards have as many slots.`);
  if (round.saltKey !== null) {
    cards.forEach((card, place) => {
      const slot = event.first + place;
      const salt = slotSalt(round.saltKey, slot);
      const wanted = slotCommitment(books.table, round.number, slot, salt, card.face);
      if (wanted !== event.slots[place]) refuse(`The slot at place ${place} holds another card.`);
    });
  }
  giveSlots(cards, event, shuffle);
  round.slots += shuffle.n;
  round.k += 1;
  round.shuffle = null;
  if (shuffle.nonces.size === 0) books.remarks.house_only += 1;
}

// Of cards never shuffled in full, only the top `steps` may come into a hand: these are a uniform
// sample. Where every card had been reached by a shuffle before, all remain so.

function giveSlots(cards, { first, slots }, { n, steps }) {
  const all = steps === allSteps(n) || cards.every((card) => card.reached);
  cards.forEach((card, place) => {
    card.slot = first + place;
    card.commitment = slots[place];
    card.reached = all || place >= n - steps;
  });
}

// Shown is a card that lies somewhere now, by the opening of its slot's commitment.

function cardShown(books, event) {
  const round = stillRoundOf(books, event);
  const { commitment } = cardIn(round, event.slot);
  const salt = unhex(event.salt);
  if (slotCommitment(books.table, event.round, event.slot, salt, event.card) !== commitment) {
    refuse("Card and salt do not open the slot's commitment.");
  }
}


// ———————————————————————————————————————— events: moves —————————————————————————————————————————

function seatTaken(books, { seat }) {
  if (books.seats.has(seat)) refuse("Somebody sits there.");
  books.seats.add(seat);
  books.sat.add(seat);
}

// Who leaves drops the digest, until EntropyClosed. The hand stays where it is.

function seatLeft(books, { seat }) {
  if (!books.seats.delete(seat)) refuse("Nobody sits there.");
  books.round?.ahead.delete(seat);
  if (!books.round?.shuffle?.closed) books.round?.shuffle?.digests.delete(seat);
}

// Drawn is a card from the deck or a pile where its slot lies, into the hand of a seat that is
// taken. What is hidden is {"card":code}.

function cardDrawn(books, event, leaf) {
  const round = stillRoundOf(books, event);
  if (seatOf(event.from) !== null) refuse("Nobody draws from a hand.");
  if (!books.seats.has(event.seat)) refuse("Nobody sits there.");
  const from = cardsOf(round, event.from);
  const place = placeOf(round, event.from, event.slot);
  checkIntoHand(books, round, leaf, from[place]);
  if (place !== from.length - 1) books.remarks.not_top += 1;
  cardsOf(round, `hand:${event.seat}`).push(...from.splice(place, 1));
}

// Moved is a card from where its slot lies to a place 0 … the cards that lie there once it has
// left: on any pile, or into the hand of any seat that was ever taken.

function cardMoved(books, event, leaf) {
  const round = stillRoundOf(books, event);
  const from = cardsOf(round, event.from);
  const to = cardsOf(round, event.to);
  const place = placeOf(round, event.from, event.slot);
  const seat = seatOf(event.to);
  if (seat !== null) {
    if (!books.sat.has(seat)) refuse("Nobody ever sat there.");
    checkIntoHand(books, round, leaf, from[place]);
  }
  const room = to.length - (to === from ? 1 : 0);
  if (event.place > room) refuse(`There the places are 0 to ${room}.`);
  to.splice(event.place, 0, ...from.splice(place, 1));
}

function checkIntoHand(books, round, leaf, card) {
  if (!card.reached) refuse("No shuffle reached this card, so it may not come into a hand.");
  checkHidden(books, round, leaf, `{"card":"${card.face}"}`);
}

function cardPeeked(books, event) {
  cardIn(stillRoundOf(books, event), event.slot);
  if (!books.seats.has(event.seat)) refuse("Nobody sits there.");
}

// Cut: places `at` … last come to the bottom, 0 … at − 1 on top; at both ends the order stays.

function stackCut(books, event) {
  const round = stillRoundOf(books, event);
  const cards = cardsOf(round, event.stack);
  if (seatOf(event.stack) !== null) refuse("A hand is not cut.");
  if (event.at > cards.length) refuse(`The stack has ${cards.length} cards.`);
  cards.push(...cards.splice(0, event.at));
}

function tableClosed(books) {
  if (books.round !== null) refuse("A round is open, and its secret not shown.");
  books.closed = true;
}


// ——————————————————————————————————————— telling a person ———————————————————————————————————————

const ANSWERS = {
  form: "every line is written in its one form",
  heads: "the house signed these heads, and the log is the one under them",
  saved: "the log agrees with the checkpoints you saved",
  secrets: "secrets and players' bytes open what was committed to before",
  tape: "every swap is the one that these bytes give",
  seals: "every sealed or shown card is the one the shuffle left there",
  moves: "every other event was legal, and each card lay where it was taken from",
};

/** A line for each check, and then what was counted. */
export function verdicts(report) {
  return [...answers(report).map(({ check, words }) => `${check}: ${words}`), ...counted(report)];
}

/** For each check { check, holds, words }: holds is true, false, or null where nobody looked. */
export function answers(report) {
  return CHECKS.map((check) => ({ check, ...answer(check, report) }));
}

const order = (check) => CHECKS.indexOf(check);
const isOfEvents = (check) => order(check) >= order("secrets");

function answer(check, { fault, saved }) {
  if (fault?.check === check) {
    return { holds: false, words: `no, in line ${fault.line}: ${fault.sentence}` };
  }
  if (fault && isOfEvents(fault.check) && isOfEvents(check)) {
    return { holds: true, words: `yes, before line ${fault.line}` };
  }
  if (fault && order(check) > order(fault.check)) return { holds: null, words: "not looked at" };
  if (check === "saved" && !saved) {
    return { holds: true, words: "yes, but you gave no checkpoint of your own" };
  }
  return { holds: true, words: `yes, ${ANSWERS[check]}` };
}

function counted({ fault, remarks: r, cosigners }) {
  if (fault && !isOfEvents(fault.check)) return ["Nothing was counted, for no event was looked at."];
  const times = (count) => `${count} time${count === 1 ? "" : "s"}`;
  return [
    `Rounds: ${r.rounds}, ${r.open_rounds} of them open and so not proved.`,
    `Shuffles: ${r.shuffles}, ${r.voided} of them voided, ${r.house_only} with no player's bytes:` +
      " these prove only that the cards were fixed before the deal.",
    `Seats left out of a shuffle: ${r.left_out}; that did not open their digest: ${r.withheld}.` +
      " Only the players concerned know whether the house is right about that.",
    `Nonces that had been revealed at this table before: ${r.reused}. A reused nonce harms only` +
      " the player who brought it.",
    `Draws that did not take the top card: ${r.not_top}.`,
    `Cosignatures: ${r.cosigned}.`,
    ...cosigners.map(({ key, name, count, size }) =>
      `Cosigned by ${name} ${times(count)}, last at size ${size}, under the key ${key}.`),
    r.pinned
      ? "The table's key is the one you named."
      : "The table's key is the bundle's own word; name the key you know to be sure.",
  ];
}


// ———————————————————————————————————————— command line ——————————————————————————————————————————

const USAGE = "usage: node verify.js FILE [--key HEX] [--saved FILE]… [--json]";

/** The notes in a file: one, as it is, or many, each in a JSON line with a member `note`. */
function notesIn(text) {
  if (!text.startsWith("{")) return [text];
  return text.trimEnd().split("\n").map((line) => JSON.parse(line).note);
}

/** A text that a guest chose, without what could lead a terminal astray. */
const harmless = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");

async function commandLine(given, readFile) {
  const options = { key: null, saved: [] };
  const files = [];
  let json = false;
  for (let n = 0; n < given.length; n++) {
    if (given[n] === "--json") json = true;
    else if (given[n] === "--key" && n + 1 < given.length) options.key = given[++n].toLowerCase();
    else if (given[n] === "--saved" && n + 1 < given.length) {
      options.saved.push(...notesIn(readFile(given[++n]).toString("utf8")));
    } else files.push(given[n]);
  }
  if (files.length !== 1 || files[0].startsWith("--")) throw new Error(USAGE);
  const report = await verify(linesOf(readFile(files[0])), options);
  if (json) console.log(JSON.stringify(report));
  else for (const verdict of verdicts(report)) console.log(harmless(verdict));
  return report.fault === null ? 0 : 1;
}

if (globalThis.process?.versions?.node && process.argv[1]) {
  const { readFileSync, realpathSync } = await import("node:fs");
  const { pathToFileURL } = await import("node:url");
  if (pathToFileURL(realpathSync(process.argv[1])).href === import.meta.url) {
    process.exitCode = await commandLine(process.argv.slice(2), readFileSync).catch((error) => {
      console.error(error.message);
      return 2;
    });
  }
}
