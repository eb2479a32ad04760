/**
 * The client's own Merkle tree of a table's log, and the signed heads that must agree with it. A
 * server that shows two clients different logs has to sign two trees or find a hash collision.
 *
 * Roots and edges are hex. A head is { size, note, edge }. Checking a signature takes time, so
 * `readNote` has to be awaited for a note before any other method takes it.
 */

import {
  RuleViolation, Tree, cosignedBy, hex, houseOf, isBytes32, isCount, isOrigin, readCheckpoint,
  requireLeaves, signedBy, unhex,
} from "../verify.js";
import {
  DIFFERENT_KEY, DIFFERENT_LOG, FORKED, LOG_WENT_BACK, MissingEvents, accuse,
} from "./errors.js";
import { edgeLength, isConsistent, treeFromEdge } from "./merkle.js";

/** @typedef {import("./stores.js").SavedHead} SavedHead */
/** @typedef {{ size: number, root: string }} Head */

export class VerifiedLog {
  /** @type {Map<number, string>} size → root of the signed heads that agree with our tree */
  heads = new Map();
  /** @type {SavedHead[]} verified heads that the caller has not stored yet */
  newHeads = [];
  latest = ""; // the note over all events that the server had at the last resume
  goodSignatures = 0;
  /** @type {Set<string>} keys of the table's players, whose cosignatures must be valid */
  cosigners = new Set();
  /** @type {Map<string, Head>} by note */
  #opened = new Map();
  /** @type {string[]} notes that came before the table's key was known */
  #early = [];
  /** @type {Tree | null} tree that grows from the newest saved head to `start` */
  #link = null;
  #linkedFrom = ""; // the note of that head
  #start = 0;
  #startEdge = [];
  #tree = new Tree();
  #hashes = []; // of leaves start+1, start+2, …
  /** @type {Map<number, string>} cached roots of our own tree, by size */
  #roots = new Map();
  #saved;
  /** @type {SavedHead[]} saved heads whose notes were not read yet, for lack of the table's key */
  #unread;
  #savedSizes;
  /** @type {Map<number, string>} notes over events that have not come yet, by size */
  #awaited;

  /**
   * @param {string} table
   * @param {object} options
   * @param {string | null} options.key the table's key, if it is known
   * @param {SavedHead[]} options.saved heads that were verified in earlier sessions
   * @param {string | null} options.noSignatures why signatures cannot be checked here
   */
  constructor(table, { key, saved, noSignatures }) {
    this.table = table;
    this.key = key;
    this.noSignatures = noSignatures;
    this.newest = saved.at(-1)?.note ?? "";
    this.#saved = [...saved].sort((a, b) => a.size - b.size);
    this.#savedSizes = new Set(saved.map(({ size }) => size));
    this.#awaited = new Map(saved.map(({ size, note }) => [size, note]));
    this.#roots.set(0, hex(this.#tree.root()));
    this.#unread = [...saved];
  }

  get version() {
    return this.#tree.size;
  }

  /** Whether the log is known to extend the newest saved head. */
  get linked() {
    return this.#link === null;
  }

  /** The version to resume after. */
  resumeAfter() {
    return this.#link === null ? this.version : this.#link.size;
  }

  /** The root of our own tree at an earlier size; null for sizes before our start. */
  rootAt(size) {
    if (this.#start <= size && size <= this.version) {
      if (!this.#roots.has(size)) this.#roots.set(size, hex(this.#treeAt(size).root()));
      return this.#roots.get(size);
    }
    return this.#link !== null && size === this.#link.size ? hex(this.#link.root()) : null;
  }

  /** Accept the table's key the first time, and require the same one from then on. */
  pinKey(key) {
    if (this.key === null) this.key = key;
    else if (key !== this.key) accuse(DIFFERENT_KEY, { check: "signatures" });
  }

  /** Parse the saved notes and check their signatures, once the table's key is known. */
  async readSaved() {
    for (const { note } of this.#unread.splice(0)) await this.readNote(note);
  }

  /** Parse a note and check its signatures. */
  async readNote(note) {
    if (this.#opened.has(note)) return;
    if (this.key === null) {
      accuse("The server signed a checkpoint before it gave this table's key.", { notes: [note] });
    }
    await this.readSaved();
    try {
      const head = readCheckpoint(note);
      if (!isOrigin(head.origin) || head.origin.slice(-32) !== this.table) {
        throw new RuleViolation("This is a checkpoint of another table.");
      }
      requireLeaves(head);
      if (this.noSignatures === null) {
        if (!(await signedBy(head, houseOf(head.origin, this.key)))) {
          throw new RuleViolation("The house's key did not sign this checkpoint.");
        }
        await cosignedBy(head, this.cosigners);
        this.goodSignatures += 1;
      }
      this.#opened.set(note, headOf(head));
    } catch (error) {
      if (!(error instanceof RuleViolation)) throw error;
      const message = "A checkpoint is not signed with this table's key, or not validly.";
      accuse(`${message} ${error.message}`, { check: "signatures", notes: [note] });
    }
  }

  /** Append the next event by its leaf hash, and compare a head that was awaited at this size. */
  append(leaf, remembersRoot) {
    this.#tree.append(leaf);
    this.#hashes.push(leaf);
    if (remembersRoot) this.rootAt(this.version);
    const note = this.#awaited.get(this.version);
    this.#awaited.delete(this.version);
    if (note) this.#compareHead(this.version, note);
  }

  /** Take the heads that came before the table's key. */
  async takeEarlyNotes() {
    if (this.key === null) return;
    for (const note of this.#early.splice(0)) await this.takeCheckpoint(note);
  }

  /** Take an event that came before: it must be the same; before our start it extends the link. */
  takeOldEvent(version, leaf) {
    if (version > this.#start) {
      if (hex(this.#hashes[version - this.#start - 1]) !== hex(leaf)) {
        accuse(`The server sent two different events ${version}.`, { check: "roots" });
      }
      return;
    }
    const link = this.#link;
    if (link === null || version <= link.size) return;
    if (version > link.size + 1) throw new MissingEvents();
    link.append(leaf);
    if (link.size === this.#start) {
      if (hex(link.root()) !== this.rootAt(this.#start)) {
        const message = "The server's log does not continue the one that was saved.";
        accuse(message, { check: "roots", notes: [this.#linkedFrom] });
      }
      this.#endLink();
    }
  }

  /** Take a signed head: compare it now, or when the events that it covers have come. */
  async takeCheckpoint(note) {
    if (this.key === null) {
      this.#early.push(note);
      return;
    }
    await this.readNote(note);
    this.#keepHead(note);
  }

  /** Take the head over all events that the server has: it must not cover less than before. */
  async takeLatest(note) {
    this.latest = note;
    const known = this.#largestKnown();
    if (known && this.key !== null) {
      await this.readNote(note);
      if (this.#head(note).size < known) {
        accuse(LOG_WENT_BACK, { check: "roots", notes: [note] });
      }
    }
    await this.takeCheckpoint(note);
  }

  /** Start from a snapshot: the tree's edge and the signed head at `version`, read before. */
  begin({ version, edge, note }) {
    this.latest = note;
    if (this.#head(note).size < this.#largestKnown()) {
      accuse(LOG_WENT_BACK, { check: "roots", notes: [note] });
    }
    this.#requireNoFork(note);
    this.#restart(this.#treeOf(version, edge, note), note);
    const saved = this.#saved.filter(({ size }) => size < version).at(-1);
    if (saved) {
      this.#link = treeFromEdge(saved.size, saved.edge.map(unhex));
      this.#linkedFrom = saved.note;
    }
  }

  /** Compare a snapshot with our own log, as far as that reaches. */
  async compare({ version, edge, note }) {
    await this.readNote(note);
    const root = hex(this.#treeOf(version, edge, note).root());
    const ours = this.rootAt(version);
    if (ours !== null && ours !== root) accuse(DIFFERENT_LOG, { check: "roots", notes: [note] });
    await this.takeCheckpoint(note);
  }

  /**
   * Continue at a snapshot that replaces the events after `after`. Returns whether the tree was
   * restarted from it.
   *
   * `proof` is the RFC 9162 consistency proof from `after`. A client that is host and player gets
   * the snapshot twice: a copy of what we hold already needs no proof, unless we hold more. Throws
   * MissingEvents for a proof from another version than ours. The signed head is compared all the
   * same, now or when the events that it covers arrive.
   *
   * @returns {boolean}
   */
  reset({ version, edge, note }, { proof, after }) {
    const less = version < after || (proof === null && version < this.version);
    if (less) accuse(LOG_WENT_BACK, { check: "roots", notes: [note] });
    const tree = this.#treeOf(version, edge, note);
    const root = hex(tree.root());
    const ours = this.rootAt(version);
    if (ours !== null && ours !== root) accuse(DIFFERENT_LOG, { check: "roots", notes: [note] });
    // The second of two snapshots that were requested, as host and as player, before anything was
    // held: the link to the saved head is proved only by the resume that begins at that head.
    if (ours !== null && (this.#link === null || after !== this.#link.size)) return false;
    // From an earlier version it would prove nothing about what came since: such a snapshot is the
    // answer to another resume, one before the latest, or one as host beside that of the player.
    const oldRoot = this.linked && after !== this.version ? null : this.rootAt(after);
    if (oldRoot === null) {
      this.#keepHead(note);
      throw new MissingEvents();
    }
    const notes = [this.#linkedFrom, note];
    if (proof === null) accuse(LOG_WENT_BACK, { check: "roots", notes });
    const [before, now] = [{ size: after, root: oldRoot }, { size: version, root }];
    if (!isConsistent(before, now, this.#hashesFrom(proof, note))) {
      const message = "The server's log does not continue the one that this client saw.";
      accuse(message, { check: "roots", notes });
    }
    this.#endLink();
    if (ours !== null) return false;
    this.#restart(tree, note);
    return true;
  }

  #largestKnown() {
    return Math.max(0, ...this.#savedSizes, ...this.#awaited.keys());
  }

  #endLink() {
    this.#link = null;
    for (const size of this.#awaited.keys()) {
      if (size <= this.#start) this.#awaited.delete(size);
    }
  }

  #restart(tree, note) {
    this.#tree = tree;
    this.#start = tree.size;
    this.#startEdge = [...tree.edge];
    this.#hashes = [];
    this.#roots = new Map([[tree.size, hex(tree.root())]]);
    this.#awaited.delete(tree.size);
    this.#compareHead(tree.size, note);
  }

  /** Compare a head, now or when the events that it covers have arrived. */
  #keepHead(note) {
    const { size } = this.#head(note);
    if (size <= this.version) {
      this.#compareHead(size, note);
      return;
    }
    this.#requireNoFork(note);
    if (!this.#awaited.has(size)) this.#awaited.set(size, note);
  }

  #requireNoFork(note) {
    const { size, root } = this.#head(note);
    const known = this.#awaited.get(size);
    if (known && this.#head(known).root !== root) {
      accuse(FORKED, { check: "roots", notes: [known, note] });
    }
  }

  #compareHead(size, note) {
    const { root } = this.#head(note);
    const ours = this.rootAt(size);
    if (ours === null) return;
    if (root !== ours) accuse(DIFFERENT_LOG, { check: "roots", notes: [note] });
    if (this.heads.has(size)) return;
    this.heads.set(size, root);
    this.newest = note;
    // Save a late head, too, unless a newer one is saved, which covers it: nonces are revealed
    // under it, so it must be known again after a restart.
    const latest = Math.max(0, ...this.#savedSizes);
    if (!this.#savedSizes.has(size) && (size === this.version || size > latest)) {
      this.newHeads.push({ size, note, edge: this.#treeAt(size).edge.map(hex) });
      this.#savedSizes.add(size);
    }
  }

  /** Our own tree at an earlier size that is not before our start. */
  #treeAt(size) {
    if (size === this.version) return this.#tree;
    const tree = treeFromEdge(this.#start, this.#startEdge);
    for (const hash of this.#hashes.slice(0, size - this.#start)) tree.append(hash);
    return tree;
  }

  /** The tree with this edge, which the signed head in `note` must be over. */
  #treeOf(version, edge, note) {
    const { size, root } = this.#head(note);
    const hashes = this.#hashesFrom(edge, note);
    if (!isCount(version) || edgeLength(version) !== hashes.length) {
      accuse("The server sent an impossible Merkle tree.", { check: "roots", notes: [note] });
    }
    const tree = treeFromEdge(version, hashes);
    if (size !== version || root !== hex(tree.root())) {
      accuse(DIFFERENT_LOG, { check: "roots", notes: [note] });
    }
    return tree;
  }

  #head(note) {
    return this.#opened.get(note);
  }

  #hashesFrom(texts, note) {
    if (!Array.isArray(texts) || !texts.every(isBytes32)) {
      accuse("The server sent malformed hashes.", { check: "roots", notes: [note] });
    }
    return texts.map(unhex);
  }
}

/** @returns {Head} */
const headOf = ({ size, root }) => ({ size, root: hex(root) });
