/**
 * The requests that a seated client sends on its own: digests and nonces for shuffles, and
 * cosignatures of checkpoints. Verified heads are stored first.
 */

import { CHECKPOINT_TYPES, readCheckpoint } from "../verify.js";
import { cosign } from "./cosigner.js";
import { Entropy } from "./entropy.js";
import { ConfigurationError } from "./errors.js";

/** @typedef {import("../client.js").Cosigner} Cosigner */
/** @typedef {import("./event_verifier.js").EventVerifier} EventVerifier */
/** @typedef {import("./stores.js").TableStore} TableStore */

export class DueRequests {
  cosigned = 0; // size of the newest checkpoint whose cosignature the server accepted
  /** @type {Cosigner | null} */
  cosigner;
  #verifier;
  #store;
  #request;
  #onCosigned;
  #checkpointDue = 0; // version of the latest event that a checkpoint follows
  #uncosigned = ""; // the newest verified checkpoint that is to be cosigned

  /**
   * @param {EventVerifier} verifier
   * @param {TableStore} store
   * @param {object} options
   * @param {Cosigner | null} options.cosigner
   * @param {(method: string, params: object) => Promise<any>} options.request
   * @param {(sentence: string) => void} options.onDoubt
   * @param {() => void} options.onCosigned
   */
  constructor(verifier, store, { cosigner, request, onDoubt, onCosigned }) {
    this.entropy = new Entropy(verifier.id, store, onDoubt);
    this.cosigner = cosigner;
    this.#verifier = verifier;
    this.#store = store;
    this.#request = request;
    this.#onCosigned = onCosigned;
  }

  /** Store what was verified; `event` is the latest one. */
  save(event) {
    const { log } = this.#verifier;
    if (log.key) this.#store.update({ key: log.key });
    if (event && CHECKPOINT_TYPES.includes(event.type)) this.#checkpointDue = event.version;
    for (const head of log.newHeads.splice(0)) {
      this.#store.saveHead(head);
      if (head.size === this.#checkpointDue) this.#uncosigned = head.note;
    }
  }

  /**
   * Send what is due. While events are missing, only check the running shuffle. `away` says that
   * the newest event is of a time when this client was not connected. Throws ConfigurationError if
   * a nonce cannot be stored.
   */
  send({ upToDate, away }) {
    const { seat, ledger } = this.#verifier;
    if (seat === null || !this.#isStillSeated()) return;
    const holder = { seat, since: this.#store.facts.since };
    if (away && this.#store.facts.shared) this.entropy.attribute(ledger.round, holder);
    if (!upToDate) {
      this.entropy.checkShuffle(ledger.round, holder);
      return;
    }
    const due = this.entropy.nextRequest(ledger.round, holder, this.#verifier);
    // A refusal here means that the deadline has passed; the log then says so for everyone.
    if (due) this.#request(due.method, due.params).catch(() => {});
    this.#cosignNewest().catch(() => {});
  }

  /** The line that cosigns a checkpoint. Throws ConfigurationError without a key. */
  async cosignature(note) {
    if (!this.cosigner) {
      throw new ConfigurationError("This client has no key to cosign with: `connect` was given " +
        "`cosigner: false`, or there is no WebCrypto with Ed25519 here.");
    }
    return cosign(this.cosigner, note);
  }

  /** Cosign only the newest checkpoint: after a resume it covers those that were missed. */
  async #cosignNewest() {
    const note = this.#uncosigned;
    this.#uncosigned = "";
    const { key } = this.#verifier.players.get(this.#verifier.seat);
    if (!note || !this.cosigner || this.cosigner.key !== key) return;
    const cosignature = await this.cosignature(note);
    await this.#request("table.cosign", { cosignature });
    this.cosigned = Math.max(this.cosigned, readCheckpoint(note).size);
    this.#onCosigned();
  }

  /** Whether the seat is still held by this player, and not by an earlier or later one. */
  #isStillSeated() {
    const { players, seat } = this.#verifier;
    return players.get(seat)?.since === this.#store.facts.since;
  }
}
