/** The list of checks that a player sees: what this client itself has verified so far. */

import { INSECURE } from "../verify.js";

/** @typedef {import("../client.js").Check} Check */
/** @typedef {import("./event_verifier.js").EventVerifier} EventVerifier */
/** @typedef {import("./entropy.js").Entropy} Entropy */

/** What a check says besides its state, by the reason that the client gives. */
const SENTENCES = {
  house_only: "This round uses only the house's random bytes. It can be checked that the cards " +
    "were fixed before the deal, but not that the house did not choose them.",
  no_seat: "Only players with a seat contribute random bytes.",
  other_client: "Another client of this player, such as another device, played this seat, and drew " +
    "the random bytes of this shuffle. Only that client can check them. If no other one plays " +
    "this seat, they are not the player's.",
  not_seen: "This happened while this client was not at the table, so it cannot check it.",
  replayed_partly: "Replayed from where this client joined.",
};

export class Checks {
  #verifier;
  #entropy;
  #noSignatures;
  #moves = 0;
  #seals = []; // versions of this round's DeckSealed events
  #closings = []; // versions of this round's EntropyClosed events
  #eligible = 0; // shuffles of this round that could have used our bytes
  #ofOthers = 0; // shuffles of this round for which another client of this player drew the bytes
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
      if (round.entropy === "players" && eligible) {
        if (this.#entropy.isOfOther(round, { seat, since })) this.#ofOthers += 1;
        else this.#eligible += 1;
      }
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
    this.#eligible = this.#used = this.#ofOthers = 0;
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
    const { log, openings, round, replayedFromStart, startMissed } = this.#verifier;
    const running = Boolean(round?.shuffle);
    const signed = (versions) => versions.filter((version) => log.heads.has(version)).length;
    const [closings, seals] = [signed(this.#closings), signed(this.#seals)];
    // An unsigned seal could be a different one for every client.
    const sealed = seals > 0 && seals === this.#seals.length && !running;
    const replayed = this.#replayed > 0 && round === null;
    const note = replayed && !replayedFromStart ? "replayed_partly" : null;
    const unavailable = this.#noSignatures === null
      ? null : `Signatures are not checked: ${this.#noSignatures}`;
    // The shuffle was before: another one of this round would be checked.
    const unseen = (versions) =>
      (startMissed && versions.length === 0 && !running ? { because: "not_seen" } : {});
    return [
      this.#ownBytes(running),
      this.#check("commitment", closings > 0 && closings === this.#closings.length, closings,
        { of: this.#closings.length, ...unseen(this.#closings) }),
      this.#check("seal", sealed, seals, unseen(this.#seals)),
      this.#check("cards", openings.size > 0, openings.size),
      this.#check("roots", log.heads.size > 0, log.heads.size),
      this.#check("signatures", log.goodSignatures > 0, log.goodSignatures, { unavailable }),
      this.#check("moves", this.#moves > 0, this.#moves),
      this.#check("round", replayed, this.#replayed, {
        remark: note, failure: this.#verifier.insecure ? INSECURE : null,
      }),
    ];
  }

  #ownBytes(running) {
    const { seat, round, rounds, entropies, startMissed, players } = this.#verifier;
    // The shuffles of this round were before the player sat down.
    const isLate = this.#closings.some((version) => version < players.get(seat)?.since);
    const doubt = this.#entropy.doubts.slice(this.#doubtsBefore).at(-1) ?? null;
    let because = null;
    if (entropies.get(rounds) === "house") because = "house_only";
    else if (seat === null) because = "no_seat";
    else if (this.#ofOthers > 0) because = "other_client";
    else if ((startMissed || isLate) && this.#eligible === 0 && !running) because = "not_seen";
    const all = this.#used > 0 && this.#used === this.#eligible;
    const waiting = running && round.k === round.shuffle.k && !round.shuffle.nonces.has(seat);
    return this.#check("entropy", all && !waiting, this.#used, {
      of: this.#eligible, because, failure: doubt,
    });
  }

  /** @returns {Check} */
  #check(name, holds, done, options = {}) {
    const { of = null, unavailable = null, because = null, remark = null } = options;
    const failure = this.#fault?.check === name ? this.#fault.message : options.failure ?? null;
    const missing = unavailable !== null || because !== null;
    const state = failure ? "no" : missing ? "unavailable" : holds ? "yes" : "waiting";
    const reason = failure || unavailable ? null : because ?? remark;
    const sentence = failure ?? unavailable ?? (reason && SENTENCES[reason]);
    return { name, state, done, of, sentence, because: reason };
  }
}
