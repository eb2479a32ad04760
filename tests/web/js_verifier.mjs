// Calls the JavaScript verifier: reads one JSON request per line, writes one JSON result per line.

import { createInterface } from "node:readline";

import { EventVerifier } from "../../dealer/web/client/event_verifier.js";
import { VerifiedLog } from "../../dealer/web/client/verified_log.js";
import * as verifier from "../../dealer/web/verify.js";

const { hex, join, unhex } = verifier;

/** A line of a bundle: text, or {"hex": …} if its bytes are not UTF-8. */
const lineOf = (line) => (typeof line?.hex === "string" ? unhex(line.hex) : line);

const tapeOf = ({ secret, nonces, root, k, n }) =>
  new verifier.Tape(unhex(secret), nonces.map(unhex), unhex(root), k, n);

/** Parse a C2SP verifier key, `name+id+base64(type ‖ key)`. */
function keyOf(vkey) {
  const [name, , ...base64] = vkey.split("+");
  const material = verifier.unbase64(base64.join("+"));
  return { name, type: material[0], key: material.subarray(1) };
}

const METHODS = {
  async verify({ lines, key, saved, source, swaps }) {
    const options = { key, saved, source: source?.map(lineOf) };
    const found = await verifier.verify(lines.map(lineOf), options);
    const report = swaps ? found : { ...found, swaps: undefined };
    return { ...report, lines: verifier.reportLines(found) };
  },
  /** Seats, round and stacks (codes, bottom first) after each of these versions of a whole table. */
  async states({ lines, versions }) {
    const values = lines.slice(1).map((line) => verifier.decode(line).value);
    const leaves = values.filter(({ type }) => type !== undefined);
    const notes = values.flatMap(({ checkpoint }) => checkpoint ?? []);
    const heads = notes.map((note) => verifier.readCheckpoint(note));
    const roots = new Map(heads.map(({ size, root }) => [size, root]));
    const ledger = verifier.newLedger(leaves[0].table, roots);
    ledger.laidOut = Object.hasOwn(leaves[0].public.rules, verifier.PRACTICE_RULE);
    const opened = leaves.filter(({ type }) => type === "RoundOpened");
    for (const { type, public: { round, secret } } of leaves) {
      if (type === "RoundClosed") ledger.secrets.set(opened[round - 1].version, unhex(secret));
    }
    const wanted = new Set(versions);
    const states = [];
    for (const leaf of leaves) {
      await verifier.applyEvent(ledger, leaf);
      if (!wanted.has(leaf.version)) continue;
      const stacks = [...ledger.round?.stacks ?? []].filter(([, cards]) => cards.length > 0)
        .map(([name, cards]) => [name, cards.map(({ face }) => face)]);
      const seats = [...ledger.seats].sort((a, b) => a - b);
      states.push({ seats, round: ledger.round?.number ?? null, stacks: Object.fromEntries(stacks) });
    }
    return { states };
  },
  async file({ file }) {
    const { bytes, notes } = await verifier.restore(unhex(file));
    const report = await verifier.verify(verifier.linesOf(bytes), { notes });
    return { bytes: hex(bytes), restored: notes, report, lines: verifier.reportLines(report) };
  },
  async split({ file }) {
    return verifier.linesOf(unhex(file)).map(hex);
  },
  async canonical({ line }) {
    try {
      return { ok: true, value: verifier.decode(lineOf(line)).value };
    } catch (error) {
      return { ok: false, name: error.constructor.name };
    }
  },
  async tape({ count, ...given }) {
    const tape = tapeOf(given);
    const words = [];
    while (words.length < count) words.push(await tape.word());
    return { words };
  },
  async below({ bounds, ...given }) {
    const tape = tapeOf(given);
    const numbers = [];
    for (const bound of bounds) numbers.push((await tape.below(bound)).number);
    return { numbers };
  },
  async shuffle({ algorithm, steps, n, ...given }) {
    const plan = await verifier.planOf({ algorithm, n, steps }, tapeOf({ n, ...given }));
    const order = Array.from({ length: n }, (_, place) => place);
    for (const { i, j } of plan) [order[i], order[j]] = [order[j], order[i]];
    const words = plan.flatMap((step) => step.words);
    return {
      order, words, swaps: plan.map(({ i, j }) => [i, j]), rejected: words.length - plan.length,
    };
  },
  async secret({ table, round, n, secret }) {
    const [id, s] = [unhex(table), unhex(secret)];
    return {
      length: verifier.secretLength(n),
      commitment: verifier.houseCommitment(id, round, s),
      salt_key: hex(await verifier.saltKeyOf(id, round, s)),
    };
  },
  async player({ table, round, k, seat, nonce }) {
    return { digest: verifier.playerDigest(unhex(table), round, k, seat, unhex(nonce)) };
  },
  async slot({ table, round, slot, salt_key, card }) {
    const salt = verifier.slotSalt(unhex(salt_key), slot);
    const commitment = verifier.slotCommitment(unhex(table), round, slot, salt, card);
    return { salt: hex(salt), commitment };
  },
  async event({ table, version, salt_key, jcs }) {
    return { commit: verifier.eventCommit(unhex(table), unhex(salt_key), version, jcs) };
  },
  async opening({ table, version, salt, part }) {
    const commit = verifier.openedCommit(unhex(table), version, unhex(salt), part);
    return { commit, jcs: verifier.leafText(part) };
  },
  /** What the client says of one more event of a table, after those that are right. */
  async client_event({ table, key, frames, frame }) {
    const client = new EventVerifier(table, { key, saved: [], noSignatures: null });
    for (const before of frames) await client.takeEvent(before);
    try {
      return { ok: true, event: await client.takeEvent(frame) };
    } catch (error) {
      return { ok: false, name: error.constructor.name };
    }
  },
  async leaf({ text }) {
    const { value, raw } = verifier.decode(text);
    return { value, hash: hex(verifier.leafHash(raw)) };
  },
  async root({ leaves }) {
    const tree = new verifier.Tree();
    for (const leaf of leaves) tree.append(verifier.leafHash(unhex(leaf)));
    return { edge: tree.edge.map(hex), root: hex(tree.root()) };
  },
  async note({ note, vkeys }) {
    try {
      const head = verifier.readCheckpoint(note);
      const ok = vkeys.map((vkey) => verifier.signedBy(head, keyOf(vkey)).catch(() => false));
      const { origin, size, root } = head;
      return { ok: await Promise.all(ok), origin, size, root: hex(root) };
    } catch (error) {
      return { ok: vkeys.map(() => false), name: error.constructor.name };
    }
  },
  /** Whether the client accepts a note of this table, as it comes and as it was saved. */
  async client_note({ table, key, players, note }) {
    const accepts = async (saved, read) => {
      const log = new VerifiedLog(table, { key, saved, noSignatures: null });
      log.cosigners = new Set(players);
      return read(log).then(() => true, (error) => (error.name === "HouseCheated" ? false : error));
    };
    return {
      received: await accepts([], (log) => log.takeCheckpoint(note)),
      saved: await accepts([{ size: 1, note, edge: [] }], (log) => log.readSaved()),
    };
  },
  async sound({ point }) {
    return { ok: verifier.soundPoint(unhex(point)) };
  },
  /** Compare SHA-256 and HMAC of verify.js with WebCrypto, over 0 … `upto` − 1 bytes. */
  async hashes({ upto }) {
    const { subtle } = globalThis.crypto;
    const different = [];
    for (let length = 0; length < upto; length++) {
      const data = Uint8Array.from({ length }, (_, n) => (n * 167 + length) % 256);
      const key = verifier.sha256(join(Uint8Array.of(1), data)).subarray(0, 1 + (length % 32));
      const how = { name: "HMAC", hash: "SHA-256" };
      const hmacKey = await subtle.importKey("raw", key, how, false, ["sign"]);
      const hash = await subtle.digest("SHA-256", data);
      const hmac = await subtle.sign(how, hmacKey, data);
      if (hex(verifier.sha256(data)) !== hex(new Uint8Array(hash))) different.push(length);
      if (hex(verifier.hmac256(key, data)) !== hex(new Uint8Array(hmac))) different.push(-length);
    }
    return { different };
  },
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { do: method, ...params } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await METHODS[method](params))}\n`);
}
