/**
 * The client's random bytes for each shuffle: 32 fresh bytes r, the nonce. Its digest may be sent
 * before the shuffle starts. The nonce itself is revealed only under a signed head that covers the
 * digest, because from then on the server can change nothing. Nonces are stored before anything of
 * them is sent, and are never used twice.
 */

import { hex, playerDigest, unhex } from "../verify.js";
import { shuffleKey } from "./stores.js";

/** @typedef {import("./stores.js").ShuffleSeat} ShuffleSeat */
/** @typedef {import("./stores.js").TableStore} TableStore */

const BYTES_OF = { players: "the players' bytes", house: "the house's bytes alone" };

export class Entropy {
  /** @type {string[]} what only this player can know and cannot prove */
  doubts = [];
  #committed = new Set();
  #revealed = new Set();
  #doubted = new Set();
  #others = new Set(); // digests that another client of this player has sent
  #table;
  #store;
  #onDoubt;

  /**
   * @param {string} table
   * @param {TableStore} store
   * @param {(sentence: string) => void} onDoubt
   */
  constructor(table, store, onDoubt) {
    this.#table = unhex(table);
    this.#store = store;
    this.#onDoubt = onDoubt;
  }

  /**
   * The request that is due now, or null. `heads` and `digests` were verified.
   *
   * @returns {{ method: string, params: Record<string, any> } | null}
   */
  nextRequest(round, { seat, since }, { log: { heads }, digests }) {
    if (round === null || round.entropy !== "players") return null;
    const shuffleSeat = { round: round.number, k: round.k, seat, since };
    if (round.withheld.has(seat)) {
      this.#checkWithheld(shuffleSeat);
      return null;
    }
    const { shuffle } = round;
    if (shuffle === null) return this.#commit(round.earlyDigests, shuffleSeat);
    if (!shuffle.closed) return this.#commit(shuffle.digests, shuffleSeat);
    this.checkShuffle(round, { seat, since });
    // A snapshot may claim that it has our digest; only a leaf under a head proves it.
    if (!digests.has(shuffle.digests.get(seat))) return null;
    return this.#reveal(shuffle, heads.get(shuffle.closed), shuffleSeat);
  }

  /**
   * Doubt a shuffle whose digests were closed without ours. This is checked even while the client
   * is still catching up: a server that pretends to send old events could otherwise keep the
   * client from committing.
   */
  checkShuffle(round, { seat, since }) {
    const shuffle = round?.shuffle;
    if (!shuffle || round.entropy !== "players" || round.withheld.has(seat)) return;
    if (since >= shuffle.closed) return;
    const shuffleSeat = { round: round.number, k: shuffle.k, seat, since };
    if (!shuffle.digests.has(seat)) {
      const sentence = `Shuffle ${shuffle.k} of round ${round.number} does not use our bytes.`;
      this.#doubtOnce(shuffleSeat, sentence);
    } else {
      this.#ownOrDoubt(shuffle.digests.get(seat), shuffleSeat);
    }
  }

  /**
   * Take the digests of our seat that came while we were away for those of another client that
   * plays this seat in turn with us. Only that client can check them.
   */
  attribute(round, { seat }) {
    for (const digests of [round?.earlyDigests, round?.shuffle?.digests]) {
      if (digests?.has(seat)) this.#others.add(digests.get(seat));
    }
  }

  /** Whether another client of this player has sent the digest of our seat in the shuffle. */
  isOfOther({ number, shuffle }, { seat, since }) {
    const digest = shuffle.digests.get(seat);
    const shuffleSeat = { round: number, k: shuffle.k, seat, since };
    return this.#others.has(digest) && this.#own(digest, shuffleSeat) === null;
  }

  /** Doubt a round that takes other bytes than requested: only this client knows the request. */
  compare(round, taken, requested) {
    if (taken === undefined || taken === requested) return;
    this.#doubt(
      `Round ${round} uses ${BYTES_OF[taken]}, but ${BYTES_OF[requested]} were requested.`,
    );
  }

  /** Whether these bytes, in hex, are those that this client drew for a shuffle. */
  isOurs({ round, k, seat, since, nonce }) {
    const shuffleSeat = { round, k, seat, since };
    return this.#own(this.#digest(shuffleSeat, nonce), shuffleSeat) !== null;
  }

  #commit(committed, shuffleSeat) {
    const { round, k, seat } = shuffleSeat;
    const key = shuffleKey(shuffleSeat);
    if (this.#committed.has(key)) return null;
    if (committed.has(seat)) {
      this.#ownOrDoubt(committed.get(seat), shuffleSeat);
      return null;
    }
    const stored = this.#store.nonce(shuffleSeat);
    // The server knows a nonce that was revealed: it must not be committed again.
    const fresh = stored === null || stored.under !== "";
    const value = fresh ? hex(crypto.getRandomValues(new Uint8Array(32))) : stored.value;
    const digest = this.#digest(shuffleSeat, value);
    if (fresh) {
      this.#store.claimNonce(shuffleSeat, value);
      this.#store.saveNonce(shuffleSeat, digest, { value, under: "" });
    }
    this.#committed.add(key);
    return { method: "entropy.commit", params: { round, k, digest } };
  }

  #reveal(shuffle, root, shuffleSeat) {
    const { round, k, seat } = shuffleSeat;
    const key = shuffleKey(shuffleSeat);
    if (root === undefined || shuffle.nonces.has(seat) || this.#revealed.has(key)) return null;
    const digest = shuffle.digests.get(seat);
    const value = this.#ownOrDoubt(digest, shuffleSeat);
    if (value === null) return null;
    const { under } = this.#store.nonce(shuffleSeat, digest);
    if (under && under !== root) {
      this.#doubtOnce(shuffleSeat, "Our bytes were revealed under another signed head before.");
      return null;
    }
    if (!under) this.#store.saveNonce(shuffleSeat, digest, { value, under: root });
    this.#revealed.add(key);
    return { method: "entropy.reveal", params: { round, k, nonce: value } };
  }

  #checkWithheld(shuffleSeat) {
    const voided = { ...shuffleSeat, k: shuffleSeat.k - 1 };
    const nonce = this.#store.nonce(voided);
    if (nonce === null) return;
    const why = nonce.under
      ? "though our bytes were sent"
      : "but our bytes could not be revealed, because no signed head with our digest came";
    const { k, round } = voided;
    this.#doubtOnce(
      voided, `The server counts us as silent in shuffle ${k} of round ${round}, ${why}.`,
    );
  }

  /** The nonce of a digest; null if the digest is not ours, and a doubt if it is no one's. */
  #ownOrDoubt(digest, shuffleSeat) {
    const value = this.#own(digest, shuffleSeat);
    if (value === null && !this.#others.has(digest)) {
      this.#doubtOnce(shuffleSeat, foreignDigest(shuffleSeat));
    }
    return value;
  }

  /** The nonce of a digest; null if the digest is not ours. */
  #own(digest, shuffleSeat) {
    const nonce = this.#store.nonce(shuffleSeat, digest);
    return nonce !== null && this.#digest(shuffleSeat, nonce.value) === digest ? nonce.value : null;
  }

  #digest({ round, k, seat }, nonce) {
    return playerDigest(this.#table, round, k, seat, unhex(nonce));
  }

  #doubtOnce(shuffleSeat, sentence) {
    const key = shuffleKey(shuffleSeat);
    if (this.#doubted.has(key)) return;
    this.#doubted.add(key);
    this.#doubt(sentence);
  }

  #doubt(sentence) {
    this.doubts.push(sentence);
    this.#onDoubt(sentence);
  }
}

const foreignDigest = ({ k }) =>
  `The log has a digest for our seat in shuffle ${k} that is not ours.`;
