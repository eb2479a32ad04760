/** The list of checks that a player sees: what this client itself has verified so far. */

import { INSECURE } from "../verify.js";

/** @typedef {import("../client.js").Check} Check */
/** @typedef {import("./event_verifier.js").EventVerifier} EventVerifier */
/** @typedef {import("./entropy.js").Entropy} Entropy */

const HOUSE_ONLY =
  "This round uses only the house's random bytes. It can be checked that the cards were fixed " +
  "before the deal, but not that the house did not choose them.";

export class Checks {
  #verifier;
  #entropy;
  #noSignatures;
  #moves = 0;
  #seals = []; // versions of this round's DeckSealed events
  #closings = []; // versions of this round's EntropyClosed events
  #eligible = 0; // shuffles of this round that could have used our bytes
  #used = 0; // shuffles of this round that used them
  #doubtsBefore = 0; // doubts of earlier rounds
  #replayed = 0;
  #fault = null;
  #last = "";

  /**
   * @param {EventVerifier} verifier
   * @param {Entropy} entropy
   * @param {string | null} noSignatures why signatures cannot be checked here
   */
  constructor(verifier, entropy, noSignatures) {
    this.#verifier = verifier;
    this.#entropy = entropy;
    this.#noSignatures = noSignatures;
  }

  onEvent({ type, version, public: event }, since) {
    const { seat, round } = this.#verifier;
    this.#moves += 1;
    if (type === "RoundOpened") {
      this.onReset();
      this.#doubtsBefore = this.#entropy.doubts.length;
    } else if (type === "EntropyClosed") {
      this.#closings.push(version);
      const eligible = seat !== null && since < version && !round.withheld.has(seat);
      if (round.entropy === "players" && eligible) this.#eligible += 1;
    } else if (type === "EntropyRevealed" && event.seat === seat) {
      if (this.#entropy.isOurs({ ...event, since })) this.#used += 1;
    } else if (type === "DeckSealed") {
      this.#seals.push(version);
    } else if (type === "RoundClosed") {
      this.#replayed += 1;
    }
  }

  onFault(fault) {
    this.#fault = fault;
  }

  /** A snapshot replaced events, so earlier shuffles say nothing about the current state. */
  onReset() {
    this.#eligible = this.#used = 0;
    this.#seals = [];
    this.#closings = [];
  }

  /** Whether the list differs from that of the previous call. */
  changed() {
    const current = JSON.stringify(this.list());
    const changed = current !== this.#last;
    this.#last = current;
    return changed;
  }

  /** @returns {Check[]} */
  list() {
    const { log, openings, round, replayedFromStart } = this.#verifier;
    const running = Boolean(round?.shuffle);
    const signed = (versions) => versions.filter((version) => log.heads.has(version)).length;
    const [closings, seals] = [signed(this.#closings), signed(this.#seals)];
    // An unsigned seal could be a different one for every client.
    const sealed = seals > 0 && seals === this.#seals.length && !running;
    const replayed = this.#replayed > 0 && round === null;
    const note = replayed && !replayedFromStart ? "Replayed from where this client joined." : null;
    const unavailable = this.#noSignatures === null
      ? null : `Signatures are not checked: ${this.#noSignatures}`;
    return [
      this.#ownBytes(running),
      this.#check("commitment", closings > 0 && closings === this.#closings.length, closings,
        { of: this.#closings.length }),
      this.#check("seal", sealed, seals),
      this.#check("cards", openings.size > 0, openings.size),
      this.#check("roots", log.heads.size > 0, log.heads.size),
      this.#check("signatures", log.goodSignatures > 0, log.goodSignatures, { unavailable }),
      this.#check("moves", this.#moves > 0, this.#moves),
      this.#check("round", replayed, this.#replayed, {
        note, failure: this.#verifier.insecure ? INSECURE : null,
      }),
    ];
  }

  #ownBytes(running) {
    const { seat, round, rounds, entropies } = this.#verifier;
    const doubt = this.#entropy.doubts.slice(this.#doubtsBefore).at(-1) ?? null;
    let unavailable = null;
    if (entropies.get(rounds) === "house") unavailable = HOUSE_ONLY;
    else if (seat === null) unavailable = "Only players with a seat contribute random bytes.";
    const all = this.#used > 0 && this.#used === this.#eligible;
    const waiting = running && round.k === round.shuffle.k && !round.shuffle.nonces.has(seat);
    return this.#check("entropy", all && !waiting, this.#used, {
      of: this.#eligible, unavailable, failure: doubt,
    });
  }

  /** @returns {Check} */
  #check(name, holds, done, { of = null, unavailable = null, failure = null, note = null } = {}) {
    if (this.#fault?.check === name) failure = this.#fault.message;
    const state = failure ? "no" : unavailable ? "unavailable" : holds ? "yes" : "waiting";
    return { name, state, done, of, sentence: failure ?? unavailable ?? note };
  }
}
